"""Bots and commands with `mcpServers`: search, call, answer, and servers that change."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.mcp.helpers import SERVERS, free_port, over_http, plain, until, with_sdk
from tool_search import (
    Bot,
    ConfigurationError,
    RunnerWarning,
    ToolsDiscovered,
    open_bot,
    tool_from_function,
)
from tool_search.cli.application import app
from tool_search.testing import ModelCall, ModelReply, ScriptedModel, StandInServer

SEARCH = ModelReply(calls=(ModelCall(name="tool_search", arguments={"query": "add numbers"}),))
ADD = ModelReply(calls=(ModelCall(name="add", arguments={"a": 40, "b": 2}),))
ANSWER = ModelReply(text="It is 42.")


@pytest.fixture
def server() -> Iterator[StandInServer]:
    with StandInServer() as running:
        yield running
        assert running.violations == ()


def settings(server: StandInServer, servers: dict[str, Any], **more: Any) -> dict[str, Any]:
    provider = {
        "id": "local", "type": "openai_chat", "model": "m", "api_key_env": None,
        "base_url": server.openai_base_url,
    }  # fmt: skip
    return {
        "providers": [provider],
        "mcpServers": servers,
        "tool_schema_mode": "tool_search",
        "store": {"type": "memory"},
        **more,
    }


async def discovered(bot: Bot, question: str) -> list[str]:
    found = [event async for event in bot.run(question) if isinstance(event, ToolsDiscovered)]
    return [name for event in found for name in event.names]


async def test_a_bot_finds_and_calls_the_tool_of_a_server(server: StandInServer) -> None:
    server.reset(model=ScriptedModel([SEARCH, ADD, ANSWER]))
    async with open_bot(settings(server, {"a": with_sdk()})) as bot:
        assert "add" in {tool.name for tool in bot.runner.catalog.deferred}
        assert await bot.ask("What is 40 + 2?") == "It is 42."
    first, second, third = server.requests
    names = [[tool["function"]["name"] for tool in each.body["tools"]] for each in server.requests]
    assert names[0] == ["tool_search"]
    assert "add" in names[1]
    assert "42" in json.dumps(third.body["messages"][-1])
    assert first.body["tools"] == second.body["tools"][: len(first.body["tools"])]


async def test_a_function_keeps_its_name_and_a_servers_tool_gets_another(
    server: StandInServer,
) -> None:
    def find(value: str) -> str:
        """Find a value."""
        return f"own {value}"

    call = ModelReply(
        calls=(
            ModelCall(name="find", arguments={"value": "x"}, hidden=True),
            ModelCall(name="a__find", arguments={"value": "y"}, hidden=True),
        )
    )
    server.reset(model=ScriptedModel([call, ANSWER]))
    config = settings(server, {"a": plain("find")})
    async with open_bot(config, tools=[tool_from_function(find)]) as bot:
        assert {"find", "a__find"} <= set(bot.runner.catalog)
        await bot.ask("Find x and y")
    told = [message["content"] for message in server.requests[-1].body["messages"][-2:]]
    assert told[0] == "own x"
    assert told[1].startswith("find: ")


async def test_a_server_that_comes_late_is_there_at_the_next_turn(
    server: StandInServer, tmp_path: Path
) -> None:
    search = ModelReply(calls=(ModelCall(name="tool_search", arguments={"query": "late"}),))
    server.reset(model=ScriptedModel([search, ANSWER, search, ANSWER]))
    servers = {"a": plain("early"), "b": plain("late_tool", fail_once=str(tmp_path / "marker"))}
    async with open_bot(settings(server, servers)) as bot:
        assert await discovered(bot, "Use the late one") == []
        await until(lambda: "late_tool" in bot.runner.catalog)
        assert await discovered(bot, "Use the late one") == ["late_tool"]


async def failures(bot: Bot, question: str) -> list[str]:
    """The warnings of a turn about servers."""
    told = [event async for event in bot.run(question) if isinstance(event, RunnerWarning)]
    return [event.message for event in told if event.code == "server_failed"]


async def test_a_server_that_fails_is_one_warning_of_a_turn(
    server: StandInServer, tmp_path: Path
) -> None:
    server.reset(model=ScriptedModel([ANSWER] * 4))
    late = plain("late_tool", "die", fail_once=str(tmp_path / "marker"))
    missing = {"command": "no-such-program-here"}
    async with open_bot(settings(server, {"a": plain("add"), "b": missing, "c": late})) as bot:
        missing_one, late_one = await failures(bot, "Hello")
        assert "'no-such-program-here' is not in PATH" in missing_one
        assert late_one.startswith("server 'c': ")
        # The last lines of a server are the operator's: others may have written them.
        assert "the password is missing" not in late_one
        assert await failures(bot, "Hello again") == []
        await until(lambda: "late_tool" in bot.runner.catalog)
        assert await failures(bot, "And again") == []


async def test_a_list_that_changes_during_a_turn_is_read_at_the_next(
    server: StandInServer,
) -> None:
    more = ModelReply(
        calls=(ModelCall(name="more_tools", arguments={"names": ["rocket"]}, hidden=True),)
    )
    search = ModelReply(calls=(ModelCall(name="tool_search", arguments={"query": "rocket"}),))
    server.reset(model=ScriptedModel([more, search, ANSWER, search, ANSWER]))
    entry = plain({"name": "more_tools", "inputSchema": {"type": "object"}})
    async with open_bot(settings(server, {"a": entry})) as bot:
        assert "rocket" not in await discovered(bot, "More tools, please")
        await until(lambda: "rocket" in bot.runner.catalog)
        assert await discovered(bot, "Start the rocket") == ["rocket"]


async def test_hints_of_a_server_permit_nothing(server: StandInServer) -> None:
    claims = {
        "name": "wipe",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True, "destructiveHint": False, "concurrency_safe": True},
    }
    call = ModelReply(calls=(ModelCall(name="wipe", arguments={}, hidden=True),))
    server.reset(model=ScriptedModel([call, ANSWER]))
    config = settings(server, {"a": plain(claims)}, permissions={"mode": "plan"})
    async with open_bot(config) as bot:
        await bot.ask("Wipe it")
    told = json.dumps(server.requests[-1].body["messages"][-1])
    assert "only reading is allowed" in told


async def test_without_the_sdk_the_error_names_the_extra(
    server: StandInServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("tool_search.adapters.mcp")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(ConfigurationError, match=r"tool-search-middleware\[mcp\]"):
        async with open_bot(settings(server, {"a": plain("find")})):
            pass


# The command.


def test_chat_searches_calls_and_answers(
    server: StandInServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    server.reset(model=ScriptedModel([SEARCH, ADD, ANSWER]))
    file = tmp_path / "bot.yaml"
    servers = {"a": with_sdk(), "off": {"command": "no-such-program-here"}}
    file.write_text(json.dumps(settings(server, servers)))
    outcome = CliRunner().invoke(app, ["chat", "--config", str(file)], input="What is 40 + 2?\n")
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stdout.splitlines() == ["It is 42."]
    assert "← 42" in outcome.stderr
    shown = " ".join(outcome.stderr.split())
    assert shown.count("server 'off': the program 'no-such-program-here' is not in PATH") == 1


def test_search_reads_servers_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    servers = {"a": plain(many=30), "off": {"command": "no-such-program-here"}}
    file.write_text(json.dumps({"mcpServers": servers}, indent="\t"))
    command = ["search", "--mcp", str(file), "--query", "tool 17", "--json"]
    outcome = CliRunner().invoke(app, command)
    assert outcome.exit_code == 0, outcome.stderr
    assert json.loads(outcome.stdout)["matches"][0]["name"] == "tool_17"
    assert "server 'off' is left out" in outcome.stderr


async def test_inspect_reads_the_server_of_a_url() -> None:
    async with over_http("http", free_port()) as entry:
        command = ["inspect", "--mcp", entry["url"]]
        outcome = await asyncio.to_thread(CliRunner().invoke, app, command)
        assert outcome.exit_code == 0, outcome.stderr
        shown = json.loads(outcome.stdout)
        assert shown["servers"][0]["state"] == "connected"
        assert {"add", "fail"} <= {tool["name"] for tool in shown["tools"]}
        command += ["--provider", "openai-chat", "--mode", "full"]
        outcome = await asyncio.to_thread(CliRunner().invoke, app, command)
        listed = json.loads(outcome.stdout)["tools"]
        assert "add" in {tool["function"]["name"] for tool in listed}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["search", "--query", "x"], "give exactly one of --catalog and --mcp"),
        (["search", "--query", "x", "--mcp", "no-such-file.json"], "cannot be read"),
        (["inspect", "--mcp", "http://127.0.0.1:9/mcp"], "ConnectError"),
        (["inspect", "--mcp", str(SERVERS / "plain.py")], "is not YAML"),
        (["inspect", "--catalog", "x"], "--provider is missing"),
    ],
)
def test_wrong_use_of_a_command_is_named(arguments: list[str], problem: str) -> None:
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code != 0
    assert problem in outcome.stderr.replace("\n", " ")


def test_an_unknown_key_of_a_file_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "servers.yaml"
    file.write_text("mcpServers:\n  a:\n    comand: x\n")
    outcome = CliRunner().invoke(app, ["inspect", "--mcp", str(file)])
    assert "line 3" in outcome.stderr
    assert "mcpServers.a.comand is unknown" in outcome.stderr
