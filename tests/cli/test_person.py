"""Output for a person: in each language, and from standard input."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import TOOLS, Command, as_lines
from tool_search.cli.inspect import inspect_command
from tool_search.cli.terminal.language import choose_language
from tool_search.i18n import LANGUAGES, Language, text


@pytest.mark.parametrize("language", LANGUAGES)
def test_search_speaks_the_persons_language(
    command: Command, catalog: Path, language: Language
) -> None:
    asked = ("--language", language, "search", "--catalog", catalog, "--query", "weather xyzzy")
    plain, explained = command(*asked).out, command(*asked, "--explain").out
    assert text("ranking.description", language) in plain
    assert text("ranking.found", language, shown=1, found=1, total=5) in plain
    assert text("ranking.unmatched", language, words="xyzzy") in plain
    assert text("ranking.scores", language) in explained


@pytest.mark.parametrize("language", LANGUAGES)
def test_other_commands_speak_it_too(
    command: Command, catalog: Path, tmp_path: Path, language: Language
) -> None:
    queries = tmp_path / "queries.jsonl"
    queries.write_text(json.dumps({"query": "xyzzy", "relevant": ["send_mail"]}), "utf-8")
    shown = command(
        "eval", "--catalog", catalog, "--queries", queries, "--by-tool", "--language", language
    ).out
    assert text("eval.found", language, tool="send_mail", found=0, queries=1) in shown
    assert text("eval.instead", language, names=text("eval.nothing", language)) in shown
    assert text("misses.words", language, words="'xyzzy'") in shown
    store = tmp_path / "none.sqlite"
    shown = command("learned", "--store", store, "--language", language).out
    assert text("learned.nothing", language) in shown
    shown = command("forget", "--all", "--store", store, "--language", language).out
    last = text("forget.grants", language, count=0)
    assert last in shown


def test_json_is_the_same_in_every_language(command: Command, catalog: Path) -> None:
    asked = ("search", "--catalog", catalog, "--query", "weather", "--json", "--explain")
    outputs = {command(*asked, "--language", language).out for language in LANGUAGES}
    assert len(outputs) == 1


def test_a_catalog_may_come_from_standard_input(command: Command) -> None:
    asked = ("--catalog", "-", "--query", "weather", "--json")
    found = command("search", *asked, typed=as_lines(TOOLS))
    assert [match["name"] for match in found.json["matches"]] == ["get_weather"]
    refused = command("search", *asked, typed='{"name": 3}\n')
    assert (refused.status, refused.out) == (2, "")
    assert refused.err.startswith("error: standard input")


def test_a_catalog_of_100_mb_from_standard_input(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = {"name": "long", "description": "weather " * 13_000_000}
    given = io.TextIOWrapper(io.BytesIO(json.dumps(long).encode()), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", given)
    from tool_search.cli.files import read_catalog  # noqa: PLC0415  # reads this standard input

    catalog = read_catalog(Path("-"))
    assert list(catalog) == ["long"]


def test_learned_names_other_stores(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    from tool_search.config.stores import StoreSettings  # noqa: PLC0415

    folder = StoreSettings().file().parent
    assert tmp_path in folder.parents
    folder.mkdir(parents=True)
    (folder / "other.db").write_bytes(b"")
    assert "other.db" in command("learned").out


@pytest.mark.parametrize("language", LANGUAGES)
def test_inspect_is_a_table_at_a_terminal(
    large_catalog: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    language: Language,
) -> None:  # fmt: skip
    choose_language(language)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    inspect_command(catalog=large_catalog, provider="anthropic")
    table = capsys.readouterr().out
    assert text("inspect.deferred", language) in table
    assert "tool_199" in table
    inspect_command(catalog=large_catalog, provider="anthropic", as_json=True)
    assert json.loads(capsys.readouterr().out)["tools"]
    choose_language(None)
