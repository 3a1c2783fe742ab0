"""Workers that share a store: one at a time answers a conversation."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from tests.clock import LoopClock
from tests.runner.bench import PATIENCE_S, Bench, call, calling, named, say, turn, until
from tool_search import (
    ConversationRecord,
    Done,
    ExecutableTool,
    MemoryStore,
    SessionError,
    StoreError,
    Tool,
)
from tool_search.runner import conversations as turn_lock
from tool_search.testing import ModelReply, ModelView, ScriptedModel

LEASE_S = 6.0  # passed by moving the clock on


def _now() -> float:
    return asyncio.get_running_loop().time()


class LockingStore(MemoryStore):
    """A store with locks and revisions; `failing` makes the locks fail."""

    def __init__(self) -> None:
        super().__init__()
        self.holders: dict[str, tuple[str, float]] = {}
        self.revisions: dict[str, int] = {}
        self.failing = False
        self.given: list[str] = []

    async def lock_turn(self, key: str, *, holder: str, lease_s: float) -> bool:
        if self.failing:
            raise StoreError("no such server")
        held = self.holders.get(key)
        if held is not None and held[0] != holder and held[1] > _now():
            return False
        self.holders[key] = holder, _now() + lease_s
        self.given.append(holder)
        return True

    async def unlock_turn(self, key: str, *, holder: str) -> None:
        if self.failing:
            raise StoreError("no such server")
        if self.holders.get(key, ("", 0))[0] == holder:
            del self.holders[key]

    async def revision(self, key: str) -> int | None:
        return self.revisions.get(key)

    async def save_over(
        self, key: str, record: ConversationRecord, *, expected: int | None, new: int
    ) -> bool:
        if self.revisions.get(key) != expected:
            return False
        await self.save(key, record)
        self.revisions[key] = new
        return True


class Echo:
    """A model that repeats what the user said last."""

    def reply(self, view: ModelView) -> ModelReply:
        return ModelReply(text=f"You said {view.last_user_text}")


class Waiting:
    """A tool that returns when it may."""

    def __init__(self) -> None:
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()

    async def wait(self) -> str:
        self.begun.set()
        async with asyncio.timeout(PATIENCE_S):
            await self.may_end.wait()
        return "waited"

    @property
    def tool(self) -> ExecutableTool:
        return ExecutableTool(tool=Tool(name="wait", always_load=True), function=self.wait)


async def test_turns_of_two_workers_wait_for_each_other(bench: Bench) -> None:
    bench.server.reset(model=Echo())
    store = LockingStore()
    workers = [await bench.runner("gpt", store=store) for _ in range(2)]
    async with asyncio.TaskGroup() as group:
        for number in range(6):
            group.create_task(turn(workers[number % 2], f"message {number}"))
    record = await store.load("default")
    assert record is not None
    texts = [message.text for message in record.history]
    # Each answer is next to its question: no turn began while another went on.
    assert sorted(texts[::2]) == [f"message {number}" for number in range(6)]
    assert texts[1::2] == [f"You said {said}" for said in texts[::2]]
    assert store.holders == {}


async def test_the_conversation_of_a_dead_worker_goes_on_after_its_lease(
    bench: Bench, clock: LoopClock
) -> None:
    bench.server.reset(model=Echo())
    store = LockingStore()
    assert await store.lock_turn("default", holder="dead", lease_s=LEASE_S)
    running = asyncio.create_task(turn(await bench.runner("gpt", store=store), "hello"))
    await clock.move_on(0.9 * LEASE_S)
    assert store.given == ["dead"]
    await clock.move_on(0.1 * LEASE_S)
    assert named(await running, Done)[0].answer == "You said hello"


async def test_a_long_turn_keeps_its_lock(
    bench: Bench, clock: LoopClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_lock, "_LEASE_S", LEASE_S)
    bench.server.reset(model=ScriptedModel([calling(call("wait")), say("Done.")]))
    store, waiting = LockingStore(), Waiting()
    worker = await bench.runner("gpt", store=store, tools=[waiting.tool])
    running = asyncio.create_task(turn(worker, "wait"))
    await waiting.begun.wait()
    for renewals in range(1, 6):
        await clock.move_on(LEASE_S / 3)
        await until(lambda: len(store.given) > renewals)  # noqa: B023
        assert not await store.lock_turn("default", holder="other", lease_s=60)
    waiting.may_end.set()
    assert named(await running, Done)[0].answer == "Done."


async def test_a_worker_that_lost_its_lock_ends_its_turn(
    bench: Bench,
    clock: LoopClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(turn_lock, "_LEASE_S", LEASE_S)
    bench.server.reset(model=ScriptedModel([calling(call("wait")), say("Done.")]))
    store, waiting = LockingStore(), Waiting()
    worker = await bench.runner("gpt", store=store, tools=[waiting.tool])
    running = asyncio.create_task(turn(worker, "wait"))
    await waiting.begun.wait()
    store.holders["default"] = "other", _now() + 60
    await clock.move_on(LEASE_S / 3)
    await until(lambda: "turn_lock_lost" in caplog.text)
    waiting.may_end.set()
    with pytest.raises(SessionError, match="another worker"):
        await running
    assert store.holders["default"][0] == "other"


async def test_without_the_server_of_the_locks_turns_go_on(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.server.reset(model=Echo())
    store = LockingStore()
    store.failing = True
    events = await turn(await bench.runner("gpt", store=store), "hello")
    assert named(events, Done)[0].answer == "You said hello"
    assert "turn_lock_unavailable" in caplog.text


class HoldingStore(LockingStore):
    """A store whose renewals lose a cancellation, as a client library may."""

    def __init__(self) -> None:
        super().__init__()
        self.renewals = 0
        self.renewing = asyncio.Event()

    async def lock_turn(self, key: str, *, holder: str, lease_s: float) -> bool:
        if key in self.holders:
            self.renewals += 1
            self.renewing.set()
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(PATIENCE_S)
        return await super().lock_turn(key, holder=holder, lease_s=lease_s)


async def test_a_turn_ends_while_its_lock_is_renewed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_lock, "_LEASE_S", 0.03)
    bench.server.reset(model=ScriptedModel([calling(call("wait")), say("Done.")]))
    store, waiting = HoldingStore(), Waiting()
    worker = await bench.runner("gpt", store=store, tools=[waiting.tool])
    running = asyncio.create_task(turn(worker, "wait"))
    await store.renewing.wait()
    waiting.may_end.set()
    async with asyncio.timeout(PATIENCE_S):
        assert named(await running, Done)[0].answer == "Done."
    assert store.holders == {}
    assert store.renewals == 1
