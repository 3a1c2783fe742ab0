"""Locks of turns between processes of one machine."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sqlite3
from contextlib import AsyncExitStack
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from tests.runner.bench import Bench, named, turn
from tests.stores.contents import record
from tool_search import Done
from tool_search.stores import SQLiteStore
from tool_search.stores.sqlite import locks
from tool_search.testing import ModelReply, ModelView, ScriptedModel, StandInServer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


class Echo:
    """A model that repeats what the user said last."""

    def reply(self, view: ModelView) -> ModelReply:
        return ModelReply(text=f"You said {view.last_user_text}")


async def test_two_workers_answer_one_conversation_in_turn(path: Path) -> None:
    with StandInServer(model=ScriptedModel()) as providers:
        providers.reset(model=Echo())
        async with AsyncExitStack() as stack:
            bench = Bench(server=providers, stack=stack)
            stores = [await stack.enter_async_context(SQLiteStore(path)) for _ in range(2)]
            workers = [await bench.runner("gpt", store=store) for store in stores]
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(turn(workers[n % 2], f"message {n}")) for n in range(6)]
            assert all(len(named(task.result(), Done)) == 1 for task in tasks)
            kept = await stores[0].load("default")
    assert kept is not None
    texts = [message.text for message in kept.history]
    assert sorted(texts[::2]) == [f"message {n}" for n in range(6)]
    assert texts[1::2] == [f"You said {text}" for text in texts[::2]]


def lock_and_wait(path: str, ready: Connection) -> None:
    """Lock a conversation for an hour, until the process is killed."""

    async def work() -> None:
        async with SQLiteStore(path) as store:
            ready.send(await store.lock_turn("a", holder="other process", lease_s=3600))
            await asyncio.Event().wait()

    asyncio.run(work())


@pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="needs Linux's /proc")
async def test_the_lock_of_a_killed_process_ends_at_once(path: Path) -> None:
    async with SQLiteStore(path) as store:
        await store.save("a", record())
        here, there = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        worker = context.Process(target=lock_and_wait, args=(str(path), there))
        worker.start()
        assert await asyncio.to_thread(here.recv)
        assert not await store.lock_turn("a", holder="here", lease_s=60)
        # A process that lives keeps its lock, also when the conversation is erased.
        await store.forget("a")
        assert not await store.lock_turn("a", holder="here", lease_s=60)
        worker.kill()
        await asyncio.to_thread(worker.join)
        assert await store.lock_turn("a", holder="here", lease_s=60)


@pytest.mark.parametrize("elsewhere", ["", "boot/pid:[1] 1 1"])
async def test_a_process_of_another_container_keeps_its_lock_for_the_lease(
    path: Path, elsewhere: str
) -> None:
    async with SQLiteStore(path) as store:
        assert await store.lock_turn("a", holder="one", lease_s=60)
        _change(path, "process", elsewhere)
        assert not await store.lock_turn("a", holder="two", lease_s=60)
        _change(path, "ends", 0.0)
        assert await store.lock_turn("a", holder="two", lease_s=60)


async def test_a_lock_from_before_the_last_start_of_the_machine_has_ended(path: Path) -> None:
    async with SQLiteStore(path) as store:
        assert await store.lock_turn("a", holder="one", lease_s=60)
        _change(path, "ends", 1e9)
        assert await store.lock_turn("a", holder="two", lease_s=60)


async def test_a_closed_store_leaves_no_lock(path: Path) -> None:
    async with SQLiteStore(path) as store:
        assert await store.lock_turn("a", holder="one", lease_s=3600)
    async with SQLiteStore(path) as store:
        assert await store.lock_turn("a", holder="two", lease_s=60)


async def test_the_key_of_an_erased_conversation_is_not_left_in_a_dead_lock(path: Path) -> None:
    key = "key-of-ann"
    async with SQLiteStore(path) as store:
        await store.save(key, record())
        assert await store.lock_turn(key, holder="one", lease_s=60)
        _change(path, "ends", 0.0)
        await store.forget(key)
    assert key.encode() not in b"".join(each.read_bytes() for each in path.parent.iterdir())


def test_a_process_is_told_from_a_later_one_of_its_number() -> None:
    own = locks._process(os.getpid())
    assert not own or not locks._is_dead(own)
    assert not own or locks._is_dead(f"{own}0")


def _change(path: Path, column: str, value: object) -> None:
    other = sqlite3.connect(path)
    with other:
        other.execute(f"UPDATE turn_lock SET {column} = ?", (value,))  # noqa: S608 - ours
    other.close()


async def test_closing_a_store_again_does_nothing(path: Path) -> None:
    store = SQLiteStore(path)
    await store.load("c")
    await store.aclose()
    await store.aclose()
