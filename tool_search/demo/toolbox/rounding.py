"""Rounding of results, so that a chat shows 0.3 and not 0.30000000000000004."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal

# Wide enough for every float, so that quantize never runs out of digits.
_WIDE = Context(prec=400)


def tidy(value: float) -> float:
    """Keep 12 significant digits.

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
