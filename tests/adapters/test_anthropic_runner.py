"""The anthropic SDK's own tool runner with `searchable`, over real HTTP on the stand-in server."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from functools import cache, wraps
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.lib.tools import beta_async_tool, beta_tool

from tool_search import SearchResult, SQLiteStore, ToolSearch, ToolSearchConfig
from tool_search.adapters.anthropic_runner import SearchableTools, searchable
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.view import append_instructions
from tool_search.errors import ConfigurationError, InvalidToolError, SearchError, SessionError
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import ModelCall, ModelReply, ScriptedModel, StandInServer

COUNT = ModelCall(name="count_words", arguments={"text": "to be or not to be"})
DONE = ModelReply(text="Done.")
# The newest runners continue a conversation that the service keeps: later requests lack tools.
with Anthropic(api_key="key") as _client:
    HAS_THREADS = "thread" in signature(_client.beta.messages.tool_runner).parameters
WHOLE: dict[str, Any] = {"thread": False} if HAS_THREADS else {}


@pytest.fixture
def server() -> Iterator[StandInServer]:
    """A stand-in provider with its rules on; a test ends without a violation."""
    with StandInServer() as running:
        yield running
        assert running.violations == ()


def searches(*queries: str) -> ModelReply:
    """Return a reply that searches."""
    return ModelReply(calls=(ModelCall(name="tool_search", arguments={"queries": list(queries)}),))


def calls(*made: ModelCall) -> ModelReply:
    """Return a reply of calls."""
    return ModelReply(calls=made)


@cache
def toolbox() -> tuple[Any, ...]:
    """Return the demo's functions as tools of the SDK, which takes a while to make."""
    return tuple(map(_tool, TOOLBOX))


def _tool(function: Any) -> Any:
    @wraps(function)
    def text(**arguments: Any) -> str:
        return json.dumps(function(**arguments), default=str)

    return beta_tool(text)


def say(text: str) -> str:
    """Say a text."""
    return text


class Chat:
    """One conversation with the SDK's runner; the caller keeps the messages."""

    def __init__(self, server: StandInServer, tools: SearchableTools | None = None) -> None:
        self.url = server.anthropic_base_url
        self.tools = searchable(toolbox()) if tools is None else tools
        self.messages: list[Any] = []

    def ask(self, text: str = "Count the words.", **options: Any) -> str:
        """Return the answer to a question."""
        self.messages.append({"role": "user", "content": text})
        with Anthropic(base_url=self.url, api_key="key") as client:
            runner = client.beta.messages.tool_runner(
                model="claude-sonnet-4-6",
                max_tokens=999,
                tools=self.tools,
                messages=[*self.messages],
                **{**WHOLE, **options},
            )
            for message in runner:
                self.messages.append({"role": "assistant", "content": message.content})
                answer = runner.generate_tool_call_response()
                if answer is not None:
                    self.messages.append(answer)
        return str(message.content[-1].text)

    def results(self) -> list[Any]:
        """Return the `tool_result` blocks of the conversation, in order."""
        said = [m["content"] for m in self.messages if m["role"] == "user"]
        return [block for content in said if isinstance(content, list) for block in content]


def lists(server: StandInServer) -> list[list[Any]]:
    """Return the tools of each request."""
    bodies: list[Any] = [request.body for request in server.requests]
    return [body["tools"] for body in bodies]


def found(block: Any) -> list[str]:
    """Return the names that a search's result refers to."""
    return [each["tool_name"] for each in block["content"]]


def test_the_list_keeps_its_bytes_over_three_turns(server: StandInServer) -> None:
    turn = [searches("count words in a text"), calls(COUNT), DONE]
    server.reset(model=ScriptedModel([*turn, searches("convert miles"), DONE, *turn[1:]]))
    chat = Chat(server)
    for _ in range(3):
        assert chat.ask() == "Done."
    first, *later = lists(server)
    assert len(first) == len(TOOLBOX) + 1
    assert [tool["name"] for tool in first if not tool.get("defer_loading")] == ["tool_search"]
    assert len(later) == 6
    assert all(json.dumps(each) == json.dumps(first) for each in later)
    assert found(chat.results()[0])[0] == "count_words"
    assert json.loads(chat.results()[1]["content"])["words"] == 6


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("统计字数", "count_words"),
        ("подсчитать слова", "count_words"),
        ("emails", "validate_email"),
    ],
)
def test_a_query_in_another_language_and_a_plural_find_their_tool(
    query: str, name: str, server: StandInServer
) -> None:
    server.reset(model=ScriptedModel([searches(query), DONE]))
    chat = Chat(server)
    chat.ask()
    assert name in found(chat.results()[0])


