"""The quality of a ranking, measured with queries whose answers are known.

Source of nDCG: Jarvelin, Kekalainen, "Cumulated gain-based evaluation of IR techniques",
ACM TOIS 2002, with gains of 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tool_search.core.services import ToolSearchIndex

__all__ = ["EvaluationReport", "JudgedQuery", "evaluate"]

_DEPTH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedQuery:
    """A query and the tools that answer it.

    Attributes:
        query: The query as a user or a model would write it.
        relevant: The names of the tools that should be found, at least one.
    """

    query: str
    relevant: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationReport:
    """Averages over all queries, each from 0 to 1; all 0 without queries.

    Attributes:
        recall_at_5: The share of the relevant tools within the first five.
        recall_at_10: The same within the first ten.
        ndcg_at_10: Discounted cumulative gain of the first ten, as a share of the best.
        mrr: One divided by the rank of the first relevant tool, 0 beyond the tenth.
        queries: The number of queries.
    """

    recall_at_5: float
    recall_at_10: float
    ndcg_at_10: float
    mrr: float
    queries: int


def evaluate(index: ToolSearchIndex, queries: Iterable[JudgedQuery]) -> EvaluationReport:
    """Search for every query, ten tools deep, and average the measures."""
    rows = []
    for judged in queries:
        found = index.search(judged.query, limit=_DEPTH)
        ranked = [match.name for match in found.matches]
        rows.append(_measures(ranked, frozenset(judged.relevant)))
    sums = [math.fsum(column) for column in zip(*rows, strict=True)] or [0.0] * 4
    recall_at_5, recall_at_10, ndcg_at_10, mrr = (total / max(len(rows), 1) for total in sums)
    return EvaluationReport(
        recall_at_5=recall_at_5,
        recall_at_10=recall_at_10,
        ndcg_at_10=ndcg_at_10,
        mrr=mrr,
        queries=len(rows),
    )


def _measures(
    ranked: Sequence[str], relevant: Collection[str]
) -> tuple[float, float, float, float]:
    ranks = [rank for rank, name in enumerate(ranked, start=1) if name in relevant]
    wanted = max(len(relevant), 1)
    ideal = math.fsum(1 / math.log2(rank + 1) for rank in range(1, min(wanted, _DEPTH) + 1))
    gain = math.fsum(1 / math.log2(rank + 1) for rank in ranks)
    return (
        sum(rank <= 5 for rank in ranks) / wanted,
        len(ranks) / wanted,
        gain / ideal,
        1 / ranks[0] if ranks else 0.0,
    )
