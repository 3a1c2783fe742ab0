"""`tool-search eval`: the documented figures, and messages for odd queries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Command

KEYS = [
    "recall@5",
    "recall@10",
    "ndcg@10",
    "mrr",
    "build_ms",
    "p50_us",
    "p99_us",
    "queries",
    "tools",
]
File = Callable[[str, str], Path]


@pytest.fixture
def queries(write: File) -> Path:
    """Return two queries: one is answered fully, one by half."""
    return write(
        "q.jsonl",
        '{"query": "weather", "relevant": ["get_weather"], "lang": "en"}\n'
        '{"query": "火车票", "relevant": ["query_train", "send_mail"]}\n',
    )


def test_eval_json_has_exactly_the_documented_keys(
    command: Command, catalog: Path, queries: Path
) -> None:
    figures = command("eval", "--catalog", catalog, "--queries", queries, "--json").json
    assert list(figures) == KEYS
    assert figures["recall@5"] == figures["recall@10"] == 0.75
    assert figures["mrr"] == 1.0
    assert (figures["queries"], figures["tools"]) == (2, 5)
    assert 0 < figures["p50_us"] <= figures["p99_us"]
    assert figures["build_ms"] > 0


def test_eval_table_shows_every_figure(command: Command, catalog: Path, queries: Path) -> None:
    outcome = command("eval", "--catalog", catalog, "--queries", queries)
    assert [line.split()[0] for line in outcome.out.splitlines()] == KEYS


def test_eval_warns_of_relevant_tools_that_do_not_exist(
    command: Command, catalog: Path, write: File
) -> None:
    queries = write("q.jsonl", '{"query": "weather", "relevant": ["get_wether"]}')
    outcome = command("eval", "--catalog", catalog, "--queries", queries, "--json")
    assert outcome.json["recall@5"] == 0
    assert "1 relevant tools are not in the catalog" in outcome.err
    assert "'get_wether'" in outcome.err


def test_eval_of_no_queries_is_all_zero(command: Command, catalog: Path, write: File) -> None:
    figures = command("eval", "--catalog", catalog, "--queries", write("q", ""), "--json").json
    assert list(figures) == KEYS
    assert figures["recall@5"] == figures["p99_us"] == figures["queries"] == 0


@pytest.mark.parametrize("engine", ["bm25", "rank_bm25"])
def test_eval_measures_a_public_set(command: Command, shared: Path, engine: str) -> None:
    folder = shared / "data" / "mcptoolbenchpp"
    files = ("--catalog", folder / "tools.jsonl", "--queries", folder / "queries.jsonl")
    figures = command("eval", *files, "--engine", engine, "--json").json
    assert (figures["queries"], figures["tools"]) == (680, 62)
    assert figures["recall@5"] > 0.9


@pytest.mark.parametrize(
    "entry",
    [
        '{"query": "x"}',
        '{"query": "x", "relevant": []}',
        '{"query": "x", "relevant": "a"}',
        '{"query": "x", "relevant": [1]}',
    ],
)
def test_eval_refuses_a_query_without_relevant_tools(
    command: Command, catalog: Path, write: File, entry: str
) -> None:
    queries = write("q.jsonl", '{"query": "weather", "relevant": ["get_weather"]}\n' + entry)
    outcome = command("eval", "--catalog", catalog, "--queries", queries)
    assert outcome.status == 2
    assert "q.jsonl, line 2" in outcome.err
    assert '"relevant" must be a list' in outcome.err


def test_eval_by_tool_tells_what_is_missed_and_what_to_change(
    command: Command, write: File
) -> None:
    tools = [
        '{"name": "create_invoice", "description": "Create an invoice."}',
        '{"name": "create_offer", "description": "Create an offer for a customer."}',
        '{"name": "run", "description": ""}',
    ]
    asked = [
        '{"query": "write a bill for a customer", "relevant": ["create_invoice"]}',
        '{"query": "a bill of 300, customer 17", "relevant": ["create_invoice"]}',
        '{"query": "an offer", "relevant": ["create_offer"]}',
        '{"query": "start the customer script", "relevant": ["run", "gone"]}',
    ]
    files = (
        *("--catalog", write("tools.jsonl", "\n".join(tools))),
        *("--queries", write("q.jsonl", "\n".join(asked))),
    )
    found = command("eval", *files, "--by-tool", "--json").json
    assert list(found) == [*KEYS, "by_tool"]
    by_tool = {each["tool"]: each for each in found["by_tool"]}
    assert list(by_tool) == ["create_invoice", "gone", "run", "create_offer"]
    invoice = by_tool["create_invoice"]
    assert (invoice["queries"], invoice["found"]) == (2, 0)
    assert invoice["instead"] == [{"tool": "create_offer", "queries": 2}]
    assert invoice["missing_words"][0] == "bill"
    assert "17" not in invoice["missing_words"]
    assert "'bill'" in invoice["advice"]
    assert "not in the catalog" in by_tool["gone"]["advice"]
    assert "give it a description" in by_tool["run"]["advice"]
    assert (by_tool["create_offer"]["found"], by_tool["create_offer"]["advice"]) == (1, "")
    shown = command("eval", *files, "--by-tool").out
    assert "3 of 4 wanted tools were missed within the first five; 3 were never found" in shown
    assert "create_invoice: 0 of 2 found" in shown
    assert "instead: create_offer (2)" in shown
