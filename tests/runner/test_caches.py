"""Prompt caches: breakpoints wherever they are taken, and lists that never change."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runner.bench import FORECAST, Bench, call, calling, named, say, search, turn
from tool_search import ProviderSwitched, RunnerWarning
from tool_search.testing import Endpoint, ScriptedModel


async def test_compatible_endpoint_is_sent_breakpoints(bench: Bench) -> None:
    """On the list, the system text and the last messages: at most four."""
    bench.server.reset(model=ScriptedModel([search("weather"), calling(FORECAST), say("Sunny.")]))
    runner = await bench.runner("glm")
    await turn(runner, "Weather in Paris?")
    marks = [request.raw_body.count(b'"cache_control"') for request in bench.requests]
    assert marks[0] == 3
    assert set(marks[1:]) == {4}


async def test_endpoint_that_refuses_breakpoints_is_sent_none(bench: Bench) -> None:
    """The same request once more, with a warning; remembered for every conversation."""
    bench.may_refuse = True
    plain = Endpoint(supports_cache_control=False)
    bench.server.reset(model=ScriptedModel([say("Hi.")] * 3), endpoint=plain)
    runner = await bench.runner("glm")
    events = await turn(runner)
    assert [event.code for event in named(events, RunnerWarning)] == ["cache_marks_refused"]
    assert named(events, ProviderSwitched) == []
    await turn(runner)
    assert named(await turn(runner, conversation="another"), RunnerWarning) == []
    assert [status for _, status in bench.asked] == [400, 200, 200, 200]


async def test_endpoint_that_knows_neither_search_nor_breakpoints_gets_its_answer(
    bench: Bench,
) -> None:
    bench.may_refuse = True
    bare = Endpoint(supports_cache_control=False, supports_tool_search=False)
    bench.server.reset(model=ScriptedModel([say("Hi.")]), endpoint=bare)
    runner = await bench.runner("claude")
    warned = named(await turn(runner), RunnerWarning)
    assert [event.code for event in warned] == ["strategy_replaced", "cache_marks_refused"]


@pytest.mark.parametrize("name", ["glm", "gpt", "responses"])
async def test_bridge_declares_the_same_bytes_whatever_is_found(bench: Bench, name: str) -> None:
    """What is found is called through `call_tool`, and a direct call is taken too."""
    through = call("call_tool", {"name": "get_forecast", "arguments": {"city": "Paris"}})
    direct = call("get_forecast", {"city": "Paris"})
    script = [search("weather"), calling(through), say("1"), calling(direct), say("2")]
    bench.server.reset(model=ScriptedModel(script))
    settings: dict[str, Any] = {"strategy": "bridge"}
    runner = await bench.runner(providers={"one": await bench.provider(name, **settings)})
    await turn(runner, "Weather in Paris?")
    await turn(runner, "And now?")
    assert bench.ran == [("get_forecast", {"city": "Paris"})] * 2
    assert {request.tool_names for request in bench.requests} == {
        ("get_time", "tool_search", "call_tool")
    }
    assert len({request.tools_bytes for request in bench.requests}) == 1