def test_parallel_calls_may_have_searches_among_them(server: StandInServer) -> None:
    many = calls(*searches("count words").calls, *searches("convert miles").calls)
    server.reset(model=ScriptedModel([many, calls(COUNT), DONE]))
    chat = Chat(server)
    chat.ask()
    words, miles, counted = chat.results()
    assert "count_words" in found(words)
    assert any("convert" in name for name in found(miles))
    assert not counted.get("is_error")


def test_a_streaming_runner_searches_and_calls(server: StandInServer) -> None:
    server.reset(model=ScriptedModel([searches("count words"), calls(COUNT), DONE]))
    with Anthropic(base_url=server.anthropic_base_url, api_key="key") as client:
        runner = client.beta.messages.tool_runner(
            model="claude-sonnet-4-6",
            max_tokens=999,
            tools=searchable(toolbox()),
            messages=[{"role": "user", "content": "Count the words."}],
            stream=True,
            **WHOLE,
        )
        events = [event.type for stream in runner for event in stream]
    assert events.count("message_stop") == 3
    result = server.requests[-1].body["messages"][-1]["content"][0]
    assert json.loads(result["content"])["words"] == 6


@pytest.mark.skipif(not HAS_THREADS, reason="this anthropic has no message threads")
def test_a_conversation_that_the_service_keeps_goes_on(server: StandInServer) -> None:
    server.reset(model=ScriptedModel([searches("count words"), calls(COUNT), DONE]))
    chat = Chat(server)
    with Anthropic(base_url=server.anthropic_base_url, api_key="key") as client:
        runner = client.beta.messages.tool_runner(
            model="claude-sonnet-4-6",
            max_tokens=999,
            tools=chat.tools,
            messages=[{"role": "user", "content": "Count the words."}],
        )
        runner.until_done()
    bodies: list[Any] = [request.body for request in server.requests]
    assert [len(body.get("tools", ())) for body in bodies] == [197, 0, 0]
    assert json.loads(bodies[-1]["messages"][-1]["content"][0]["content"])["words"] == 6


async def test_an_asynchronous_runner_runs_functions_of_both_kinds(server: StandInServer) -> None:
    @beta_async_tool
    async def count_rainbows(text: str) -> str:
        """Count the rainbows of a text."""
        await asyncio.sleep(0)
        return f"2 in {text}"

    async def count_clouds(text: str) -> dict[str, int]:
        """Count the clouds of a text."""
        await asyncio.sleep(0)
        return {text: 3}

    names = ("count_rainbows", "count_clouds")
    script = [ModelCall(name=name, arguments={"text": "x"}) for name in names]
    server.reset(
        model=ScriptedModel([searches("count rainbows clouds words"), calls(COUNT, *script), DONE])
    )
    tools = await asyncio.to_thread(
        searchable, [*TOOLBOX, count_rainbows, count_clouds], asynchronous=True
    )
    async with AsyncAnthropic(base_url=server.anthropic_base_url, api_key="key") as client:
        runner = client.beta.messages.tool_runner(
            model="claude-sonnet-4-6",
            max_tokens=999,
            tools=tools,
            messages=[{"role": "user", "content": "Count."}],
            **WHOLE,
        )
        answer: Any = await runner.until_done()
    assert answer.content[0].text == "Done."
    results: Any = server.requests[-1].body["messages"][-1]["content"]
    assert [result["content"] for result in results][1:] == ["2 in x", '{"x":3}']
    assert not any(result.get("is_error") for result in results)


