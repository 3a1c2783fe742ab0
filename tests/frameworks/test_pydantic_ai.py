"""pydantic-ai's own agents with `RankedToolSearch`, over real HTTP on the stand-in server."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic_ai import Agent, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.capabilities import ToolSearch as ToolSearchCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolReturnPart,
    ToolSearchCallPart,
    ToolSearchReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from tool_search import ConfigurationError, SearchError, SQLiteStore, ToolSearch, ToolSearchConfig
from tool_search.adapters import pydantic_ai as adapter
from tool_search.adapters.pydantic_ai import RankedToolSearch
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import ModelCall, ModelReply, ModelView, ScriptedModel, StandInServer
from tool_search.testing.models.scripted import Step

COUNT = ModelCall(name="count_words", arguments={"text": "to be or not to be"})
DONE = ModelReply(text="Done.")
DEFERRED = [Tool(function, defer_loading=True) for function in TOOLBOX]


def searches(*queries: str) -> Callable[[ModelView], ModelReply]:
    """Return a reply that searches, by the search tool that the request declares."""

    def reply(view: ModelView) -> ModelReply:
        found = (t.name for t in view.tools if t.is_search or t.name == "search_tools")
        call = ModelCall(name=next(found), arguments={"queries": list(queries)})
        return ModelReply(calls=(call,))

    return reply


def calls(*made: ModelCall) -> ModelReply:
    """Return a reply of calls."""
    return ModelReply(calls=made)


def gpt(server: StandInServer) -> OpenAIChatModel:
    """Return an OpenAI model of Chat Completions on the stand-in server."""
    provider = OpenAIProvider(base_url=server.openai_base_url, api_key="key")
    return OpenAIChatModel("gpt-5.4", provider=provider)


def responses(server: StandInServer) -> OpenAIResponsesModel:
    """Return an OpenAI model of Responses on the stand-in server."""
    provider = OpenAIProvider(base_url=server.openai_base_url, api_key="key")
    return OpenAIResponsesModel("gpt-5.4", provider=provider)


def claude(server: StandInServer) -> AnthropicModel:
    """Return a Claude model on the stand-in server."""
    provider = AnthropicProvider(base_url=server.anthropic_base_url, api_key="key")
    return AnthropicModel("claude-sonnet-4-6", provider=provider)


class Thread:
    """One conversation.

    Args:
        capability: The tool search of its agents.
        tools: The tools of its agents.
    """

    def __init__(
        self,
        capability: ToolSearchCapability[None] | None = None,
        *,
        tools: Sequence[Tool[None]] = DEFERRED,
    ) -> None:
        self.capability = capability or RankedToolSearch()
        self.tools = tools
        self.history: list[ModelMessage] = []

    def agent(self, model: Model[Any]) -> Agent[None, str]:
        """Return an agent that goes on with the conversation."""
        return Agent(model, tools=self.tools, capabilities=[self.capability])

    async def ask(self, model: Model[Any], text: str = "Count the words.") -> str:
        """Return the answer to a question."""
        answer = await self.agent(model).run(text, message_history=self.history)
        self.history = answer.all_messages()
        return answer.output

    def returned(self) -> list[str]:
        """Return the names of the tools that have answered, searches left out."""
        parts = [part for message in self.history for part in message.parts]
        answered = [p for p in parts if isinstance(p, ToolReturnPart) and p.outcome == "success"]
        return [p.tool_name for p in answered if p.tool_name not in ("search_tools", "tool_search")]

    def found(self) -> list[str]:
        """Return the names that searches found, in their order."""
        parts = [part for message in self.history for part in message.parts]
        contents = [
            part.content
            for part in parts
            if isinstance(part, ToolReturnPart) and isinstance(part.content, dict)
        ]
        found = [m["name"] for c in contents for m in cast("Any", c).get("discovered_tools", ())]
        return list(dict.fromkeys(found))


def names(server: StandInServer) -> list[list[str]]:
    """Return the declared names of each request."""
    found = []
    for request in server.requests:
        body: Any = request.body
        tools = [tool.get("function") or tool for tool in body["tools"]]
        found.append([tool.get("name", tool.get("type")) for tool in tools])
    return found


async def test_the_first_request_declares_the_search_and_what_was_found_stays(
    server: StandInServer,
) -> None:
    turn: list[Step] = [searches("count words in a text"), calls(COUNT), DONE]
    other: list[Step] = [searches("convert miles"), DONE]
    server.reset(model=ScriptedModel([*turn, *other, *turn[1:]]))
    thread = Thread()
    for _ in range(3):
        await thread.ask(gpt(server))
    lists = names(server)
    assert lists[0] == ["search_tools"]
    assert "count_words" in lists[1]
    # pydantic-ai orders its list itself, as the agent's tools are: no prefix, but nothing leaves.
    assert all(set(early) <= set(late) for early, late in pairwise(lists))


async def test_tools_that_are_not_marked_are_declared_from_the_start(server: StandInServer) -> None:
    server.reset(model=ScriptedModel([DONE]))
    tools = [Tool(function, defer_loading=i > 1) for i, function in enumerate(TOOLBOX)]
    await Thread(tools=tools).ask(gpt(server))
    core = {function.__name__ for function in TOOLBOX[:2]}
    assert set(names(server)[0]) == {*core, "search_tools"}


@pytest.mark.parametrize(
    ("query", "found", "theirs"),
    [
        ("统计字数", "count_words", False),
        ("подсчитать слова", "count_words", False),
        ("emails", "email", False),
        ("count words", "count_words", True),
    ],
)
async def test_a_query_in_another_language_and_a_plural_find_their_tool(
    query: str, found: str, theirs: bool, server: StandInServer
) -> None:
    for capability, finds in (
        (RankedToolSearch(), True),
        # pydantic-ai's own search, for the record.
        (ToolSearchCapability[None](strategy="keywords"), theirs),
    ):
        server.reset(model=ScriptedModel([searches(query), DONE]))
        thread = Thread(capability)
        await thread.ask(gpt(server))
        assert any(found in name for name in thread.found()) is finds


async def test_three_model_classes_share_a_conversation_and_nothing_is_searched_twice(
    server: StandInServer,
) -> None:
    turn: list[Step] = [searches("count words in a text"), calls(COUNT), DONE]
    server.reset(model=ScriptedModel([*turn, *turn[1:], *turn[1:], *turn[1:]]))
    thread = Thread()
    for model in (gpt(server), claude(server), responses(server), gpt(server)):
        assert await thread.ask(model) == "Done."
    assert thread.returned() == ["count_words"] * 4
    bodies: list[Any] = [request.body for request in server.requests]
    deferred = [sum(bool(t.get("defer_loading")) for t in body["tools"]) for body in bodies]
    assert deferred == [0, 0, 0, 196, 196, 196, 196, 0, 0]
    assert bodies[3]["tools"] == bodies[4]["tools"]
    assert bodies[5]["tools"] == bodies[6]["tools"]


@pytest.mark.parametrize("model", [claude, responses])
async def test_native_searches_are_answered_by_this_ranking(
    model: Callable[[StandInServer], Model[Any]], server: StandInServer
) -> None:
    server.reset(model=ScriptedModel([searches("统计字数"), calls(COUNT), DONE]))
    thread = Thread()
    assert await thread.ask(model(server)) == "Done."
    assert thread.returned() == ["count_words"]


async def test_an_agent_streams(server: StandInServer) -> None:
    server.reset(model=ScriptedModel([searches("count words"), calls(COUNT), DONE]))
    async with Thread().agent(gpt(server)).run_stream("Count the words.") as streamed:
        text = [part async for part in streamed.stream_text(delta=True, debounce_by=None)]
    assert "".join(text) == "Done."
    assert "count_words" in names(server)[-1]


async def test_parallel_calls_may_have_searches_among_them(server: StandInServer) -> None:
    def both(view: ModelView) -> ModelReply:
        words, miles = searches("count words")(view), searches("convert miles")(view)
        return calls(*words.calls, COUNT, *miles.calls)

    server.reset(model=ScriptedModel([searches("count the words of a text"), both, DONE]))
    thread = Thread()
    await thread.ask(gpt(server))
    assert thread.returned() == ["count_words"]
    assert "count_words" in names(server)[-1]
    assert any("convert" in name for name in names(server)[-1])


async def test_a_hidden_tool_that_is_called_by_name_is_found_and_runs(
    server: StandInServer,
) -> None:
    # pydantic-ai answers such a call itself, before any capability sees it: newer versions say
    # that the model must search first, 2.0 runs the tool.
    hidden = ModelCall(name="count_words", arguments={"text": "a b"}, hidden=True)
    steps: list[Step] = [calls(hidden), searches("count words"), calls(COUNT), DONE]
    server.reset(model=ScriptedModel(steps))
    thread = Thread()
    assert await thread.ask(gpt(server)) == "Done."
    assert set(thread.returned()) == {"count_words"}
    assert names(server)[0] == names(server)[1] == ["search_tools"]
    assert "count_words" in names(server)[2]


@pytest.mark.parametrize("arguments", ['{"queries": ["count', '{"queries": "count words"}', "{}"])
async def test_a_search_with_broken_arguments_is_asked_again(
    arguments: str, server: StandInServer
) -> None:
    broken = ModelCall(name="search_tools", arguments=arguments)
    steps: list[Step] = [calls(broken), searches("count words"), calls(COUNT), DONE]
    server.reset(model=ScriptedModel(steps))
    thread = Thread()
    assert await thread.ask(gpt(server)) == "Done."
    assert thread.returned() == ["count_words"]


async def test_a_tool_that_raises_teaches_nothing(server: StandInServer) -> None:
    def count_rainbows(text: str) -> str:
        """Count the rainbows of a text."""
        raise RuntimeError(text)

    search = ToolSearch()
    call = ModelCall(name="count_rainbows", arguments={"text": "x"})
    server.reset(
        model=ScriptedModel([searches("what the sky shows after rain", "rainbows"), calls(call)])
    )
    tools = [*DEFERRED, Tool(count_rainbows, defer_loading=True)]
    with pytest.raises(RuntimeError):
        await Thread(RankedToolSearch(search=search), tools=tools).ask(gpt(server))
    listed = [{"name": "count_rainbows"}, {"name": "count_words"}]
    assert search.rank("what the sky shows after rain", listed).names == ()


async def test_what_was_learned_ranks_first_in_a_new_conversation_and_after_a_restart(
    server: StandInServer, tmp_path: Path
) -> None:
    path = tmp_path / "learned.sqlite"
    used = ModelCall(name="word_frequency", arguments={"text": "a b a"})
    first = await _first_found(server, path, "words in a text", used)
    again = await _first_found(server, path, "the words of texts", None)
    assert first != "word_frequency"
    assert again == "word_frequency"


async def _first_found(
    server: StandInServer, path: Path, query: str, used: ModelCall | None
) -> str:
    steps: list[Step] = [searches(query, "frequency"), *([calls(used)] if used else ()), DONE]
    server.reset(model=ScriptedModel(steps))
    async with SQLiteStore(path) as store:
        thread = Thread(RankedToolSearch(search=ToolSearch((), None, store=store)))
        await thread.ask(gpt(server), "How often is each word there?")
        if used is not None:
            other = Thread(thread.capability)
            server.reset(model=ScriptedModel([searches("the words of texts"), DONE]))
            await other.ask(gpt(server))
            assert other.found()[0] == "word_frequency"
            return thread.found()[0]
    return thread.found()[0]


async def test_settings_show_tools_that_are_marked(server: StandInServer) -> None:
    server.reset(model=ScriptedModel([DONE, DONE]))
    core = RankedToolSearch(ToolSearchConfig(always_loaded_tools=("count_words",)))
    await Thread(core).ask(gpt(server))
    full = RankedToolSearch(ToolSearchConfig(tool_schema_mode="full"))
    await Thread(full, tools=DEFERRED[:100]).ask(gpt(server))
    assert set(names(server)[0]) == {"count_words", "search_tools"}
    assert len(names(server)[1]) == 100


async def test_few_marked_tools_wait_to_be_found_too(server: StandInServer) -> None:
    server.reset(model=ScriptedModel([searches("count words"), calls(COUNT), DONE]))
    few = [tool for tool in DEFERRED if tool.name in ("count_words", "word_frequency")]
    thread = Thread(tools=few)
    await thread.ask(gpt(server))
    assert names(server)[0] == ["search_tools"]
    assert thread.returned() == ["count_words"]


class _Failing:
    """An index whose service does not answer."""

    def search(self, *_: object, **__: object) -> object:
        raise RuntimeError("no service")


def fail_to_build(*_: object) -> object:
    """Fail as an engine whose package is broken."""
    raise SearchError("no service")


@pytest.mark.parametrize("build", [fail_to_build, lambda *_: _Failing()])
async def test_if_the_engine_fails_every_tool_is_found_and_a_warning_says_why(
    build: Callable[..., object],
    server: StandInServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("tool_search.adapters.hosts.indexes.build_index", build)
    server.reset(model=ScriptedModel([searches("words"), calls(COUNT), DONE]))
    # Few enough for the list of a request, with one that no search would find.
    thread = Thread(tools=[t for t in DEFERRED if t.name < "d"])
    with caplog.at_level(logging.WARNING):
        await thread.ask(gpt(server))
    assert "no service" in caplog.text
    assert thread.returned() == ["count_words"]
    assert len(thread.found()) == len(thread.tools) > 25


async def test_a_tool_whose_schema_is_no_object_is_left_out_with_a_warning(
    server: StandInServer, caplog: pytest.LogCaptureFixture
) -> None:
    def echo(**_: object) -> str:
        return "echo"

    bad = Tool.from_schema(echo, "bad_tool", "Count words badly.", {"type": "array"})
    bad.defer_loading = True
    server.reset(model=ScriptedModel([searches("count words"), calls(COUNT), DONE]))
    thread = Thread(tools=[*DEFERRED, bad])
    with caplog.at_level(logging.WARNING):
        await thread.ask(gpt(server))
    assert "bad_tool" in caplog.text
    assert "bad_tool" not in thread.found()
    assert thread.returned() == ["count_words"]


async def test_names_that_clash_are_errors_of_pydantic_ai(server: StandInServer) -> None:
    def search_tools() -> str:
        return ""

    with pytest.raises(UserError):
        await Thread(tools=[*DEFERRED, Tool(search_tools)]).ask(gpt(server))
    with pytest.raises(UserError):
        await Thread(tools=[*DEFERRED, DEFERRED[0]]).ask(gpt(server))


async def test_an_edited_history_costs_a_search_and_no_more(server: StandInServer) -> None:
    turn: list[Step] = [searches("count words"), calls(COUNT), DONE]
    server.reset(model=ScriptedModel([*turn, *turn]))
    thread = Thread()
    await thread.ask(gpt(server))
    thread.history = thread.history[-1:]
    await thread.ask(gpt(server))
    assert names(server)[3] == ["search_tools"]


async def test_names_of_another_bot_in_a_history_are_passed_over(server: StandInServer) -> None:
    server.reset(model=ScriptedModel([calls(COUNT), DONE]))
    thread = Thread()
    found: Any = [{"name": name} for name in ("never_was", "count_words", "count_words")]
    thread.history = [
        ModelRequest(parts=[UserPromptPart("Count the words.")]),
        ModelResponse(parts=[ToolSearchCallPart(args={"queries": ["words"]}, tool_call_id="1")]),
        ModelRequest(
            parts=[ToolSearchReturnPart(content={"discovered_tools": found}, tool_call_id="1")]
        ),
    ]
    assert await thread.ask(gpt(server)) == "Done."
    assert [set(each) for each in names(server)] == [{"count_words", "search_tools"}] * 2


async def test_conversations_at_once_never_see_each_others_discoveries(
    server: StandInServer,
) -> None:
    turns: dict[str, list[Step]] = {
        "words": [searches("count words"), calls(COUNT), DONE],
        "miles": [searches("convert miles to kilometres"), DONE],
    }
    server.reset(model=ScriptedModel(turns=turns))
    agent = Thread().agent(gpt(server))
    answers = await asyncio.gather(*(agent.run(text) for text in turns))
    found = []
    for answer in answers:
        thread = Thread()
        thread.history = answer.all_messages()
        found.append(set(thread.found()))
    assert "count_words" in found[0]
    assert not found[0] & found[1]


@pytest.mark.skipif(
    not hasattr(AbstractCapability, "combine"),
    reason="this pydantic-ai refuses two capabilities ToolSearch, its own too",
)
async def test_two_capabilities_of_an_agent_are_one(server: StandInServer) -> None:
    server.reset(model=ScriptedModel([searches("统计字数"), calls(COUNT), DONE]))
    both = [RankedToolSearch(), RankedToolSearch()]
    agent = Agent(gpt(server), tools=DEFERRED, capabilities=both)
    assert (await agent.run("Count the words.")).output == "Done."


def test_a_mode_that_needs_a_loop_of_its_own_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="skills_like"):
        RankedToolSearch(ToolSearchConfig(tool_schema_mode="skills_like"))


def test_a_version_without_the_needed_methods_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(AbstractCapability, "for_run")
    with pytest.raises(ImportError, match=r"tested with pydantic-ai 2\.0"):
        importlib.reload(adapter)
