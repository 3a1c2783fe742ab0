"""The oh-my-pi surface with our agent loop: its tool and answers, on every strategy."""

from __future__ import annotations

import json

import pytest

from tests.runner.bench import (
    Bench,
    assert_paired,
    calling,
    named,
    results,
    say,
    tool,
    turn,
)
from tool_search import Done, Tool, ToolFinished, ToolsDiscovered
from tool_search.adapters.compat.oh_my_pi.surface import SEARCH_TOOL_NAME, DiscoverySettings
from tool_search.testing import ModelCall, ModelReply, ScriptedModel

SETTINGS = DiscoverySettings(mode="mcp-only")
TOOLS = [
    tool("read", "Reads a file.", kind="builtin"),
    tool("get_forecast", "Weather forecast.", "city", kind="mcp", server="weather"),
    tool("get_radar", "Weather radar.", kind="mcp", server="weather"),
    tool("send_mail", "Send an e-mail.", "to", kind="mcp", server="mail"),
]


def searching(query: str, limit: int) -> ModelReply:
    """A reply that searches under oh-my-pi's name."""
    arguments = {"query": query, "limit": limit}
    return calling(ModelCall(name=SEARCH_TOOL_NAME, arguments=arguments))


def prepared(settings: DiscoverySettings = SETTINGS) -> list[Tool]:
    """The tools as the settings divide them."""
    return list(settings.session_catalog(TOOLS).values())


@pytest.mark.parametrize("name", ["claude", "gpt"])
async def test_a_found_tool_is_called_from_the_next_request_on(bench: Bench, name: str) -> None:
    forecast = ModelCall(name="get_forecast", arguments={"city": "Paris"})
    bench.server.reset(
        model=ScriptedModel(
            [searching("weather", 1), searching("weather", 5), calling(forecast), say("Sunny.")]
        )
    )
    runner = await bench.runner(name, tools=prepared(), config=SETTINGS.session_config())
    events = await turn(runner)
    assert isinstance(events[-1], Done)
    assert bench.ran == [("get_forecast", {"city": "Paris"})]
    found = [event.names for event in named(events, ToolsDiscovered)]
    assert found == [("get_radar",), ("get_forecast",)]
    session = runner.session()
    assert session is not None
    assert_paired(session.history)


async def test_the_history_has_oh_my_pis_compact_answer(bench: Bench) -> None:
    """And what OpenAI's models read is that, byte for byte."""
    bench.server.reset(model=ScriptedModel([searching("forecast", 1), say("Done.")]))
    runner = await bench.runner("gpt", tools=prepared(), config=SETTINGS.session_config())
    await turn(runner)
    session = runner.session()
    assert session is not None
    (answer,) = results(session.history)
    assert json.loads(answer.text) == {
        "query": "forecast",
        "activated_tools": ["get_forecast"],
        "match_count": 1,
        "total_tools": 3,
    }
    sent = bench.requests[-1].body["messages"]
    assert [message["content"] for message in sent if message["role"] == "tool"] == [answer.text]
    declared = [entry["function"]["name"] for entry in bench.requests[0].body["tools"]]
    assert declared == ["read", SEARCH_TOOL_NAME]


async def test_an_error_is_a_result_and_no_end(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([searching("?!", 1), say("Sorry.")]))
    runner = await bench.runner("gpt", tools=prepared(), config=SETTINGS.session_config())
    events = await turn(runner)
    (finished,) = named(events, ToolFinished)
    assert finished.is_error
    assert json.loads(finished.content)["error"] == (
        "Query must contain at least one letter or number."
    )


async def test_selections_outlive_a_swap_of_the_provider(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([searching("forecast", 1), say("Found.")]))
    runner = await bench.runner("claude", "gpt", tools=prepared(), config=SETTINGS.session_config())
    await turn(runner)
    runner.use("gpt")
    bench.server.reset(model=ScriptedModel([say("Here.")]))
    await turn(runner)
    declared = [entry["function"]["name"] for entry in bench.requests[-1].body["tools"]]
    assert declared == ["read", SEARCH_TOOL_NAME, "get_forecast"]


async def test_auto_below_its_threshold_declares_everything(bench: Bench) -> None:
    settings = DiscoverySettings()
    bench.server.reset(model=ScriptedModel([say("Hello.")]))
    runner = await bench.runner("gpt", tools=prepared(settings), config=settings.session_config())
    await turn(runner)
    declared = {entry["function"]["name"] for entry in bench.requests[0].body["tools"]}
    assert declared == {tool.name for tool in TOOLS}
