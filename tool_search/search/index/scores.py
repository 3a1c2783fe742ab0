"""Which scores are hits, and the best of them, in a list or in an array."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = list[float] | NDArray[np.float64]

__all__ = ["ScoredTools", "above", "closed", "largest", "last_of_best", "lift", "relevance"]

_BEST_INEXACT = 0.999999


class ScoredTools(NamedTuple):
    """What each tool is worth for a query, but for the boosts.

    Attributes:
        text: What of the query was ranked by.
        asked: What of it may be missed in the catalog.
        values: By slot.
        most: What the query could reach; 0: nothing can be a hit.
        floor: What is worth less is no hit.
        voted: What was learned, by slot, as shares of `most`.
        sure: DocumentIds that operators let through whatever their score.
    """

    text: str
    asked: str
    values: Values
    most: float
    floor: float
    voted: Sequence[tuple[int, float]] = ()
    sure: frozenset[int] = frozenset()


def relevance(share: float) -> float:
    """From 0 to below 1, of what a tool has of what the query could reach."""
    return min(-math.expm1(-share), _BEST_INEXACT)


def lift(values: Values, slots: Iterable[int], least: float) -> None:
    """Gives these slots at least this score."""
    for slot in slots:
        values[slot] = max(values[slot], least)


def closed(values: Values, is_open: Sequence[bool]) -> Values:
    """The scores, with 0 for tools that may not be found."""
    if isinstance(values, list):
        return [value if kept else 0.0 for value, kept in zip(values, is_open, strict=True)]
    return values * is_open


def largest(values: Values) -> float:
    """The highest score; 0 where there is none."""
    return max(values, default=0.0) if isinstance(values, list) else float(values.max())


def above(
    values: Values, floor: float, limit: int, most_boost: float
) -> tuple[Collection[int] | NDArray[np.intp], list[tuple[int, float]]]:
    """The slots of all hits, and those of them that a boost can bring among the best.

    Hits have a score that is neither 0 nor below the floor. Those that are returned
    with their scores are best first.
    """
    if isinstance(values, list):
        hits = [(slot, value) for slot, value in enumerate(values) if value >= floor and value > 0]
        return [slot for slot, _ in hits], sorted(hits, key=itemgetter(1), reverse=True)
    slots = (values >= floor if floor > 0 else values > 0).nonzero()[0]
    scores = values[slots]
    near = slots
    if len(scores) > limit > 0:
        ordered = scores.copy()
        ordered.partition(len(ordered) - limit)
        is_near = scores >= ordered[-limit] / most_boost
        near, scores = slots[is_near], scores[is_near]
    order = scores.argsort()[::-1]
    return slots, list(zip(near[order].tolist(), scores[order].tolist(), strict=True))


def last_of_best(scores: list[float], limit: int) -> float:
    """The lowest score within the limit."""
    return min(scores, default=0.0) if len(scores) <= limit else sorted(scores)[-limit]
