"""A FastMCP server with `ToolSearchTransform`, and a client whose model is the stand-in's."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.auth.providers.jwt import StaticTokenVerifier
from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools import Tool
from fastmcp.utilities.tests import run_server_async
from openai import AsyncOpenAI

from tool_search import (
    ConfigurationError,
    MemoryStore,
    SearchError,
    SQLiteStore,
    ToolSearch,
    ToolSearchConfig,
)
from tool_search.adapters.fastmcp import ToolSearchTransform
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import ModelCall, ModelReply, ScriptedModel, StandInServer

COUNT = ModelCall(
    name="call_tool", arguments={"name": "count_words", "arguments": {"text": "to be or not"}}
)
DONE = ModelReply(text="Done.")


def search_call(query: str) -> ModelCall:
    """Return a call of the search tool."""
    return ModelCall(name="search_tools", arguments={"query": query})


def serving(transform: Any, tools: Any = TOOLBOX) -> FastMCP[Any]:
    """Return a server with some tools and a transform."""
    server: FastMCP[Any] = FastMCP("tools", transforms=[transform])
    for tool in tools:
        server.add_tool(tool) if isinstance(tool, Tool) else server.tool(tool)
    return server


async def listed(server: FastMCP[Any]) -> list[str]:
    """Return the names that a client sees."""
    async with Client(server) as client:
        return [tool.name for tool in await client.list_tools()]


async def found(client: Client[Any], query: str) -> list[str]:
    """Return the names that a search finds."""
    result = await client.call_tool("search_tools", {"query": query})
    assert result.structured_content is not None
    return [tool["name"] for tool in result.structured_content["result"]]


class Bot:
    """A bot of a few lines: a model of the stand-in server with the tools of an MCP server.

    Args:
        server: The stand-in server.
        tools: The MCP server.
    """

    def __init__(self, server: StandInServer, tools: FastMCP[Any]) -> None:
        self.server = server
        self.tools = tools
        self.messages: list[Any] = []

    async def ask(self, text: str) -> list[str]:
        """Return the results of the tools that the model called in a turn."""
        self.messages.append({"role": "user", "content": text})
        model = AsyncOpenAI(base_url=self.server.openai_base_url, api_key="key")
        async with model, Client(self.tools) as client:
            while True:
                said = await self._reply(model, client)
                self.messages.append(said.to_dict())
                if not said.tool_calls:
                    return [m["content"] for m in self.messages if m["role"] == "tool"]
                for call in said.tool_calls:
                    result = await client.call_tool(
                        call.function.name,
                        json.loads(call.function.arguments),
                        raise_on_error=False,
                    )
                    text = getattr(result.content[0], "text", "") if result.content else ""
                    answer = {"role": "tool", "tool_call_id": call.id, "content": text}
                    self.messages.append(answer)

    async def _reply(self, model: AsyncOpenAI, client: Client[Any]) -> Any:
        tools: Any = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.input_schema
                    if hasattr(tool, "input_schema")
                    else tool.inputSchema,
                },
            }
            for tool in await client.list_tools()
        ]
        reply = await model.chat.completions.create(
            model="gpt-5.4", messages=self.messages, tools=tools
        )
        return reply.choices[0].message


async def test_a_model_finds_and_calls_in_three_turns_with_one_list(server: StandInServer) -> None:
    together = ModelReply(calls=(search_call("convert miles"), COUNT))
    script = [
        ModelReply(calls=(search_call("count words in a text"),)),
        ModelReply(calls=(COUNT,)),
        DONE,
        together,
        DONE,
        ModelReply(calls=(COUNT,)),
        DONE,
    ]
    server.reset(model=ScriptedModel(script))
    bot = Bot(server, serving(ToolSearchTransform()))
    for _ in range(3):
        results = await bot.ask("Count the words.")
    assert "count_words" in results[0]
    assert results[1] == results[3] == results[4]
    bodies: list[Any] = [request.body for request in server.requests]
    names = [[tool["function"]["name"] for tool in body["tools"]] for body in bodies]
    assert names == [["search_tools", "call_tool"]] * 7


def search_image(query: str) -> str:
    """搜索图片"""
    return query


@pytest.mark.parametrize(
    ("query", "tool", "only_here"),
    [
        ("查找图片", "search_image", True),
        ("统计字数", "count_words", False),
        ("подсчитать слова", "count_words", True),
        ("emails", "validate_email", True),
    ],
)
async def test_a_query_in_another_language_and_a_plural_find_their_tool(
    query: str, tool: str, only_here: bool, record_property: Callable[[str, object], None]
) -> None:
    tools = [*TOOLBOX, search_image]
    async with Client(serving(ToolSearchTransform(), tools)) as client:
        assert tool in await found(client, query)
    async with Client(serving(BM25SearchTransform(), tools)) as client:
        theirs = await found(client, query)
    record_property("fastmcp's own search", theirs)
    assert not (only_here and tool in theirs)


async def test_what_was_learned_ranks_first_in_a_new_session_and_after_a_restart(
    tmp_path: Path,
) -> None:
    path = tmp_path / "learned.sqlite"
    frequency = {"name": "word_frequency", "arguments": {"text": "a b a"}}
    async with SQLiteStore(path) as store:
        server = serving(ToolSearchTransform(search=ToolSearch((), store=store)))
        async with Client(server) as client:
            assert (await found(client, "words in a text"))[0] != "word_frequency"
            await client.call_tool("call_tool", frequency)
        async with Client(server) as client:
            assert (await found(client, "the words of texts"))[0] == "word_frequency"
    async with SQLiteStore(path) as store:
        server = serving(ToolSearchTransform(search=ToolSearch((), store=store)))
        async with Client(server) as client:
            assert (await found(client, "the words of texts"))[0] == "word_frequency"


async def test_a_tool_that_raises_teaches_nothing_and_its_error_reaches_the_client() -> None:
    def count_rainbows(text: str) -> str:
        """Count the rainbows of a text."""
        raise RuntimeError(text)

    store = MemoryStore()
    transform = ToolSearchTransform(search=ToolSearch((), store=store))
    async with Client(serving(transform, [*TOOLBOX, count_rainbows])) as client:
        assert "count_rainbows" in await found(client, "rainbows")
        call = {"name": "count_rainbows", "arguments": {"text": "seven colours"}}
        with pytest.raises(ToolError, match="seven colours"):
            await client.call_tool("call_tool", call)
    assert await store.evidence_revision() in {None, 0}


async def test_a_hidden_tool_that_is_called_by_its_name_runs() -> None:
    async with Client(serving(ToolSearchTransform())) as client:
        result = await client.call_tool("count_words", {"text": "to be or not"})
        assert "4" in str(result.content)
        unknown = await client.call_tool("call_tool", {"name": "odd"}, raise_on_error=False)
        assert unknown.is_error
        itself = {"name": "search_tools", "arguments": {"query": "x"}}
        assert (await client.call_tool("call_tool", itself, raise_on_error=False)).is_error


async def test_a_list_begins_with_what_is_always_visible_or_always_loaded() -> None:
    config = ToolSearchConfig(always_loaded_tools=("convert_*",))
    transform = ToolSearchTransform(
        config, always_visible=["add_to_date"], search_tool_name="find", call_tool_name="run"
    )
    names = await listed(serving(transform))
    assert names[-2:] == ["find", "run"]
    assert "add_to_date" in names
    assert any(name.startswith("convert_") for name in names[:-2])
    assert len(names) < 30


async def test_few_tools_and_the_mode_full_leave_the_list_as_it_is() -> None:
    few = [function.__name__ for function in TOOLBOX[:5]]
    assert sorted(await listed(serving(ToolSearchTransform(), TOOLBOX[:5]))) == sorted(few)
    full = ToolSearchTransform(ToolSearchConfig(tool_schema_mode="full"))
    assert len(await listed(serving(full))) == len(TOOLBOX)
    assert await listed(serving(ToolSearchTransform(), [])) == []


async def test_two_sessions_do_not_learn_from_each_other_s_searches() -> None:
    transform = ToolSearchTransform()
    server = serving(transform)
    handshake: dict[str, Any] = {"mode": "legacy"} if _has_modes() else {}
    async with Client(server, **handshake) as alice, Client(server, **handshake) as bob:
        await found(alice, "words in a text")
        await bob.call_tool("call_tool", {"name": "word_frequency", "arguments": {"text": "a"}})
        assert (await found(bob, "the words of texts"))[0] != "word_frequency"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_user_of_a_server_learns_in_full_and_does_not_teach_another_alone(
    mode: str,
) -> None:
    tokens: dict[str, dict[str, Any]] = {
        name: {"client_id": name, "scopes": []} for name in ("alice", "bob")
    }
    server = serving(ToolSearchTransform())
    server.auth = StaticTokenVerifier(tokens)
    modes: dict[str, Any] = {"mode": mode} if _has_modes() else {}
    async with run_server_async(server) as url:
        async with Client(url, auth="alice", **modes) as alice:
            await found(alice, "words in a text")
            frequency = {"name": "word_frequency", "arguments": {"text": "a b a"}}
            await alice.call_tool("call_tool", frequency)
        async with Client(url, auth="alice", **modes) as alice:
            assert (await found(alice, "the words of texts"))[0] == "word_frequency"
        async with Client(url, auth="bob", **modes) as bob:
            assert (await found(bob, "the words of texts"))[0] != "word_frequency"


async def test_requests_that_nothing_tells_apart_teach_nothing() -> None:
    server = serving(ToolSearchTransform())
    async with run_server_async(server) as url, Client(url) as client:
        await found(client, "words in a text")
        frequency = {"name": "word_frequency", "arguments": {"text": "a b a"}}
        await client.call_tool("call_tool", frequency)
        learned = (await found(client, "the words of texts"))[0] == "word_frequency"
    # Before MCP 2026-07-28 each client has a session.
    assert learned is not _has_modes()


def _has_modes() -> bool:
    return "mode" in Client.__init__.__annotations__


async def test_a_server_s_list_that_changes_is_searched_as_it_is() -> None:
    server = serving(ToolSearchTransform())

    def paint_unicorns(colour: str) -> str:
        """Paint unicorns."""
        return colour

    async with Client(server) as client:
        assert await found(client, "unicorns") == []
        server.tool(paint_unicorns)
        assert await found(client, "unicorns") == ["paint_unicorns"]
        server.local_provider.remove_tool("paint_unicorns")
        assert await found(client, "unicorns") == []


async def test_a_wrong_schema_and_a_taken_name_are_left_out_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def search_tools(unicorn: str) -> str:
        """Search unicorns."""
        return unicorn

    def wrong_unicorn(unicorn: str) -> str:
        """Break unicorns."""
        return unicorn

    def right_unicorn(unicorn: str) -> str:
        """Mend unicorns."""
        return unicorn

    wrong = Tool.from_function(wrong_unicorn).model_copy(update={"parameters": {"type": "array"}})
    tools = [*TOOLBOX, search_tools, wrong, right_unicorn]
    with caplog.at_level(logging.WARNING, "tool_search"):
        async with Client(serving(ToolSearchTransform(), tools)) as client:
            assert await found(client, "unicorns") == ["right_unicorn"]
    text = caplog.text
    assert "'search_tools', which has a search tool's name" in text
    assert "a tool is left out" in text
    assert "wrong_unicorn" in text


async def test_a_search_with_broken_arguments_is_an_error_and_the_session_goes_on() -> None:
    async with Client(serving(ToolSearchTransform())) as client:
        for arguments in ({}, {"query": ["a"]}, {"query": None}):
            broken = await client.call_tool("search_tools", arguments, raise_on_error=False)
            assert broken.is_error
        assert await found(client, "") == []
        assert "count_words" in await found(client, "count words")


async def test_an_engine_that_raises_gives_the_client_every_tool_and_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail_to_build(*_arguments: object) -> None:
        raise SearchError("the engine is down")

    monkeypatch.setattr("tool_search.adapters.hosts.indexes.build_index", fail_to_build)
    with caplog.at_level(logging.WARNING, "tool_search"):
        async with Client(serving(ToolSearchTransform())) as client:
            assert len(await client.list_tools()) == len(TOOLBOX)
            assert len(await found(client, "count words")) == len(TOOLBOX)
    assert "the engine is down" in caplog.text


def test_settings_that_take_two_requests_a_step_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="skills_like"):
        ToolSearchTransform(ToolSearchConfig(tool_schema_mode="skills_like"))


def test_a_release_without_the_method_is_refused_with_those_that_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for owner in BM25SearchTransform.__mro__:
        if "_search" in vars(owner):
            monkeypatch.delattr(owner, "_search")
    monkeypatch.delitem(sys.modules, "tool_search.adapters.fastmcp")
    with pytest.raises(ImportError, match=r"fastmcp 3\.1 to 4\.1: .*no method _search"):
        import_module("tool_search.adapters.fastmcp")
