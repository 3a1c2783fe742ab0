"""Known values of units, arithmetic, numerals, statistics, chance, geometry and science."""

from __future__ import annotations

import math
import typing
from typing import Any

import pytest

from tests.demo.test_toolbox import Case, answer
from tool_search.demo.toolbox import physical_units, units
from tool_search.demo.toolbox.arithmetic import (
    calculate,
    combinations_count,
    convert_number_base,
    greatest_common_divisor,
    is_prime,
    least_common_multiple,
    percentage_change,
    percentage_of,
    prime_factors,
    simplify_fraction,
    solve_linear_equations,
    solve_quadratic,
)
from tool_search.demo.toolbox.chance import (
    pick_at_random,
    random_integer,
    roll_dice,
    simulate_dice,
)
from tool_search.demo.toolbox.chemistry import (
    dilution_volume,
    element_info,
    half_life_remaining,
    molar_mass,
    ph_of_solution,
)
from tool_search.demo.toolbox.chinese_numerals import (
    chinese_to_number,
    number_to_chinese,
    rmb_uppercase,
)
from tool_search.demo.toolbox.elements import elements
from tool_search.demo.toolbox.geometry import (
    circle_measures,
    cylinder_measures,
    point_distance,
    polygon_area,
    rectangle_measures,
    right_triangle_side,
    sphere_measures,
    triangle_from_sides,
)
from tool_search.demo.toolbox.numerals import (
    integer_to_roman,
    number_to_english_words,
    number_to_russian_words,
    ordinal_number,
    roman_to_integer,
)
from tool_search.demo.toolbox.physical_units import (
    convert_angle,
    convert_data_size,
    convert_duration,
    convert_energy,
    convert_fuel_economy,
    convert_power,
    convert_pressure,
    convert_speed,
)
from tool_search.demo.toolbox.physics import (
    dew_point,
    free_fall,
    ideal_gas_pressure,
    kinetic_energy,
    ohms_law,
    physical_constant,
    wavelength_of_frequency,
    wind_chill,
)
from tool_search.demo.toolbox.statistics_of_samples import (
    binomial_probability,
    correlation,
    describe_numbers,
    linear_regression,
    most_frequent_values,
    moving_average,
    normal_probability,
    percentile,
    weighted_mean,
)
from tool_search.demo.toolbox.units import (
    convert_area,
    convert_cooking_measure,
    convert_length,
    convert_mass,
    convert_temperature,
    convert_volume,
    height_to_feet_and_inches,
)


def converted(tool: Any, value: float, from_unit: str, to_unit: str, expected: float) -> Case:
    """Write the case of a unit conversion on one line."""
    return Case(tool, {"value": value, "from_unit": from_unit, "to_unit": to_unit}, expected)


