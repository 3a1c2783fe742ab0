"""`skills_like`: names first, then the definitions of what the model picked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runner.bench import (
    FORECAST,
    Bench,
    assert_paired,
    call,
    calling,
    kinds,
    named,
    say,
    some_tools,
    turn,
)
from tool_search import (
    Done,
    ProviderSwitched,
    RunnerWarning,
    TextDelta,
    ToolSearchConfig,
    ToolSearchRunner,
)
from tool_search.testing import CapturedRequest, Fault, ModelCall, ScriptedModel

BOTH = pytest.mark.parametrize("name", ["claude", "gpt"])
SKILLS = ToolSearchConfig(tool_schema_mode="skills_like")
PICK = calling(ModelCall(name="get_forecast"), text="I shall look.")
ANSWER = say("Sunny.")


def _schemas(request: CapturedRequest) -> dict[str, Any]:
    """The properties of each declared tool."""
    entries = (entry.get("function", entry) for entry in request.body.get("tools") or ())
    return {
        entry["name"]: (entry.get("input_schema") or entry.get("parameters") or {}).get(
            "properties"
        )
        for entry in entries
    }


def _said(runner: ToolSearchRunner) -> list[str]:
    session = runner.session()
    assert session is not None
    assert_paired(session.history)
    return [message.text for message in session.history if message.role == "assistant"]


@BOTH
async def test_phase_one_shows_names_and_phase_two_what_was_picked(bench: Bench, name: str) -> None:
    bench.server.reset(model=ScriptedModel([PICK, calling(FORECAST), ANSWER]))
    runner = await bench.runner(name, config=SKILLS)
    await turn(runner, "Weather in Paris?")
    first, second = map(_schemas, bench.requests[:2])
    assert set(first) == {item.name for item in some_tools()}
    assert not any(first.values())
    assert second == {"get_forecast": {"city": {"type": "string"}}}
    assert bench.ran == [("get_forecast", {"city": "Paris"})]


@BOTH
async def test_history_has_the_reply_of_phase_two_alone(bench: Bench, name: str) -> None:
    script = [PICK, calling(FORECAST, text="Looking."), ANSWER]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner(name, config=SKILLS)
    events = await turn(runner, "Weather in Paris?")
    assert _said(runner) == ["Looking.", "Sunny."]
    assert "".join(event.text for event in named(events, TextDelta)) == "Looking.Sunny."
    assert kinds(events) == ["ToolCallStarted", "ToolFinished", "Done"]


@BOTH
async def test_answer_in_phase_one_is_the_answer(bench: Bench, name: str) -> None:
    bench.server.reset(model=ScriptedModel([say("Hello to you.")]))
    events = await turn(await bench.runner(name, config=SKILLS))
    assert "".join(event.text for event in named(events, TextDelta)) == "Hello to you."
    assert named(events, Done)[0].answer == "Hello to you."
    assert named(events, Done)[0].steps == 1


@BOTH
async def test_answer_in_phase_two_is_the_answer(bench: Bench, name: str) -> None:
    """The model thought better of it: no tool is run."""
    bench.server.reset(model=ScriptedModel([PICK, say("I know it already.")]))
    runner = await bench.runner(name, config=SKILLS)
    events = await turn(runner)
    assert named(events, Done)[0].answer == "I know it already."
    assert _said(runner) == ["I know it already."]
    assert bench.ran == []


@BOTH
async def test_usage_counts_both_phases(bench: Bench, name: str) -> None:
    """What was asked was paid for."""
    bench.server.reset(model=ScriptedModel([say("Hi."), PICK, say("Hi.")]))
    runner = await bench.runner(name, config=SKILLS)
    one = named(await turn(runner, conversation="a"), Done)[0]
    two = named(await turn(runner, conversation="b"), Done)[0]
    assert two.steps == 2
    assert two.usage.input_tokens > one.usage.input_tokens


@BOTH
async def test_several_picks_come_in_one_phase_two(bench: Bench, name: str) -> None:
    picks = calling(call("send_mail"), call("get_forecast"), call("send_mail"))
    bench.server.reset(model=ScriptedModel([picks, ANSWER]))
    await turn(await bench.runner(name, config=SKILLS))
    assert list(_schemas(bench.requests[1])) == ["send_mail", "get_forecast"]


@BOTH
async def test_invented_pick_is_answered_as_a_call(bench: Bench, name: str) -> None:
    """There is no definition to show: the model is told that there is no such tool."""
    bench.server.reset(model=ScriptedModel([calling(call("get_forecst")), ANSWER]))
    runner = await bench.runner(name, config=SKILLS)
    await turn(runner)
    session = runner.session()
    assert session is not None
    result = next(message for message in session.history if message.role == "tool")
    assert "get_forecast" in result.text
    assert "send_mail" not in result.text
    assert len(bench.requests) == 2


@pytest.mark.parametrize("names", [("claude", "gpt"), ("gpt", "claude")], ids="-".join)
async def test_fallback_in_phase_two_repeats_the_phase(
    bench: Bench, names: tuple[str, str]
) -> None:
    script = [PICK, calling(FORECAST), ANSWER]
    bench.server.reset(model=ScriptedModel(script))
    dialect = "anthropic" if names[0] == "claude" else "openai_chat"
    bench.server.faults.add(Fault(dialect=dialect, status=529, skip=1))
    runner = await bench.runner(*names, config=SKILLS)
    events = await turn(runner, "Weather in Paris?")
    assert [request.status for request in bench.requests] == [200, 529, 200, 200]
    assert list(_schemas(bench.requests[2])) == ["get_forecast"]
    assert named(events, ProviderSwitched)[0].to_provider == names[1]
    assert bench.ran == [("get_forecast", {"city": "Paris"})]


@pytest.mark.parametrize("names", [("claude", "gpt"), ("gpt", "claude")], ids="-".join)
async def test_fallback_in_phase_one_shows_nothing_of_the_first(
    bench: Bench, names: tuple[str, str]
) -> None:
    first, second = say("One two three four five six."), say("Afresh and whole.")
    bench.server.reset(model=ScriptedModel([first, second]))
    dialect = "anthropic" if names[0] == "claude" else "openai_chat"
    bench.server.faults.add(Fault(dialect=dialect, broken=True, after_events=3))
    events = await turn(await bench.runner(*names, config=SKILLS))
    assert "".join(event.text for event in named(events, TextDelta)) == "Afresh and whole."
    assert named(events, ProviderSwitched)[0].discarded_text == ""


@BOTH
async def test_max_steps_ends_in_an_answer_without_tools(bench: Bench, name: str) -> None:
    bench.server.reset(model=ScriptedModel([PICK, calling(FORECAST), say("That is all.")]))
    events = await turn(await bench.runner(name, config=SKILLS, max_steps=1))
    assert named(events, Done)[0].answer == "That is all."
    choice = bench.requests[-1].body["tool_choice"]
    assert choice == ({"type": "none"} if name == "claude" else "none")


async def test_bound_thinking_gets_tool_search_instead(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([say("Hi.")]))
    runner = await bench.runner("bound", config=SKILLS)
    events = await turn(runner)
    assert [event.code for event in named(events, RunnerWarning)] == ["mode_changed"]
    session = runner.session()
    assert session is not None
    assert session.decision.mode == "tool_search"
    assert "tool_search" in bench.requests[0].tool_names


async def test_swap_in_skills_like_keeps_the_history_valid(bench: Bench) -> None:
    """Calls of one dialect are told in the other, though their tools are not declared."""
    script = [PICK, calling(FORECAST), ANSWER, calling(call("get_time")), say("Noon."), ANSWER]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner(config=SKILLS)
    await turn(runner, "Weather in Paris?")
    runner.use("gpt")
    await turn(runner, "And the time?")
    runner.use("claude")
    assert named(await turn(runner, "Well?"), Done)[0].answer == "Sunny."
