"""Each row of the design's table of answers, in the words of OpenAI Responses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runner.bench import (
    FORECAST,
    Bench,
    assert_paired,
    calling,
    named,
    say,
    search,
    turn,
)
from tool_search import Done, ProviderSwitched, RunnerWarning
from tool_search.testing import Fault, ScriptedModel

SCRIPT = [search("weather"), calling(FORECAST), say("Sunny."), say("You are welcome.")]
ROWS = {
    "no tool search": (
        "Tool 'tool_search' is not supported with gpt-5.5.",
        400,
        "strategy_replaced",
    ),
    "no such tool type": (
        "Invalid value: 'tool_search'. Supported values are: 'function' and 'custom'.",
        400,
        "strategy_replaced",
    ),
    "no such item": (
        "Invalid value: 'tool_search_call'. Supported values are: 'message', 'function_call'.",
        400,
        "strategy_replaced",
    ),
    "a wrong namespace": (
        (
            "Missing namespace for function_call 'get_forecast'. It does not exist in the "
            "default namespace. Round-trip the model's function_call item with its namespace "
            "field included."
        ),
        400,
        "request_repaired",
    ),
    "an unknown item": (
        "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
        404,
        "request_repaired",
    ),
    "too many tools": (
        (
            "Invalid 'tools': array too long. Expected an array with maximum length 64, but got an "
            "array with length 90 instead."
        ),
        400,
        "rendered_within_limit",
    ),
    "a bad name": (
        (
            "Invalid 'tools[1].name': string does not match pattern. Expected a string that "
            "matches the pattern '^[a-zA-Z0-9_-]+$'."
        ),
        400,
        "rendered_within_limit",
    ),
}


@pytest.mark.parametrize(("message", "status", "code"), ROWS.values(), ids=ROWS.keys())
@pytest.mark.parametrize("skip", [0, 1, 2])
async def test_refused_request_is_sent_once_more_as_the_table_says(
    bench: Bench, message: str, status: int, code: str, skip: int
) -> None:
    bench.server.reset(model=ScriptedModel(SCRIPT))
    bench.server.faults.add(Fault(status=status, message=message, skip=skip))
    runner = await bench.runner("responses")
    events = await turn(runner, "Weather in Paris?")
    assert [event.code for event in named(events, RunnerWarning)] == [code]
    assert named(events, ProviderSwitched) == []
    assert named(events, Done)[0].answer == "Sunny."
    assert len(bench.requests) == 4
    after = await turn(runner, "Thanks.")
    assert named(after, RunnerWarning) == []
    session = runner.session()
    assert session is not None
    assert_paired(session.history)
    assert session.discoveries.names == ("get_forecast",)


async def test_endpoint_without_tool_search_has_a_filtered_list_from_then_on(
    bench: Bench,
) -> None:
    """It is remembered: the next turn asks nothing that was refused."""
    bench.server.reset(model=ScriptedModel(SCRIPT))
    bench.server.faults.add(Fault(status=400, message=ROWS["no tool search"][0]))
    runner = await bench.runner("responses")
    for text in ("Weather in Paris?", "Thanks."):
        await turn(runner, text)
    kinds = [{tool["type"] for tool in request.body["tools"]} for request in bench.requests]
    assert kinds == [{"tool_search", "function"}, *[{"function"}] * 4]
    assert bench.requests[-1].tool_names == ("get_time", "tool_search", "get_forecast")


@pytest.mark.parametrize(
    ("fault", "rests"),
    [
        ({"status": 400, "message": "Unsupported parameter: 'temperature'."}, False),
        ({"status": 400, "message": "No tool output found for function call call_1."}, False),
        ({"status": 429}, True),
        ({"status": 503}, True),
        ({"broken": True}, True),
        ({"broken": True, "after_events": "tool_call"}, True),
        ({"status": 500, "after_events": 4}, True),
    ],
)
async def test_any_other_failure_is_the_next_providers(
    bench: Bench, fault: dict[str, Any], rests: bool
) -> None:
    bench.server.reset(model=ScriptedModel([search("weather"), *[calling(FORECAST)] * 2, say("1")]))
    runner = await bench.runner("responses", "gpt")
    bench.server.faults.add(Fault(dialect="openai_responses", skip=1, times=None, **fault))
    events = await turn(runner, "Weather in Paris?")
    (switched,) = named(events, ProviderSwitched)
    assert (switched.from_provider, switched.to_provider) == ("responses", "gpt")
    assert named(events, Done)[0].provider == "gpt"
    assert bench.requests[2].tool_names == ("get_time", "tool_search", "get_forecast")
    bench.server.reset(model=ScriptedModel([say("2")]))
    (done,) = named(await turn(runner, "Thanks."), Done)
    assert done.provider == ("gpt" if rests else "responses")
