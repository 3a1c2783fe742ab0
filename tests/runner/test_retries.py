"""A turn with an idempotency key, and its retries: nothing runs or is said twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest

from tests.runner.bench import (
    Bench,
    assert_paired,
    call,
    calling,
    named,
    results,
    say,
    tool,
    turn,
)
from tool_search import (
    AllProvidersFailedError,
    ConversationRecord,
    Discovery,
    Done,
    ExecutableTool,
    MemoryStore,
    SessionError,
    StoreError,
    TextDelta,
    Tool,
    ToolContext,
    ToolFinished,
    ToolSearchRunner,
)
from tool_search.runner import question
from tool_search.stores import ConversationStore
from tool_search.stores.sqlite import SQLiteStore
from tool_search.testing import Fault, ModelReply, ModelView, ScriptedModel

KEYED = {"idempotency_key": "m1", "user": "ann"}


class Foreign:
    """A stranger's store, with the four methods alone; it keeps JSON."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.saves = 0

    async def load(self, key: str) -> ConversationRecord | None:
        text = self.kept.get(key)
        return None if text is None else ConversationRecord.from_dict(json.loads(text))

    async def append_discoveries(
        self, key: str, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        return tuple(entries)

    async def save(self, key: str, record: ConversationRecord) -> None:
        self.saves += 1
        self.kept[key] = json.dumps(record.to_dict())

    async def forget(self, key: str) -> None:
        self.kept.pop(key, None)


class Charging:
    """A model that charges once for a user's message, and says what came of it."""

    def reply(self, view: ModelView) -> ModelReply:
        if view.results:
            return say(f"Result: {view.results[-1].text}")
        return calling(call("charge", {"whom": view.last_user_text}))


class Till:
    """A tool that notes what it charged; it may wait, and be told to die in the middle."""

    def __init__(self) -> None:
        self.charged: list[str] = []
        self.keys: list[str | None] = []
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()
        self.waits = False

    async def charge(self, whom: str, context: ToolContext) -> str:
        """Charge somebody."""
        self.keys.append(context.idempotency_key)
        self.charged.append(whom)
        self.begun.set()
        if self.waits:
            await self.may_end.wait()
        return f"charged {whom}"

    @property
    def tool(self) -> ExecutableTool:
        defined = tool("charge", "Charge somebody.", "whom", always_load=True)
        return ExecutableTool(tool=defined, function=self.charge)


async def _worker(bench: Bench, till: Till, store: ConversationStore | None) -> ToolSearchRunner:
    return await bench.runner("gpt", tools=[till.tool], store=store)


def _history(record: ConversationRecord | None) -> tuple[Any, ...]:
    assert record is not None
    assert_paired(record.history)
    return record.history


def _said(record: ConversationRecord | None) -> list[str]:
    return [message.text for message in _history(record) if message.role == "user"]


@pytest.fixture(params=["memory", "foreign", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    if request.param == "sqlite":
        async with SQLiteStore(tmp_path / "store.db") as opened:
            yield opened
        return
    yield MemoryStore() if request.param == "memory" else Foreign()


async def test_retry_on_another_worker_has_what_the_first_did(bench: Bench, store: Any) -> None:
    bench.server.reset(model=Charging())
    till = Till()
    workers = [await _worker(bench, till, store) for _ in range(3)]
    first = await turn(workers[0], "Bo", **KEYED)
    asked = len(bench.requests)
    for worker in workers:
        events = await turn(worker, "Bo", **KEYED)
        assert [type(event) for event in events] == [ToolFinished, Done]
        (finished,), (done,) = named(events, ToolFinished), named(events, Done)
        assert (finished.content, finished.tool, finished.repeated) == (
            "charged Bo",
            "charge",
            True,
        )
        assert (done.answer, done.repeated) == ("Result: charged Bo", True)
        assert done.usage == named(first, Done)[0].usage
    assert (till.charged, len(bench.requests)) == (["Bo"], asked)
    assert _said(await store.load("default")) == ["Bo"]
    # Another message is a turn of its own, on a worker that has seen the first by the store.
    await turn(workers[1], "Cy", idempotency_key="m2", user="ann")
    assert till.charged == ["Bo", "Cy"]


async def test_retry_goes_on_where_the_providers_failed(bench: Bench, store: Any) -> None:
    bench.server.reset(model=Charging())
    bench.server.faults.add(Fault(status=500, skip=1, times=1))
    till = Till()
    with pytest.raises(AllProvidersFailedError):
        await turn(await _worker(bench, till, store), "Bo", **KEYED)
    events = await turn(await _worker(bench, till, store), "Bo", **KEYED)
    assert [finished.repeated for finished in named(events, ToolFinished)] == [True]
    assert named(events, Done)[0].answer == "Result: charged Bo"
    assert not named(events, Done)[0].repeated
    assert till.charged == ["Bo"]
    assert _said(await store.load("default")) == ["Bo"]


async def test_call_that_was_interrupted_may_have_run(bench: Bench, store: Any) -> None:
    """A worker is gone in the middle of a call; what it had saved is all that is left."""
    bench.server.reset(model=Charging())
    till = Till()
    till.waits = True
    running = asyncio.create_task(turn(await _worker(bench, till, store), "Bo", **KEYED))
    await till.begun.wait()
    left = await store.load("default")
    elsewhere = Foreign()
    await elsewhere.save("default", left)
    running.cancel()
    await asyncio.wait([running])
    till.waits = False
    for kept in (elsewhere, store):  # killed, and cancelled in order
        events = await turn(await _worker(bench, till, kept), "Bo", **KEYED)
        (finished,) = named(events, ToolFinished)
        assert (finished.is_error, finished.repeated) == (True, True)
        assert "charge may have run" in finished.content
        assert "may have run" in named(events, Done)[0].answer
        assert _said(await kept.load("default")) == ["Bo"]
    assert till.charged == ["Bo"]


async def test_call_after_one_that_may_have_run_has_its_key(bench: Bench) -> None:
    """The service of the tool can tell that it is the same."""
    charge = calling(call("charge", {"whom": "Bo"}))
    bench.server.reset(model=ScriptedModel([charge, charge, charge, say("Twice.")]))
    till, store = Till(), Foreign()
    till.waits = True
    running = asyncio.create_task(turn(await _worker(bench, till, store), "Bo", **KEYED))
    await till.begun.wait()
    left = Foreign()
    left.kept = dict(store.kept)
    running.cancel()
    await asyncio.wait([running])
    till.waits = False
    await turn(await _worker(bench, till, left), "Bo", **KEYED)
    assert till.keys[0] is not None
    assert till.keys[0] == till.keys[1] != till.keys[2]


async def test_retry_waits_for_the_first_try(bench: Bench, store: Any) -> None:
    bench.server.reset(model=Charging())
    till = Till()
    till.waits = True
    worker = await _worker(bench, till, store)
    both = [asyncio.create_task(turn(worker, "Bo", **KEYED)) for _ in range(2)]
    await till.begun.wait()
    await asyncio.sleep(0.01)
    assert not any(task.done() for task in both)
    till.may_end.set()
    ends = [named(events, Done)[0] for events in await asyncio.gather(*both)]
    assert [done.repeated for done in ends] == [False, True]
    assert till.charged == ["Bo"]


async def test_key_belongs_to_user_and_message(bench: Bench, store: Any) -> None:
    bench.server.reset(model=Charging())
    till = Till()
    worker = await _worker(bench, till, store)
    await turn(worker, "Bo", **KEYED)
    for again in (worker, await _worker(bench, till, store)):
        with pytest.raises(SessionError, match="idempotency_key"):
            await turn(again, "Cy", **KEYED)
    await turn(worker, "Bo", idempotency_key="m1", user="eve")
    await turn(worker, "Bo", idempotency_key="m1", user="ann", conversation="other")
    await turn(worker, "Bo")
    assert till.charged == ["Bo"] * 4
    assert len(set(till.keys[:3])) == 3
    assert till.keys[3] is None


async def test_turn_that_failed_is_moved_behind_what_was_said_since(bench: Bench) -> None:
    bench.server.reset(model=Charging())
    bench.server.faults.add(Fault(status=500, skip=1, times=1))
    till, store = Till(), MemoryStore()
    worker = await bench.runner("gpt", tools=[till.tool], store=store, cooldown_s=0)
    with pytest.raises(AllProvidersFailedError):
        await turn(worker, "Bo", **KEYED)
    await turn(worker, "Cy")
    events = await turn(worker, "Bo", **KEYED)
    assert named(events, Done)[0].answer == "Result: charged Bo"
    assert till.charged == ["Bo", "Cy"]
    assert _said(await store.load("default")) == ["Cy", "Bo"]


async def test_turns_without_a_key_save_once(bench: Bench) -> None:
    bench.server.reset(model=Charging())
    till, store = Till(), Foreign()
    await turn(await _worker(bench, till, store), "Bo")
    assert (store.saves, till.keys) == (1, [None])
    assert "turns" not in json.loads(store.kept["default"])


async def test_kept_turns_are_bounded_and_forgotten(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question, "_MAX_TURNS", 3)
    bench.server.reset(model=Charging())
    till, store = Till(), Foreign()
    worker = await _worker(bench, till, store)
    for number in range(5):
        await turn(worker, f"n{number}", idempotency_key=f"m{number}")
    assert len(json.loads(store.kept["default"])["turns"]) == 3
    monkeypatch.setattr(question, "_MAX_ANSWER_CHARS", 1)
    await turn(worker, "n5", idempotency_key="m5")
    assert len(json.loads(store.kept["default"])["turns"]) == 1
    monkeypatch.setattr(question, "_MAX_AGE_S", -1.0)
    await turn(worker, "n5", idempotency_key="m5")
    assert till.charged[-2:] == ["n5", "n5"]
    monkeypatch.undo()
    await worker.forget("default")
    assert store.kept == {}
    await turn(worker, "n5", idempotency_key="m5")
    assert till.charged[-3:] == ["n5"] * 3


class Halted(MemoryStore):
    """A store that another worker writes while this one is halted before its intent is saved."""

    def __init__(self) -> None:
        super().__init__()
        self.number, self.is_foreign = 0, False

    async def revision(self, key: str) -> int | None:
        return self.number or None

    async def save_over(
        self, key: str, record: ConversationRecord, *, expected: int | None, new: int
    ) -> bool:
        if self.is_foreign:
            self.is_foreign = False
            await self.save(key, record)
            self.number = 7
        if (self.number or None) != expected:
            return False
        await self.save(key, record)
        self.number = new
        return True


async def test_worker_that_was_taken_over_starts_no_tool(bench: Bench) -> None:
    bench.server.reset(model=Charging())
    till, store = Till(), Halted()
    store.is_foreign = True
    worker = await _worker(bench, till, store)
    with pytest.raises(SessionError, match="another worker"):
        await turn(worker, "Bo", **KEYED)
    assert till.charged == []


async def test_without_its_store_a_keyed_turn_is_answered(bench: Bench) -> None:
    class Broken(Foreign):
        async def save(self, key: str, record: ConversationRecord) -> None:
            raise StoreError("no such server")

    bench.server.reset(model=Charging())
    till = Till()
    worker = await _worker(bench, till, Broken())
    for _ in range(2):
        events = await turn(worker, "Bo", **KEYED)
        assert named(events, Done)[0].answer == "Result: charged Bo"
    assert till.charged == ["Bo"]


async def test_turn_whose_consumer_left_is_gone_on_with(bench: Bench) -> None:
    """Each event may be the last that a consumer takes."""
    for taken in range(1, 6):
        bench.server.reset(model=Charging())
        till, store = Till(), MemoryStore()
        worker = await _worker(bench, till, store)
        async with aclosing(worker.run("Bo", **KEYED)) as events:
            for _ in range(taken):
                if isinstance(await anext(events), Done):
                    break
        events_again = await turn(worker, "Bo", **KEYED)
        answer = named(events_again, Done)[0].answer
        assert till.charged == ["Bo"] or "may have run" in answer
        assert _said(await store.load("default")) == ["Bo"]
        assert len(results(_history(await store.load("default")))) == 1
        assert not named(events_again, TextDelta) or not named(events_again, Done)[0].repeated


async def test_searches_of_the_library_are_not_repeated(bench: Bench) -> None:
    """Only calls whose results the consumer has seen come again."""
    bench.server.reset(model=Charging())
    till, store = Till(), MemoryStore()
    deferred: Tool = tool("get_forecast", "Weather forecast of a city.", "city")
    tools = [till.tool, bench.runnable(deferred)]
    for _ in range(2):
        worker = await bench.runner("gpt", tools=tools, store=store)
        events = await turn(worker, "weather forecast of a city", **KEYED)
        assert [finished.tool for finished in named(events, ToolFinished)] == ["charge"]
