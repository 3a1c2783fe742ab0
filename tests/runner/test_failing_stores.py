"""A store that fails, is full, locked, damaged or slow ends no turn, and loses nothing."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from tests.runner.bench import (
    FORECAST,
    Bench,
    assert_paired,
    calling,
    named,
    say,
    search,
    settled,
    turn,
)
from tool_search import (
    AllProvidersFailedError,
    ConversationRecord,
    Discovery,
    Done,
    MemoryStore,
    RunnerEvent,
    RunnerWarning,
    SessionError,
    SQLiteStore,
    StoreError,
    TextDelta,
)
from tool_search.errors import UnreadableRecordError
from tool_search.search.learned import Evidence
from tool_search.stores import keeping as backlog_module
from tool_search.testing import Fault, ScriptedModel

KEY = "default"


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits is written again at once, and a store that does not answer is given up."""
    monkeypatch.setattr(backlog_module, "_FIRST_RETRY_S", 0.01)
    monkeypatch.setattr(backlog_module, "_LAST_RETRY_S", 0.01)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLiteStore]:
    """A store in a file."""
    async with SQLiteStore(tmp_path / "store.db", patience_s=0.05) as opened:
        yield opened


class BrokenStore(MemoryStore):
    """A store of somebody's own that fails as often as a test wants, at some of its methods."""

    def __init__(self, *methods: str, times: int = 10**9, error: Exception | None = None) -> None:
        super().__init__()
        self.methods = set(methods)
        self.times = times
        self.error = error

    async def _check(self, method: str) -> None:
        if method in self.methods and self.times > 0:
            self.times -= 1
            raise self.error or ConnectionError(f"the store is gone: {method}")

    async def load(self, key: str) -> ConversationRecord | None:
        """As it is, or the failure."""
        await self._check("load")
        return await super().load(key)

    async def append_discoveries(
        self, key: str, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        """As it is, or the failure."""
        await self._check("append")
        return await super().append_discoveries(key, entries)

    async def save(self, key: str, record: ConversationRecord) -> None:
        """As it is, or the failure."""
        await self._check("save")
        await super().save(key, record)

    async def forget(self, key: str) -> None:
        """As it is, or the failure."""
        await self._check("forget")
        await super().forget(key)

    async def add_evidence(self, entries: Sequence[Evidence]) -> None:
        """As it is, or the failure."""
        await self._check("learn")
        await super().add_evidence(entries)


async def fill_up(store: SQLiteStore, *, is_full: bool) -> None:
    """Let the file grow no more, or again; as a full disk does it."""
    pages = 1 if is_full else 1_000_000
    await store._file.read(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchone())


def codes(events: list[RunnerEvent]) -> list[str]:
    """What an operator was warned of."""
    return [event.code for event in named(events, RunnerWarning)]


def said(record: ConversationRecord | None) -> list[str]:
    """What users and assistants said."""
    assert record is not None
    assert_paired(record.history)
    return [m.text for m in record.history if m.role != "tool" and m.text]


WHOLE = ["Weather?", "Found.", "Go on", "Sunny."]


@pytest.mark.parametrize("error", [None, StoreError("full"), KeyError("theirs"), RuntimeError()])
@pytest.mark.parametrize("methods", [("load",), ("append",), ("save",), ("load", "append", "save")])
async def test_store_that_fails_is_a_warning_and_the_conversation_goes_on(
    bench: Bench, methods: tuple[str, ...], error: Exception | None
) -> None:
    """It is written again when the store is back: a restart finds everything."""
    script = {
        "Weather": [search("weather"), say("Found.")],
        "Go on": [calling(FORECAST), say("Sunny.")],
    }
    bench.server.reset(model=ScriptedModel(turns=script))
    store = BrokenStore(*methods, error=error)
    runner = await bench.runner("gpt", store=store)
    first = await turn(runner, "Weather?")
    assert named(first, Done)[0].answer == "Found."
    assert set(codes(first)) == {"store_unavailable"}
    assert any(
        str(error or "is gone") in warning.message for warning in named(first, RunnerWarning)
    )
    second = await turn(runner, "Go on")
    assert named(second, Done)[0].answer == "Sunny."
    assert bench.ran == [("get_forecast", {"city": "Paris"})]
    store.methods.clear()
    await settled()
    record = await store.load(KEY)
    assert said(record) == WHOLE
    assert record is not None
    assert [entry.name for entry in record.discoveries] == ["get_forecast"]


async def test_what_waits_is_written_at_the_end_of_the_bot(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.server.reset(model=ScriptedModel([say("1"), say("2")]))
    back, gone = BrokenStore("save"), BrokenStore("save")
    for store in (back, gone):
        runner = await bench.runner("gpt", store=store)
        await turn(runner, "Hello")
        if store is back:
            store.methods.clear()
        await runner.aclose()
    assert said(await back.load(KEY)) == ["Hello", "1"]
    assert await gone.load(KEY) is None
    assert "last turns of 1 conversations are lost" in caplog.text


async def test_conversation_that_could_not_be_read_is_joined_with_what_the_store_has(
    bench: Bench, store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = [search("weather"), say("Found."), search("mail"), say("New."), say("Both.")]
    bench.server.reset(model=ScriptedModel(script))
    await turn(await bench.runner("gpt", store=store), "Weather?")

    async def fail(key: str) -> None:
        raise StoreError(f"no {key} today")

    runner = await bench.runner("gpt", store=store)
    with monkeypatch.context() as patch:
        patch.setattr(store, "load", fail)
        events = await turn(runner, "Who are you?")
    assert len(bench.requests[-1].body["messages"]) == 4
    assert named(events, RunnerWarning)[0].message.endswith("no default today")
    await turn(runner, "And now?")
    whole = ["Weather?", "Found.", "Who are you?", "New.", "And now?", "Both."]
    record = await store.load(KEY)
    assert said(record) == whole
    assert record is not None
    assert {entry.name for entry in record.discoveries} > {"get_forecast"}
    assert "Weather?" in json.dumps(bench.requests[-1].body["messages"])


async def test_full_disk_silences_no_bot(bench: Bench, store: SQLiteStore) -> None:
    replies = [search("weather"), say("Found."), calling(FORECAST), say("Sunny."), say("Yes.")]
    bench.server.reset(model=ScriptedModel(replies))
    runner = await bench.runner("gpt", store=store)
    await turn(runner, "Weather?" * 2000)
    await fill_up(store, is_full=True)
    events = await turn(runner, "Go on" * 2000)
    assert named(events, Done)[0].answer == "Sunny."
    warnings = named(events, RunnerWarning)
    assert "store_unavailable" in {warning.code for warning in warnings}
    assert all("make room" in warning.message for warning in warnings)
    assert not any("make it writable" in warning.message for warning in warnings)
    assert len(said(await store.load(KEY))) == 2
    await fill_up(store, is_full=False)
    await settled()
    assert len(said(await store.load(KEY))) == 4
    assert len((await store.load_evidence()).entries) == 1
    assert codes(await turn(runner, "Really?")) == []


async def test_store_that_another_process_locks_is_waited_for_once(
    bench: Bench, store: SQLiteStore
) -> None:
    bench.server.reset(model=ScriptedModel([say("1"), say("2")]))
    runner = await bench.runner("gpt", store=store)
    await turn(runner, "One")
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    events = await turn(runner, "Two")
    assert "is locked by another process" in named(events, RunnerWarning)[0].message
    other.execute("ROLLBACK")
    other.close()
    await settled()
    assert said(await store.load(KEY)) == ["One", "1", "Two", "2"]


async def test_store_that_never_answers_is_given_up(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each turn it is waited for once, and not at all for a while after that."""
    monkeypatch.setattr(backlog_module, "_PATIENCE_S", 0.05)
    monkeypatch.setattr(backlog_module, "_SLOW_S", 0.01)
    monkeypatch.setattr(backlog_module, "_FIRST_RETRY_S", 60.0)
    asked: list[str] = []

    class Hanging(BrokenStore):
        async def _check(self, method: str) -> None:
            asked.append(method)
            await asyncio.Event().wait()

    bench.server.reset(model=ScriptedModel([search("weather"), say("1"), say("2")]))
    runner = await bench.runner("gpt", store=Hanging())
    for _ in range(2):
        events = await turn(runner, "Hello")
        assert named(events, Done)
        assert "no answer within" in named(events, RunnerWarning)[-1].message
    assert asked == ["load"]
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


async def test_done_says_that_the_conversation_is_kept(bench: Bench, store: SQLiteStore) -> None:
    bench.server.reset(model=ScriptedModel([say("Kept.")]))
    runner = await bench.runner("gpt", store=store)
    async with aclosing(runner.run("Hello")) as events:
        async for event in events:
            if isinstance(event, Done):
                break
        assert said(await store.load(KEY)) == ["Hello", "Kept."]


async def test_failed_turn_is_kept_too(bench: Bench) -> None:
    """And says that it could not be, before it ends with what the providers answered."""
    bench.server.faults.add(Fault(dialect="openai_chat", status=500, times=10))
    bench.may_refuse = True
    store = BrokenStore("save", times=1)
    runner = await bench.runner("gpt", store=store)
    async with aclosing(runner.run("Hello")) as events:
        heard = [await anext(events)]
        with pytest.raises(AllProvidersFailedError):
            await anext(events)
    assert codes(heard) == ["store_unavailable"]
    await settled()
    assert said(await store.load(KEY)) == ["Hello"]


async def test_two_processes_take_turns_in_one_conversation(
    bench: Bench, store: SQLiteStore
) -> None:
    bench.server.reset(model=ScriptedModel([say(str(n)) for n in range(6)]))
    async with SQLiteStore(store.path) as other:
        runners = [await bench.runner("gpt", store=one) for one in (store, other)]
        for number in range(6):
            assert codes(await turn(runners[number % 2], f"Turn {number}")) == []
    assert len(said(await store.load(KEY))) == 12
    assert len(bench.requests[-1].body["messages"]) == 12


async def test_turns_of_two_processes_at_once_are_both_kept(
    bench: Bench, store: SQLiteStore
) -> None:
    answers = [search("weather"), search("mail")] + [say("Done.")] * 30
    bench.server.reset(model=ScriptedModel(answers))
    async with SQLiteStore(store.path, patience_s=10) as other, SQLiteStore(store.path) as third:
        runners = [await bench.runner("gpt", store=one) for one in (third, other)]
        await turn(runners[0], "First")
        for number in range(3):
            await asyncio.gather(*(turn(one, f"{number}") for one in runners))
        record = await store.load(KEY)
    heard = [text for text in said(record) if text != "Done."]
    assert sorted(heard) == sorted(["First", *"001122"])


async def test_conversation_that_another_process_erased_begins_anew(
    bench: Bench, store: SQLiteStore
) -> None:
    bench.server.reset(model=ScriptedModel([say("1"), say("2")]))
    runner = await bench.runner("gpt", store=store)
    await turn(runner, "My secret")
    async with SQLiteStore(store.path) as other:
        await other.forget(KEY)
    await turn(runner, "Hello")
    assert "secret" not in json.dumps(bench.requests[-1].body)
    assert said(await store.load(KEY)) == ["Hello", "2"]


async def test_conversation_that_is_erased_during_a_turn_stays_erased(
    bench: Bench, store: SQLiteStore
) -> None:
    """The turn ends as it would; a warning says that it is not kept."""
    bench.server.reset(model=ScriptedModel([say("1"), say("Two"), say("3")]))
    runner = await bench.runner("gpt", store=store)
    await turn(runner, "My secret")
    heard: list[RunnerEvent] = []
    async with aclosing(runner.run("More of it")) as events, SQLiteStore(store.path) as other:
        async for event in events:
            if isinstance(event, TextDelta) and not heard:
                await other.forget(KEY)
            heard.append(event)
    assert codes(heard) == ["conversation_erased"]
    assert await store.load(KEY) is None
    await turn(runner, "Hello")
    assert "secret" not in json.dumps(bench.requests[-1].body)


async def test_unreadable_record_is_set_aside_and_the_conversation_begins_anew(
    bench: Bench, store: SQLiteStore
) -> None:
    bench.server.reset(model=ScriptedModel([say("1"), say("2"), say("3")]))
    await turn(await bench.runner("gpt", store=store), "My old words")
    other = sqlite3.connect(store.path)
    with other:
        other.execute("UPDATE conversation SET record = '{\"version\": 9}'")
    other.close()
    runner = await bench.runner("gpt", store=store)
    events = await turn(runner, "Hello")
    assert codes(events) == ["record_unreadable"]
    warning = named(events, RunnerWarning)[0].message
    assert "'default' cannot be read: it is of version 9" in warning
    assert "old words" not in json.dumps(bench.requests[-1].body)
    assert codes(await turn(runner, "Go on")) == []
    assert said(await store.load(KEY)) == ["Hello", "2", "Go on", "3"]
    assert _raw(store).count(b"My old words") > 0
    await runner.forget(KEY)
    assert _raw(store).count(b"My old words") == 0


def _raw(store: SQLiteStore) -> bytes:
    return b"".join(path.read_bytes() for path in store.path.parent.iterdir())


async def test_unreadable_record_is_never_written_over(bench: Bench) -> None:
    """By a store of somebody's own, which cannot set it aside: the bot goes on in memory."""
    bench.server.reset(model=ScriptedModel([say("1"), say("2"), say("3")]))
    store = BrokenStore("load", error=UnreadableRecordError("no record", conversation=KEY))
    runner = await bench.runner("gpt", store=store)
    for message in ("One", "Two"):
        assert set(codes(await turn(runner, message))) == {"store_unavailable"}
        assert store._records == {}
    assert len(bench.requests[-1].body["messages"]) == 4
    await asyncio.sleep(0.05)  # several retries
    assert store._records == {}
    store.methods.clear()
    await settled()
    assert said(await store.load(KEY)) == ["One", "1", "Two", "2"]


async def test_forgotten_while_the_store_fails_is_erased_when_it_is_back(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([say("1"), say("2")]))
    store = BrokenStore()
    runner = await bench.runner("gpt", store=store)
    await turn(runner, "My secret")
    store.methods = {"forget"}
    with pytest.raises(ConnectionError):
        await runner.forget(KEY)
    await turn(runner, "Hello")
    assert "secret" not in json.dumps(bench.requests[-1].body)
    store.methods.clear()
    await settled()
    assert said(await store.load(KEY)) == ["Hello", "2"]


async def test_forget_waits_for_no_consumer_that_takes_no_events(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its turn is not kept, and ends when it goes on; the conversation begins anew at once."""
    monkeypatch.setattr("tool_search.runner.conversations._IDLE_S", 0.02)
    bench.server.reset(model=ScriptedModel([say("A long answer"), say("Anew.")]))
    store = MemoryStore()
    runner = await bench.runner("gpt", store=store)
    async with aclosing(runner.run("My secret")) as events:
        assert isinstance(await anext(events), TextDelta)
        await runner.forget(KEY)
        assert named(await turn(runner, "Hello"), Done)[0].answer == "Anew."
        with pytest.raises(SessionError, match="'default' was forgotten while a turn"):
            await anext(events)
    assert said(await store.load(KEY)) == ["Hello", "Anew."]
    assert "secret" not in json.dumps(bench.requests[-1].body)


async def test_turn_that_waited_while_its_conversation_was_forgotten_begins_anew(
    bench: Bench,
) -> None:
    bench.server.reset(model=ScriptedModel([say("One"), say("Two"), say("Three")]))
    runner = await bench.runner("gpt")
    async with aclosing(runner.run("My secret")) as events:
        await anext(events)
        forgetting = asyncio.create_task(runner.forget(KEY))
        await asyncio.sleep(0)
        waiting = asyncio.create_task(turn(runner, "Hello"))
        await asyncio.sleep(0)
        async for _ in events:
            pass
    await forgetting
    assert named(await waiting, Done)
    assert "secret" not in json.dumps(bench.requests[-1].body)


async def test_lessons_wait_for_the_store(bench: Bench) -> None:
    script = {"Weather?": [search("weather umbrella"), calling(FORECAST), say("Sunny.")]}
    bench.server.reset(model=ScriptedModel(turns=script))
    store = BrokenStore("learn")
    runner = await bench.runner("gpt", store=store)
    events = await turn(runner, "Weather?")
    assert codes(events) == ["learning_unavailable"]
    assert "the store is gone: learn" in named(events, RunnerWarning)[0].message
    store.methods.clear()
    await settled()
    (entry,) = (await store.load_evidence()).entries
    assert (entry.tool, entry.strength) == ("get_forecast", 1.0)


async def test_conversations_that_wait_have_a_bound(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A store that is away for days does not fill the process."""
    monkeypatch.setattr("tool_search.stores.keeping._MAX_UNWRITTEN", 3)
    bench.server.reset(model=ScriptedModel([say("Yes.")] * 5))
    store = BrokenStore("save")
    runner = await bench.runner("gpt", store=store)
    for number in range(5):
        await turn(runner, conversation=f"c{number}")
    assert caplog.text.count("are lost") == 2
    store.methods.clear()
    await settled()
    assert sorted(store._records) == ["c2", "c3", "c4"]


async def test_cancelled_while_it_is_saved_a_turn_is_kept_once(
    bench: Bench, store: SQLiteStore
) -> None:
    """The file may have it though nobody heard so: it is not written twice."""
    bench.server.reset(model=ScriptedModel([say("1"), say("2")]))
    runner = await bench.runner("gpt", store=store)
    gate = asyncio.Event()
    save_over = store.save_over
    begun = asyncio.Event()

    async def slow(*args: Any, **how: Any) -> bool:
        is_saved = await save_over(*args, **how)
        begun.set()
        await gate.wait()
        return is_saved

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "save_over", slow)
        task = asyncio.create_task(turn(runner, "One"))
        await begun.wait()
        task.cancel()
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    await turn(runner, "Two")
    await settled()
    assert said(await store.load(KEY)) == ["One", "1", "Two", "2"]