def test_a_hidden_tool_that_is_called_by_name_runs(server: StandInServer) -> None:
    hidden = ModelCall(name="count_words", arguments={"text": "a b"}, hidden=True)
    server.reset(model=ScriptedModel([calls(hidden), DONE]))
    chat = Chat(server)
    chat.ask()
    assert not chat.results()[0].get("is_error")
    assert chat.tools.view.found == ("count_words",)


def test_a_hidden_tool_with_wrong_arguments_is_answered_with_its_schema(
    server: StandInServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)  # early versions of the SDK log what a tool raises
    hidden = ModelCall(name="count_words", arguments={"txt": 5}, hidden=True)
    server.reset(model=ScriptedModel([calls(hidden), DONE]))
    chat = Chat(server)
    chat.ask()
    assert chat.results()[0]["is_error"]
    assert '"text"' in str(chat.results()[0]["content"])


def test_a_tool_that_raises_is_an_error_and_teaches_nothing(server: StandInServer) -> None:
    def count_rainbows(text: str) -> str:
        """Count the rainbows of a text."""
        raise RuntimeError(f"no {text} today")

    search = ToolSearch()
    tools = searchable([*toolbox(), count_rainbows], search=search)
    call = ModelCall(name="count_rainbows", arguments={"text": "sky"})
    server.reset(model=ScriptedModel([searches("rainbows"), calls(call), DONE]))
    chat = Chat(server, tools)
    chat.ask()
    assert chat.results()[1]["is_error"]
    assert "no sky today" in chat.results()[1]["content"]
    assert tools.view.drain_lessons() == ()


async def test_what_was_learned_ranks_first_in_a_new_conversation_and_after_a_restart(
    server: StandInServer, tmp_path: Path
) -> None:
    path = tmp_path / "learned.sqlite"
    used = ModelCall(name="word_frequency", arguments={"text": "a b a"})
    async with SQLiteStore(path) as store:
        search = ToolSearch(store=store)
        before = await _first_found(server, search, "words in a text", used)
        next_conversation = await _first_found(server, search, "the words of texts", None)
    async with SQLiteStore(path) as store:
        after_restart = await _first_found(
            server, ToolSearch(store=store), "the words of texts", None
        )
    assert before != "word_frequency"
    assert next_conversation == after_restart == "word_frequency"


async def _first_found(
    server: StandInServer, search: ToolSearch, query: str, used: ModelCall | None
) -> str:
    server.reset(model=ScriptedModel([searches(query), *([calls(used)] if used else ()), DONE]))
    chat = Chat(server, searchable(toolbox(), search=search))
    await asyncio.to_thread(chat.ask)
    return found(chat.results()[0])[0]


def test_core_tools_come_first_and_are_not_deferred(server: StandInServer) -> None:
    config = ToolSearchConfig(always_loaded_tools=("count_words",))
    server.reset(model=ScriptedModel([DONE]))
    tools = searchable(toolbox(), config)
    Chat(server, tools).ask(system=append_instructions("Be brief.", tools.view))
    listed = lists(server)[0]
    assert [tool["name"] for tool in listed[:2]] == ["count_words", "tool_search"]
    assert "defer_loading" not in listed[0]
    assert all(tool["defer_loading"] for tool in listed[2:])
    assert "tool_search" in str(server.requests[0].body["system"])


def test_few_tools_are_declared_as_they_are(server: StandInServer) -> None:
    few: list[Any] = list(TOOLBOX)[:5]
    server.reset(model=ScriptedModel([DONE]))
    tools = searchable(few)
    Chat(server, tools).ask()
    expected = [beta_tool(each).to_dict() for each in few]
    assert lists(server)[0] == sorted(expected, key=lambda tool: tool["name"])
    assert append_instructions("Be brief.", tools.view) == "Be brief."


def test_a_tool_of_the_service_stays_as_it_is_at_the_end(server: StandInServer) -> None:
    own: Any = {"type": "web_search_20250305", "name": "web_search"}
    tools = searchable([own, *toolbox()])
    assert tools[-1] is own
    assert len(tools) == len(TOOLBOX) + 2


def test_of_two_tools_of_one_name_the_first_counts(caplog: pytest.LogCaptureFixture) -> None:
    tools = searchable([*toolbox(), beta_tool(say, name="count_words")])
    named = [tool for tool in tools if tool.name == "count_words"]
    assert len(named) == 1
    assert "words" in named[0].call({"text": "a b"})
    assert "two tools have the name 'count_words'" in caplog.text


