"""Bounds of a store: number and age of conversations."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.stores.conftest import Store
from tests.stores.contents import discoveries, record
from tests.stores.sqlite.test_file import raw
from tool_search.stores import Grant, MemoryStore, SQLiteStore

DAY_S = 86_400.0


class Clock:
    """The time of a test."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        """Seconds since 1970."""
        return self.now


@asynccontextmanager
async def bounded(
    kind: str,
    folder: Path,
    clock: Callable[[], float],
    *,
    days: float | None = None,
    conversations: int | None = None,
) -> AsyncIterator[Store]:
    """A store of this kind that keeps no more than that."""
    if kind == "memory":
        yield MemoryStore(keep_days=days, keep_conversations=conversations, clock=clock)
        return
    async with SQLiteStore(
        folder / "store.db", keep_days=days, keep_conversations=conversations, clock=clock
    ) as store:
        yield store


async def kept_of(store: Store, keys: list[str]) -> list[str]:
    """The keys whose conversations are there, once all pruning is done."""
    if isinstance(store, SQLiteStore):
        # What was begun in its thread is over when a later request is answered.
        await store._file.read(lambda _connection: None)
        return [key for key in keys if key in await store.conversations()]
    return [key for key in keys if await store.load(key) is not None]


KINDS = pytest.mark.parametrize("kind", ["memory", "sqlite"])


@KINDS
async def test_the_last_used_conversations_are_kept(kind: str, tmp_path: Path) -> None:
    clock = Clock()
    async with bounded(kind, tmp_path, clock, conversations=3) as store:
        for key in ("a", "b", "c", "a", "d"):
            clock.now += 1
            await store.save(key, record("tool_003"))
        assert await kept_of(store, ["a", "b", "c", "d"]) == ["a", "c", "d"]
        assert await store.append_discoveries("b", ()) == ()


@KINDS
async def test_conversations_are_kept_for_so_many_days(kind: str, tmp_path: Path) -> None:
    clock = Clock()
    async with bounded(kind, tmp_path, clock, days=30) as store:
        await store.save("old", record("tool_003"))
        await store.append_discoveries("found", discoveries("tool_005"))
        await store.add_grants([Grant(rule="x", conversation="old"), Grant(rule="y", user="ann")])
        clock.now += 29 * DAY_S
        await store.save("young", record())
        assert await kept_of(store, ["old", "young"]) == ["old", "young"]
        if isinstance(store, SQLiteStore):
            # Read just now, they would be taken for conversations in use.
            store._pruning._in_use.clear()
            store._pruning._next = 0.0
        clock.now += 2 * DAY_S + DAY_S * 30 * (kind == "memory")
        await store.save("young", record())
        assert await kept_of(store, ["old", "found", "young"]) == ["young"]
        assert await store.append_discoveries("found", ()) == ()
        assert [grant.rule for grant in (await store.load_grants()).entries] == ["y"]


async def test_memory_is_bounded_unless_told_otherwise() -> None:
    one = record()
    for most, left in ((2_000, [False, True]), (None, [True, True])):
        store = MemoryStore() if most else MemoryStore(keep_conversations=None)
        for number in range(2_500):
            await store.save(f"c{number}", one)
        assert [await store.load(key) is not None for key in ("c499", "c500")] == left


async def test_a_conversation_in_use_is_not_pruned(tmp_path: Path) -> None:
    """Its turn began before the others: its messages so far must stay."""
    clock = Clock()
    async with bounded("sqlite", tmp_path, clock, conversations=2) as store:
        await store.save("slow", record("tool_003"))
        await store.load("slow")
        for number in range(5):
            clock.now += 1
            await store.save(f"c{number}", record())
        assert "slow" in await kept_of(store, ["slow"])
        clock.now += 1
        await store.save("slow", record("tool_003"))
        clock.now += 1
        await store.save("last", record())
        await store.save("last", record())
        assert await kept_of(store, ["slow", "last", "c4", "c3"]) == ["slow", "last"]


async def test_many_are_pruned_in_small_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.db"
    one = record()
    async with SQLiteStore(path) as store:
        for number in range(350):
            await store.save(f"c{number:03}", one)
    async with SQLiteStore(path, keep_conversations=10) as store:
        steps: list[object] = []
        submit = store._file.submit

        def counted(work: Callable[[sqlite3.Connection], bool]) -> None:
            steps.append(work)
            submit(work)

        monkeypatch.setattr(store._file, "submit", counted)
        await store.save("new", one)
        while len(await store.conversations()) > 10:
            pass
        assert "new" in await store.conversations()
    assert len(steps) == 4


async def test_pruned_words_are_not_left_in_the_file(tmp_path: Path) -> None:
    clock = Clock()
    async with bounded("sqlite", tmp_path, clock, days=1) as store:
        await store.append_discoveries("planted-key", discoveries("planted_tool"))
        clock.now += 2 * DAY_S
        await store.save("new", record())
        await kept_of(store, [])
        await asyncio.sleep(0)
        assert b"planted" not in raw(tmp_path / "store.db")
