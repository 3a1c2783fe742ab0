"""One turn from the user's message to the answer, on both dialects."""

from __future__ import annotations

import json

import pytest

from tests.runner.bench import (
    FORECAST,
    SEARCHING,
    Bench,
    assert_paired,
    call,
    calling,
    kinds,
    many_tools,
    named,
    results,
    say,
    search,
    turn,
)
from tool_search import (
    Done,
    ExecutableTool,
    ImagePart,
    RunnerEvent,
    RunnerWarning,
    TextDelta,
    TextPart,
    Tool,
    ToolCallStarted,
    ToolContext,
    ToolFinished,
    ToolsDiscovered,
    ToolSearchConfig,
)
from tool_search.i18n import Language, text
from tool_search.testing import Fault, ModelReply, ScriptedModel

BOTH = pytest.mark.parametrize("name", ["claude", "gpt", "responses", "kept", "late"])
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@BOTH
async def test_answer_is_streamed_in_pieces_that_join_to_it(bench: Bench, name: str) -> None:
    answer = "A long answer of many words — 很长的回答, длинный ответ."
    bench.server.reset(model=ScriptedModel([say(answer)]))
    events = await turn(await bench.runner(name))
    deltas = [event.text for event in named(events, TextDelta)]
    assert len(deltas) > 1
    assert "".join(deltas) == answer
    assert isinstance(events[-1], Done)
    assert (events[-1].answer, events[-1].provider, events[-1].steps) == (answer, name, 1)


@BOTH
async def test_search_call_answer_come_in_order(bench: Bench, name: str) -> None:
    """A tool that was found is called by the next request, with no list of ours between."""
    bench.server.reset(model=ScriptedModel([search("weather"), calling(FORECAST), say("Sunny.")]))
    events = await turn(await bench.runner(name), "Weather in Paris?")
    search_events = ["ToolCallStarted", "ToolFinished", "ToolsDiscovered"]
    assert kinds(events) == [*search_events, "ToolCallStarted", "ToolFinished", "Done"]
    assert named(events, ToolsDiscovered)[0].names == ("get_forecast",)
    assert [event.tool for event in named(events, ToolCallStarted)] == [
        "tool_search",
        "get_forecast",
    ]
    assert bench.ran == [("get_forecast", {"city": "Paris"})]
    assert named(events, Done)[0].steps == 3


@BOTH
async def test_auto_mode_searches_a_large_catalog(bench: Bench, name: str) -> None:
    """More than the threshold of 25: what is not found is not shown."""
    bench.server.reset(model=ScriptedModel([say("Hi.")]))
    runner = await bench.runner(name, tools=many_tools(30), config=ToolSearchConfig())
    await turn(runner)
    session = runner.session()
    assert session is not None
    assert session.decision.mode == "tool_search"
    declared = bench.requests[0].body["tools"]
    assert len([entry for entry in declared if not entry.get("defer_loading")]) == 1


@BOTH
async def test_parallel_calls_with_a_search_among_them_are_all_answered(
    bench: Bench, name: str
) -> None:
    parallel = calling(call("get_time"), *search("weather").calls, call("get_time"))
    bench.server.reset(model=ScriptedModel([parallel, say("Done.")]))
    runner = await bench.runner(name)
    events = await turn(runner)
    finished = [event.tool for event in named(events, ToolFinished)]
    assert finished == ["get_time", "tool_search", "get_time"]
    session = runner.session()
    assert session is not None
    assert_paired(session.history)
    assert [ran for ran, _ in bench.ran] == ["get_time", "get_time"]


@BOTH
async def test_same_search_twice_in_a_reply_discovers_once(bench: Bench, name: str) -> None:
    bench.server.reset(model=ScriptedModel([search("weather", "weather"), say("Done.")]))
    events = await turn(await bench.runner(name))
    assert [event.names for event in named(events, ToolsDiscovered)] == [("get_forecast",)]
    second = json.loads(named(events, ToolFinished)[1].content)
    assert second["loaded"] == ["get_forecast"]


@BOTH
async def test_max_steps_asks_once_more_without_tools(bench: Bench, name: str) -> None:
    """Tools stay declared, because the history refers to them; their use is forbidden."""
    script = [search("weather"), calling(FORECAST), say("It is sunny, I think.")]
    bench.server.reset(model=ScriptedModel(script))
    events = await turn(await bench.runner(name, max_steps=2), "Weather in Paris?")
    assert len(bench.requests) == 3
    before, last = bench.requests[-2:]
    assert last.body["tool_choice"] == ({"type": "none"} if name == "claude" else "none")
    assert last.tools_bytes == before.tools_bytes
    assert last.status == 200
    assert named(events, Done)[0].answer == "It is sunny, I think."


@BOTH
async def test_max_steps_answer_without_text_is_replaced(bench: Bench, name: str) -> None:
    bench.server.reset(model=ScriptedModel([search("погода"), ModelReply()]))
    events = await turn(await bench.runner(name, max_steps=1), "Какая погода?")
    assert named(events, Done)[0].answer == text("answer.missing", "ru-RU")
    assert [event.code for event in named(events, RunnerWarning)] == ["answer_missing"]


