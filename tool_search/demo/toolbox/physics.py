"""Physics: constants, electricity, motion, waves, gases, weather."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import math
from typing import Literal

from tool_search.demo.toolbox.arguments import choose, require_positive, require_within
from tool_search.demo.toolbox.rounding import tidy

Constant = Literal[
    "speed_of_light", "planck_constant", "elementary_charge", "boltzmann_constant",
    "avogadro_constant", "gravitational_constant", "standard_gravity", "gas_constant",
    "faraday_constant", "stefan_boltzmann_constant", "electron_mass", "proton_mass",
    "neutron_mass", "atomic_mass_unit", "vacuum_permittivity", "astronomical_unit",
]  # fmt: skip

# CODATA 2018 and SI definitions: value, unit, symbol.
CONSTANTS: dict[Constant, tuple[float, str, str]] = {
    "speed_of_light": (299792458, "m/s", "c"),
    "planck_constant": (6.62607015e-34, "J s", "h"),
    "elementary_charge": (1.602176634e-19, "C", "e"),
    "boltzmann_constant": (1.380649e-23, "J/K", "k"),
    "avogadro_constant": (6.02214076e23, "1/mol", "N_A"),
    "gravitational_constant": (6.67430e-11, "m^3/(kg s^2)", "G"),
    "standard_gravity": (9.80665, "m/s^2", "g_n"),
    "gas_constant": (8.31446261815324, "J/(mol K)", "R"),
    "faraday_constant": (96485.33212331, "C/mol", "F"),
    "stefan_boltzmann_constant": (5.670374419e-8, "W/(m^2 K^4)", "σ"),
    "electron_mass": (9.1093837015e-31, "kg", "m_e"),
    "proton_mass": (1.67262192369e-27, "kg", "m_p"),
    "neutron_mass": (1.67492749804e-27, "kg", "m_n"),
    "atomic_mass_unit": (1.66053906660e-27, "kg", "u"),
    "vacuum_permittivity": (8.8541878128e-12, "F/m", "ε_0"),
    "astronomical_unit": (149597870700, "m", "au"),
}
_GRAVITY = 9.80665


def physical_constant(name: Constant) -> dict[str, float | str]:
    """Look up a physical constant (CODATA 2018). 查询物理常数。

    Args:
        name: Which constant, 常数名.

    Returns:
        Its value, SI unit and symbol.
    """
    value, unit, symbol = choose("name", name, CONSTANTS)
    return {"value": value, "unit": unit, "symbol": symbol}


def ohms_law(
    volts: float | None = None, amperes: float | None = None, ohms: float | None = None
) -> dict[str, float]:
    """Complete voltage, current and resistance from two. 欧姆定律：由两个量求电压电流电阻。

    Args:
        volts: The voltage, 电压; leave out exactly one of the three.
        amperes: The current, 电流.
        ohms: The resistance, 电阻.

    Returns:
        All three, and the power in watts.
    """
    given = [value for value in (volts, amperes, ohms) if value is not None]
    if len(given) != 2:
        raise ValueError(f"give exactly two of volts, amperes and ohms, not {len(given)}")
    for value in given:
        require_within("each value", value, 1e-100, 1e100)
    if volts is None:
        volts = (amperes or 0) * (ohms or 0)
    elif amperes is None:
        amperes = volts / (ohms or 1)
    amperes = amperes or 1
    return {
        "volts": tidy(volts),
        "amperes": tidy(amperes),
        "ohms": tidy(volts / amperes),
        "watts": tidy(volts * amperes),
    }


def kinetic_energy(mass_kg: float, speed_m_s: float) -> float:
    """Compute the kinetic energy of a moving body in joules. 计算物体的动能（焦耳）。

    Args:
        mass_kg: The mass in kilograms, 质量.
        speed_m_s: The speed in metres a second, 速度; far below that of light.
    """
    require_positive("mass_kg", mass_kg)
    require_within("speed_m_s", speed_m_s, 0, 30_000_000)
    return tidy(mass_kg * speed_m_s**2 / 2)


def free_fall(height_m: float) -> dict[str, float]:
    """Compute time and speed of a fall without air. 自由落体：计算下落时间和末速度。

    Args:
        height_m: The height in metres, 高度; 0 to 100000.
    """
    require_within("height_m", height_m, 0, 100_000)
    seconds = math.sqrt(2 * height_m / _GRAVITY)
    return {"seconds": tidy(seconds), "final_speed_m_s": tidy(seconds * _GRAVITY)}


def wavelength_of_frequency(hertz: float, speed_m_s: float = 299792458.0) -> float:
    """Compute a wave's length in metres from its frequency. 由频率求波长（米）。

    Args:
        hertz: The frequency, 频率.
        speed_m_s: How fast the wave runs, 波速; that of light if left out, sound in air is 343.
    """
    require_positive("hertz", hertz)
    require_positive("speed_m_s", speed_m_s)
    return tidy(speed_m_s / hertz)


def ideal_gas_pressure(moles: float, kelvin: float, litres: float) -> float:
    """Compute an ideal gas's pressure in pascals (pV=nRT). 理想气体状态方程求压强。

    Args:
        moles: The amount of gas, 物质的量.
        kelvin: The temperature, 温度（开尔文）.
        litres: The volume, 体积（升）.
    """
    for name, value in (("moles", moles), ("kelvin", kelvin), ("litres", litres)):
        require_within(name, value, 1e-50, 1e50)
    return tidy(moles * CONSTANTS["gas_constant"][0] * kelvin / (litres / 1000))


def dew_point(celsius: float, humidity_percent: float) -> float:
    """Compute the dew point from temperature and humidity. 由温度和湿度计算露点（摄氏）。

    Args:
        celsius: The air temperature, 气温; -45 to 60.
        humidity_percent: The relative humidity, 相对湿度（%）; 1 to 100.
    """
    require_within("celsius", celsius, -45, 60)
    require_within("humidity_percent", humidity_percent, 1, 100)
    # The Magnus formula with the constants of Sonntag (1990).
    gamma = math.log(humidity_percent / 100) + 17.62 * celsius / (243.12 + celsius)
    return round(243.12 * gamma / (17.62 - gamma), 1)


def wind_chill(celsius: float, wind_km_h: float) -> float:
    """Compute how cold wind makes the air feel. 计算风寒温度（体感温度）。

    Args:
        celsius: The air temperature, 气温; -60 to 10.
        wind_km_h: The wind speed, 风速（公里每小时）; 4.8 to 200.
    """
    require_within("celsius", celsius, -60, 10)
    require_within("wind_km_h", wind_km_h, 4.8, 200)
    # The formula of Environment Canada and the US National Weather Service (2001).
    factor = math.pow(wind_km_h, 0.16)
    return round(13.12 + 0.6215 * celsius - 11.37 * factor + 0.3965 * celsius * factor, 1)


TOOLS = (
    physical_constant,
    ohms_law,
    kinetic_energy,
    free_fall,
    wavelength_of_frequency,
    ideal_gas_pressure,
    dew_point,
    wind_chill,
)
