"""The end of a turn: one word for one meaning, whoever answered."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.runner.bench import (
    Bench,
    assert_paired,
    call,
    calling,
    kinds,
    named,
    results,
    say,
    search,
    turn,
)
from tool_search import Done, RunnerEvent, RunnerWarning, ToolFinished
from tool_search.i18n import text
from tool_search.testing import Fault, ModelCall, ModelReply, ScriptedModel

ALL = pytest.mark.parametrize("name", ["claude", "gpt", "responses"])
LENGTH = {"claude": "max_tokens", "gpt": "length", "responses": "max_output_tokens"}
FILTER = {"claude": "refusal", "gpt": "content_filter", "responses": "content_filter"}
REFUSAL = {**FILTER, "responses": "refusal"}


def codes(events: list[RunnerEvent]) -> list[str]:
    """The codes of the warnings."""
    return [event.code for event in named(events, RunnerWarning)]


def done(events: list[RunnerEvent]) -> Done:
    """The turn's end."""
    assert isinstance(events[-1], Done)
    return events[-1]


@ALL
async def test_complete_answer_ends_with_answer(bench: Bench, name: str) -> None:
    bench.server.reset(model=ScriptedModel([calling(call("get_time")), say("Noon.")]))
    events = await turn(await bench.runner(name))
    assert (done(events).stop_reason, codes(events)) == ("answer", [])


@ALL
async def test_cut_answer_ends_with_length_and_a_warning(bench: Bench, name: str) -> None:
    cut = ModelReply(text="Once upon a", stop_reason=LENGTH[name])
    bench.server.reset(model=ScriptedModel([cut]))
    events = await turn(await bench.runner(name))
    assert (done(events).stop_reason, done(events).answer) == ("length", "Once upon a")
    assert codes(events) == ["reply_cut"]


