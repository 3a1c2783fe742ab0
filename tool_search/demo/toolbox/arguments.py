"""Checks of arguments, with one wording of errors for the whole toolbox."""

from __future__ import annotations

import math
from datetime import date, datetime
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sized

_Key = TypeVar("_Key", bound=str)
_Value = TypeVar("_Value")


def choose(name: str, value: _Key, table: Mapping[_Key, _Value]) -> _Value:
    """Look up a choice in a table.

    Raises:
        ValueError: The table has no such key; the message lists those it has.
    """
    try:
        return table[value]
    except KeyError:
        allowed = ", ".join(table)
        raise ValueError(f"{name} {value!r} is not known; use one of: {allowed}") from None


def require_within(name: str, value: float, low: float, high: float) -> None:
    """Refuse a number outside the closed range from `low` to `high`."""
    if not low <= value <= high:
        raise ValueError(f"{name} must be from {low} to {high}, not {value!r}")


def require_positive(name: str, *values: float) -> None:
    """Refuse numbers that are not finite and greater than zero."""
    for value in values:
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be a finite number above 0, not {value!r}")


def require_not_negative(name: str, *values: float) -> None:
    """Refuse numbers that are not finite or below zero."""
    for value in values:
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} must be a finite number, 0 or more, not {value!r}")


def require_finite(name: str, *values: float) -> None:
    """Refuse infinities and NaN."""
    for value in values:
        if not math.isfinite(value):
            raise ValueError(f"{name} must be a finite number, not {value!r}")


def require_length(name: str, items: Sized, low: int, high: int) -> None:
    """Refuse a text or a list that is too short or too long."""
    if not low <= len(items) <= high:
        raise ValueError(f"{name} must have a length from {low} to {high}, not {len(items)}")


def parse_date(name: str, text: str) -> date:
    """Read an ISO date such as 2024-02-29.

    Raises:
        ValueError: It is not a date of the calendar in that form.
    """
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{name} {text!r} is not a date like 2024-02-29 ({error})") from None


def parse_datetime(name: str, text: str) -> datetime:
    """Read an ISO date and time such as 2024-02-29T18:30 or 2024-02-29T18:30+08:00.

    Raises:
        ValueError: It is not a time in that form.
    """
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{name} {text!r} is not a time like 2024-02-29T18:30 ({error})") from None
