"""Killed writers and full disks break no promise."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import sqlite3
import time
from collections import Counter
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

import pytest

from tests.runner.bench import assert_paired
from tests.stores.writers import SHARED, read_notes, write, write_onto_full_disk
from tool_search.stores import SQLiteStore

_PATIENCE_S = 60.0
# So many kills have one file, so that what one has left is what the next one finds.
_KILLS_OF_A_FILE = 10
COUNTS = pytest.mark.parametrize("kills", [5, pytest.param(200, marks=pytest.mark.long)])


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    """Starts writers without importing everything again."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.stores.writers"])
    return context


def _wait_for(notes: Path, lines: int, writer: ForkServerProcess, *, last: str = "") -> None:
    """Wait until a writer has noted so many lines, or a last line."""
    ended = time.monotonic() + _PATIENCE_S
    while time.monotonic() < ended:
        written = read_notes(notes)
        if len(written) >= lines or (written and written[-1][0] == last):
            return
        assert writer.exitcode is None, f"a writer ended by itself: {writer.exitcode}"
        time.sleep(0.001)
    pytest.fail(f"{notes}: no {lines} lines within {_PATIENCE_S} s")


async def _check(path: Path, notes: Counter[tuple[str, str]]) -> None:
    """Every promise is kept, and nothing is there twice."""
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    promised: dict[str, set[str]] = {}
    for kind, text in notes:
        promised.setdefault(kind, set()).add(text)
    async with SQLiteStore(path) as store:
        evidence = {entry.tool for entry in (await store.load_evidence()).entries}
        assert promised.get("evidence", set()) <= evidence
        grants = {grant.rule for grant in (await store.load_grants()).entries}
        assert promised.get("grant", set()) <= grants
        assert not promised.get("revoked", set()) & grants
        heard = {SHARED: await _turns(store, SHARED)}
        for key in await store.conversations():
            heard[key] = await _turns(store, key)
    assert promised.get("shared turn", set()) <= set(heard[SHARED])
    own = [text for key, texts in heard.items() if key != SHARED for text in texts]
    assert promised.get("turn", set()) <= set(own)


async def _turns(store: SQLiteStore, key: str) -> list[str]:
    """Return the user messages of a conversation; each found its own tool."""
    record = await store.load(key)
    if record is None:
        return []
    assert_paired(record.history)
    texts = [message.text for message in record.history if message.role == "user"]
    assert len(set(texts)) == len(texts)
    found = {entry.name for entry in record.discoveries}
    assert {f"found {text.split()[0]}" for text in texts} <= found
    return texts


@COUNTS
def test_two_writers_that_are_killed_lose_no_promise(
    tmp_path: Path, processes: ForkServerContext, kills: int
) -> None:
    promises = 0
    for kill in range(kills):
        chance = random.Random(kill)
        folder = tmp_path / str(kill // _KILLS_OF_A_FILE)
        folder.mkdir(exist_ok=True)
        path, writers = folder / "store.db", []
        for side in "ab":
            own = f"{side}{kill}"
            notes = folder / f"{own}.notes"
            writers.append((processes.Process(target=write, args=(path, own, notes)), notes))
        for writer, _ in writers:
            writer.start()
        for writer, notes in writers:
            _wait_for(notes, chance.randrange(1, 16), writer)
        time.sleep(chance.random() * 0.01)
        for writer, _ in chance.sample(writers, 2):
            writer.kill()
        for writer, _ in writers:
            writer.join()
            writer.close()
        kept = Counter(note for each in folder.glob("*.notes") for note in read_notes(each))
        asyncio.run(_check(path, kept))
        promises += sum(len(read_notes(notes)) for _, notes in writers)
    print(f"{kills} kills of two writers, {promises} promises: all kept")  # noqa: T201


@COUNTS
def test_a_full_disk_breaks_no_promise(
    tmp_path: Path, processes: ForkServerContext, kills: int
) -> None:
    """The writer continues in memory; it is killed then, or after its waiting writes."""
    promises = waited = 0
    for kill in range(kills):
        chance = random.Random(1000 + kill)
        folder = tmp_path / str(kill // _KILLS_OF_A_FILE)
        folder.mkdir(exist_ok=True)
        path, own = folder / "store.db", f"w{kill}"
        notes = folder / f"{own}.notes"
        arguments = (path, own, notes, 1000 + kill)
        writer = processes.Process(target=write_onto_full_disk, args=arguments)
        writer.start()
        _wait_for(notes, chance.randrange(4, 60), writer, last="end")
        writer.kill()
        writer.join()
        writer.close()
        kept = Counter(note for each in folder.glob("*.notes") for note in read_notes(each))
        asyncio.run(_check(path, kept))
        written = read_notes(notes)
        promises += len(written)
        waited += ("full", "") in written
    assert waited > kills / 2
    print(f"{kills} full disks, {waited} hit in time, {promises} promises: all kept")  # noqa: T201


@pytest.mark.timeout(0)
@pytest.mark.parametrize("turns", [5, pytest.param(200, marks=pytest.mark.long)])
def test_retries_after_kills_repeat_nothing_on_one_file(tmp_path: Path, turns: int) -> None:
    pytest.importorskip("redis", reason="redis-py is not installed: pip install '.[redis]'")
    from tests.stores.keyed_turns import Trial  # noqa: PLC0415  # needs redis-py

    trial = Trial((str(tmp_path / "store.db"), ""), tmp_path)
    trial.run(turns)
    assert trial.killed
    print(f"{turns} turns, {trial.killed} killed, {trial.uncertain} may have run")  # noqa: T201
