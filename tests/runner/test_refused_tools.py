"""A service that refuses a definition all the same: the bot does without that tool."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.runner.bench import (
    FORECAST,
    Bench,
    calling,
    many_tools,
    named,
    say,
    some_tools,
    turn,
)
from tests.runner.kinds import KINDS, forecast, provider
from tool_search import (
    Done,
    ProviderSwitched,
    RunnerWarning,
    Tool,
    ToolFinished,
    ToolSearchConfig,
)
from tool_search.testing import (
    Endpoint,
    ModelCall,
    ModelReply,
    ModelView,
    ScriptedModel,
    StandInServer,
)

ODD = Tool(name="odd_tool", description="An odd tool for weather.", always_load=True)
LATE = Tool(name="late_tool", description="Weather forecast by an odd tool.")
FULL = ToolSearchConfig(tool_schema_mode="full")
SEARCH = calling(ModelCall(name="tool_search", arguments={"query": "weather forecast"}))


def refusing(*names: str) -> Endpoint:
    return Endpoint(refused_tools=frozenset(names))


def warnings(events: list[Any]) -> list[str]:
    return [
        event.message for event in named(events, RunnerWarning) if event.code == "tool_set_aside"
    ]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_refused_tool_is_set_aside_and_the_others_stay(bench: Bench, kind: str) -> None:
    """Once: no later turn, and no other conversation, is refused for it."""
    bench.may_refuse = True
    bench.server.reset(
        model=ScriptedModel([SEARCH, forecast, say("Sunny.")] * 3), endpoint=refusing("odd_tool")
    )
    runner = await bench.runner(
        tools=[*some_tools(), ODD], providers={kind: await provider(bench, kind)}
    )
    events = await turn(runner, "Weather?", conversation="a")
    (said,) = warnings(events)
    assert said.startswith("'odd_tool' set aside for ")
    assert "HTTP 400" in said
    for conversation in ("a", "b"):
        again = await turn(runner, "And now?", conversation=conversation)
        assert named(again, Done)[0].answer == "Sunny."
        assert not warnings(again)
    assert [status for _, status in bench.asked].count(400) == 1
    assert bench.ran == [("get_forecast", FORECAST.arguments)] * 3


@pytest.mark.parametrize("kind", ["claude", "responses", "gpt", "gpt-kimi"])
async def test_a_tool_that_is_refused_when_it_is_found_is_no_hit_any_more(
    bench: Bench, kind: str
) -> None:
    """References to it in the history are left out, and a call of it is explained."""

    def call_it(_: ModelView) -> ModelReply:
        return ModelReply(calls=(ModelCall(name="late_tool", arguments={}, hidden=True),))

    bench.may_refuse = True
    bench.server.reset(
        model=ScriptedModel([SEARCH, call_it, SEARCH, say("Sunny.")] * 2),
        endpoint=refusing("late_tool"),
    )
    runner = await bench.runner(
        tools=[*some_tools(), LATE], providers={kind: await provider(bench, kind)}
    )
    events = await turn(runner, "Weather?")
    assert len(warnings(events)) == 1
    called, found = named(events, ToolFinished)[-2:]
    assert "late_tool cannot be used with the current model" in called.content
    assert "late_tool" not in found.content
    assert named(events, Done)[0].answer == "Sunny."
    assert b'"name":"late_tool","description"' not in bench.requests[-1].raw_body
    assert b'"tool_name":"late_tool"' not in bench.requests[-1].raw_body


async def test_another_provider_has_the_tool_still(bench: Bench) -> None:
    """It is the endpoint that refuses it; a history with its calls goes everywhere."""

    def call_it(_: ModelView) -> ModelReply:
        return ModelReply(calls=(ModelCall(name="late_tool", arguments={}),))

    bench.may_refuse = True
    bench.server.reset(model=ScriptedModel([SEARCH, call_it, say("A.")]))
    kinds = ("gpt", "claude", "responses")
    runner = await bench.runner(
        tools=[*some_tools(), LATE],
        providers={kind: await provider(bench, kind) for kind in kinds},
    )
    await turn(runner, "Weather?")
    for kind in ("claude", "responses"):
        bench.server.reset(model=ScriptedModel([say("B.")]), endpoint=refusing("late_tool"))
        runner.use(kind)
        events = await turn(runner, "And now?")
        assert (len(warnings(events)), named(events, Done)[0].answer) == (1, "B.")
    bench.server.reset(model=ScriptedModel([call_it, say("C.")]), endpoint=Endpoint())
    runner.use("gpt")
    assert named(await turn(runner, "Again."), Done)[0].answer == "C."
    assert bench.ran == [("late_tool", {})] * 2


@pytest.mark.parametrize("name", ["claude", "gpt", "responses"])
async def test_an_endpoint_that_refuses_every_tool_is_asked_without_any_after_eight(
    bench: Bench, name: str
) -> None:
    """Each turn has its answer; what was learned is kept for the next turn."""
    bench.may_refuse = True
    tools = many_tools(40)
    bench.server.reset(
        model=ScriptedModel([say("Never.")] * 5), endpoint=refusing(*(tool.name for tool in tools))
    )
    runner = await bench.runner(name, tools=tools, config=FULL)
    for count, notices in ((8, 1), (8, 0), (8, 0), (6, 0), (0, 0)):
        events = [event async for event in runner.run("Hello")]
        codes = [event.code for event in events if isinstance(event, RunnerWarning)]
        assert codes.count("tool_set_aside") == count
        assert codes.count("form_refused") == notices
        assert isinstance(events[-1], Done)


async def test_the_next_provider_takes_over_from_one_that_refuses_every_tool(
    bench: Bench,
) -> None:
    bench.may_refuse = True
    tools = many_tools(40)
    bench.server.reset(
        model=ScriptedModel([say("Here.")]), endpoint=refusing(*(tool.name for tool in tools))
    )
    with StandInServer(model=ScriptedModel([say("There.")])) as other:
        providers = {
            "gpt": await bench.provider("gpt"),
            "glm": await bench.provider("glm", server=other),
        }
        runner = await bench.runner(providers=providers, tools=tools, config=FULL)
        events = await turn(runner)
    assert named(events, Done)[0].answer == "There."
    assert [event.to_provider for event in named(events, ProviderSwitched)] == ["glm"]


async def test_a_tool_that_a_profile_sets_aside_is_never_declared(bench: Bench) -> None:
    """What an operator has read in a warning can be configured: no request is refused."""
    bench.server.reset(model=ScriptedModel([say("Hi.")]), endpoint=refusing("odd_tool"))
    gpt = await bench.provider("gpt")
    gpt.profile = replace(gpt.profile, set_aside=frozenset({"odd_tool"}))
    runner = await bench.runner(providers={"gpt": gpt}, tools=[*some_tools(), ODD])
    events = await turn(runner)
    assert not warnings(events)
    listed = [tool["function"]["name"] for tool in bench.requests[-1].body["tools"]]
    assert listed == ["get_time", "tool_search"]
