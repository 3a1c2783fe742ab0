"""The measures of a ranking."""

from __future__ import annotations

import math

import pytest

from tool_search.core.catalog.tool import Tool
from tool_search.search import JudgedQuery, build_index, evaluate

INDEX = build_index([Tool(name=f"note_{number:02}", description="A note.") for number in range(12)])


def test_evaluate_perfect_answer_scores_one() -> None:
    report = evaluate(INDEX, [JudgedQuery(query="note", relevant=["note_00"])])
    assert (report.recall_at_5, report.recall_at_10) == (1, 1)
    assert (report.ndcg_at_10, report.mrr, report.queries) == (1, 1, 1)


def test_evaluate_counts_the_share_of_relevant_tools() -> None:
    asked = JudgedQuery(query="note", relevant=["note_01", "note_07", "note_11"])
    report = evaluate(INDEX, [asked])
    assert report.recall_at_5 == pytest.approx(1 / 3)
    assert report.recall_at_10 == pytest.approx(2 / 3)
    assert report.mrr == 1 / 2
    ideal = 1 + 1 / math.log2(3) + 1 / 2
    assert report.ndcg_at_10 == pytest.approx((1 / math.log2(3) + 1 / math.log2(9)) / ideal)


def test_evaluate_averages_over_queries() -> None:
    asked = [
        JudgedQuery(query="note", relevant=["note_00"]),
        JudgedQuery(query="qwzx", relevant=["note_00"]),
    ]
    assert evaluate(INDEX, asked).recall_at_5 == 0.5


def test_evaluate_no_queries_is_zero() -> None:
    assert evaluate(INDEX, []).mrr == 0.0
    assert evaluate(INDEX, []).queries == 0
