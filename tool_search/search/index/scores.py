"""Functions over the scores of one query, in a list or an array.

An array is used for a large index; both forms give the same scores.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from tool_search.search.text.scripts import ToolScripts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = list[float] | NDArray[np.float64]

__all__ = [
    "ScoredTools",
    "count_near_best",
    "cutoff_score",
    "drop_below",
    "drop_far_below_best",
    "hits_above",
    "masked",
    "max_score",
    "relevance",
]

# Below 1, which only a tool that the query names has.
_BEST_INEXACT = 0.999999
# Measured in `benchmarks/ablation.md`: fewer tools are declared, and nearly none is missed.
_MIN_SHARE_TO_DECLARE = 0.3


class ScoredTools(NamedTuple):
    """The scores of one query, before boosts.

    Attributes:
        text: The part of the query that tools are ranked by.
        reported_text: The part of the query whose unknown words are reported.
        values: One score for each document id.
        attainable: The score that the query could reach; 0 if nothing can be a hit.
        floor: The lowest score of a hit.
        voted: Learned votes by document id, as shares of `attainable`.
        always_hits: Document ids that operators let through whatever their score.
        moves: What a learned map adds by document id, as shares of `attainable`; None: no map.
    """

    text: str
    reported_text: str
    values: Values
    attainable: float
    floor: float
    voted: Sequence[tuple[int, float]] = ()
    always_hits: frozenset[int] = frozenset()
    moves: NDArray[np.float64] | None = None


def relevance(share: float) -> float:
    """Return 1 - e^-share, from 0 to below 1.

    Args:
        share: A score divided by the score that the query could reach.
    """
    return min(-math.expm1(-share), _BEST_INEXACT)


def count_near_best(relevances: Sequence[float]) -> int:
    """Return the number of hits that are not far below the best one.

    Args:
        relevances: The relevance of each hit, highest first. A named tool has 1 and is not
            the measure of the others.
    """
    inexact = [value for value in relevances if value < 1.0]
    if not inexact:
        return len(relevances)
    least = -_MIN_SHARE_TO_DECLARE * math.log1p(-inexact[0])
    return sum(value >= 1.0 or -math.log1p(-value) >= least for value in relevances)


def masked(values: Values, is_allowed: Sequence[bool]) -> Values:
    """Return the scores with 0 for the tools that the caller may not find."""
    if isinstance(values, list):
        return [
            value if is_open else 0.0 for value, is_open in zip(values, is_allowed, strict=True)
        ]
    return values * is_allowed


def drop_far_below_best(values: Values, scripts: ToolScripts, share: float) -> Values:
    """Return the scores with 0 for those far below the best score of every own script.

    Args:
        values: One score for each document id.
        scripts: The scripts of each document.
        share: The share of the best score that a hit needs.
    """
    best = {group: _best_in(values, scripts, group) for group in scripts.groups}
    least = {
        kind: share * min((best[group] for group in scripts.groups if kind & group), default=0.0)
        for kind in scripts.kinds_there
    }
    if isinstance(values, list):
        return [
            value if value >= least[kind] else 0.0
            for value, kind in zip(values, scripts.by_doc_id, strict=True)
        ]
    import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

    found = np.zeros(len(values))
    # Most scores are below every bound: the others are few.
    near = (values >= min(filter(None, least.values()), default=0.0)).nonzero()[0]
    near = near[values[near] >= np.array(list(least.values()))[scripts.kind_numbers[near]]]
    found[near] = values[near]
    return found


def _best_in(values: Values, scripts: ToolScripts, group: int) -> float:
    """Return the highest score of a tool in a script."""
    if len(scripts.groups) < 2:
        return max_score(values)
    if isinstance(values, list):
        return max(map(values.__getitem__, scripts.members(group)))
    return float(values[scripts.places(group)].max())


def drop_below(values: Values, floor: float) -> Values:
    """Return the scores with 0 for those below a floor."""
    if isinstance(values, list):
        return [value if value >= floor else 0.0 for value in values]
    return values * (values >= floor)


def max_score(values: Values) -> float:
    """Return the highest score; 0 if there is none."""
    return max(values, default=0.0) if isinstance(values, list) else float(values.max())


def hits_above(
    values: Values, floor: float, limit: int, max_boost: float
) -> tuple[Collection[int] | NDArray[np.intp], list[tuple[int, float]]]:
    """Return the hits, and those of them that a boost can bring among the best.

    Args:
        values: One score for each document id.
        floor: The lowest score of a hit; a score of 0 is never one.
        limit: The number of tools that the caller asked for.
        max_boost: The largest factor that a score can be multiplied by.

    Returns:
        The document ids of all hits, then ids with scores, highest score first.
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
    """Return the lowest of the best scores, as many as the limit; 0 if there is none."""
    return min(scores, default=0.0) if len(scores) <= limit else sorted(scores)[-limit]
