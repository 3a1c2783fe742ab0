"""Workers and servers that are killed: nothing acknowledged is lost, nothing is answered twice."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import secrets
import time
from collections import Counter
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

import pytest

from tests.runner.bench import assert_paired
from tests.stores.redis.servers import RedisServer
from tests.stores.writers import read_notes

pytest.importorskip("redis", reason="redis-py is not installed: pip install '.[redis]'")

from tests.stores.keyed_turns import Trial
from tests.stores.redis.workers import CONVERSATIONS, work
from tool_search.stores.redis import RedisStore

WORKERS = 8
_PATIENCE_S = 120.0
# So many kills have one set of conversations.
_KILLS_OF_A_SET = 10


class Fleet:
    """Eight workers of one set of conversations; a dead one is replaced."""

    def __init__(self, context: ForkServerContext, server: RedisServer, folder: Path) -> None:
        self.prefix = f"kills-{secrets.token_hex(4)}"
        self._context, self._server, self._folder = context, server, folder
        folder.mkdir()
        self.workers = [self._started() for _ in range(WORKERS)]

    def _started(self) -> ForkServerProcess:
        number = len(list(self._folder.iterdir()))
        notes = self._folder / f"{number}.notes"
        notes.touch()
        arguments = (self._server.url, self.prefix, notes, number)
        worker = self._context.Process(target=work, args=arguments)
        worker.start()
        return worker

    def notes(self) -> Counter[tuple[str, str]]:
        """Return all acknowledgements."""
        return Counter(n for path in self._folder.iterdir() for n in read_notes(path))

    def wait_for_more(self, count: int) -> None:
        """Wait until there are so many more acknowledgements."""
        wanted = self.notes().total() + count
        ended = time.monotonic() + _PATIENCE_S
        while self.notes().total() < wanted:
            assert all(worker.exitcode is None for worker in self.workers), "a worker ended"
            assert time.monotonic() < ended, f"no {count} more turns within {_PATIENCE_S} s"
            time.sleep(0.005)

    def kill_one(self, chance: random.Random) -> None:
        """Kill a worker, and start another one."""
        place = chance.randrange(WORKERS)
        self._end(self.workers[place])
        self.workers[place] = self._started()

    def end(self) -> None:
        """Kill all workers."""
        for worker in self.workers:
            self._end(worker)

    def _end(self, worker: ForkServerProcess) -> None:
        worker.kill()
        worker.join()
        worker.close()


@pytest.mark.timeout(0)
@pytest.mark.parametrize("kills", [5, pytest.param(200, marks=pytest.mark.long)])
def test_killed_workers_and_servers_lose_nothing_and_answer_nothing_twice(
    server: RedisServer, tmp_path: Path, kills: int
) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.stores.redis.workers"])
    promises = servers = 0
    for first in range(0, kills, _KILLS_OF_A_SET):
        fleet = Fleet(context, server, tmp_path / str(first))
        try:
            for kill in range(first, min(kills, first + _KILLS_OF_A_SET)):
                chance = random.Random(kill)
                fleet.wait_for_more(chance.randrange(8, 40))
                time.sleep(chance.random() * 0.01)
                if kill % 2:
                    fleet.kill_one(chance)
                else:
                    servers += 1
                    server.kill()
                    time.sleep(chance.random() * 0.3)
                    server.start()
            fleet.wait_for_more(8)
        finally:
            fleet.end()
        promises += asyncio.run(_check(server.url, fleet))
    print(  # noqa: T201
        f"{kills} kills, {servers} of the server, eight workers, {promises} promises: all kept"
    )


async def _check(url: str, fleet: Fleet) -> int:
    """Return the number of promises; each is kept, and no message was answered twice."""
    notes = fleet.notes()
    promised: dict[str, set[str]] = {}
    for kind, text in notes:
        promised.setdefault(kind, set()).add(text)
    assert [note for note, count in notes.items() if note[0] == "turn" and count > 1] == []
    heard: list[str] = []
    async with RedisStore(url, prefix=fleet.prefix) as store:
        for number in range(CONVERSATIONS):
            heard += await _turns(store, f"c{number}")
        evidence = {entry.tool for entry in (await store.load_evidence()).entries}
        grants = {grant.rule for grant in (await store.load_grants()).entries}
    assert len(set(heard)) == len(heard)
    assert promised["turn"] <= set(heard)
    assert promised.get("evidence", set()) <= evidence
    assert promised.get("grant", set()) <= grants
    assert not promised.get("revoked", set()) & grants
    return notes.total()


async def _turns(store: RedisStore, key: str) -> list[str]:
    """Return the user messages of a conversation; each found its own tool."""
    record = await store.load(key)
    assert record is not None
    assert_paired(record.history)
    texts = [message.text for message in record.history if message.role == "user"]
    found = {entry.name for entry in record.discoveries}
    assert {f"found {text}" for text in texts} <= found
    return texts


@pytest.mark.timeout(0)
@pytest.mark.parametrize("turns", [8, pytest.param(200, marks=pytest.mark.long)])
def test_retries_after_kills_repeat_nothing_on_one_server(
    server: RedisServer, tmp_path: Path, prefix: str, turns: int
) -> None:
    trial = Trial((server.url, prefix), tmp_path)
    trial.run(turns)
    assert trial.killed
    print(f"{turns} turns, {trial.killed} killed, {trial.uncertain} may have run")  # noqa: T201
