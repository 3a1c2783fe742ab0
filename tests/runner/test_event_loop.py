"""What a bot does on its event loop, and what it does aside."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runner.bench import many_tools
from tests.search.word_embedder import NotingEmbedder
from tool_search import (
    Done,
    ExecutableTool,
    Message,
    RequestPlan,
    SearchSettings,
    ToolCall,
    ToolContext,
    ToolSearchConfig,
    ToolSearchRunner,
    ToolSearchSession,
    profile_for,
)
from tool_search.core.values.aside import LARGE_CATALOG, Background
from tool_search.providers.base import ReplyEnd, ReplyEvent, Usage

Reply = Callable[[RequestPlan], Message]


class Model:
    """A provider without a network; notes how many of its replies are under way at once."""

    def __init__(self, reply: Reply) -> None:
        self.profile = profile_for("openai_chat", "gpt-5.4")
        self._reply = reply
        self.running = self.most = 0

    async def stream(self, plan: RequestPlan) -> AsyncIterator[ReplyEvent]:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.002)
        self.running -= 1
        message = self._reply(plan)
        reason: Any = "calls" if message.tool_calls else "answer"
        yield ReplyEnd(message=message, stop_reason=reason, usage=Usage())


def searching(plan: RequestPlan) -> Message:
    """A search first, and then an answer."""
    if plan.messages[-1].role == "tool":
        return Message(role="assistant", content="found")
    call = ToolCall(id="c1", name="tool_search", arguments='{"query": "the gadget 007"}')
    return Message(role="assistant", tool_calls=(call,))


def tools(count: int) -> list[ExecutableTool]:
    return [ExecutableTool(tool=one, function=lambda **_: "ok") for one in many_tools(count)]


async def answers(runner: ToolSearchRunner, conversation: str) -> list[str]:
    events = [event async for event in runner.run("Go", conversation=conversation)]
    return [event.answer for event in events if isinstance(event, Done)]


async def test_a_large_catalog_is_worked_on_aside() -> None:
    """Other tasks go on while it is indexed; each of its steps would hold them up."""
    runner = ToolSearchRunner(providers={"p": Model(searching)}, tools=tools(4_000))
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    beating = asyncio.create_task(beat())
    preparing = asyncio.create_task(runner.prepare())
    await preparing
    during = beats
    assert await answers(runner, "a") == ["found"]
    beating.cancel()
    # On the loop, preparing would be one step: no other task would get its turn.
    assert during > 5
    session = runner.session("a")
    assert session is not None
    assert "gadget_007" in session.discoveries.names
    await runner.aclose()


async def test_tools_are_embedded_once_however_many_conversations_wait(tmp_path: Path) -> None:
    NotingEmbedder.texts.clear()
    NotingEmbedder.threads.clear()
    embedder = "tests.search.word_embedder:NotingEmbedder"
    config = ToolSearchConfig(
        tool_schema_mode="tool_search",
        search=SearchSettings(
            engine="hybrid", embedder=embedder, vector_cache=str(tmp_path / "vectors.db")
        ),
    )
    runner = ToolSearchRunner(providers={"p": Model(searching)}, tools=tools(40), config=config)
    said = await asyncio.gather(*(answers(runner, f"c{n}") for n in range(20)))
    assert said == [["found"]] * 20
    gadgets = [text for text in NotingEmbedder.texts if "number 007" in text]
    assert gadgets
    assert len(gadgets) == len(set(gadgets))
    assert threading.get_ident() not in NotingEmbedder.threads
    await runner.aclose()


async def test_a_session_of_ones_own_loop_searches_by_meaning_in_another_thread() -> None:
    config = ToolSearchConfig(
        tool_schema_mode="tool_search",
        search=SearchSettings(
            engine="hybrid",
            embedder="tests.search.word_embedder:NotingEmbedder",
            vector_cache=None,
        ),
    )
    session = ToolSearchSession(tools=[gadget], config=config)
    profile = profile_for("openai_chat", "gpt-5.4")
    await asyncio.to_thread(session.begin_turn, "Go", profile=profile)
    session.plan(profile)
    call = ToolCall(id="c1", name="tool_search", arguments='{"query": "a gadget of mine"}')
    (call,) = session.accept(Message(role="assistant", tool_calls=(call,)))
    NotingEmbedder.threads.clear()
    await session.run(call)
    assert NotingEmbedder.threads
    assert threading.get_ident() not in NotingEmbedder.threads


def gadget(size: int) -> str:
    """Make a gadget.

    Args:
        size: Its size.
    """
    return str(size)


async def test_no_more_turns_go_on_than_are_admitted() -> None:
    """The rest waits; nobody is turned away."""
    model = Model(searching)
    runner = ToolSearchRunner(providers={"p": model}, tools=tools(30), max_concurrent_turns=3)
    said = await asyncio.gather(*(answers(runner, f"c{n}") for n in range(12)))
    assert said == [["found"]] * 12
    assert model.most == 3


async def test_a_turn_that_a_tool_begins_needs_no_place() -> None:
    """It would wait for the turn that waits for it."""

    async def ask_another(context: ToolContext) -> str:
        """Ask another conversation."""
        del context
        return (await answers(runner, "inner"))[0]

    def reply(plan: RequestPlan) -> Message:
        if plan.messages[-1].role == "tool":
            return Message(role="assistant", content=plan.messages[-1].text)
        if any(entry.tool.name == "ask_another" for entry in plan.tools) and first.pop("once", 0):
            call = ToolCall(id="c1", name="ask_another")
            return Message(role="assistant", tool_calls=(call,))
        return Message(role="assistant", content="from within")

    first = {"once": 1}
    runner = ToolSearchRunner(
        providers={"p": Model(reply)}, tools=[ask_another], max_concurrent_turns=1
    )
    async with asyncio.timeout(20):
        assert await answers(runner, "outer") == ["from within"]


async def test_work_in_the_background_is_done_whole_whoever_gives_it_up() -> None:
    """A conversation must not change while somebody else looks at it."""
    background, going, over = Background(), threading.Event(), threading.Event()
    changed: list[int] = []

    def work() -> None:
        going.set()
        over.wait(10)
        changed.append(1)

    task = asyncio.create_task(background.run(work, heavy=True))
    await asyncio.to_thread(going.wait, 10)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    over.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert changed == [1]


async def test_small_work_is_done_at_once() -> None:
    background = Background()
    assert await background.run(threading.get_ident, heavy=False) == threading.get_ident()
    assert await background.run(threading.get_ident, heavy=True) != threading.get_ident()
    assert LARGE_CATALOG >= 100
