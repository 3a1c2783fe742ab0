"""Services whose streams leave something out: five turns with a search, a call and a swap."""

from __future__ import annotations

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
from tool_search import Done, ProviderSwitched, RunnerWarning, ToolFinished
from tool_search.testing import Fault, ScriptedModel

SCRIPT = [
    say("One."),
    search("weather"),
    calling(FORECAST),
    say("Two."),
    calling(FORECAST),
    say("Three."),
    say("Four."),
    calling(FORECAST),
    say("Five."),
]
ANSWERS = ["One.", "Two.", "Three.", "Four.", "Five."]


@pytest.mark.parametrize(
    ("name", "other", "fault"),
    [
        ("gpt", "claude", Fault(dialect="openai_chat", leaves_out="finish_reason", times=None)),
        (
            "responses",
            "gpt",
            Fault(dialect="openai_responses", leaves_out="output_index", times=None),
        ),
    ],
    ids=["no finish_reason", "no output_index"],
)
async def test_conversation_goes_on_as_if_nothing_was_missing(
    bench: Bench, name: str, other: str, fault: Fault
) -> None:
    bench.server.reset(model=ScriptedModel(SCRIPT))
    bench.server.faults.add(fault)
    runner = await bench.runner(name, other)
    events = [await turn(runner, "1")]
    events.append(await turn(runner, "2"))
    runner.use(other)
    events.append(await turn(runner, "3"))
    runner.use(name)
    events += [await turn(runner, "4"), await turn(runner, "5")]
    assert [named(one, Done)[0].answer for one in events] == ANSWERS
    assert {named(one, Done)[0].stop_reason for one in events} == {"answer"}
    assert [warning for one in events for warning in named(one, RunnerWarning)] == []
    assert bench.ran == [("get_forecast", {"city": "Paris"})] * 3
    swaps = [swap.cause for one in events for swap in named(one, ProviderSwitched)]
    assert swaps == ["requested"] * 2
    session = runner.session()
    assert session is not None
    assert_paired(session.history)


async def test_call_of_a_block_without_its_end_is_not_run(bench: Bench) -> None:
    script = [calling(FORECAST), calling(FORECAST), say("Sunny.")]
    bench.server.reset(model=ScriptedModel([search("weather"), *script]))
    bench.server.faults.add(Fault(skip=1, leaves_out="content_block_stop"))
    events = await turn(await bench.runner("claude"))
    _, cut, again = named(events, ToolFinished)
    assert (cut.is_error, again.is_error) == (True, False)
    assert "cut off" in cut.content
    assert len(bench.ran) == 1
    assert [warning.code for warning in named(events, RunnerWarning)] == ["reply_cut"]
