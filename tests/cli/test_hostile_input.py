"""Files and queries that nobody means well: an answer or one clear message, in bounded time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Command

File = Callable[[str, str], Path]
SIZE = 100_000

QUERIES = {
    "words": "weather " * (SIZE // 8),
    "punctuation": "?!,.;:" * (SIZE // 6),
    "emoji": "👍🏽🎉" * (SIZE // 3),
    "control characters": "\x07\x1b\x9f" * (SIZE // 3),
    "NUL": "weather\x00" * (SIZE // 8),
    "lone surrogates": "\ud800weather\udfff" * (SIZE // 9),
    "brackets": "(" * 10_000,
    "operators": "weather AND NOT OR " * 5_000,
    "a runaway pattern": "(a+)+$" * 80,
}
CATALOGS = {
    "nested list": ("[" * SIZE, "cannot be read as JSON"),
    "nested object": ('{"a":' * SIZE, "cannot be read as JSON"),
    "nested schema": (
        '{"name": "odd", "parameters": ' + '{"properties":{"a":' * 450 + "{}" + "}}" * 450 + "}",
        "tool 'odd': parameters cannot be written as JSON (nested deeper than 400 levels",
    ),
    "description of another type": (
        '{"name": "odd", "description": [' + "1," * SIZE + "1]}",
        "tool 'odd': description must be a string, not [1, 1",
    ),
    "name of a megabyte": (json.dumps({"name": "a" * 1_000_000}), "has 1000000 characters"),
    "number of 5,000 digits": ('{"name": "odd", "x": ' + "1" * 5_000 + "}", "cannot be read"),
    "lone surrogate as a name": (r'{"name": "\ud800"}', "the name has a control character"),
    "cut off": ('{"name": "odd", "x": ' + "a" * SIZE, "is not JSON"),
}


@pytest.mark.parametrize("engine", ["bm25", "regex"])
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_search_answers_any_query(
    command: Command, write: File, catalog: Path, engine: str, query: str
) -> None:
    queries = write("q.jsonl", json.dumps({"query": query}))
    outcome = command(
        "search", "--catalog", catalog, "--queries", queries, "--engine", engine, "--json"
    )
    assert outcome.status == 0, outcome.err
    (answer,) = outcome.lines
    found = [match["name"] for match in answer["matches"]]
    assert ("get_weather" in found) == ("weather" in query)
    assert outcome.out.encode()


@pytest.mark.parametrize(("content", "message"), CATALOGS.values(), ids=CATALOGS)
def test_hostile_catalog_is_refused_in_few_words(
    command: Command, write: File, content: str, message: str
) -> None:
    outcome = command("search", "--catalog", write("c.json", content), "--query", "x")
    assert outcome.status == 2
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    said = " ".join(outcome.err.split())
    assert "c.json" in said
    assert message in said
    assert len(said) < 600
