"""Rules for every tool of the example toolbox, and known values of those that run."""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import re
import typing
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tool_search.sources.toolbox import TOOLBOX, everyday, quantities, words
from tool_search.sources.toolbox.everyday import (
    add_to_date,
    bmi,
    chinese_new_year,
    chinese_zodiac,
    current_time,
    days_between,
    is_leap_year,
    loan_payment,
    split_bill,
    weekday_of_date,
)
from tool_search.sources.toolbox.quantities import (
    convert_angle,
    convert_area,
    convert_length,
    convert_temperature,
    hex_to_rgb,
    is_prime,
    percentage_of,
    percentile,
    prime_factors,
    rgb_to_hex,
    rgb_to_hsl,
    roll_dice,
    sphere_measures,
)
from tool_search.sources.toolbox.words import (
    count_words,
    generate_password,
    generate_uuid,
    reading_time,
    validate_email,
    word_frequency,
)

if TYPE_CHECKING:
    from collections.abc import Callable

RUNNING = [
    tool
    for tool in TOOLBOX
    if inspect.isfunction(tool)
    and tool.__module__ in {m.__name__ for m in (everyday, quantities, words)}
]
DEMONSTRATED = [tool for tool in TOOLBOX if tool not in RUNNING]
JSON_TYPES = (str, int, float, bool, list, dict)


@dataclass(frozen=True, slots=True)
class Case:
    """A tool, its arguments, and a value from an independent source.

    Of an expected dict only the keys that it names are compared.
    """

    tool: Callable[..., Any]
    arguments: dict[str, Any]
    expected: Any

    def __str__(self) -> str:
        values = ",".join(str(value) for value in self.arguments.values())
        return f"{self.tool.__name__}({values[:40]!a})"

    async def check(self) -> None:
        """Call the tool and compare its result."""
        result = await answer(self.tool, self.arguments)
        json.dumps(result, allow_nan=False)
        if isinstance(self.expected, dict):
            result = {key: result[key] for key in self.expected}
        if result != self.expected:
            assert result == pytest.approx(self.expected, rel=1e-9, abs=1e-9)


async def answer(tool: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return the result of a tool, sync or async."""
    result = tool(**arguments)
    return await result if inspect.isawaitable(result) else result


def parameters_of(tool: Callable[..., Any]) -> dict[str, Any]:
    """Return the resolved types of a tool's parameters."""
    hints = typing.get_type_hints(tool)
    return {name: hints[name] for name in inspect.signature(tool).parameters}


def test_toolbox_holds_enough_tools() -> None:
    assert len(TOOLBOX) == 196
    assert len(RUNNING) == 29


def test_tool_names_are_unique() -> None:
    names = [tool.__name__ for tool in TOOLBOX]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]{2,63}", name) for name in names)


def test_description_is_bilingual() -> None:
    for tool in TOOLBOX:
        first = (inspect.getdoc(tool) or "").split("\n\n")[0]
        assert re.search(r"[A-Za-z]{3}.*\. ", first), tool
        assert re.search(r"[\u4e00-\u9fff]{2}", first), tool


def test_every_parameter_is_documented_and_typed() -> None:
    for tool in TOOLBOX:
        described = re.findall(r"^    (\w+): \S", inspect.getdoc(tool) or "", flags=re.MULTILINE)
        assert described == list(parameters_of(tool)), tool


def test_result_type_is_json() -> None:
    for tool in TOOLBOX:
        result = typing.get_type_hints(tool)["return"]
        assert (typing.get_origin(result) or result) in JSON_TYPES, tool


@pytest.mark.parametrize("tool", RUNNING, ids=lambda tool: tool.__name__)
@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_any_arguments_give_json_or_a_value_error(
    tool: Callable[..., Any], data: st.DataObject
) -> None:
    types = parameters_of(tool)
    arguments = data.draw(
        st.fixed_dictionaries({name: st.from_type(hint) for name, hint in types.items()})
    )
    result = None
    # A ValueError is a refusal; anything else fails the test.
    with contextlib.suppress(ValueError):
        result = tool(**arguments)
    json.dumps(result, allow_nan=False)


