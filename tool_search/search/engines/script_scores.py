"""The scores of a query for the tools of each script, and their combinations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from tool_search.search.index.ranking import Scores
from tool_search.search.index.scores import drop_far_below_best, max_score
from tool_search.search.index.storage import Posting, entries_of
from tool_search.search.text.scripts import ToolScripts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tool_search.search.index.scores import Values

__all__ = ["ScriptScores", "best_of", "with_best"]

# A tool's best sentence has at most the score of the whole, and a hit has at least a quarter
# of the best score: a tool with less of the whole than this cannot become a hit.
_MIN_OF_WHOLE = 0.125


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


def with_best(
    values: Values,
    weighted: Sequence[tuple[Posting, float]],
    sentences: Sequence[Sequence[int]],
    scripts: ToolScripts,
) -> Values:
    """Return the scores of a request with those of its best sentence for each tool.

    Args:
        values: The scores of the whole request; they are changed.
        weighted: The postings that they are the sum of, with their weights.
        sentences: The places of the postings of each sentence.
        scripts: The scripts of the tools.
    """
    if max_score(values) <= 0:
        return values
    far = drop_far_below_best(values, scripts, _MIN_OF_WHOLE)
    if isinstance(values, list):
        near = [doc_id for doc_id, value in enumerate(far) if value > 0]
        for doc_id, best in zip(near, _best_part(weighted, sentences, near), strict=True):
            values[doc_id] += best
        return values
    import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

    places = np.asarray(far).nonzero()[0]
    values[places] += _best_part_by_numpy(weighted, sentences, places, len(values))
    return values


def _best_part(
    weighted: Sequence[tuple[Posting, float]], parts: Sequence[Sequence[int]], chosen: Sequence[int]
) -> list[float]:
    """Return, for chosen documents, the greatest sum of impact * weight over a part.

    Args:
        weighted: Postings and their weights.
        parts: The places of the postings of each part.
        chosen: The document ids, ascending.
    """
    wanted = frozenset(chosen)
    values = [
        [
            (doc_id, (entry - doc_id) * weight)
            for entry in posting
            if (doc_id := int(entry)) in wanted
        ]
        for posting, weight in weighted
    ]
    best = dict.fromkeys(chosen, 0.0)
    for part in parts:
        sums: dict[int, float] = {}
        for doc_id, value in chain.from_iterable(map(values.__getitem__, part)):
            sums[doc_id] = sums.get(doc_id, 0.0) + value
        best.update((doc_id, value) for doc_id, value in sums.items() if value > best[doc_id])
    return list(best.values())


def _best_part_by_numpy(
    weighted: Sequence[tuple[Posting, float]],
    parts: Sequence[Sequence[int]],
    chosen: NDArray[np.intp],
    size: int,
) -> NDArray[np.float64]:
    """Return the same sums as `_best_part`, in an array.

    Args:
        weighted: Postings and their weights; at least one.
        parts: The places of the postings of each part.
        chosen: The document ids, ascending.
        size: The number of document ids.
    """
    import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

    doc_ids, values = entries_of(weighted)
    places = np.full(size, -1)
    places[chosen] = np.arange(len(chosen))
    places = places[doc_ids]
    is_chosen = places >= 0
    places, values = places[is_chosen], values[is_chosen]
    posting = np.repeat(np.arange(len(weighted)), [len(p) for p, _ in weighted])[is_chosen]
    best = np.zeros(len(chosen))
    for part in parts:
        is_in = np.zeros(len(weighted), bool)
        is_in[list(part)] = True
        own = is_in[posting]
        sums = np.bincount(places[own], values[own], minlength=len(chosen))
        np.maximum(best, sums, out=best)
    return best


def best_of(views: Sequence[ScriptScores], scripts: ToolScripts) -> Scores:
    """Return the best score of each tool, as a share if there are several languages."""
    if len(views) == 1:
        return views[0].scores
    if not any(view.scores.attainable > 0 for view in views):
        return Scores(views[0].scores.values, 0.0)
    values = views[0].scores.values
    # A score is the share of what the query could reach among the tools of a language; the
    # sums of impacts are those of all.
    shares = {
        kind: max(
            (
                1.0 / view.scores.attainable
                for view in views
                if kind & view.group and view.scores.attainable > 0
            ),
            default=0.0,
        )
        for kind in scripts.kinds_there
    }
    if isinstance(values, list):
        pairs = zip(values, scripts.by_doc_id, strict=True)
        return Scores([value * shares[kind] for value, kind in pairs], 1.0, scripts)
    import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

    by_kind = np.array(list(shares.values()))
    return Scores(values * by_kind.take(scripts.kind_numbers), 1.0, scripts)