CONVERSIONS = [
    converted(convert_length, 1, "mile", "km", 1.609344),
    converted(convert_length, 6, "foot", "cm", 182.88),
    converted(convert_length, 2, "li", "km", 1),
    converted(convert_length, 1, "zhang", "chi", 10),
    converted(convert_length, 1, "nautical_mile", "m", 1852),
    converted(convert_area, 15, "mu", "hectare", 1),
    converted(convert_area, 1, "acre", "m2", 4046.8564224),
    converted(convert_area, 1, "mile2", "acre", 640),
    converted(convert_volume, 1, "us_gallon", "l", 3.785411784),
    converted(convert_volume, 1, "uk_gallon", "uk_pint", 8),
    converted(convert_volume, 1, "oil_barrel", "us_gallon", 42),
    converted(convert_volume, 1, "foot3", "inch3", 1728),
    converted(convert_mass, 1, "pound", "kg", 0.45359237),
    converted(convert_mass, 1, "jin", "liang", 10),
    converted(convert_mass, 1, "stone", "pound", 14),
    converted(convert_mass, 1, "uk_ton", "pound", 2240),
    converted(convert_temperature, 100, "celsius", "fahrenheit", 212),
    converted(convert_temperature, -40, "fahrenheit", "celsius", -40),
    converted(convert_temperature, 0, "celsius", "kelvin", 273.15),
    converted(convert_temperature, 0, "kelvin", "rankine", 0),
    converted(convert_cooking_measure, 1, "us_cup", "tablespoon", 16),
    converted(convert_cooking_measure, 1, "tablespoon", "teaspoon", 3),
    converted(convert_cooking_measure, 2, "metric_cup", "ml", 500),
    converted(convert_speed, 36, "km/h", "m/s", 10),
    converted(convert_speed, 1, "knot", "km/h", 1.852),
    converted(convert_speed, 60, "mph", "km/h", 96.56064),
    converted(convert_pressure, 1, "atm", "Pa", 101325),
    converted(convert_pressure, 760, "torr", "atm", 1),
    converted(convert_pressure, 1, "bar", "psi", 14.503773773),
    converted(convert_energy, 1, "kWh", "MJ", 3.6),
    converted(convert_energy, 1, "kcal", "J", 4184),
    converted(convert_energy, 1, "BTU", "J", 1055.05585262),
    converted(convert_power, 1, "metric_hp", "W", 735.49875),
    converted(convert_power, 1, "mechanical_hp", "W", 745.6998715822702),
    converted(convert_angle, 180, "degree", "radian", math.pi),
    converted(convert_angle, 1, "turn", "gradian", 400),
    converted(convert_angle, 1, "degree", "arcsecond", 3600),
    converted(convert_duration, 1.5, "day", "hour", 36),
    converted(convert_duration, 1, "julian_year", "day", 365.25),
    converted(convert_data_size, 1, "GiB", "MiB", 1024),
    converted(convert_data_size, 1, "MB", "bit", 8_000_000),
    converted(convert_data_size, 1, "TB", "GiB", 931.32257461548),
    converted(convert_fuel_economy, 8, "l_per_100km", "km_per_l", 12.5),
    converted(convert_fuel_economy, 30, "mpg_us", "l_per_100km", 7.84048611108),
    converted(convert_fuel_economy, 5, "l_per_100km", "l_per_100km", 5),
    Case(height_to_feet_and_inches, {"height_cm": 180}, "5'11\""),
    Case(height_to_feet_and_inches, {"height_cm": 182.88}, "6'0\""),
]

ARITHMETIC = [
    Case(calculate, {"expression": "2*(3+4)^2"}, 98),
    Case(calculate, {"expression": "sqrt(2)*sin(pi/4)"}, 1.0),
    Case(calculate, {"expression": "（1+2）×3"}, 9),
    Case(calculate, {"expression": "7 // 2 + 7 % 4 - log(1000) + 1.5e3"}, 1503.0),
    Case(percentage_of, {"part": 30, "whole": 120}, 25),
    Case(percentage_change, {"old": 80, "new": 100}, 25),
    Case(percentage_change, {"old": 100, "new": 80}, -20),
    Case(greatest_common_divisor, {"numbers": [1071, 462]}, 21),
    Case(least_common_multiple, {"numbers": [4, 6, 10]}, 60),
    Case(prime_factors, {"number": 360}, [2, 2, 2, 3, 3, 5]),
    Case(prime_factors, {"number": 600851475143}, [71, 839, 1471, 6857]),
    Case(is_prime, {"number": 7919}, True),
    Case(is_prime, {"number": 561}, False),
    Case(is_prime, {"number": 1}, False),
    Case(combinations_count, {"total": 49, "chosen": 6}, 13_983_816),
    Case(combinations_count, {"total": 5, "chosen": 2, "ordered": True}, 20),
    Case(convert_number_base, {"number": "ff", "from_base": 16, "to_base": 2}, "11111111"),
    Case(convert_number_base, {"number": "-255", "from_base": 10, "to_base": 16}, "-ff"),
    Case(convert_number_base, {"number": "0", "from_base": 2, "to_base": 36}, "0"),
    Case(simplify_fraction, {"numerator": 84, "denominator": -126}, "-2/3"),
    Case(solve_quadratic, {"a": 1, "b": -5, "c": 6}, [2, 3]),
    Case(solve_quadratic, {"a": 1, "b": 2, "c": 1}, [-1]),
    Case(solve_quadratic, {"a": 1, "b": 0, "c": 1}, []),
    Case(
        solve_linear_equations,
        {"coefficients": [[2, 1, -1], [-3, -1, 2], [-2, 1, 2]], "constants": [8, -11, -3]},
        [2, 3, -1],
    ),
]

