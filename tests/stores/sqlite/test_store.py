"""SQLite in particular: a file, several processes, damage and locks."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.stores.contents import discoveries, kept_in, loaded_names, record, success
from tool_search import StoreError
from tool_search.core.messages import user_message
from tool_search.stores import MemoryStore, SQLiteStore
from tool_search.stores import evidence as stored_evidence

WRITER = """
import asyncio, sys
from tool_search import Discovery, Tool
from tool_search.search.learned import Evidence
from tool_search.stores import SQLiteStore

async def write(path, own):
    async with SQLiteStore(path, patience_s=30) as store:
        for number in range(25):
            tools = [Tool(name=f"{own}_{number}"), Tool(name=f"both_{number}")]
            await store.append_discoveries("a", [Discovery(tool=tool) for tool in tools])
            await store.add_evidence([Evidence(tool="t", words=(f"w{number}",), at=0.0)])

asyncio.run(write(*sys.argv[1:]))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bot" / "store.db"


async def test_everything_is_there_after_a_restart(path: Path) -> None:
    kept = record("tool_003")
    async with SQLiteStore(path) as store:
        await store.save("a", kept)
        await store.append_discoveries("a", discoveries("tool_005"))
        await store.add_evidence([success("send_mail", "mail")])
    async with SQLiteStore(path) as store:
        loaded = await store.load("a")
        assert loaded is not None
        assert loaded.history == kept.history
        assert await loaded_names(store, "a") == ["tool_003", "tool_005"]
        assert await kept_in(store) == {success("send_mail", "mail")}


async def test_two_processes_lose_nothing_of_each_other(path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), own])  # noqa: S603, ASYNC220
        for own in ("one", "other")
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    async with SQLiteStore(path) as store:
        entries = await store.append_discoveries("a", [])
        evidence = await kept_in(store)
    assert len(entries) == 75
    assert {entry.strength for entry in evidence} == {2.0}
    assert len(evidence) == 25


async def test_the_file_is_nobody_elses(path: Path) -> None:
    async with SQLiteStore(path) as store:
        await store.save("a", record())
        modes = {entry.name: entry.stat().st_mode & 0o077 for entry in path.parent.iterdir()}
    assert set(modes.values()) == {0}
    assert path.parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "content", [b"no database at all" * 100, b"SQLite format 3\x00" + b"?" * 5000]
)
def test_a_damaged_file_is_named(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"store\.db is damaged or is not a store .* move it away"):
        asyncio.run(SQLiteStore(path).__aenter__())
    assert path.read_bytes() == content


async def test_a_locked_file_is_named(path: Path) -> None:
    async with SQLiteStore(path, patience_s=0.01) as store:
        other = sqlite3.connect(path, isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="locked by another process"):
                await store.add_evidence([success("a", "x")])
            assert await kept_in(store) == set()
            other.execute("ROLLBACK")
        finally:
            other.close()
        await store.add_evidence([success("a", "x")])
        assert await kept_in(store) == {success("a", "x")}


async def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="not a folder"):
        await SQLiteStore(tmp_path / "file" / "store.db").__aenter__()


async def test_a_newer_file_is_left_alone(path: Path) -> None:
    """An older process must not write a format that it does not know."""
    async with SQLiteStore(path):
        pass
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(StoreError, match="newer version"):
        await SQLiteStore(path).__aenter__()


async def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    """A mistyped path must not add tables to it."""
    path = tmp_path / "theirs.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (x)")
    other.commit()
    with pytest.raises(StoreError, match="database of another program"):
        await SQLiteStore(path).__aenter__()
    assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
    other.close()


async def test_an_unreadable_conversation_is_named(path: Path) -> None:
    async with SQLiteStore(path) as store:
        await store.save("a", record())
        other = sqlite3.connect(path)
        with other:
            other.execute("UPDATE conversation SET record = '{}'")
        other.close()
        with pytest.raises(StoreError, match="record of the conversation 'a' cannot be read"):
            await store.load("a")
        await store.forget("a")
        assert await store.load("a") is None


async def test_all_conversations_are_forgotten_at_once(path: Path) -> None:
    async with SQLiteStore(path) as store:
        await store.save("a", record("tool_003"))
        await store.append_discoveries("b", discoveries("tool_005"))
        assert await store.conversations() == ("a", "b")
        assert await store.forget_conversations() == 2
        assert await store.conversations() == ()
        assert await store.load("a") is None
        assert await store.append_discoveries("b", []) == ()


async def test_the_whole_store_is_bounded_as_memory_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_evidence, "MAX_EVIDENCE", 3)
    monkeypatch.setattr("tool_search.search.learned.MAX_EVIDENCE", 3)
    memory = MemoryStore()
    async with SQLiteStore(path) as store:
        for number, age in enumerate((5, 1, 4, 2, 3)):
            entry = success(f"tool_{number}", "word", at=2.0e9 - age * 86_400)
            await store.add_evidence([entry])
            await memory.add_evidence([entry])
        left = await kept_in(store)
        assert left == await kept_in(memory)
    assert {entry.tool for entry in left} == {"tool_1", "tool_3", "tool_4"}


async def test_a_conversation_of_50_megabytes_is_kept_whole(path: Path) -> None:
    before = record()
    history = tuple(user_message(f"{number} {'x' * 12_000}") for number in range(4_200))
    large = replace(before, history=history)
    async with SQLiteStore(path) as store:
        await store.save("a", large)
        assert await store.load("a") == large
        longer = replace(large, history=(*history, user_message("more")))
        await store.save("a", longer)
        assert await store.load("a") == longer
