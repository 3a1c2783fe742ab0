"""Quantities: units, numbers, chance, colours."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import colorsys
import math
import re
import secrets
from typing import Literal

from tool_search.sources.toolbox.arguments import (
    choose,
    require_finite,
    require_length,
    require_within,
    tidy,
)

LengthUnit = Literal[
    "mm", "cm", "m", "km", "inch", "foot", "yard", "mile", "nautical_mile", "light_year",
    "li", "zhang", "chi", "cun",
]  # fmt: skip
AreaUnit = Literal[
    "cm2", "m2", "km2", "hectare", "acre", "inch2", "foot2", "yard2", "mile2", "mu",
]  # fmt: skip
TemperatureUnit = Literal["celsius", "fahrenheit", "kelvin", "rankine"]
AngleUnit = Literal["degree", "radian", "gradian", "turn", "arcminute", "arcsecond"]

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
# Kelvin = (degrees + offset) * scale.
_KELVIN: dict[TemperatureUnit, tuple[float, float]] = {
    "celsius": (273.15, 1),
    "fahrenheit": (459.67, 5 / 9),
    "kelvin": (0, 1),
    "rankine": (0, 5 / 9),
}
DEGREES: dict[AngleUnit, float] = {
    "degree": 1, "radian": 180 / math.pi, "gradian": 0.9, "turn": 360, "arcminute": 1 / 60,
    "arcsecond": 1 / 3600,
}  # fmt: skip
_HEX = re.compile(r"#?([0-9a-f]{3}|[0-9a-f]{6})", re.IGNORECASE | re.ASCII)


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


def convert_angle(value: float, from_unit: AngleUnit, to_unit: AngleUnit) -> float:
    """Convert an angle between degrees, radians and others. 换算角度和弧度。

    Args:
        value: The angle to convert, 角.
        from_unit: The unit it is in, 原单位.
        to_unit: The unit wanted, 目标单位.
    """
    degrees = value * choose("from_unit", from_unit, DEGREES)
    return tidy(degrees / choose("to_unit", to_unit, DEGREES))


def percentage_of(part: float, whole: float) -> float:
    """Say what percentage one number is of another. 求一个数占另一个数的百分之几。

    Args:
        part: The part, 部分.
        whole: The whole it belongs to, 总数; not 0.
    """
    require_finite("part and whole", part, whole)
    if whole == 0:
        raise ValueError(f"whole must not be 0 (part is {part!r})")
    return tidy(part / whole * 100)


def prime_factors(number: int) -> list[int]:
    """Split a whole number into its prime factors. 分解质因数。

    Args:
        number: From 2 to a million million, 整数.
    """
    require_within("number", number, 2, 10**12)
    factors = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return [*factors, number] if number > 1 else factors


def is_prime(number: int) -> bool:
    """Test whether a whole number is prime. 判断一个整数是否为质数。

    Args:
        number: A whole number up to a million million, 整数.
    """
    require_within("number", number, -(10**12), 10**12)
    return number > 1 and prime_factors(number) == [number]


def percentile(numbers: list[float], percent: float) -> float:
    """Find a percentile or quartile of numbers. 求百分位数或四分位数。

    Args:
        numbers: The sample, 数据.
        percent: From 0 to 100, 百分位; between two numbers it interpolates linearly.
    """
    require_length("numbers", numbers, 1, 10_000)
    require_finite("numbers", *numbers)
    require_within("percent", percent, 0, 100)
    ranked = sorted(numbers)
    position = percent / 100 * (len(ranked) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ranked) - 1)
    return tidy(ranked[low] + (ranked[high] - ranked[low]) * (position - low))


def roll_dice(count: int = 1, sides: int = 6) -> dict[str, int | list[int]]:
    """Roll dice. 掷骰子。

    Args:
        count: How many dice, 骰子数; 1 to 100.
        sides: How many sides each has, 面数; 2 to 1000.
    """
    require_within("count", count, 1, 100)
    require_within("sides", sides, 2, 1000)
    rolls = [secrets.randbelow(sides) + 1 for _ in range(count)]
    return {"rolls": rolls, "total": sum(rolls)}


def sphere_measures(radius: float) -> dict[str, float]:
    """Compute a sphere's volume and surface. 计算球的体积和表面积。

    Args:
        radius: The radius, 半径.
    """
    require_within("radius", radius, 1e-50, 1e50)
    return {
        "volume": tidy(4 / 3 * math.pi * radius**3),
        "surface": tidy(4 * math.pi * radius**2),
    }


def hex_to_rgb(color: str) -> list[int]:
    """Convert a hex colour to red, green, blue. 十六进制颜色转 RGB。

    Args:
        color: Such as "#ff8800" or "#f80", 颜色.
    """
    return list(_rgb(color))


def rgb_to_hex(red: int, green: int, blue: int) -> str:
    """Convert red, green, blue to a hex colour. RGB 转十六进制颜色。

    Args:
        red: 0 to 255, 红.
        green: 0 to 255, 绿.
        blue: 0 to 255, 蓝.
    """
    _require_channels(red, green, blue)
    return f"#{red:02x}{green:02x}{blue:02x}"


def rgb_to_hsl(red: int, green: int, blue: int) -> list[float]:
    """Convert red, green, blue to hue, saturation, lightness. RGB 转 HSL 颜色。

    Args:
        red: 0 to 255, 红.
        green: 0 to 255, 绿.
        blue: 0 to 255, 蓝.

    Returns:
        Hue in degrees, saturation and lightness in percent, to one decimal.
    """
    _require_channels(red, green, blue)
    hue, lightness, saturation = colorsys.rgb_to_hls(red / 255, green / 255, blue / 255)
    return [round(hue * 360, 1), round(saturation * 100, 1), round(lightness * 100, 1)]


def _rgb(color: str) -> tuple[int, int, int]:
    match = _HEX.fullmatch(color.strip())
    if match is None:
        raise ValueError(f"color {color!r} is not a hex colour like #ff8800 or #f80")
    digits = match[1] if len(match[1]) == 6 else "".join(c * 2 for c in match[1])
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)


def _require_channels(red: int, green: int, blue: int) -> None:
    for name, value in (("red", red), ("green", green), ("blue", blue)):
        require_within(name, value, 0, 255)
