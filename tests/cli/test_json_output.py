"""The JSON of each command fits its schema, which only grows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from typer.main import get_command

from tests.cli.conftest import Command
from tool_search.cli.application import COMMANDS, app

SCHEMAS = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).resolve().parents[2] / "docs" / "json").glob("*.json"))
}
# Of each command's output: the keys that programs rely on. A line is never removed.
PROMISED = {
    "chat": {"event"},
    "demo": {"requests", "discovered", "switches", "calls", "saving", "answer"},
    "doctor": {"file", "findings", "fixed", "tools", "providers", "worst_described"},
    "eval": {"recall@5", "recall@10", "ndcg@10", "mrr", "build_ms", "p50_us", "p99_us", "queries"},
    "forget": {"store", "evidence", "conversations", "grants"},
    "inspect": set[str](),
    "inspect-log": {"requests", "tokens", "full_tokens", "searches", "never_found"},
    "learned": {"store", "evidence", "conversations"},
    "replay": {"store", "days", "turns", "called", "found", "full_tokens", "search_tokens"},
    "search": {"query", "matches", "total_found"},
}


def check(name: str, output: Any) -> None:
    """Fail if an output does not fit the schema, or has a key that the schema lacks."""
    jsonschema_rs.validate(SCHEMAS[name], output)
    if name != "chat":
        assert set(output) <= set(SCHEMAS[name]["properties"])


def test_every_command_with_json_has_a_schema() -> None:
    group: Any = get_command(app)
    named = {
        name
        for name in COMMANDS
        if any("--json" in param.opts for param in group.get_command(None, name).params)
    }
    assert named | {"inspect"} == set(SCHEMAS) == set(PROMISED)


@pytest.mark.parametrize("name", SCHEMAS)
def test_promised_keys_are_required(name: str) -> None:
    jsonschema_rs.meta.validate(SCHEMAS[name])
    assert set(SCHEMAS[name]["required"]) >= PROMISED[name]


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    """Return a file of one query that misses its tool."""
    file = tmp_path / "queries.jsonl"
    file.write_text('{"query": "weather", "relevant": ["send_mail"]}', encoding="utf-8")
    return file


@pytest.mark.parametrize("more", [(), ("--explain",), ("--preset", "oh-my-pi")])
def test_search(command: Command, catalog: Path, more: tuple[str, ...]) -> None:
    asked = ("search", "--catalog", catalog, "--query", "weather", "--json", *more)
    check("search", command(*asked).json)


@pytest.mark.parametrize("more", [(), ("--by-tool",)])
def test_eval(command: Command, catalog: Path, queries: Path, more: tuple[str, ...]) -> None:
    check("eval", command("eval", "--catalog", catalog, "--queries", queries, "--json", *more).json)


@pytest.mark.parametrize("more", [(), ("--summary",), ("--cache",), ("--schemas",)])
@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-chat"])
def test_inspect(command: Command, catalog: Path, provider: str, more: tuple[str, ...]) -> None:
    output = command("inspect", "--catalog", catalog, "--provider", provider, *more).json
    check("inspect", output)


def test_learned_and_forget(command: Command, tmp_path: Path) -> None:
    store = tmp_path / "store"
    check("learned", command("learned", "--store", store, "--json").json)
    check("forget", command("forget", "--all", "--store", store, "--json").json)
    export = ("--export", tmp_path / "copy.json")
    check("forget", command("forget", "--all", "--store", store, "--json", *export).json)


@pytest.mark.parametrize("more", [(), ("--trace",)])
def test_demo(command: Command, more: tuple[str, ...]) -> None:
    check("demo", command("demo", "--json", *more).json)


def test_doctor(command: Command, catalog: Path, queries: Path) -> None:
    output = command("doctor", "--catalog", catalog, "--query", "mail", "--json")
    check("doctor", output.json)


def test_chat_and_replay(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    command("init")
    for event in command("chat", "--stand-in", "--json", typed="Convert 20 celsius\n").lines:
        check("chat", event)
    check("replay", command("replay", "--config", "bot.yaml", "--json").json)
