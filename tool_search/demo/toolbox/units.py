"""Everyday units: length, area, volume, mass, temperature, cooking."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

from typing import Literal

from tool_search.demo.toolbox.arguments import choose, require_positive
from tool_search.demo.toolbox.rounding import tidy

LengthUnit = Literal[
    "mm", "cm", "m", "km", "inch", "foot", "yard", "mile", "nautical_mile", "light_year",
    "li", "zhang", "chi", "cun",
]  # fmt: skip
AreaUnit = Literal[
    "cm2", "m2", "km2", "hectare", "acre", "inch2", "foot2", "yard2", "mile2", "mu",
]  # fmt: skip
VolumeUnit = Literal[
    "ml", "l", "cm3", "m3", "us_gallon", "uk_gallon", "us_quart", "us_pint", "uk_pint",
    "us_fluid_ounce", "uk_fluid_ounce", "inch3", "foot3", "oil_barrel",
]  # fmt: skip
MassUnit = Literal[
    "mg", "g", "kg", "tonne", "ounce", "pound", "stone", "us_ton", "uk_ton", "carat",
    "jin", "liang", "qian",
]  # fmt: skip
TemperatureUnit = Literal["celsius", "fahrenheit", "kelvin", "rankine"]
CookingUnit = Literal[
    "ml", "l", "teaspoon", "tablespoon", "us_cup", "us_fluid_ounce", "metric_cup",
    "metric_tablespoon", "metric_teaspoon", "japanese_cup",
]  # fmt: skip

METRES: dict[LengthUnit, float] = {
    "mm": 0.001, "cm": 0.01, "m": 1, "km": 1000, "inch": 0.0254, "foot": 0.3048,
    "yard": 0.9144, "mile": 1609.344, "nautical_mile": 1852, "light_year": 9460730472580800,
    "li": 500, "zhang": 10 / 3, "chi": 1 / 3, "cun": 1 / 30,
}  # fmt: skip
SQUARE_METRES: dict[AreaUnit, float] = {
    "cm2": 1e-4, "m2": 1, "km2": 1e6, "hectare": 1e4, "acre": 4046.8564224,
    "inch2": 0.00064516, "foot2": 0.09290304, "yard2": 0.83612736, "mile2": 2589988.110336,
    "mu": 2000 / 3,
}  # fmt: skip
LITRES: dict[VolumeUnit, float] = {
    "ml": 0.001, "l": 1, "cm3": 0.001, "m3": 1000, "us_gallon": 3.785411784,
    "uk_gallon": 4.54609, "us_quart": 0.946352946, "us_pint": 0.473176473,
    "uk_pint": 0.56826125, "us_fluid_ounce": 0.0295735295625, "uk_fluid_ounce": 0.0284130625,
    "inch3": 0.016387064, "foot3": 28.316846592, "oil_barrel": 158.987294928,
}  # fmt: skip
GRAMS: dict[MassUnit, float] = {
    "mg": 0.001, "g": 1, "kg": 1000, "tonne": 1e6, "ounce": 28.349523125,
    "pound": 453.59237, "stone": 6350.29318, "us_ton": 907184.74, "uk_ton": 1016046.9088,
    "carat": 0.2, "jin": 500, "liang": 50, "qian": 5,
}  # fmt: skip
COOKING_MILLILITRES: dict[CookingUnit, float] = {
    "ml": 1, "l": 1000, "teaspoon": 4.92892159375, "tablespoon": 14.78676478125,
    "us_cup": 236.5882365, "us_fluid_ounce": 29.5735295625, "metric_cup": 250,
    "metric_tablespoon": 15, "metric_teaspoon": 5, "japanese_cup": 200,
}  # fmt: skip
# Kelvin = (degrees + offset) * scale.
_KELVIN: dict[TemperatureUnit, tuple[float, float]] = {
    "celsius": (273.15, 1),
    "fahrenheit": (459.67, 5 / 9),
    "kelvin": (0, 1),
    "rankine": (0, 5 / 9),
}


def convert_length(value: float, from_unit: LengthUnit, to_unit: LengthUnit) -> float:
    """Convert a length or distance between units. 在不同单位之间换算长度和距离。

    Args:
        value: The length to convert, 长度.
        from_unit: The unit it is in; li 里, zhang 丈, chi 尺 and cun 寸 are Chinese market units.
        to_unit: The unit wanted, 目标单位.
    """
    metres = value * choose("from_unit", from_unit, METRES)
    return tidy(metres / choose("to_unit", to_unit, METRES))


def convert_area(value: float, from_unit: AreaUnit, to_unit: AreaUnit) -> float:
    """Convert an area between units. 在不同单位之间换算面积，含亩和公顷。

    Args:
        value: The area to convert, 面积.
        from_unit: The unit it is in; mu is 亩 (a fifteenth of a hectare).
        to_unit: The unit wanted, 目标单位.
    """
    square_metres = value * choose("from_unit", from_unit, SQUARE_METRES)
    return tidy(square_metres / choose("to_unit", to_unit, SQUARE_METRES))


def convert_volume(value: float, from_unit: VolumeUnit, to_unit: VolumeUnit) -> float:
    """Convert a volume or capacity between units. 在不同单位之间换算体积和容量。

    Args:
        value: The volume to convert, 体积.
        from_unit: The unit it is in, 原单位.
        to_unit: The unit wanted, 目标单位.
    """
    litres = value * choose("from_unit", from_unit, LITRES)
    return tidy(litres / choose("to_unit", to_unit, LITRES))


def convert_mass(value: float, from_unit: MassUnit, to_unit: MassUnit) -> float:
    """Convert a mass or weight between units. 在不同单位之间换算质量和重量。

    Args:
        value: The mass to convert, 重量.
        from_unit: The unit it is in; jin 斤, liang 两 and qian 钱 are Chinese market units.
        to_unit: The unit wanted, 目标单位.
    """
    grams = value * choose("from_unit", from_unit, GRAMS)
    return tidy(grams / choose("to_unit", to_unit, GRAMS))


def convert_temperature(
    value: float, from_unit: TemperatureUnit, to_unit: TemperatureUnit
) -> float:
    """Convert a temperature between scales. 在摄氏、华氏、开尔文之间换算温度。

    Args:
        value: The temperature to convert, 温度; not below absolute zero.
        from_unit: The scale it is in, 原温标.
        to_unit: The scale wanted, 目标温标.
    """
    offset, scale = choose("from_unit", from_unit, _KELVIN)
    kelvin = (value + offset) * scale
    if not kelvin >= 0:
        raise ValueError(f"{value!r} {from_unit} is below absolute zero (0 kelvin)")
    offset, scale = choose("to_unit", to_unit, _KELVIN)
    return round(tidy(kelvin / scale - offset), 9)


def convert_cooking_measure(value: float, from_unit: CookingUnit, to_unit: CookingUnit) -> float:
    """Convert kitchen measures such as cups and spoons. 换算厨房量具，如杯和勺。

    Args:
        value: How many of the measure a recipe asks for, 数量.
        from_unit: The measure of the recipe; plain spoons are US ones.
        to_unit: The measure wanted, 目标量具.
    """
    millilitres = value * choose("from_unit", from_unit, COOKING_MILLILITRES)
    return tidy(millilitres / choose("to_unit", to_unit, COOKING_MILLILITRES))


def height_to_feet_and_inches(height_cm: float) -> str:
    """Write a person's height in feet and inches. 把身高厘米写成英尺英寸。

    Args:
        height_cm: The height in centimetres, 身高（厘米）.
    """
    require_positive("height_cm", height_cm)
    feet, inches = divmod(round(height_cm / 2.54), 12)
    return f"{feet}'{inches}\""


TOOLS = (
    convert_length,
    convert_area,
    convert_volume,
    convert_mass,
    convert_temperature,
    convert_cooking_measure,
    height_to_feet_and_inches,
)
