"""A user's mistakes: one clear message, the documented status, and never a traceback."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import Command, Outcome

File = Callable[[str, str], Path]
PROVIDER = (
    "{id: p, type: openai_chat, model: m, api_key_env: null, base_url: 'http://127.0.0.1:9/v1'}"
)
_numbers = itertools.count()


def is_refused(outcome: Outcome, *messages: str) -> bool:
    """True if a command ended for wrong use with these words, and printed no result."""
    assert outcome.status == 2
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    missing = [message for message in messages if message not in outcome.err]
    assert not missing, outcome.err
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A wrong `bot.yaml`, and its error message."""

    yaml: str
    messages: tuple[str, ...]


CONFIGURATIONS = {
    "not_yaml": Case(yaml="tools: [a\nproviders: {", messages=("bot.yaml", "line 2", "not YAML")),
    "tab": Case(yaml="tool_search:\n\tthreshold: 5\n", messages=("line 2", "not YAML")),
    "unknown_key": Case(
        yaml="tool_search:\n  treshold: 5\n",
        messages=("line 2", "tool_search.treshold is unknown", "threshold"),
    ),
    "unknown_key_at_the_top": Case(
        yaml="provider: []\n",
        messages=("line 1: provider is unknown", "tool_schema_mode", "provider_settings"),
    ),
    "unknown_key_of_a_provider": Case(
        yaml="providers:\n  - {id: a, type: openai_chat, model: m, key: x}\n",
        messages=("line 2: providers[0].key is unknown", "api_key_env"),
    ),
    "threshold_below_zero": Case(
        yaml="tool_search:\n  threshold: -1\n",
        messages=("line 2: tool_search.threshold", "-1", "greater than or equal to 0"),
    ),
    "wrong_type": Case(
        yaml="max_steps: many\n", messages=("line 1: max_steps", "'many'", "integer")
    ),
    "wrong_mode": Case(yaml="tool_schema_mode: fast\n", messages=("tool_schema_mode", "'fast'")),
    "wrong_dialect": Case(
        yaml="providers: [{id: a, type: opener, model: m}]\n",
        messages=("providers[0].type", "'opener'", "openai-chat", "did you mean 'openai'?"),
    ),
    "no_provider": Case(yaml="tools: []\n", messages=("at least one provider",)),
    "empty": Case(yaml="", messages=("at least one provider",)),
    "list": Case(yaml="- a\n", messages=("must hold keys and values",)),
    "missing_key": Case(
        yaml="providers: [{id: a, type: anthropic, model: m, api_key_env: NO_SUCH_KEY}]\n",
        messages=("provider 'a'", "NO_SUCH_KEY is not set"),
    ),
    "base_url": Case(
        yaml="providers: [{id: a, type: anthropic, model: m, base_url: 'localhost:80'}]\n",
        messages=("providers[0].base_url", "http://"),
    ),
    "strategy": Case(
        yaml=f"providers: [{PROVIDER.replace('}', ', strategy: claude}')}]\n",
        messages=("provider 'p'", "'claude'"),
    ),
    "missing_module": Case(
        yaml=f"providers: [{PROVIDER}]\ntools: [no_such_module]\n",
        messages=("the module 'no_such_module' cannot be imported", "No module named"),
    ),
}


def test_mode_is_not_offered_where_it_is_refused(command: Command, write: File) -> None:
    bot = write("bot.yaml", "tool_search:\n  mode: auto\n")
    outcome = command("chat", "--config", bot)
    assert is_refused(outcome, "tool_search.mode is unknown")
    assert "tool_schema_mode" not in outcome.err


