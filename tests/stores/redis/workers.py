"""Workers of one bot on one Redis, until they are killed; each message reaches all of them.

Each line of a worker's notes is an acknowledgement: the store had promised to keep it.
"""

from __future__ import annotations

import asyncio
import random

from tests.stores.writers import Notes, Talk
from tool_search.runner import conversations as turn_lock
from tool_search.search.learned import Evidence
from tool_search.stores import Grant
from tool_search.stores.keeping import Backlog
from tool_search.stores.redis import RedisStore

CONVERSATIONS = 8
# A dead worker's conversation waits for so long.
_LEASE_S = 5.0
_PATIENCE_S = 30.0
_EVIDENCE_EVERY = 7


def work(url: str, prefix: str, notes: str, seed: int) -> None:
    """Answer messages until the process is killed."""
    turn_lock._LEASE_S = _LEASE_S
    asyncio.run(_work(url, prefix, Notes(notes), random.Random(seed)))


async def _work(url: str, prefix: str, notes: Notes, chance: random.Random) -> None:
    async with RedisStore(url, prefix=prefix, patience_s=_PATIENCE_S) as store:
        backlog = Backlog()
        talks = [Talk(store, f"c{number}", backlog) for number in range(CONVERSATIONS)]
        for number in range(10**6):
            for talk in chance.sample(talks, len(talks)):
                message = f"{talk.key}.{number}"
                async with turn_lock.turn_locked(store, talk.key, lost=_lost):
                    if message in await talk.heard():
                        continue  # another worker has answered it
                    if await talk.turn(message):
                        notes.add("turn", message)
                if number % _EVIDENCE_EVERY == 0:
                    await _teach(store, message, notes)


async def _teach(store: RedisStore, name: str, notes: Notes) -> None:
    await store.add_evidence([Evidence(tool=name, words=("w",), at=2e9)])
    notes.add("evidence", name)
    await store.add_grants([Grant(rule=name), Grant(rule=f"revoked {name}")])
    notes.add("grant", name)
    await store.revoke_grants([Grant(rule=f"revoked {name}")])
    notes.add("revoked", f"revoked {name}")


def _lost() -> None:
    raise AssertionError("a worker that runs has lost its lock")