@pytest.mark.parametrize(
    ("message", "language"),
    [("Hello", "en-US"), ("你好", "zh-CN"), ("Привет", "ru-RU")],
    ids=["en", "zh", "ru"],
)
@BOTH
async def test_empty_reply_gives_a_localized_answer_and_a_warning(
    bench: Bench, name: str, message: str, language: Language
) -> None:
    """And nothing of it enters the history: the next turn is valid."""
    bench.server.reset(model=ScriptedModel([ModelReply(), say("Fine.")]))
    runner = await bench.runner(name)
    events = await turn(runner, message)
    assert [event.code for event in named(events, RunnerWarning)] == ["answer_missing"]
    assert named(events, Done)[0].answer == text("answer.missing", language)
    assert named(await turn(runner, message), Done)[0].answer == "Fine."


async def test_empty_reply_that_a_provider_makes_is_an_answer_missing(bench: Bench) -> None:
    bench.server.faults.add(Fault(empty=True))
    events = await turn(await bench.runner("gpt"))
    assert [event.code for event in named(events, RunnerWarning)] == ["answer_missing"]


@BOTH
async def test_usage_is_summed_with_the_cache(bench: Bench, name: str) -> None:
    """Over all requests of the turn; what a request reads from the cache is counted."""
    long_prompt = "You help people with whatever they need. " * 400
    script = [search("weather"), calling(FORECAST), say("Sunny.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner(name, system_prompt=long_prompt)
    usage = named(await turn(runner, "Weather?"), Done)[0].usage
    assert usage.input_tokens > 3 * 2000
    assert usage.output_tokens > 0
    assert 0 <= usage.cache_read_tokens + usage.cache_write_tokens <= usage.input_tokens


@pytest.mark.parametrize("name", ["claude", "gpt", "responses", "late"])
async def test_pictures_of_the_user_reach_the_model(bench: Bench, name: str) -> None:
    message = (TextPart("What is this?"), ImagePart(PIXEL), ImagePart("https://example.com/a.png"))
    bench.server.reset(model=ScriptedModel([say("A dot."), say("Still a dot.")]))
    runner = await bench.runner(name)
    await turn(runner, message)
    await turn(runner, "Sure?")
    for request in bench.requests:
        body = json.dumps(request.body)
        assert PIXEL.partition(",")[2] in body
        assert "https://example.com/a.png" in body
        assert "What is this?" in body


@BOTH
async def test_picture_without_text_is_a_message(bench: Bench, name: str) -> None:
    """Nothing to read the language from: it is English."""
    bench.server.reset(model=ScriptedModel([say("A dot.")]))
    runner = await bench.runner(name)
    await turn(runner, (ImagePart(PIXEL),))
    session = runner.session()
    assert session is not None
    assert session.language == "en-US"


@pytest.mark.parametrize("message", ["", "  \n"], ids=["empty", "blank"])
@BOTH
async def test_message_without_text_leaves_the_conversation_usable(
    bench: Bench, name: str, message: str
) -> None:
    """A sticker, a voice message: no provider refuses the request, nor a later one."""
    bench.server.reset(model=ScriptedModel([say("Yes?"), say("Hello.")]))
    runner = await bench.runner(name)
    await turn(runner, message)
    assert named(await turn(runner, "Hi"), Done)[0].answer == "Hello."


async def test_first_reply_in_many_scripts_reaches_the_model_unchanged(bench: Bench) -> None:
    said = "天气 погода 🌤️ \x00 é"
    bench.server.reset(model=ScriptedModel([say("ok")]))
    await turn(await bench.runner("gpt"), said + "\ud83d")
    assert bench.requests[0].body["messages"][-1]["content"].startswith(said)


async def test_tool_knows_where_it_is_called(bench: Bench) -> None:
    seen = []

    def whoami(context: ToolContext) -> str:
        seen.append(context)
        return "known"

    tools = [ExecutableTool(tool=Tool(name="whoami", always_load=True), function=whoami)]
    bench.server.reset(model=ScriptedModel([calling(call("whoami")), say("You.")]))
    await turn(await bench.runner("gpt", tools=tools), "你是谁", conversation="g:7", user="u1")
    assert seen == [ToolContext(conversation="g:7", language="zh-CN", user="u1")]


@BOTH
async def test_text_beside_a_call_is_streamed_and_kept_out_of_the_answer(
    bench: Bench, name: str
) -> None:
    script = [calling(call("get_time"), text="One moment."), say("It is noon.")]
    bench.server.reset(model=ScriptedModel(script))
    events = await turn(await bench.runner(name))
    before_call = events[: kinds_index(events)]
    assert "".join(event.text for event in named(before_call, TextDelta)) == "One moment."
    assert named(events, Done)[0].answer == "It is noon."


def kinds_index(events: list[RunnerEvent]) -> int:
    """Where the first call begins."""
    return next(n for n, event in enumerate(events) if isinstance(event, ToolCallStarted))


async def test_bot_without_tools_talks(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([say("Hi.")]))
    await turn(await bench.runner("gpt", tools=[]))
    body = bench.requests[0].body
    assert "tools" not in body
    assert [message["role"] for message in body["messages"]] == ["user"]


async def test_result_without_text_is_told_as_the_model_reads_it(bench: Bench) -> None:
    def nothing() -> None:
        """Does something silently."""

    tools = [ExecutableTool(tool=Tool(name="nothing", always_load=True), function=nothing)]
    bench.server.reset(model=ScriptedModel([calling(call("nothing")), say("Done.")]))
    runner = await bench.runner("gpt", tools=tools, config=SEARCHING)
    events = await turn(runner)
    session = runner.session()
    assert session is not None
    assert named(events, ToolFinished)[0].content == results(session.history)[0].text
    assert results(session.history)[0].text == "(no output)"
