"""Checks of arguments, with one wording of errors, and rounding of results."""

from __future__ import annotations

import math
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sized

_Key = TypeVar("_Key", bound=str)
_Value = TypeVar("_Value")

# Wide enough for every float, so that quantize never runs out of digits.
_WIDE = Context(prec=400)


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


def tidy(value: float) -> float:
    """Keep 12 significant digits, so that a chat shows 0.3 and not 0.30000000000000004.

    Raises:
        ValueError: The number is infinite or not a number.
    """
    if not math.isfinite(value):
        raise ValueError(f"the result cannot be represented as a number: {value!r}")
    return float(f"{value:.12g}") + 0.0


def cents(value: float) -> float:
    """Keep two decimals, halves away from zero, as money is rounded.

    Raises:
        ValueError: The number is infinite or not a number.
    """
    exact = Decimal(repr(tidy(value)))
    return float(exact.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP, context=_WIDE))
