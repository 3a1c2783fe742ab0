"""What Responses alone has: tool search it may not know, replies it may have forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runner.bench import FORECAST, Bench, call, calling, named, say, search, turn
from tool_search import ProviderSwitched, RunnerWarning, ToolFinished
from tool_search.testing import Endpoint, Fault, ModelReply, ScriptedModel

SCRIPT: list[ModelReply] = [search("weather"), calling(FORECAST), say("Sunny."), say("Yes.")]
FORGOTTEN = [
    "Previous response with id 'resp_1' not found.",
    "The encrypted content gAAA could not be verified. Reason: it could not be decrypted.",
    "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
]


def codes(events: list[Any]) -> list[str]:
    """The codes of the warnings among the events."""
    return [event.code for event in named(events, RunnerWarning)]


@pytest.mark.parametrize("name", ["responses", "kept", "late"])
async def test_search_and_call_leave_the_list_as_it_was(bench: Bench, name: str) -> None:
    """What was found comes in the input; the list's bytes never change."""
    bench.server.reset(model=ScriptedModel([*SCRIPT, calling(FORECAST), say("Still.")]))
    runner = await bench.runner(name)
    events = await turn(runner, "Weather?")
    events += await turn(runner, "Sure?")
    events += await turn(runner, "And now?")
    assert [event.is_error for event in named(events, ToolFinished)] == [False] * 3
    assert codes(events) == []
    assert len({request.tools_bytes for request in bench.requests}) == 1
    assert len(bench.ran) == 2


@pytest.mark.parametrize("form", ["deferred", "hosted"])
async def test_declared_catalog_is_called_in_its_servers_namespace(bench: Bench, form: str) -> None:
    """Found by our search or by the service's, and found again by its name after a swap."""
    first = [search("weather")] if form == "deferred" else []
    forecast = calling(call("get_forecast", {"city": "Paris"}))
    script = [*first, forecast, say("1"), forecast, say("2"), say("3")]
    bench.server.reset(model=ScriptedModel(script))
    providers = {
        "responses": await bench.provider("responses", tool_search=form),
        "gpt": await bench.provider("gpt"),
    }
    runner = await bench.runner(providers=providers)
    await turn(runner, "Weather?")
    runner.use("gpt")
    await turn(runner, "Sure?")
    runner.use("responses")
    await turn(runner, "And now?")
    assert [name for name, _ in bench.ran] == ["get_forecast"] * 2
    body = bench.requests[-1].body
    assert {item.get("namespace") for item in body["input"]} == {None, "weather"}
    assert body["tools"] == bench.requests[0].body["tools"]
    assert {tool["name"] for tool in body["tools"] if tool["type"] == "namespace"} == {
        "weather", "mail",
    }  # fmt: skip


async def test_kept_replies_are_gone_on_from(bench: Bench) -> None:
    """Each request holds what is new, and nothing else."""
    bench.server.reset(model=ScriptedModel(SCRIPT))
    runner = await bench.runner("kept")
    await turn(runner, "Weather?")
    await turn(runner, "Sure?")
    bodies = [request.body for request in bench.requests]
    assert ["previous_response_id" in body for body in bodies] == [False, True, True, True]
    assert [len(body["input"]) for body in bodies] == [1, 1, 1, 1]


@pytest.mark.parametrize("message", FORGOTTEN)
async def test_replies_that_the_service_refuses_are_told_plainly(
    bench: Bench, message: str
) -> None:
    bench.server.reset(model=ScriptedModel(SCRIPT))
    runner = await bench.runner("kept")
    await turn(runner, "Weather?")
    bench.server.faults.add(Fault(dialect="openai_responses", status=400, message=message))
    events = await turn(runner, "Sure?")
    assert codes(events) == ["request_repaired"]
    assert not named(events, ProviderSwitched)
    body = bench.requests[-1].body
    assert "previous_response_id" not in body
    assert not any(item.get("type") == "reasoning" for item in body["input"])


async def test_endpoint_without_tool_search_gets_the_generic_strategy(bench: Bench) -> None:
    """The same request at once, and remembered for the next turn."""
    bench.may_refuse = True
    bench.server.reset(model=ScriptedModel(SCRIPT), endpoint=Endpoint(supports_tool_search=False))
    runner = await bench.runner("responses")
    events = await turn(runner, "Weather?")
    events += await turn(runner, "Sure?")
    assert codes(events) == ["strategy_replaced"]
    assert [request.status for request in bench.requests] == [400, 200, 200, 200, 200]
    assert "get_forecast" in bench.requests[-1].tool_names
    assert [event.is_error for event in named(events, ToolFinished)] == [False, False]


async def test_endpoint_that_loses_tool_search_in_a_conversation(bench: Bench) -> None:
    bench.may_refuse = True
    bench.server.reset(model=ScriptedModel(SCRIPT))
    runner = await bench.runner("responses")
    await turn(runner, "Weather?")
    bench.server.reset(
        model=ScriptedModel([say("Yes.")]), endpoint=Endpoint(supports_tool_search=False)
    )
    events = await turn(runner, "Sure?")
    assert codes(events) == ["strategy_replaced"]
    kinds = {item.get("type") for item in bench.requests[-1].body["input"]}
    assert not any(str(kind).startswith("tool_search") for kind in kinds)


async def test_tool_in_the_wrong_namespace_is_declared_plainly(bench: Bench) -> None:
    """A bug of ours, if it ever is one: the request is repaired."""
    bench.server.reset(model=ScriptedModel(SCRIPT))
    runner = await bench.runner("responses")
    await turn(runner, "Weather?")
    message = "Missing namespace for function_call 'get_forecast'. It does not exist."
    bench.server.faults.add(Fault(dialect="openai_responses", status=400, message=message))
    events = await turn(runner, "Sure?")
    assert "request_repaired" in codes(events)
    assert "get_forecast" in bench.requests[-1].tool_names


@pytest.mark.parametrize("to", ["claude", "gpt", "kept", "late", "glm"])
async def test_swap_in_the_middle_of_a_conversation_needs_no_search(bench: Bench, to: str) -> None:
    """There and back: what was found can be called at once."""
    script: list[ModelReply] = [
        *SCRIPT[:3],
        calling(FORECAST),
        say("1"),
        calling(FORECAST),
        say("2"),
    ]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner("responses", to)
    await turn(runner, "Weather?")
    runner.use(to)
    await turn(runner, "Sure?")
    runner.use("responses")
    await turn(runner, "Really?")
    assert [name for name, _ in bench.ran] == ["get_forecast"] * 3
