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

__all__ = [
    "ScoredTools",
    "cutoff_score",
    "hits_above",
    "masked",
    "max_score",
    "raise_to",
    "relevance",
]

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
    reported_text: str
    values: Values
    attainable: float
    floor: float
    voted: Sequence[tuple[int, float]] = ()
    always_hits: frozenset[int] = frozenset()


def relevance(share: float) -> float:
    """From 0 to below 1, of what a tool has of what the query could reach."""
    return min(-math.expm1(-share), _BEST_INEXACT)


def raise_to(values: Values, doc_ids: Iterable[int], least: float) -> None:
    """Gives these slots at least this score."""
    for doc_id in doc_ids:
        values[doc_id] = max(values[doc_id], least)


def masked(values: Values, is_allowed: Sequence[bool]) -> Values:
    """The scores, with 0 for tools that may not be found."""
    if isinstance(values, list):
        return [value if kept else 0.0 for value, kept in zip(values, is_allowed, strict=True)]
    return values * is_allowed


def max_score(values: Values) -> float:
    """The highest score; 0 where there is none."""
    return max(values, default=0.0) if isinstance(values, list) else float(values.max())


def hits_above(
    values: Values, floor: float, limit: int, max_boost: float
) -> tuple[Collection[int] | NDArray[np.intp], list[tuple[int, float]]]:
    """The slots of all hits, and those of them that a boost can bring among the best.

    Hits have a score that is neither 0 nor below the floor. Those that are returned
    with their scores are best first.
    """
    if isinstance(values, list):
        hits = [
            (doc_id, value) for doc_id, value in enumerate(values) if value >= floor and value > 0
        ]
        return [doc_id for doc_id, _ in hits], sorted(hits, key=itemgetter(1), reverse=True)
    doc_ids = (values >= floor if floor > 0 else values > 0).nonzero()[0]
    scores = values[doc_ids]
    near = doc_ids
    if len(scores) > limit > 0:
        ordered = scores.copy()
        ordered.partition(len(ordered) - limit)
        is_near = scores >= ordered[-limit] / max_boost
        near, scores = doc_ids[is_near], scores[is_near]
    order = scores.argsort()[::-1]
    return doc_ids, list(zip(near[order].tolist(), scores[order].tolist(), strict=True))


def cutoff_score(scores: list[float], limit: int) -> float:
    """The lowest score within the limit."""
    return min(scores, default=0.0) if len(scores) <= limit else sorted(scores)[-limit]
