"""Units of physics and machines: speed, pressure, energy, power, angle, time, data, fuel."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import math
from typing import Literal

from tool_search.demo.toolbox.arguments import choose, require_positive
from tool_search.demo.toolbox.rounding import tidy

SpeedUnit = Literal["m/s", "km/h", "mph", "knot", "ft/s", "light_speed"]
PressureUnit = Literal[
    "Pa", "hPa", "kPa", "MPa", "bar", "mbar", "atm", "psi", "mmHg", "torr",
]  # fmt: skip
EnergyUnit = Literal["J", "kJ", "MJ", "cal", "kcal", "Wh", "kWh", "eV", "BTU", "ft_lb"]
PowerUnit = Literal["W", "kW", "MW", "mechanical_hp", "metric_hp", "BTU/h"]
AngleUnit = Literal["degree", "radian", "gradian", "turn", "arcminute", "arcsecond"]
DurationUnit = Literal["ms", "second", "minute", "hour", "day", "week", "julian_year"]
DataUnit = Literal[
    "bit", "byte", "kB", "MB", "GB", "TB", "PB", "KiB", "MiB", "GiB", "TiB", "PiB",
]  # fmt: skip
FuelUnit = Literal["l_per_100km", "km_per_l", "mpg_us", "mpg_uk"]

METRES_PER_SECOND: dict[SpeedUnit, float] = {
    "m/s": 1, "km/h": 1 / 3.6, "mph": 0.44704, "knot": 1852 / 3600, "ft/s": 0.3048,
    "light_speed": 299792458,
}  # fmt: skip
PASCALS: dict[PressureUnit, float] = {
    "Pa": 1, "hPa": 100, "kPa": 1000, "MPa": 1e6, "bar": 1e5, "mbar": 100, "atm": 101325,
    "psi": 6894.757293168, "mmHg": 133.322387415, "torr": 101325 / 760,
}  # fmt: skip
JOULES: dict[EnergyUnit, float] = {
    "J": 1, "kJ": 1000, "MJ": 1e6, "cal": 4.184, "kcal": 4184, "Wh": 3600, "kWh": 3.6e6,
    "eV": 1.602176634e-19, "BTU": 1055.05585262, "ft_lb": 1.3558179483314004,
}  # fmt: skip
WATTS: dict[PowerUnit, float] = {
    "W": 1, "kW": 1000, "MW": 1e6, "mechanical_hp": 745.6998715822702, "metric_hp": 735.49875,
    "BTU/h": 1055.05585262 / 3600,
}  # fmt: skip
DEGREES: dict[AngleUnit, float] = {
    "degree": 1, "radian": 180 / math.pi, "gradian": 0.9, "turn": 360, "arcminute": 1 / 60,
    "arcsecond": 1 / 3600,
}  # fmt: skip
SECONDS: dict[DurationUnit, float] = {
    "ms": 0.001, "second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800,
    "julian_year": 31557600,
}  # fmt: skip
BITS: dict[DataUnit, float] = {
    "bit": 1, "byte": 8, "kB": 8e3, "MB": 8e6, "GB": 8e9, "TB": 8e12, "PB": 8e15,
    "KiB": 8 * 2**10, "MiB": 8 * 2**20, "GiB": 8 * 2**30, "TiB": 8 * 2**40, "PiB": 8 * 2**50,
}  # fmt: skip
# Kilometres a litre for one of the unit; litres per 100 km is the reciprocal kind.
_KM_PER_LITRE: dict[FuelUnit, float] = {
    "l_per_100km": 100,
    "km_per_l": 1,
    "mpg_us": 1.609344 / 3.785411784,
    "mpg_uk": 1.609344 / 4.54609,
}


def convert_speed(value: float, from_unit: SpeedUnit, to_unit: SpeedUnit) -> float:
    """Convert a speed or velocity between units. 换算速度，如公里每小时和节。

    Args:
        value: The speed to convert, 速度.
        from_unit: The unit it is in, 原单位.
        to_unit: The unit wanted, 目标单位.
    """
    metres_per_second = value * choose("from_unit", from_unit, METRES_PER_SECOND)
    return tidy(metres_per_second / choose("to_unit", to_unit, METRES_PER_SECOND))


def convert_pressure(value: float, from_unit: PressureUnit, to_unit: PressureUnit) -> float:
    """Convert a pressure between units. 换算压强，如大气压、巴和毫米汞柱。

    Args:
        value: The pressure to convert, 压强.
        from_unit: The unit it is in, 原单位.
        to_unit: The unit wanted, 目标单位.
    """
    pascals = value * choose("from_unit", from_unit, PASCALS)
    return tidy(pascals / choose("to_unit", to_unit, PASCALS))


def convert_energy(value: float, from_unit: EnergyUnit, to_unit: EnergyUnit) -> float:
    """Convert an amount of energy or heat between units. 换算能量和热量，如千卡和千焦。

    Args:
        value: The energy to convert, 能量.
        from_unit: The unit it is in; a calorie is the thermochemical one.
        to_unit: The unit wanted, 目标单位.
    """
    joules = value * choose("from_unit", from_unit, JOULES)
    return tidy(joules / choose("to_unit", to_unit, JOULES))


def convert_power(value: float, from_unit: PowerUnit, to_unit: PowerUnit) -> float:
    """Convert power between watts and horsepower. 换算功率，如千瓦和马力。

    Args:
        value: The power to convert, 功率.
        from_unit: The unit it is in; metric_hp is 公制马力 (PS).
        to_unit: The unit wanted, 目标单位.
    """
    watts = value * choose("from_unit", from_unit, WATTS)
    return tidy(watts / choose("to_unit", to_unit, WATTS))


def convert_angle(value: float, from_unit: AngleUnit, to_unit: AngleUnit) -> float:
    """Convert an angle between degrees, radians and others. 换算角度和弧度。

    Args:
        value: The angle to convert, 角.
        from_unit: The unit it is in, 原单位.
        to_unit: The unit wanted, 目标单位.
    """
    degrees = value * choose("from_unit", from_unit, DEGREES)
    return tidy(degrees / choose("to_unit", to_unit, DEGREES))


def convert_duration(value: float, from_unit: DurationUnit, to_unit: DurationUnit) -> float:
    """Convert a length of time between units. 换算时长，如小时、天和周。

    Args:
        value: The duration to convert, 时长.
        from_unit: The unit it is in; julian_year is 365.25 days.
        to_unit: The unit wanted, 目标单位.
    """
    seconds = value * choose("from_unit", from_unit, SECONDS)
    return tidy(seconds / choose("to_unit", to_unit, SECONDS))


def convert_data_size(value: float, from_unit: DataUnit, to_unit: DataUnit) -> float:
    """Convert an amount of digital data between units. 换算数据大小，如 MB 和 GiB。

    Args:
        value: The amount of data to convert, 数据量.
        from_unit: The unit it is in; kB is 1000 bytes, KiB is 1024.
        to_unit: The unit wanted, 目标单位.
    """
    bits = value * choose("from_unit", from_unit, BITS)
    return tidy(bits / choose("to_unit", to_unit, BITS))


def convert_fuel_economy(value: float, from_unit: FuelUnit, to_unit: FuelUnit) -> float:
    """Convert a car's fuel economy between units. 换算油耗，如百公里升数和每加仑英里。

    Args:
        value: The consumption or economy to convert, 油耗; above 0.
        from_unit: The unit it is in, 原单位.
        to_unit: The unit wanted, 目标单位.
    """
    require_positive("value", value)
    from_factor = choose("from_unit", from_unit, _KM_PER_LITRE)
    to_factor = choose("to_unit", to_unit, _KM_PER_LITRE)
    economy = from_factor / value if from_unit == "l_per_100km" else from_factor * value
    require_positive("value", economy)
    return tidy(to_factor / economy if to_unit == "l_per_100km" else economy / to_factor)


TOOLS = (
    convert_speed,
    convert_pressure,
    convert_energy,
    convert_power,
    convert_angle,
    convert_duration,
    convert_data_size,
    convert_fuel_economy,
)