def test_definition_alone_says_that_nothing_was_done() -> None:
    for tool in DEMONSTRATED:
        told = str(tool(**dict.fromkeys(parameters_of(tool), "x")))
        assert "nothing was done" in told
        assert "没有执行" in told


def converted(tool: Any, value: float, from_unit: str, to_unit: str, expected: float) -> Case:
    """Write the case of a unit conversion on one line."""
    return Case(tool, {"value": value, "from_unit": from_unit, "to_unit": to_unit}, expected)


KNOWN = [
    Case(days_between, {"start": "2024-01-01", "end": "2025-01-01"}, 366),
    Case(days_between, {"start": "2000-01-01", "end": "1999-12-31"}, -1),
    Case(add_to_date, {"start": "2024-01-31", "months": 1}, "2024-02-29"),
    Case(add_to_date, {"start": "2024-02-29", "years": 1, "days": 1}, "2025-03-01"),
    Case(add_to_date, {"start": "2024-01-15", "months": -1, "weeks": -1}, "2023-12-08"),
    Case(weekday_of_date, {"day": "1969-07-20"}, {"english": "Sunday", "iso_number": 7}),
    Case(weekday_of_date, {"day": "2008-08-08"}, {"chinese": "星期五"}),
    Case(is_leap_year, {"year": 1900}, False),
    Case(is_leap_year, {"year": 2000}, True),
    Case(chinese_zodiac, {"year": 2024}, {"english": "Dragon", "chinese": "龙"}),
    Case(chinese_zodiac, {"year": 1900}, {"english": "Rat"}),
    Case(chinese_new_year, {"year": 1949}, "1949-01-29"),
    Case(chinese_new_year, {"year": 2000}, "2000-02-05"),
    Case(chinese_new_year, {"year": 2024}, "2024-02-10"),
    Case(chinese_new_year, {"year": 2025}, "2025-01-29"),
    Case(chinese_new_year, {"year": 2033}, "2033-01-31"),
    Case(
        loan_payment,
        {"principal": 1_000_000, "annual_rate": 4.9, "months": 360},
        {"monthly_payment": 5307.27, "total_interest": 910616.19},
    ),
    Case(
        loan_payment,
        {"principal": 100_000, "annual_rate": 6, "months": 360},
        {"monthly_payment": 599.55},
    ),
    Case(
        loan_payment, {"principal": 1200, "annual_rate": 0, "months": 12}, {"monthly_payment": 100}
    ),
    Case(split_bill, {"bill": 100, "people": 3, "tip_percent": 15}, {"total": 115, "each": 38.34}),
    Case(split_bill, {"bill": 90, "people": 3}, {"tip": 0, "each": 30}),
    Case(bmi, {"weight_kg": 70, "height_cm": 175}, {"bmi": 22.9, "who_class": "normal"}),
    Case(bmi, {"weight_kg": 100, "height_cm": 170}, {"bmi": 34.6, "who_class": "obese"}),
    Case(validate_email, {"address": "first.last+tag@example.co.uk"}, True),
    Case(validate_email, {"address": "two..dots@example.com"}, False),
    Case(validate_email, {"address": "no-at.example.com"}, False),
    Case(hex_to_rgb, {"color": "#ff8800"}, [255, 136, 0]),
    Case(hex_to_rgb, {"color": "f80"}, [255, 136, 0]),
    Case(rgb_to_hex, {"red": 255, "green": 136, "blue": 0}, "#ff8800"),
    Case(rgb_to_hsl, {"red": 255, "green": 0, "blue": 0}, [0, 100, 50]),
    converted(convert_length, 1, "mile", "km", 1.609344),
    converted(convert_length, 6, "foot", "cm", 182.88),
    converted(convert_length, 2, "li", "km", 1),
    converted(convert_length, 1, "zhang", "chi", 10),
    converted(convert_length, 1, "nautical_mile", "m", 1852),
    converted(convert_area, 15, "mu", "hectare", 1),
    converted(convert_area, 1, "acre", "m2", 4046.8564224),
    converted(convert_area, 1, "mile2", "acre", 640),
    converted(convert_temperature, 100, "celsius", "fahrenheit", 212),
    converted(convert_temperature, -40, "fahrenheit", "celsius", -40),
    converted(convert_temperature, 0, "celsius", "kelvin", 273.15),
    converted(convert_temperature, 0, "kelvin", "rankine", 0),
    converted(convert_angle, 180, "degree", "radian", math.pi),
    converted(convert_angle, 1, "turn", "gradian", 400),
    converted(convert_angle, 1, "degree", "arcsecond", 3600),
    Case(percentage_of, {"part": 30, "whole": 120}, 25),
    Case(prime_factors, {"number": 360}, [2, 2, 2, 3, 3, 5]),
    Case(prime_factors, {"number": 600851475143}, [71, 839, 1471, 6857]),
    Case(is_prime, {"number": 7919}, True),
    Case(is_prime, {"number": 561}, False),
    Case(is_prime, {"number": 1}, False),
    Case(percentile, {"numbers": [15, 20, 35, 40, 50], "percent": 40}, 29),
    Case(percentile, {"numbers": [1, 2, 3, 4], "percent": 100}, 4),
    Case(sphere_measures, {"radius": 3}, {"volume": 36 * math.pi, "surface": 36 * math.pi}),
    Case(
        count_words,
        {"text": "Hello, world! 你好。\nIt's fine."},
        {"words": 6, "lines": 2, "sentences": 3},
    ),
    Case(word_frequency, {"text": "The cat and the dog", "count": 1}, [["the", 2]]),
    Case(reading_time, {"text": "word " * 460}, 2),
    Case(reading_time, {"text": "字" * 400}, 1),
    Case(generate_uuid, {"name": "python.org"}, "886313e1-3b8a-5372-9b90-0c9aee199e5d"),
]
REFUSED = [
    Case(days_between, {"start": "2023-02-29", "end": "2024-01-01"}, "'2023-02-29'"),
    Case(add_to_date, {"start": "9999-12-31", "days": 1}, "1 to 9999"),
    Case(current_time, {"time_zone": "Mars/Base"}, "'Mars/Base'.*Asia/Shanghai"),
    Case(chinese_new_year, {"year": 1800}, "from 1930 to 2080, not 1800"),
    Case(loan_payment, {"principal": -1, "annual_rate": 5, "months": 12}, "not -1"),
    Case(bmi, {"weight_kg": 70, "height_cm": 1.75}, "height_cm.*not 1.75"),
    Case(hex_to_rgb, {"color": "red"}, "'red'.*hex colour"),
    Case(convert_length, {"value": 1, "from_unit": "ell", "to_unit": "m"}, "'ell'.*mm, cm"),
    Case(
        convert_temperature,
        {"value": -300, "from_unit": "celsius", "to_unit": "kelvin"},
        "-300.*absolute zero",
    ),
    Case(percentage_of, {"part": 1, "whole": 0}, "must not be 0"),
]


@pytest.mark.parametrize("case", KNOWN, ids=str)
async def test_tool_gives_the_known_value(case: Case) -> None:
    await case.check()


@pytest.mark.parametrize("case", REFUSED, ids=str)
async def test_bad_input_is_refused_with_its_value(case: Case) -> None:
    with pytest.raises(ValueError, match=case.expected):
        await answer(case.tool, case.arguments)


def test_current_time_is_now_in_its_zone() -> None:
    told = datetime.fromisoformat(current_time("+08:00"))
    assert abs(told - datetime.now(UTC)) < timedelta(minutes=1)
    assert re.search(r"\+08:00$", current_time("Beijing"))


def test_dice_stay_within_their_sides() -> None:
    rolled: Any = roll_dice(count=20, sides=4)
    assert rolled["total"] == sum(rolled["rolls"])
    assert all(1 <= roll <= 4 for roll in rolled["rolls"])


def test_generated_secrets_have_the_asked_form() -> None:
    password = generate_password(length=20, symbols=False)
    assert re.fullmatch(r"[A-Za-z0-9]{20}", password)
    assert re.search(r"[a-z]", password)
    assert re.search(r"\d", password)
    assert uuid.UUID(generate_uuid()).version == 4