def test_a_tool_whose_schema_is_no_object_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    schema: Any = {"type": "array"}
    tools = searchable([*toolbox(), beta_tool(say, name="wrong", input_schema=schema)])
    assert "wrong" not in [tool.name for tool in tools]
    assert len(tools) == len(TOOLBOX) + 1
    assert "'wrong'" in caplog.text


def test_a_tool_named_like_the_search_tool_is_an_error() -> None:
    with pytest.raises(SessionError, match="tool_search"):
        searchable([*toolbox(), beta_tool(say, name="tool_search")])


def test_an_asynchronous_function_runs_in_a_plain_runner(server: StandInServer) -> None:
    async def count_clouds(text: str) -> dict[str, int]:
        """Count the clouds of a text."""
        await asyncio.sleep(0)
        return {text: 3}

    call = ModelCall(name="count_clouds", arguments={"text": "x"})
    server.reset(model=ScriptedModel([searches("count clouds"), calls(call), DONE]))
    chat = Chat(server, searchable([*toolbox(), count_clouds]))
    chat.ask()
    assert chat.results()[1]["content"] == '{"x":3}'


def test_a_callable_without_a_name_is_an_error() -> None:
    class Caller:
        def __call__(self) -> str:
            return ""

    with pytest.raises(InvalidToolError, match="name="):
        searchable([Caller()])


@pytest.mark.parametrize(("limit", "words"), [("DEFERRED", "deferred"), ("TOOL_BYTES", "bytes of")])
def test_more_tools_than_the_service_takes_are_an_error(
    limit: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"tool_search.adapters.anthropic_runner.CLAUDE_MAX_{limit}", 100)
    with pytest.raises(ConfigurationError, match=rf"{words} .* more than the 100 .* add_tools\(\)"):
        searchable(toolbox())


def test_broken_arguments_of_a_search_are_answered(server: StandInServer) -> None:
    wrong = ModelCall(name="tool_search", arguments={"queries": []})
    server.reset(model=ScriptedModel([calls(wrong), DONE]))
    chat = Chat(server)
    chat.ask()
    result = SearchResult.from_json(chat.results()[0]["content"])
    assert result is not None
    assert result.error


def test_an_engine_that_raises_declares_every_tool(
    server: StandInServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(tools: list[Tool], settings: object) -> None:
        raise SearchError("the engine is gone")

    monkeypatch.setattr("tool_search.adapters.hosts.indexes.build_index", fail)
    server.reset(model=ScriptedModel([calls(COUNT), DONE]))
    Chat(server).ask()
    assert len(lists(server)[0]) == len(TOOLBOX)
    assert not any(tool.get("defer_loading") for tool in lists(server)[0])
    assert "the engine is gone" in caplog.text


def test_a_search_whose_engine_fails_finds_every_tool(
    server: StandInServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing:
        def search(self, *_given: object, **_more: object) -> SearchResult:
            raise RuntimeError("no service")

        def updated(self, **_changes: object) -> Failing:
            return self

    monkeypatch.setattr("tool_search.adapters.hosts.indexes.build_index", lambda *_given: Failing())
    search = ToolSearch()
    server.reset(model=ScriptedModel([searches("count words"), DONE, DONE]))
    first = Chat(server, searchable(toolbox(), search=search))
    first.ask()
    Chat(server, searchable(toolbox(), search=search)).ask()
    assert len(found(first.results()[0])) == len(TOOLBOX)
    assert not any(tool.get("defer_loading") for tool in lists(server)[-1])
    assert "no service" in caplog.text


def test_two_conversations_never_see_what_the_other_found(server: StandInServer) -> None:
    search = ToolSearch()
    server.reset(model=ScriptedModel([searches("count words"), DONE, DONE]))
    one = Chat(server, searchable(toolbox(), search=search))
    other = Chat(server, searchable(toolbox(), search=search))
    one.ask()
    other.ask()
    assert "count_words" in one.tools.view.found
    assert other.tools.view.found == ()