NUMERALS = [
    Case(integer_to_roman, {"number": 1994}, "MCMXCIV"),
    Case(integer_to_roman, {"number": 3999}, "MMMCMXCIX"),
    Case(roman_to_integer, {"numeral": "mmxxiv"}, 2024),
    Case(number_to_english_words, {"number": 0}, "zero"),
    Case(number_to_english_words, {"number": -42}, "minus forty-two"),
    Case(
        number_to_english_words,
        {"number": 1_234_567},
        "one million two hundred thirty-four thousand five hundred sixty-seven",
    ),
    Case(number_to_russian_words, {"number": 2021}, "две тысячи двадцать один"),
    Case(number_to_russian_words, {"number": 1_000_005}, "один миллион пять"),
    Case(number_to_russian_words, {"number": 11_000}, "одиннадцать тысяч"),
    Case(number_to_russian_words, {"number": 22_000_112}, "двадцать два миллиона сто двенадцать"),
    Case(ordinal_number, {"number": 21}, "21st"),
    Case(ordinal_number, {"number": 112}, "112th"),
    Case(ordinal_number, {"number": 3}, "3rd"),
    Case(number_to_chinese, {"number": 15}, "十五"),
    Case(number_to_chinese, {"number": 10_305}, "一万零三百零五"),
    Case(number_to_chinese, {"number": 100_000_001}, "一亿零一"),
    Case(number_to_chinese, {"number": -110, "capital": True}, "负壹佰壹拾"),
    Case(chinese_to_number, {"text": "一万二千三百四十五"}, 12_345),
    Case(chinese_to_number, {"text": "二〇二四"}, 2024),
    Case(chinese_to_number, {"text": "二百五"}, 250),
    Case(chinese_to_number, {"text": "二百零五"}, 205),
    Case(chinese_to_number, {"text": "叁亿零伍拾万"}, 300_500_000),
    # The examples of the People's Bank's rules for filling in bills.
    Case(rmb_uppercase, {"amount": 6007.14}, "陆仟零柒元壹角肆分"),
    Case(rmb_uppercase, {"amount": 1680.32}, "壹仟陆佰捌拾元叁角贰分"),
    Case(rmb_uppercase, {"amount": 16409.02}, "壹万陆仟肆佰零玖元零贰分"),
    Case(rmb_uppercase, {"amount": 325.04}, "叁佰贰拾伍元零肆分"),
    Case(rmb_uppercase, {"amount": 10_000}, "壹万元整"),
    Case(rmb_uppercase, {"amount": 0}, "零元整"),
    Case(rmb_uppercase, {"amount": -0.5}, "负伍角整"),
]

STATISTICS = [
    Case(
        describe_numbers,
        {"numbers": [2, 4, 4, 4, 5, 5, 7, 9]},
        {"mean": 5, "median": 4.5, "standard_deviation": 2.138089935299395, "sum": 40},
    ),
    Case(most_frequent_values, {"numbers": [1, 2, 2, 3, 3]}, [2, 3]),
    Case(percentile, {"numbers": [15, 20, 35, 40, 50], "percent": 40}, 29),
    Case(percentile, {"numbers": [1, 2, 3, 4], "percent": 100}, 4),
    Case(weighted_mean, {"numbers": [80, 90], "weights": [20, 30]}, 86),
    Case(moving_average, {"numbers": [1, 2, 3, 4, 5], "window": 3}, [2, 3, 4]),
    Case(correlation, {"x": [1, 2, 3, 4], "y": [2, 4, 6, 8]}, 1),
    Case(correlation, {"x": [1, 2, 3], "y": [3, 2, 1]}, -1),
    Case(linear_regression, {"x": [1, 2, 3], "y": [3, 5, 7]}, {"slope": 2, "intercept": 1}),
    Case(binomial_probability, {"trials": 10, "successes": 5, "chance": 0.5}, 252 / 1024),
    Case(normal_probability, {"value": 0}, 0.5),
    Case(normal_probability, {"value": 1.96}, 0.975002104852),
    Case(normal_probability, {"value": 115, "mean": 100, "deviation": 15}, 0.841344746069),
]

