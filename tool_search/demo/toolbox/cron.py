"""Cron expressions: explanations and next times."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import re
from datetime import timedelta
from typing import NamedTuple

from tool_search.demo.toolbox.arguments import parse_datetime, require_length, require_within

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec"
_DAYS = "sun mon tue wed thu fri sat"
_ITEM = re.compile(r"(?:\*|(\w+)(?:-(\w+))?)(?:/(\d{1,4}))?", re.ASCII)
# 29 February on a given weekday can be 40 years away.
_HORIZON = timedelta(days=366 * 41)


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    names: str


_FIELDS = (
    _Field("minute", 0, 59, ""),
    _Field("hour", 0, 23, ""),
    _Field("day of month", 1, 31, ""),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 7, _DAYS),
)


def explain_cron(expression: str) -> dict[str, str]:
    """Explain a cron schedule field by field. 逐字段解释 cron 表达式。

    Args:
        expression: Five fields: minute, hour, day, month, weekday, such as "*/15 9-17 * * 1-5".

    Returns:
        For each field "every …" or the values it allows; weekday 0 is Sunday.
    """
    fields = _parse(expression)
    explained = {}
    for field, text, values in zip(_FIELDS, expression.split(), fields, strict=True):
        every = text.startswith("*/") and "," not in text
        if text == "*":
            explained[field.name] = f"every {field.name}"
        elif every:
            explained[field.name] = f"every {text[2:]} from {field.low}: {_listed(values)}"
        else:
            explained[field.name] = _listed(values)
    if "*" not in (expression.split()[2][0], expression.split()[4][0]):
        explained["note"] = "it runs when the day of month or the day of week fits"
    return explained


def next_cron_times(expression: str, after: str, count: int = 5) -> list[str]:
    """List the next times a cron schedule runs. 列出 cron 表达式接下来的执行时间。

    Args:
        expression: Five fields: minute, hour, day, month, weekday, such as "0 9 * * mon".
        after: The local time to start from, not itself a result, 起始时间: 2024-07-01T09:00.
        count: How many times to list, 个数; 1 to 50.
    """
    minutes, hours, days, months, weekdays = _parse(expression)
    require_within("count", count, 1, 50)
    start = parse_datetime("after", after).replace(second=0, microsecond=0)
    require_within("the year of after", start.year, 1, 9900)
    either = "*" not in (expression.split()[2][0], expression.split()[4][0])
    found: list[str] = []
    day = start.replace(hour=0, minute=0)
    while len(found) < count and day - start < _HORIZON:
        fits = (day.day in days, day.isoweekday() % 7 in weekdays)
        if day.month in months and (any(fits) if either else all(fits)):
            moments = [
                day.replace(hour=h, minute=m) for h in sorted(hours) for m in sorted(minutes)
            ]
            found += [moment.isoformat() for moment in moments if moment > start]
        day += timedelta(days=1)
    if not found:
        raise ValueError(f"expression {expression!r} never runs: no month has such a day")
    return found[:count]


def _parse(expression: str) -> list[set[int]]:
    require_length("expression", expression, 1, 200)
    texts = expression.split()
    if len(texts) != len(_FIELDS):
        raise ValueError(f"expression {expression!r} must have five fields, not {len(texts)}")
    fields = [_values(field, text) for field, text in zip(_FIELDS, texts, strict=True)]
    if 7 in fields[4]:
        fields[4] = fields[4] - {7} | {0}
    return fields


def _values(field: _Field, text: str) -> set[int]:
    values: set[int] = set()
    for item in text.lower().split(","):
        match = _ITEM.fullmatch(item)
        if match is None:
            raise ValueError(f"{field.name} {item!r} is not like *, 5, 1-5 or */15")
        start, end, step = match.groups()
        low = field.low if start is None else _number(field, start)
        # 5/15 means from 5 on; a plain 5 means 5 alone. A star ends before 7, Sunday's other name.
        top = min(field.high, 6) if field.names == _DAYS else field.high
        high = _number(field, end) if end else top if start is None or step else low
        if low > high or step == "0":
            raise ValueError(f"{field.name} {item!r} holds no value")
        values.update(range(low, high + 1, int(step or 1)))
    return values


def _number(field: _Field, text: str) -> int:
    names = field.names.split()
    if text in names:
        return names.index(text) + field.low
    if not text.isdigit() or not field.low <= int(text) <= field.high:
        raise ValueError(f"{field.name} {text!r} must be from {field.low} to {field.high}")
    return int(text)


def _listed(values: set[int]) -> str:
    return ", ".join(str(value) for value in sorted(values))


TOOLS = (explain_cron, next_cron_times)
