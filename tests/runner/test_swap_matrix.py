"""Swaps between every two kinds of provider, whatever the history holds by then.

After each the next request is valid by the rules of its service, and what was found is
called without another search.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from tests.runner.bench import (
    FORECAST,
    Bench,
    assert_paired,
    call,
    calling,
    say,
    search,
    some_tools,
    tool,
    turn,
)
from tests.runner.kinds import KINDS, forecast, provider
from tool_search import ExecutableTool, Message, ToolSearchRunner
from tool_search.adapters.anthropic import history as anthropic_history
from tool_search.adapters.openai_responses import history as openai_responses_history
from tool_search.testing import Fault, ModelReply, ScriptedModel
from tool_search.testing.models.scripted import Step

FIRST = pytest.mark.parametrize("first", KINDS)
FOUND = search("weather")


def thinking(reply: ModelReply) -> ModelReply:
    """The reply with thoughts before it."""
    return ModelReply(text=reply.text, calls=reply.calls, thinking="What do I need?")


async def breaks(to: str) -> str:
    """A tool that fails."""
    raise OSError(f"no route to {to}")


BROKEN = ExecutableTool(tool=tool("broken", "A broken thing.", "to"), function=breaks)
SPOKEN: dict[str, Sequence[Step]] = {
    "parallel calls": [
        calling(*FOUND.calls, call("tool_search", {"query": "mail"}), call("get_time")),
        calling(call("get_forecast", {"city": "Rome"}), call("send_mail", {"to": "Ann"})),
        say("1"),
    ],
    "failed calls": [
        search("weather", "broken"),
        calling(call("get_forecast", {"town": 1}), call("get_forecast", "{"),
                call("no_such_tool"), call("broken", {"to": "x"})),
        say("1"),
    ],
    "thinking": [thinking(FOUND), thinking(calling(call("get_time"))), thinking(say("1"))],
}  # fmt: skip


async def pairs(
    bench: Bench, first: str, script: Sequence[Step], *, middle: Fault | None = None
) -> AsyncIterator[tuple[ToolSearchRunner, str]]:
    """A fresh bot of the first kind and each other, and what to call the pair in an error.

    What comes after it is checked when the next pair is asked for: each turn of the
    script's end has called the forecast, and nothing was refused.
    """
    made = {kind: await provider(bench, kind) for kind in KINDS}
    wanted = sum(step is forecast for step in script)
    for second in made.keys() - {first}:
        bench.server.reset(model=ScriptedModel(script))
        bench.ran.clear()
        if middle is not None:
            bench.server.faults.add(middle)
        ids = {"one": made[first], "two": made[second]}
        runner = await bench.runner(providers=ids, tools=[*some_tools(), BROKEN])
        yield runner, second
        assert not bench.server.violations, (second, bench.server.violations)
        called = [ran for ran in bench.ran if ran[1] == FORECAST.arguments]
        assert len(called) == wanted, (second, bench.ran)
        assert_paired(history(runner))


def history(runner: ToolSearchRunner) -> Sequence[Message]:
    """The neutral history of the conversation."""
    session = runner.session()
    assert session is not None
    return session.history


async def ask(runner: ToolSearchRunner, *names: str) -> None:
    """A turn with each of these providers."""
    for name in names:
        runner.use(name)
        await turn(runner, f"And with {name}?")


@FIRST
@pytest.mark.parametrize("what", SPOKEN)
async def test_swap_after(bench: Bench, first: str, what: str) -> None:
    script: list[Step] = [*SPOKEN[what], forecast, say("2")]
    async for runner, _ in pairs(bench, first, script):
        await ask(runner, "one", "two")


@FIRST
@pytest.mark.parametrize("kept", [0, 3])
async def test_swap_after_a_compaction(bench: Bench, first: str, kept: int) -> None:
    script: list[Step] = [FOUND, forecast, say("1"), forecast, say("2")]
    async for runner, _ in pairs(bench, first, script):
        await ask(runner, "one")
        said = history(runner)
        session = runner.session()
        assert session is not None
        session.adopt_history(said[len(said) - kept :])
        await ask(runner, "two")


@FIRST
async def test_swap_in_the_middle_of_a_tool_exchange(bench: Bench, first: str) -> None:
    """The first fails when it is to read the results; the other reads them, and goes on."""
    script: list[Step] = [FOUND, forecast, say("1"), forecast, say("2")]
    fault = Fault(status=500, skip=1)
    async for runner, second in pairs(bench, first, script, middle=fault):
        await turn(runner, "Weather in Paris?")
        assert [status for _, status in bench.asked][:3] == [200, 500, 200], second
        await ask(runner, "one")


CLAUDES_OWN = anthropic_history.history_from_wire(
    [
        {"role": "user", "content": "Weather in Rome?"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I'll search."},
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25",
                 "input": {"query": "weather"}},
                {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1",
                 "content": {"type": "tool_search_tool_search_result", "tool_references": [
                     {"type": "tool_reference", "tool_name": "get_forecast"}]}},
                {"type": "tool_use", "id": "toolu_1", "name": "get_forecast",
                 "input": {"city": "Rome"}},
            ],
        },
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Sunny."}]},
        {"role": "assistant", "content": "It is sunny."},
    ]
)  # fmt: skip
OPENAIS_OWN = openai_responses_history.history_from_wire(
    [
        {"role": "user", "content": "Weather in Rome?"},
        {"type": "tool_search_call", "id": "tsc_1", "call_id": None, "execution": "server",
         "status": "completed", "arguments": {"paths": ["get_forecast"]}},
        {"type": "tool_search_output", "id": "tso_1", "call_id": None, "execution": "server",
         "status": "completed", "tools": [{"type": "function", "name": "get_forecast",
                                           "parameters": {}, "defer_loading": True}]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get_forecast",
         "namespace": "get_forecast", "arguments": '{"city": "Rome"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "Sunny."},
        {"role": "assistant", "content": "It is sunny."},
    ]
)  # fmt: skip


@FIRST
async def test_swap_with_searches_of_services_in_an_imported_history(
    bench: Bench, first: str
) -> None:
    script: list[Step] = [say("1"), forecast, say("2"), forecast, say("3")]
    async for runner, _ in pairs(bench, first, script):
        await turn(runner, "Hello")
        session = runner.session()
        assert session is not None
        session.adopt_history((*CLAUDES_OWN, *OPENAIS_OWN))
        await ask(runner, "one", "two")
