"""Agents of the OpenAI Agents SDK with `with_tool_search`, over HTTP on the stand-in server."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    FunctionToolResult,
    Model,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    RunResult,
    SQLiteSession,
    ToolsToFinalOutputResult,
    function_tool,
    set_default_openai_client,
    set_tracing_disabled,
)
from agents.mcp import MCPServer
from agents.tool_context import ToolContext
from mcp.types import CallToolResult
from mcp.types import Tool as MCPTool
from openai import AsyncOpenAI

from tests.services.rules import xai
from tool_search import ConfigurationError, SearchError, SQLiteStore, ToolSearch, ToolSearchConfig
from tool_search.adapters import openai_agents as adapter
from tool_search.adapters.openai_agents import with_tool_search
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import ModelCall, ModelReply, ScriptedModel, StandInServer
from tool_search.testing.models.scripted import Step

set_tracing_disabled(True)

COUNT = ModelCall(name="count_words", arguments={"text": "to be or not to be"})
DONE = ModelReply(text="Done.")
TOOLS = [function_tool(function, strict_mode=False) for function in TOOLBOX]


def searches(*queries: str) -> ModelReply:
    """Return a reply that searches."""
    call = ModelCall(name="tool_search", arguments={"queries": list(queries)})
    return ModelReply(calls=(call,))


def calls(*made: ModelCall) -> ModelReply:
    """Return a reply of calls."""
    return ModelReply(calls=made)


def client(server: StandInServer) -> AsyncOpenAI:
    """Return a client of the stand-in server."""
    return AsyncOpenAI(base_url=server.openai_base_url, api_key="key")


def chat(server: StandInServer) -> Model:
    """Return a model of Chat Completions."""
    return OpenAIChatCompletionsModel("gpt-5.4", client(server))


def responses(server: StandInServer) -> Model:
    """Return a model of Responses."""
    return OpenAIResponsesModel("gpt-5.4", client(server))


def bot(model: Model | str | None, tools: Any = TOOLS, **options: Any) -> Agent[Any]:
    """Return an agent that searches its tools."""
    return with_tool_search(Agent("bot", model=model, tools=list(tools)), **options)


def names(server: StandInServer) -> list[list[str]]:
    """Return the declared names of each request."""
    found = []
    for request in server.requests:
        body: Any = request.body
        tools = [tool.get("function") or tool for tool in body.get("tools", ())]
        found.append([tool.get("name", tool.get("type")) for tool in tools])
    return found


def outputs(result: RunResult) -> list[str]:
    """Return the outputs of the tools of a run."""
    items: list[Any] = result.to_input_list()
    return [str(i["output"]) for i in items if i.get("type") == "function_call_output"]


def are_prefixes(lists: list[list[str]]) -> bool:
    """Return True if each list begins with the one before."""
    return all(late[: len(early)] == early for early, late in pairwise(lists))


@pytest.mark.parametrize("model", [chat, responses])
async def test_each_list_is_a_prefix_of_the_next_over_three_turns(
    model: Any, server: StandInServer
) -> None:
    turn = [searches("count words in a text"), calls(COUNT), DONE]
    other = [searches("convert miles"), DONE]
    server.reset(model=ScriptedModel([*turn, *other, *turn[1:]]))
    agent, session = bot(model(server)), SQLiteSession("1")
    for _ in range(3):
        await Runner.run(agent, "Count the words.", session=session)
    lists = names(server)
    assert lists[0] == ["tool_search"]
    assert "count_words" in lists[1]
    assert are_prefixes(lists)
    assert len(lists[-1]) > len(lists[1])
    systems = [str(request.body).count("`tool_search`") for request in server.requests]
    assert len(set(systems)) == 1


async def test_core_tools_are_declared_from_the_start(server: StandInServer) -> None:
    server.reset(model=ScriptedModel([DONE]))
    config = ToolSearchConfig(always_loaded_tools=("count_words", "add"))
    await Runner.run(bot(chat(server), config=config), "Count the words.")
    assert names(server)[0] == ["count_words", "tool_search"]


@pytest.mark.parametrize(
    ("query", "found"),
    [("统计字数", "count_words"), ("подсчитать слова", "count_words"), ("emails", "email")],
)
async def test_a_query_in_another_language_and_a_plural_find_their_tool(
    query: str, found: str, server: StandInServer
) -> None:
    # The SDK's own ToolSearchTool is run by the service alone: there is nothing to ask here.
    server.reset(model=ScriptedModel([searches(query), DONE]))
    await Runner.run(bot(chat(server)), "Count the words.")
    assert any(found in name for name in names(server)[1])


async def test_a_chat_and_a_responses_model_share_a_session_and_nothing_is_searched_twice(
    server: StandInServer,
) -> None:
    turn = [searches("count words in a text"), calls(COUNT), DONE]
    server.reset(model=ScriptedModel([*turn, *turn[1:], *turn[1:]]))
    session, search = SQLiteSession("1"), ToolSearch()
    for model in (chat(server), responses(server), chat(server)):
        result = await Runner.run(bot(model, search=search), "Count the words.", session=session)
        assert '"words": 6' in outputs(result)[-1].replace("'", '"')
    assert are_prefixes(names(server))


async def test_runs_stream(server: StandInServer) -> None:
    many = calls(*searches("convert miles").calls, *searches("count words").calls)
    server.reset(model=ScriptedModel([searches("count words"), calls(COUNT), many, DONE]))
    streamed = Runner.run_streamed(bot(responses(server)), "Count the words.")
    kinds = [event.type async for event in streamed.stream_events()]
    assert "raw_response_event" in kinds
    assert streamed.final_output == "Done."
    assert are_prefixes(names(server))
    # The search of a streamed reply knows what is loaded.
    assert '"loaded":["count_words"' in str(server.requests[-1].body).replace("\\", "")


async def test_parallel_calls_may_have_searches_among_them(server: StandInServer) -> None:
    many = calls(*searches("count words").calls, *searches("convert miles").calls)
    server.reset(model=ScriptedModel([many, calls(COUNT), DONE]))
    result = await Runner.run(bot(chat(server)), "Count the words.")
    assert len(outputs(result)) == 3
    assert any("convert" in name for name in names(server)[1])
    assert "count_words" in names(server)[1]


@pytest.mark.parametrize(("arguments", "text"), [({"text": "a b"}, "2"), ({"txt": 5}, "error")])
async def test_a_hidden_tool_that_is_called_by_name_runs_and_stays(
    arguments: dict[str, Any], text: str, server: StandInServer
) -> None:
    hidden = ModelCall(name="count_words", arguments=arguments, hidden=True)
    server.reset(model=ScriptedModel([calls(hidden), DONE]))
    result = await Runner.run(bot(chat(server)), "Count the words.")
    assert text in outputs(result)[0]
    assert names(server)[1] == ["tool_search", "count_words"]


@pytest.mark.parametrize("arguments", ['{"queries": ["count', "[]", "{}"])
async def test_a_search_with_broken_arguments_is_answered(
    arguments: str, server: StandInServer
) -> None:
    broken = ModelCall(name="tool_search", arguments=arguments)
    server.reset(model=ScriptedModel([calls(broken), searches("count words"), calls(COUNT), DONE]))
    result = await Runner.run(bot(chat(server)), "Count the words.")
    assert "error" in outputs(result)[0]
    assert result.final_output == "Done."


async def test_a_tool_that_raises_teaches_nothing(server: StandInServer) -> None:
    @function_tool
    def count_rainbows(text: str) -> str:
        """Count the rainbows of a text."""
        raise RuntimeError(text)

    search = ToolSearch()
    call = ModelCall(name="count_rainbows", arguments={"text": "x"})
    steps = [searches("what the sky shows after rain", "rainbows"), calls(call), DONE]
    server.reset(model=ScriptedModel(steps))
    agent = bot(chat(server), [*TOOLS, count_rainbows], search=search)
    assert "error" in outputs(await Runner.run(agent, "Count the rainbows."))[-1]
    listed = [{"name": "count_rainbows"}, {"name": "count_words"}]
    assert search.rank("what the sky shows after rain", listed).names == ()


async def test_what_was_learned_ranks_first_in_a_new_conversation_and_after_a_restart(
    server: StandInServer, tmp_path: Path
) -> None:
    path = tmp_path / "learned.sqlite"
    used = ModelCall(name="word_frequency", arguments={"text": "a b a"})
    steps: list[Step] = [searches("words in a text", "frequency"), calls(used), DONE]
    again: list[Step] = [searches("the words of texts"), DONE]
    async with SQLiteStore(path) as store:
        agent = bot(chat(server), search=ToolSearch((), None, store=store))
        for script in (steps, again):
            server.reset(model=ScriptedModel(script))
            await Runner.run(agent, "How often is each word there?")
        first = names(server)[1]
    async with SQLiteStore(path) as store:
        server.reset(model=ScriptedModel(again))
        agent = bot(chat(server), search=ToolSearch((), None, store=store))
        await Runner.run(agent, "How often is each word there?")
    assert first[1] == names(server)[1][1] == "word_frequency"
    untaught = ToolSearch(TOOLBOX).rank("the words of texts").names
    assert untaught[0] != "word_frequency"


async def test_previous_response_id_keeps_what_was_found(server: StandInServer) -> None:
    turn = [searches("count words in a text"), calls(COUNT), DONE]
    server.reset(model=ScriptedModel([*turn, calls(COUNT), DONE]))
    search = ToolSearch()
    agent = bot(responses(server), search=search)
    first = await Runner.run(agent, "Count the words.", auto_previous_response_id=True)
    again = await Runner.run(agent, "Again.", previous_response_id=first.last_response_id)
    assert again.final_output == "Done."
    bodies: list[Any] = [request.body for request in server.requests]
    assert [len(body["input"]) for body in bodies] == [1, 1, 1, 1, 1]
    assert are_prefixes(names(server))
    assert "count_words" in names(server)[3]


async def test_a_handoff_goes_on_with_what_was_found(server: StandInServer) -> None:
    search = ToolSearch()
    second = with_tool_search(Agent("second", model=chat(server), tools=list(TOOLS)), search=search)
    first = with_tool_search(
        Agent("first", model=responses(server), tools=list(TOOLS), handoffs=[second]), search=search
    )
    hand = ModelCall(name="transfer_to_second", arguments={})
    steps = [searches("count words"), calls(COUNT), calls(hand), calls(COUNT), DONE]
    server.reset(model=ScriptedModel(steps))
    result = await Runner.run(first, "Count the words.")
    assert result.last_agent.name == "second"
    lists = names(server)
    assert lists[0] == ["tool_search", "transfer_to_second"]
    assert lists[3] == lists[1][:-1]


async def test_a_handoff_within_a_conversation_of_the_service_goes_on_too(
    server: StandInServer,
) -> None:
    search = ToolSearch()
    model = responses(server)
    second = with_tool_search(Agent("second", model=model, tools=[*TOOLS]), search=search)
    first = with_tool_search(
        Agent("first", model=model, tools=[*TOOLS], handoffs=[second]), search=search
    )
    hand = ModelCall(name="transfer_to_second", arguments={})
    server.reset(model=ScriptedModel([searches("count words"), calls(hand), calls(COUNT), DONE]))
    result = await Runner.run(first, "Count the words.", auto_previous_response_id=True)
    assert result.last_agent.name == "second"
    assert result.final_output == "Done."
    assert names(server)[2][:2] == ["tool_search", "count_words"]


async def test_a_search_is_never_the_final_output(server: StandInServer) -> None:
    def stop(_context: Any, results: list[FunctionToolResult]) -> ToolsToFinalOutputResult:
        text = ", ".join(result.tool.name for result in results)
        return ToolsToFinalOutputResult(is_final_output=True, final_output=text)

    behaviors: list[tuple[Any, str]] = [
        ("stop_on_first_tool", "'words': 6"),
        (stop, "count_words"),
        ({"stop_at_tool_names": ["count_words"]}, "'words': 6"),
    ]
    for behavior, output in behaviors:
        server.reset(model=ScriptedModel([searches("count words"), calls(COUNT)]))
        given = Agent("bot", model=chat(server), tools=[*TOOLS], tool_use_behavior=behavior)
        result = await Runner.run(with_tool_search(given), "Count the words.")
        assert output in str(result.final_output)


async def test_a_model_may_be_a_name_or_none(server: StandInServer) -> None:
    set_default_openai_client(client(server), use_for_tracing=False)
    for model in ("gpt-5.4", None):
        server.reset(model=ScriptedModel([searches("count words"), calls(COUNT), DONE]))
        agent = bot(model)
        assert agent.model_settings == Agent("bot", model=model).model_settings
        assert (await Runner.run(agent, "Count the words.")).final_output == "Done."
        assert names(server)[0] == ["tool_search"]


async def test_a_tool_that_a_request_demands_is_declared(server: StandInServer) -> None:
    server.reset(model=ScriptedModel([calls(COUNT), DONE]))
    agent = bot(chat(server)).clone(model_settings=ModelSettings(tool_choice="count_words"))
    await Runner.run(agent, "Count the words.")
    assert names(server) == [["tool_search", "count_words"]] * 2


async def test_a_run_with_a_model_of_its_own_has_every_tool(server: StandInServer) -> None:
    few = TOOLS[:100]
    server.reset(model=ScriptedModel([DONE]))
    agent = bot(chat(server), few)
    await Runner.run(agent, "Hello.", run_config=RunConfig(model=chat(server)))
    assert len(names(server)[0]) == 101


async def test_few_tools_are_all_declared(server: StandInServer) -> None:
    server.reset(model=ScriptedModel([DONE, DONE, DONE]))
    await Runner.run(bot(chat(server), TOOLS[:5]), "Hello.")
    full = ToolSearchConfig(tool_schema_mode="full")
    await Runner.run(bot(chat(server), TOOLS[:100], config=full), "Hello.")
    await Runner.run(bot(chat(server), []), "Hello.")
    assert [len(each) for each in names(server)] == [5, 100, 0]


async def test_tools_that_change_between_requests_are_searched_as_they_are(
    server: StandInServer,
) -> None:
    is_on = [True]

    @function_tool(is_enabled=lambda _context, _agent: is_on[0])
    def count_rainbows(text: str) -> str:
        """Count the rainbows of a text."""
        is_on[0] = False
        return text

    call = ModelCall(name="count_rainbows", arguments={"text": "x"})
    steps = [searches("rainbows"), calls(call), searches("rainbows"), DONE]
    server.reset(model=ScriptedModel(steps))
    result = await Runner.run(bot(chat(server), [*TOOLS, count_rainbows]), "Count them.")
    assert "count_rainbows" in names(server)[1]
    assert "count_rainbows" not in names(server)[2]
    assert "count_rainbows" not in outputs(result)[-1]


class _Words(MCPServer):
    """A server of one tool, without a connection."""

    async def connect(self) -> None:
        pass

    @property
    def name(self) -> str:
        return "words"

    async def cleanup(self) -> None:
        pass

    async def list_tools(self, *_: object, **__: object) -> list[Any]:
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        listed = {
            "name": "count_rainbows",
            "description": "Counts rainbows.",
            "inputSchema": schema,
        }
        return [MCPTool.model_validate(listed)]

    async def call_tool(self, *_: object, **__: object) -> Any:
        return CallToolResult.model_validate({"content": [{"type": "text", "text": "7"}]})

    async def list_prompts(self) -> Any:
        raise NotImplementedError

    async def get_prompt(self, *_: object, **__: object) -> Any:
        raise NotImplementedError


async def test_tools_of_mcp_servers_are_found_too(server: StandInServer) -> None:
    call = ModelCall(name="count_rainbows", arguments={"text": "x"})
    server.reset(model=ScriptedModel([searches("rainbows"), calls(call), DONE]))
    given = Agent("bot", model=chat(server), tools=[*TOOLS], mcp_servers=[_Words()])
    result = await Runner.run(with_tool_search(given), "Count the rainbows.")
    assert names(server)[:2] == [["tool_search"], ["tool_search", "count_rainbows"]]
    assert "7" in outputs(result)[-1]


class _Failing:
    """An index whose service does not answer."""

    def search(self, *_: object, **__: object) -> object:
        raise RuntimeError("no service")


def fail_to_build(*_: object) -> object:
    """Fail as an engine whose package is broken."""
    raise SearchError("no service")


@pytest.mark.parametrize("build", [fail_to_build, lambda *_: _Failing()])
async def test_if_the_engine_fails_every_tool_is_declared_and_a_warning_says_why(
    build: Any,
    server: StandInServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("tool_search.adapters.hosts.indexes.build_index", build)
    few = [tool for tool in TOOLS if tool.name < "d"]
    first = [DONE] if build is fail_to_build else [searches("words"), calls(COUNT), DONE]
    server.reset(model=ScriptedModel(first))
    with caplog.at_level(logging.WARNING):
        await Runner.run(bot(chat(server), few), "Count the words.")
    assert "no service" in caplog.text
    assert {tool.name for tool in few} <= set(names(server)[-1])


async def test_a_tool_whose_schema_is_no_object_is_left_out_with_a_warning(
    server: StandInServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def invoke(_context: ToolContext[Any], _arguments: str) -> str:
        return ""

    bad = FunctionTool("bad_tool", "Counts words.", {"type": "array"}, invoke, False)
    server.reset(model=ScriptedModel([searches("count words"), calls(COUNT), DONE]))
    with caplog.at_level(logging.WARNING):
        result = await Runner.run(bot(chat(server), [*TOOLS, bad]), "Count the words.")
    assert "bad_tool" in caplog.text
    assert result.final_output == "Done."


async def test_an_edited_session_costs_a_search_and_no_more(server: StandInServer) -> None:
    turn = [searches("count words"), calls(COUNT), DONE]
    server.reset(model=ScriptedModel([*turn, *turn]))
    session, agent = SQLiteSession("1"), bot(chat(server))
    await Runner.run(agent, "Count the words.", session=session)
    await session.clear_session()
    await Runner.run(agent, "Count the words.", session=session)
    assert names(server)[3] == ["tool_search"]


async def test_names_of_another_bot_in_a_history_are_passed_over(server: StandInServer) -> None:
    server.reset(model=ScriptedModel([calls(COUNT), DONE]))
    found = [{"name": name} for name in ("never_was", "count_words", "count_words")]
    text = json.dumps({"query": "words", "matches": found})
    items: list[Any] = [
        {"role": "user", "content": "Count the words."},
        {"type": "function_call", "call_id": "1", "name": "tool_search", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": text},
        {"role": "user", "content": "Now."},
    ]
    await Runner.run(bot(responses(server)), items)
    assert names(server) == [["tool_search", "count_words"]] * 2


async def test_conversations_at_once_never_see_each_others_discoveries(
    server: StandInServer,
) -> None:
    turns: dict[str, list[Step]] = {
        "words": [searches("count words"), calls(COUNT), DONE],
        "miles": [searches("convert miles to kilometres"), DONE],
    }
    server.reset(model=ScriptedModel(turns=turns))
    agent = bot(responses(server))
    await asyncio.gather(*(Runner.run(agent, text) for text in turns))
    of_words, of_miles = [
        {name for r, listed in zip(server.requests, names(server), strict=True)
         if text in str(r.body["input"][0]) for name in listed} - {"tool_search"}
        for text in turns
    ]  # fmt: skip
    assert "count_words" in of_words
    assert of_miles
    assert not of_words & of_miles


@pytest.mark.parametrize("tools", [TOOLS, [TOOLS[0], TOOLS[0]]])
async def test_names_that_clash_are_refused(tools: Any) -> None:
    named = ToolSearchConfig(search_tool_name=TOOLS[0].name)
    with pytest.raises(ConfigurationError, match="search_tool_name"):
        bot("gpt-5.4", tools, config=named)
    with pytest.raises(ConfigurationError, match="once"):
        with_tool_search(bot("gpt-5.4", tools))


def test_a_mode_that_needs_a_loop_of_its_own_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="skills_like"):
        bot("gpt-5.4", config=ToolSearchConfig(tool_schema_mode="skills_like"))


def test_a_version_without_the_needed_attributes_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(ToolContext, "agent")
    with pytest.raises(ImportError, match=r"tested with openai-agents 0\.10"):
        importlib.reload(adapter)


@pytest.mark.parametrize("kind", [OpenAIChatCompletionsModel, OpenAIResponsesModel])
@pytest.mark.parametrize(("name", "refused"), [("grok-4.5", 0), ("house-model", 1)])
async def test_a_search_and_a_call_where_the_service_keeps_the_search_tools_name(
    kind: type[OpenAIChatCompletionsModel | OpenAIResponsesModel], name: str, refused: int
) -> None:
    with xai().running() as service:
        model = kind(name, AsyncOpenAI(base_url=f"{service.url}/v1", api_key="key"))
        result = await Runner.run(bot(model), "Please use count_words")
        asked = [*result.to_input_list(), {"role": "user", "content": "Again, use count_words"}]
        result = await Runner.run(bot(model), asked)  # type: ignore[arg-type]
    assert len(service.refused) == refused
    made = [item["name"] for item in result.to_input_list() if item.get("type") == "function_call"]
    assert made == ["tool_search", "count_words"] * 2
    assert str(result.final_output).startswith("answer")