GEOMETRY = [
    Case(circle_measures, {"radius": 2}, {"area": 4 * math.pi, "circumference": 4 * math.pi}),
    Case(
        rectangle_measures, {"width": 3, "height": 4}, {"area": 12, "perimeter": 14, "diagonal": 5}
    ),
    Case(
        triangle_from_sides, {"a": 3, "b": 4, "c": 5}, {"area": 6, "perimeter": 12, "angle_c": 90}
    ),
    Case(triangle_from_sides, {"a": 1, "b": 1, "c": 1}, {"angle_a": 60, "area": math.sqrt(3) / 4}),
    Case(right_triangle_side, {"leg": 5, "other": 12}, 13),
    Case(right_triangle_side, {"leg": 5, "other": 13, "other_is_hypotenuse": True}, 12),
    Case(polygon_area, {"points": [[0, 0], [4, 0], [4, 3]]}, 6),
    Case(point_distance, {"start": [0, 0, 0], "end": [2, 3, 6]}, 7),
    Case(sphere_measures, {"radius": 3}, {"volume": 36 * math.pi, "surface": 36 * math.pi}),
    Case(
        cylinder_measures,
        {"radius": 1, "height": 2},
        {"volume": 2 * math.pi, "surface": 6 * math.pi},
    ),
]

SCIENCE = [
    Case(physical_constant, {"name": "speed_of_light"}, {"value": 299792458, "unit": "m/s"}),
    Case(physical_constant, {"name": "planck_constant"}, {"value": 6.62607015e-34}),
    Case(ohms_law, {"volts": 12, "ohms": 4}, {"amperes": 3, "watts": 36}),
    Case(ohms_law, {"amperes": 2, "ohms": 5}, {"volts": 10, "watts": 20}),
    Case(ohms_law, {"volts": 9, "amperes": 3}, {"ohms": 3}),
    Case(kinetic_energy, {"mass_kg": 2, "speed_m_s": 3}, 9),
    Case(free_fall, {"height_m": 4.903325}, {"seconds": 1, "final_speed_m_s": 9.80665}),
    Case(wavelength_of_frequency, {"hertz": 100e6}, 2.99792458),
    Case(wavelength_of_frequency, {"hertz": 343, "speed_m_s": 343}, 1),
    # One mole at 0 degrees Celsius fills 22.414 litres at one atmosphere.
    Case(ideal_gas_pressure, {"moles": 1, "kelvin": 273.15, "litres": 22.41396954}, 101325),
    Case(dew_point, {"celsius": 20, "humidity_percent": 100}, 20),
    Case(dew_point, {"celsius": 25, "humidity_percent": 50}, 13.9),
    # The table of Environment Canada: -10 degrees at 30 km/h feel like -20, rounded.
    Case(wind_chill, {"celsius": -10, "wind_km_h": 30}, -19.5),
    Case(element_info, {"element": "Fe"}, {"number": 26, "chinese_name": "铁"}),
    Case(element_info, {"element": "金"}, {"symbol": "Au", "atomic_weight": 196.97}),
    Case(element_info, {"element": "118"}, {"name": "Oganesson"}),
    Case(molar_mass, {"formula": "H2O"}, 18.015),
    Case(molar_mass, {"formula": "Ca(OH)2"}, 74.092),
    Case(molar_mass, {"formula": "CuSO4·5H2O"}, 249.677),
    Case(ph_of_solution, {"hydrogen_ions": 1e-7}, 7),
    Case(
        dilution_volume,
        {"stock_concentration": 10, "final_concentration": 1, "final_volume": 100},
        {"stock_volume": 10, "solvent_volume": 90},
    ),
    Case(half_life_remaining, {"amount": 100, "half_life": 5730, "elapsed": 11460}, 25),
]

