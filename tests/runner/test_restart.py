"""A conversation goes on in another process, from what the store has kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing

import pytest

from tests.runner.bench import (
    FORECAST,
    Bench,
    assert_paired,
    call,
    calling,
    named,
    say,
    search,
    some_tools,
    tool,
    turn,
)
from tool_search import (
    ConversationRecord,
    Done,
    ImagePart,
    MemoryStore,
    RunnerWarning,
    TextPart,
    ToolFinished,
    ToolSearchConfig,
)
from tool_search.core.discoveries import Discovery
from tool_search.testing import ModelReply, ScriptedModel

NAMES = pytest.mark.parametrize(
    "name", ["claude", "gpt", "responses", "kept", "late", "bound", "glm"]
)


class JsonStore(MemoryStore):
    """A store that keeps nothing but JSON text."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}

    async def load(self, key: str) -> ConversationRecord | None:
        """What the text says."""
        written = self.texts.get(key)
        return None if written is None else ConversationRecord.from_dict(json.loads(written))

    async def append_discoveries(
        self, key: str, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        """Kept with the record alone."""
        return tuple(entries)

    async def save(self, key: str, record: ConversationRecord) -> None:
        """As text."""
        self.texts[key] = json.dumps(record.to_dict())


STORES = pytest.mark.parametrize("store", [MemoryStore, JsonStore])


@STORES
@NAMES
async def test_restart_changes_no_byte_of_the_next_request(
    bench: Bench, name: str, store: type[MemoryStore]
) -> None:
    """What a bot that was not restarted would have sent is what is sent."""
    script: list[ModelReply] = [search("weather"), calling(FORECAST), say("Sunny."), say("Yes.")]
    bodies, kept = [], store()
    for restarts in (False, True):
        bench.server.reset(model=ScriptedModel(script))
        runner = await bench.runner(name, store=store() if not restarts else kept)
        await turn(runner, "Weather in Paris?")
        if restarts:
            runner = await bench.runner(name, store=kept)
        await turn(runner, "Really?")
        bodies.append(bench.requests[-1].raw_body)
        bench.ran.clear()
    assert bodies[0] == bodies[1]


@STORES
@NAMES
async def test_discoveries_are_called_after_a_restart_without_a_search(
    bench: Bench, name: str, store: type[MemoryStore]
) -> None:
    script = [search("weather"), say("Found."), calling(FORECAST), say("Sunny.")]
    bench.server.reset(model=ScriptedModel(script))
    kept = store()
    await turn(await bench.runner(name, store=kept), "Weather?")
    await turn(await bench.runner(name, store=kept), "In Paris?")
    assert bench.ran == [("get_forecast", {"city": "Paris"})]


async def test_restart_with_another_provider(bench: Bench) -> None:
    script = [search("weather"), say("Found."), calling(FORECAST), say("Sunny.")]
    bench.server.reset(model=ScriptedModel(script))
    kept = JsonStore()
    await turn(await bench.runner("claude", store=kept), "Weather?")
    runner = await bench.runner("gpt", store=kept)
    await turn(runner, "In Paris?")
    assert bench.ran == [("get_forecast", {"city": "Paris"})]
    assert bench.requests[-1].tool_names == ("get_time", "tool_search", "get_forecast")


async def test_restart_keeps_language_and_mode_under_auto(bench: Bench) -> None:
    """They are settled, whatever `auto` would decide by now."""
    bench.server.reset(model=ScriptedModel([say("1")] * 2))
    kept = JsonStore()
    await turn(await bench.runner("gpt", store=kept), "你好")
    other = ToolSearchConfig(tool_schema_mode="auto", language="auto")
    runner = await bench.runner("gpt", store=kept, config=other)
    await turn(runner, "hello")
    session = runner.session()
    assert session is not None
    assert (session.language, session.decision.mode) == ("zh-CN", "tool_search")
    assert bench.requests[0].tools_bytes == bench.requests[1].tools_bytes


async def test_restart_in_the_middle_of_a_turn_answers_the_open_call(bench: Bench) -> None:
    begun = asyncio.Event()

    async def hang() -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    slow = bench.runnable(tool("slow", "Takes long.", always_load=True))
    slow = type(slow)(tool=slow.tool, function=hang)
    script = [search("weather"), calling(call("slow")), say("Here again.")]
    bench.server.reset(model=ScriptedModel(script))
    kept = JsonStore()
    task = asyncio.create_task(
        turn(await bench.runner("claude", store=kept, tools=[*some_tools(), slow]), "Go")
    )
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    runner = await bench.runner("claude", store=kept, tools=[*some_tools(), slow])
    assert named(await turn(runner, "Still there?"), Done)[0].answer == "Here again."
    session = runner.session()
    assert session is not None
    assert_paired(session.history)
    assert session.discoveries.names == ("get_forecast",)


async def test_tool_that_went_away_meanwhile_fails_clearly(bench: Bench) -> None:
    script = [search("weather"), say("Found."), calling(FORECAST), say("No luck.")]
    bench.server.reset(model=ScriptedModel(script))
    kept = JsonStore()
    await turn(await bench.runner("claude", store=kept), "Weather?")
    left = [item for item in some_tools() if item.server != "weather"]
    runner = await bench.runner("claude", store=kept, tools=left)
    events = await turn(runner, "In Paris?")
    finished = named(events, ToolFinished)[0]
    assert finished.is_error
    assert '"weather" is not connected' in finished.content
    assert [event.code for event in named(events, RunnerWarning)] == ["catalog_changed"]
    assert "get_forecast" in bench.requests[-1].tool_names


async def test_pictures_survive_a_restart(bench: Bench) -> None:
    """In the history, for the model to look at again."""
    bench.server.reset(model=ScriptedModel([say("1")] * 2))
    kept = JsonStore()
    message = (TextPart("What?"), ImagePart("https://example.com/a.png"))
    await turn(await bench.runner("claude", store=kept), message)
    await turn(await bench.runner("claude", store=kept), "Sure?")
    assert "https://example.com/a.png" in json.dumps(bench.requests[-1].body["messages"])


async def test_forgotten_conversation_begins_anew(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([search("weather"), say("1"), say("2"), say("3")]))
    kept = MemoryStore()
    runner = await bench.runner("gpt", store=kept)
    await turn(runner, "My secret")
    await runner.forget("default")
    await turn(runner, "Hello")
    assert "secret" not in json.dumps(bench.requests[-1].body)
    assert "get_forecast" not in bench.requests[-1].tool_names
    await runner.forget("default")
    await turn(await bench.runner("gpt", store=kept), "Hello")
    assert len(bench.requests[-1].body["messages"]) == 2


async def test_conversations_beyond_those_in_memory_go_on(bench: Bench) -> None:
    """A bot of thousands of chats keeps a thousand; the rest is read from the store."""
    bench.server.reset(model=ScriptedModel([search("weather"), say("1"), say("2")]))
    runner = await bench.runner("gpt")
    await turn(runner, conversation="first")
    refused = [*some_tools(), tool("tool_search", "Takes the name of the search.")]
    runner.replace_tools(map(bench.runnable, refused))
    for number in range(1030):  # each is given up at its first event, before any request
        async with aclosing(runner.run("Hello", conversation=f"c{number}")) as events:
            assert isinstance(await anext(events), RunnerWarning)
    assert runner.session("first") is None
    runner.replace_tools(map(bench.runnable, some_tools()))
    await turn(runner, conversation="first")
    assert "get_forecast" in bench.requests[-1].tool_names