@pytest.mark.parametrize("case", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_chat_refuses_a_wrong_configuration(command: Command, write: File, case: Case) -> None:
    outcome = command("chat", "--config", write("bot.yaml", case.yaml), typed="Hello\n")
    assert is_refused(outcome, *case.messages)


@pytest.mark.parametrize(
    ("source", "messages"),
    [
        ("import nothing_there\n", ("cannot be imported", "nothing_there")),
        ("x = 1\nraise KeyError('x')\n", ("cannot be imported: KeyError", "line 2")),
        ("def f(:\n", ("cannot be imported: SyntaxError",)),
        ("x = 1\n", ("has no tools",)),
        ("def a() -> None:\n    'Do.'\nTOOLS = [a, a]\n", ("two tools have the name 'a'",)),
        ("def a(*rest: int) -> None:\n    'Do.'\n", ("tool 'a'", "cannot be given by name")),
        ("class X: ...\ndef a(x: X) -> None: ...\n", ("tool 'a'", "parameter 'x' of type 'X'")),
        ("import asyncio\nTOOLS = [asyncio]\n", ("a tool must be a function",)),
    ],
    ids=[
        "import",
        "raises",
        "syntax",
        "empty",
        "two_of_one_name",
        "signature",
        "type",
        "no_function",
    ],
)
def test_chat_refuses_a_wrong_module_of_tools(
    command: Command, write: File, source: str, messages: tuple[str, ...]
) -> None:
    name = f"wrong_tools_{next(_numbers)}"
    write(f"{name}.py", source)
    bot = write("bot.yaml", f"providers: [{PROVIDER}]\ntools: [{name}]\n")
    assert is_refused(command("chat", "--config", bot), name, *messages)


def test_chat_goes_on_where_nobody_can_be_reached(command: Command, write: File) -> None:
    bot = write("bot.yaml", f"providers: [{PROVIDER}, {PROVIDER.replace('p,', 'q,', 1)}]\n")
    outcome = command("chat", "--config", bot, typed="Hello\n/tools\nStill there?\n")
    assert outcome.err.count("No answer came.") == 2
    assert "connection" in outcome.err
    assert "Traceback" not in outcome.err
    assert (outcome.out, outcome.status) == ("", 1)


@pytest.mark.parametrize("name", ["search", "eval", "inspect"])
def test_broken_line_of_a_catalog_is_named(
    command: Command, write: File, catalog: Path, name: str
) -> None:
    broken = write("broken.jsonl", catalog.read_text(encoding="utf-8") + '{"name": oops}\n')
    rest = {
        "search": ("--query", "x"),
        "eval": ("--queries", write("q.jsonl", "")),
        "inspect": ("--provider", "anthropic"),
    }
    outcome = command(name, "--catalog", broken, *rest[name])
    assert is_refused(outcome, "broken.jsonl, line 6, column 10: is not JSON")


CATALOGS = {
    "missing": (None, "cannot be read: it does not exist"),
    "binary": (b"\x89PNG\r\n\x1a\n\x00\x00", "line 1: is not text in UTF-8"),
    "binary_later": (b'{"name": "a"}\n\xff\xfe\n', "line 2: is not text in UTF-8"),
    "nulls": (b"\x00" * 64, "line 1, column 1: is not JSON"),
    "csv": (b"name,description\n", "line 1, column 1: is not JSON"),
    "cut_utf16": ('{"name": "a"}'.encode("utf-16")[:-1], "is not text in UTF-16"),
    "two_of_one_name": (b'{"name": "a"}\n{"name": "a"}', "line 2: tool 'a' has the name"),
    "wrong_schema": (b'{"name": "a", "parameters": {"type": "string"}}', "line 1: tool 'a'"),
    "deep": (b"[" * 100_000, "line 1: cannot be read as JSON"),
}


@pytest.mark.parametrize(("content", "message"), CATALOGS.values(), ids=CATALOGS)
def test_unusable_catalog_is_refused(
    command: Command, tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "catalog.json"
    if content is not None:
        path.write_bytes(content)
    outcome = command("search", "--catalog", path, "--query", "x")
    assert is_refused(outcome, "catalog.json", message)


@pytest.mark.parametrize("option", ["--catalog", "--queries", "--config"])
def test_directory_in_place_of_a_file_is_refused(
    command: Command, tmp_path: Path, catalog: Path, option: str
) -> None:
    arguments = {
        "--catalog": ("search", "--query", "x"),
        "--queries": ("search", "--catalog", catalog),
        "--config": ("chat",),
    }
    outcome = command(*arguments[option], option, tmp_path)
    assert is_refused(outcome, str(tmp_path), "cannot be read: ")


def test_utf16_catalog_of_a_shell_is_read(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "catalog.jsonl"
    path.write_bytes('{"name": "send_mail"}\r\n'.encode("utf-16"))
    assert command("search", "--catalog", path, "--query", "mail", "--json").status == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"query": "a"}\n{"query": }', "q.jsonl, line 2, column 11: is not JSON"),
        ('{"query": "a"}\n{"text": "b"}', 'q.jsonl, line 2: must be an object with a "query"'),
        ('{"query": "a"}\n"b"', 'q.jsonl, line 2: must be an object with a "query"'),
        ('{"query": 5}', 'q.jsonl, line 1: must be an object with a "query"'),
    ],
)
def test_wrong_line_of_queries_is_named(
    command: Command, write: File, catalog: Path, content: str, message: str
) -> None:
    queries = write("q.jsonl", content)
    assert is_refused(command("search", "--catalog", catalog, "--queries", queries), message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("search", "--catalog", "{catalog}"), "one of --query and --queries"),
        (
            ("search", "--catalog", "{catalog}", "--query", "a", "--queries", "{catalog}"),
            "one of --query and --queries",
        ),
        (("search", "--query", "a"), "--catalog"),
        (("search", "--catalog", "{catalog}", "--query", "a", "--limit", "0"), "--limit"),
        (("search", "--catalog", "{catalog}", "--query", "a", "--limit", "x"), "--limit"),
        (
            ("search", "--catalog", "{catalog}", "--query", "a", "--engine", "bm26"),
            "--engine 'bm26' must be one of bm25, rank_bm25, lexical, regex, semantic, hybrid",
        ),
        (("eval", "--catalog", "{catalog}"), "--queries"),
        (
            ("inspect", "--catalog", "{catalog}", "--provider", "opener"),
            "openai, openai-chat; did you mean 'openai'?",
        ),
        (
            ("inspect", "--catalog", "{catalog}", "--provider", "anthropic", "--mode", "fast"),
            "--mode 'fast' must be one of full, skills_like, tool_search, auto",
        ),
        (
            ("inspect", "--catalog", "{catalog}", "--provider", "anthropic", "--model", ""),
            "--model is empty",
        ),
        (("chat",), "--config"),
        (("no-such-command",), "no-such-command"),
        (("search", "--no-such-option"), "--no-such-option"),
    ],
)
def test_wrong_use_is_refused(
    command: Command, catalog: Path, arguments: tuple[str, ...], message: str
) -> None:
    outcome = command(*(argument.format(catalog=catalog) for argument in arguments))
    assert is_refused(outcome, message)