REFUSED = [
    Case(convert_length, {"value": 1, "from_unit": "ell", "to_unit": "m"}, "'ell'.*mm, cm"),
    Case(
        convert_temperature,
        {"value": -300, "from_unit": "celsius", "to_unit": "kelvin"},
        "-300.*absolute zero",
    ),
    Case(calculate, {"expression": "9^9^9^9"}, "too large"),
    Case(calculate, {"expression": "__import__('os')"}, "not arithmetic"),
    Case(calculate, {"expression": "open(1)"}, "not allowed"),
    Case(calculate, {"expression": "1/0"}, "no value"),
    Case(calculate, {"expression": "sqrt(-1)"}, "no value"),
    Case(calculate, {"expression": "(-8)^0.5"}, "not real"),
    Case(percentage_of, {"part": 1, "whole": 0}, "must not be 0"),
    Case(convert_number_base, {"number": "12", "from_base": 2, "to_base": 10}, "'12'.*base 2"),
    Case(
        solve_linear_equations,
        {"coefficients": [[1, 2], [2, 4]], "constants": [1, 2]},
        "no single solution",
    ),
    Case(integer_to_roman, {"number": 4000}, "4000"),
    Case(roman_to_integer, {"numeral": "IIII"}, "'IIII'"),
    Case(chinese_to_number, {"text": "百二"}, "'百二'"),
    Case(describe_numbers, {"numbers": []}, "length from 1"),
    Case(correlation, {"x": [1, 1], "y": [1, 2]}, "two different values"),
    Case(pick_at_random, {"options": ["a"], "count": 2}, "from 1 to 1, not 2"),
    Case(random_integer, {"low": 2, "high": 1}, "high must be at least"),
    Case(triangle_from_sides, {"a": 1, "b": 2, "c": 3}, "no triangle"),
    Case(ohms_law, {"volts": 1}, "exactly two"),
    Case(element_info, {"element": "Xx"}, "'Xx'"),
    Case(molar_mass, {"formula": "H2O)"}, r"closes nothing"),
    Case(molar_mass, {"formula": "(H2O"}, "not closed"),
]

KNOWN = [*CONVERSIONS, *ARITHMETIC, *NUMERALS, *STATISTICS, *GEOMETRY, *SCIENCE]


@pytest.mark.parametrize("case", KNOWN, ids=str)
async def test_tool_gives_the_known_value(case: Case) -> None:
    await case.check()


@pytest.mark.parametrize("case", REFUSED, ids=str)
async def test_bad_input_is_refused_with_its_value(case: Case) -> None:
    with pytest.raises(ValueError, match=case.expected):
        await answer(case.tool, case.arguments)


@pytest.mark.parametrize(
    ("literal", "table"),
    [
        (units.LengthUnit, units.METRES),
        (units.AreaUnit, units.SQUARE_METRES),
        (units.VolumeUnit, units.LITRES),
        (units.MassUnit, units.GRAMS),
        (units.CookingUnit, units.COOKING_MILLILITRES),
        (physical_units.SpeedUnit, physical_units.METRES_PER_SECOND),
        (physical_units.PressureUnit, physical_units.PASCALS),
        (physical_units.EnergyUnit, physical_units.JOULES),
        (physical_units.PowerUnit, physical_units.WATTS),
        (physical_units.AngleUnit, physical_units.DEGREES),
        (physical_units.DurationUnit, physical_units.SECONDS),
        (physical_units.DataUnit, physical_units.BITS),
    ],
)
def test_every_unit_of_the_schema_has_a_factor(literal: Any, table: dict[str, float]) -> None:
    assert list(table) == list(typing.get_args(literal))


@pytest.mark.parametrize("number", [1, 10, 101, 9999, 10_010, 100_100_000, 10**15 + 7])
def test_chinese_numerals_are_read_as_written(number: int) -> None:
    assert chinese_to_number(number_to_chinese(number)) == number
    assert chinese_to_number(number_to_chinese(number, capital=True)) == number


def test_elements_are_complete() -> None:
    assert len({row.symbol for row in elements()}) == 118
    assert len({row.chinese_name for row in elements()}) == 118


async def test_chance_stays_within_its_bounds() -> None:
    rolled: Any = roll_dice(count=20, sides=4)
    assert rolled["total"] == sum(rolled["rolls"])
    assert all(1 <= roll <= 4 for roll in rolled["rolls"])
    assert random_integer(5, 5) == 5
    assert sorted(pick_at_random(["a", "b", "c"], count=3)) == ["a", "b", "c"]
    shares = await simulate_dice(count=2, rounds=5000)
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["7"] == pytest.approx(6 / 36, abs=0.05)
