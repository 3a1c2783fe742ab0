"""The scores of a query for the tools of each script, and their combinations."""

from __future__ import annotations

from collections.abc import Sequence
from operator import add
from typing import TYPE_CHECKING, NamedTuple

from tool_search.search.index.ranking import Scores
from tool_search.search.text.scripts import ToolScripts, has_several, script_of

if TYPE_CHECKING:
    from tool_search.search.index.scores import Values

__all__ = [
    "ScriptScores",
    "best_of",
    "scores_in",
    "share_covered",
    "value_in",
    "with_best",
]


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
    """Return the scores of a request with those of its best sentence for each tool."""
    whole = view.scores
    best_attainable = max(each.attainable for each in sentences)
    return Scores(_add(view, sentences, scripts), whole.attainable + best_attainable)


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