@pytest.mark.parametrize(
    ("name", "word"), [*FILTER.items(), ("responses", "refusal")], ids=lambda value: value
)
async def test_refused_answer_ends_with_refusal_and_a_warning(
    bench: Bench, name: str, word: str
) -> None:
    """A model's own refusal and a filter of the service alike; the conversation goes on."""
    script = [ModelReply(text="I cannot.", stop_reason=word), say("Gladly.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner(name)
    events = await turn(runner)
    assert (done(events).stop_reason, done(events).answer) == ("refusal", "I cannot.")
    assert codes(events) == ["reply_refused"]
    assert done(await turn(runner)).stop_reason == "answer"


@pytest.mark.parametrize(("name", "word"), FILTER.items(), ids=lambda value: value)
async def test_refusal_without_text_is_said_in_words(bench: Bench, name: str, word: str) -> None:
    bench.server.reset(model=ScriptedModel([ModelReply(stop_reason=word)]))
    events = await turn(await bench.runner(name), "Привет")
    assert done(events).answer == text("answer.refused", "ru-RU")
    assert codes(events) == ["reply_refused"]


@pytest.mark.parametrize(("name", "word"), FILTER.items(), ids=lambda value: value)
async def test_calls_of_a_refused_reply_are_not_run(bench: Bench, name: str, word: str) -> None:
    refused = ModelReply(text="No.", calls=(call("get_time"),), stop_reason=word)
    bench.server.reset(model=ScriptedModel([refused, say("Hello again.")]))
    runner = await bench.runner(name)
    assert done(await turn(runner)).stop_reason == "refusal"
    assert bench.ran == []
    assert done(await turn(runner)).answer == "Hello again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A last call that the reply's end has cut, and whether that is to be seen."""

    call: ModelCall
    is_run: bool = False


CUTS = {
    "in its arguments": Cut(call=call("get_time", '{"zone": "Eur')),
    "before its arguments": Cut(call=ModelCall(name="get_time", arguments="", hidden=True)),
    "at its very end": Cut(call=call("get_time", '{"zone": "UTC"}'), is_run=True),
}


@ALL
@pytest.mark.parametrize("case", CUTS.values(), ids=CUTS.keys())
async def test_cut_call_is_never_run(bench: Bench, name: str, case: Cut) -> None:
    first = ModelReply(
        text="Let me see.", calls=(call("get_time"), case.call), stop_reason=LENGTH[name]
    )
    again = calling(call("get_time", {"zone": "UTC"}))
    bench.server.reset(model=ScriptedModel([first, again, say("Noon.")]))
    runner = await bench.runner(name)
    events = await turn(runner)
    whole, cut, repeated = named(events, ToolFinished)
    assert not whole.is_error
    assert not repeated.is_error
    assert cut.is_error is not case.is_run
    assert ("cut off" in cut.content) is not case.is_run
    assert len(bench.ran) == 3 if case.is_run else 2
    assert codes(events) == ["reply_cut"]
    assert done(events).stop_reason == "answer"
    session = runner.session()
    assert session is not None
    assert_paired(session.history)


async def test_cut_call_of_a_reply_in_one_piece_is_never_run(bench: Bench) -> None:
    """Claude's service shows it with the arguments that it could read: maybe none."""
    first = ModelReply(calls=(call("get_time", "{}"),), stop_reason="max_tokens")
    bench.server.reset(model=ScriptedModel([first, say("Sorry.")]))
    provider = await bench.provider("claude", extra_body={"stream": False})
    runner = await bench.runner(providers={"claude": provider})
    events = await turn(runner)
    assert "cut off" in named(events, ToolFinished)[0].content
    assert bench.ran == []


@ALL
async def test_answer_after_the_last_step_ends_with_max_steps(bench: Bench, name: str) -> None:
    bench.server.reset(model=ScriptedModel([search("weather"), say("Sunny, I think.")]))
    events = await turn(await bench.runner(name, max_steps=1))
    assert done(events).stop_reason == "max_steps"


@ALL
async def test_unknown_reason_ends_with_other(bench: Bench, name: str) -> None:
    """A word that nobody has heard of is none of the known ones."""
    bench.server.reset(model=ScriptedModel([ModelReply(text="Hm.", stop_reason="new_word")]))
    assert done(await turn(await bench.runner(name))).stop_reason == "other"


async def test_paused_reply_is_sent_back_and_goes_on(bench: Bench) -> None:
    """The service's own tools had used up their rounds; the answer is the whole text."""
    paused = ModelReply(text="I have looked, ", thinking="Hm.", stop_reason="pause_turn")
    bench.server.reset(model=ScriptedModel([paused, say("and it is sunny.")]))
    events = await turn(await bench.runner("claude"))
    assert done(events).answer == "I have looked, and it is sunny."
    assert (done(events).stop_reason, done(events).steps) == ("answer", 2)
    sent = bench.requests[1].body["messages"]
    assert sent[-1]["role"] == "assistant"
    assert [block["type"] for block in sent[-1]["content"]] == ["thinking", "text"]


async def test_reply_that_stays_paused_ends_after_the_last_step(bench: Bench) -> None:
    """It is asked for an answer then, like one that wants more calls."""
    paused = ModelReply(text="Wait. ", stop_reason="pause_turn")
    bench.server.reset(model=ScriptedModel([paused, paused, say("Done.")]))
    events = await turn(await bench.runner("claude", max_steps=2))
    assert (done(events).stop_reason, done(events).answer) == ("max_steps", "Wait. Wait. Done.")


@pytest.mark.parametrize("word", ["insufficient_system_resource", "network_error", "error"])
async def test_failure_named_as_a_reason_goes_to_the_next_provider(bench: Bench, word: str) -> None:
    script = [ModelReply(text="Half an ans", stop_reason=word), say("A whole answer.")]
    bench.server.reset(model=ScriptedModel(script))
    events = await turn(await bench.runner("gpt", "claude"))
    assert kinds(events) == ["ProviderSwitched", "Done"]
    assert done(events).answer == "A whole answer."


async def test_cut_by_a_fault_of_the_wire_is_told_in_the_language_of_the_chat(
    bench: Bench,
) -> None:
    script = [calling(call("get_time", {"zone": "UTC"})), say("好的。")]
    script[0] = ModelReply(calls=script[0].calls, stop_reason="length")
    bench.server.reset(model=ScriptedModel(script))
    bench.server.faults.add(Fault(arguments="cut"))
    runner = await bench.runner("gpt")
    await turn(runner, "现在几点？")
    session = runner.session()
    assert session is not None
    assert results(session.history)[0].text == text("call.incomplete", "zh-CN", name="get_time")
