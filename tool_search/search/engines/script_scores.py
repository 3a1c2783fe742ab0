"""The scores of a query for the tools of each script, and their combinations."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from heapq import nlargest
from operator import add
from typing import TYPE_CHECKING, NamedTuple

from tool_search.search.index.ranking import Scores
from tool_search.search.text.scripts import ToolScripts, has_several, script_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tool_search.search.index.scores import Values

    Members = Sequence[int] | NDArray[np.intp]

__all__ = [
    "ScriptScores",
    "best_of",
    "compared_with",
    "leading_shares",
    "scores_in",
    "share_covered",
    "value_in",
    "with_best",
]

# Measured in `benchmarks/long_requests.md`.
_LEADS = 0.5
_MAX_LEADING = 10
_MIN_LEADING_SHARE = 0.3
_MIN_OF_BEST = 0.3


class ScriptScores(NamedTuple):
    """The scores of a query for the tools of one script.

    Attributes:
        group: The script.
        scores: The scores; they count for the tools of the script alone.
        share: The share of the query's words that a tool of the script has, from 0 to 1.
    """

    group: int
    scores: Scores
    share: float


def share_covered(words: Sequence[str], asked: frozenset[str], scripts: int) -> float:
    """Return the share of a tool's words that a query has, in the best of its scripts.

    Args:
        words: The words of the tool.
        asked: The words of the query.
        scripts: The scripts of the tool.
    """
    if not has_several(scripts):
        return len(asked.intersection(words)) / (len(words) or 1)
    own: dict[int, list[str]] = {}
    for word in words:
        own.setdefault(script_of(word), []).append(word)
    return max((len(asked.intersection(part)) / len(part) for part in own.values()), default=0.0)


def scores_in(views: Sequence[ScriptScores], group: int) -> Scores:
    """Return the scores of one script."""
    return next(view.scores for view in views if view.group == group)


def value_in(views: Sequence[ScriptScores], group: int, doc_id: int) -> float:
    """Return the score of a tool among those of one script."""
    return float(scores_in(views, group).values[doc_id])


def with_best(view: ScriptScores, sentences: Sequence[Scores], scripts: ToolScripts) -> Scores:
    """Return the scores of a request with those of its best sentence for each tool.

    The best tools of each sentence gain more, so that the tools of a long wish leave a place
    for those of a short one.
    """
    whole = view.scores
    best_attainable = max(each.attainable for each in sentences)
    scores = Scores(_add(view, sentences, scripts), whole.attainable + best_attainable)
    if best_attainable > 0:
        members = compared_with(whole, view.group, scripts)
        for doc_id, share in leading_shares(sentences, members).items():
            scores.values[doc_id] += share * best_attainable
    return scores


def compared_with(scores: Scores, group: int, scripts: ToolScripts) -> Members | None:
    """Return the tools of a script, in an array if the scores are; None if they are all."""
    if len(scripts.groups) < 2:
        return None
    return scripts.members(group) if isinstance(scores.values, list) else scripts.places(group)


def leading_shares(sentences: Iterable[Scores], members: Members | None = None) -> dict[int, float]:
    """Return what the best tools of each sentence gain, as shares of an attainable score.

    Half of a tool's share of what the sentence could reach, divided by its rank. Ties share
    the mean of their ranks: a sentence that fits many tools alike asks for none of them. The
    greatest of several sentences counts.

    Args:
        sentences: The scores of each sentence.
        members: The document ids of the tools that are compared, in an array if the scores
            are; None for all.
    """
    found: dict[int, float] = {}
    for values, attainable, _ in sentences:
        leading = _find_leading(values, members)
        best = max(leading.values(), default=0.0)
        if attainable <= 0 or best < _MIN_LEADING_SHARE * attainable:
            continue
        ascending = sorted(leading.values())
        for doc_id, value in leading.items():
            first, after = bisect_left(ascending, value), bisect_right(ascending, value)
            rank = len(ascending) - (first + after - 1) / 2.0
            found[doc_id] = max(found.get(doc_id, 0.0), _LEADS * value / attainable / rank)
    return found


def _find_leading(values: Values, members: Members | None) -> dict[int, float]:
    """Return the highest scores by document id, with all ties of the last.

    None that is far below the best, of which there may be thousands.
    """
    if isinstance(values, list):
        places = range(len(values)) if members is None else members
        best = nlargest(_MAX_LEADING, (values[place] for place in places))
        if not best or best[0] <= 0:
            return {}
        least = max(best[-1], _MIN_OF_BEST * best[0])
        return {int(place): values[place] for place in places if values[place] >= least}
    own = values if members is None else values[members]
    best_value = float(own.max(initial=0.0))
    if best_value <= 0:
        return {}
    chosen = (own >= _MIN_OF_BEST * best_value).nonzero()[0]
    if len(chosen) > _MAX_LEADING:
        ordered = own[chosen]
        ordered.partition(len(chosen) - _MAX_LEADING)
        chosen = chosen[own[chosen] >= ordered[-_MAX_LEADING]]
    doc_ids = chosen if members is None else members[chosen]  # type: ignore[call-overload]
    return dict(zip(doc_ids.tolist(), own[chosen].tolist(), strict=True))


def _add(view: ScriptScores, sentences: Sequence[Scores], scripts: ToolScripts) -> Values:
    """Return the scores of the whole and of the best sentence, added."""
    whole = view.scores.values
    if isinstance(whole, list):
        best = map(max, *(each.values for each in sentences))
        return list(map(add, whole, best))
    import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

    if scripts.is_few(view.group):
        places, values = scripts.places(view.group), whole.copy()
        values[places] += np.max([np.asarray(each.values)[places] for each in sentences], axis=0)
        return values
    highest = np.asarray(sentences[0].values)
    for each in sentences[1:]:
        highest = np.maximum(highest, each.values)
    return np.asarray(whole + highest)


def best_of(views: Sequence[ScriptScores], scripts: ToolScripts) -> Scores:
    """Return the best score of each tool, as a share if there are several scripts."""
    if len(views) == 1:
        return views[0].scores
    if not any(view.scores.attainable > 0 for view in views):
        return Scores(views[0].scores.values, 0.0)
    if isinstance(views[0].scores.values, list):
        values = [0.0] * len(scripts.by_doc_id)
        for group, (own, most, _), _ in views:
            for doc_id in scripts.members(group) if most > 0 else ():
                values[doc_id] = max(values[doc_id], own[doc_id] / most)
        return Scores(values, 1.0, scripts)
    import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

    best = np.zeros(len(scripts.by_doc_id))
    for group, (own, most, _), _ in views:
        if most <= 0:
            continue
        if scripts.is_few(group):
            places = scripts.places(group)
            best[places] = np.maximum(best[places], np.asarray(own)[places] / most)
        else:
            shares = np.asarray(own) / most
            shares *= scripts.mask(group)
            np.maximum(best, shares, out=best)
    return Scores(best, 1.0, scripts)
