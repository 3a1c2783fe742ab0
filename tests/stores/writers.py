"""Processes that write into a store until they are killed, and note its promises.

Each line of a writer's notes is a promise of the store's: it was there when the line was
written. The notes go through the system's memory, as the store's own file does, so that a
kill takes neither.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from tests.conversations import OPENAI, Chat, tool, toolbox
from tool_search import Discovery, StoreError, ToolCatalog, ToolSearchConfig, ToolSearchSession
from tool_search.search.learned import Evidence
from tool_search.stores import ConversationStore, Grant, SQLiteStore
from tool_search.stores.keeping import Backlog, ConversationKeeper, KeptConversation

SHARED = "both:write"
"""The conversation that all writers share."""


class Notes:
    """The promises that a store made to a writer, one a line."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def add(self, kind: str, text: str) -> None:
        """Note a promise."""
        os.write(self._file, f"{json.dumps([kind, text])}\n".encode())


def read_notes(path: Path) -> list[tuple[str, str]]:
    """Return the whole lines of a writer's notes."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [tuple(json.loads(line)) for line in lines]


class Talk:
    """One conversation of a writer, kept as a runner keeps it."""

    def __init__(self, store: ConversationStore, key: str, backlog: Backlog) -> None:
        self.key = key
        self.said: list[str] = []
        self._keeper = ConversationKeeper(store, backlog)
        self._kept: KeptConversation | None = None
        self._chat = Chat(toolbox(3))

    async def heard(self) -> list[str]:
        """Return what was said in the conversation, by any process."""
        await self._refresh()
        return [m.text for m in self._chat.session.history if m.role == "user"]

    async def _refresh(self) -> KeptConversation:
        if self._kept is None or not await self._keeper.is_current(self._kept):
            opened = await self._keeper.open(self.key)
            self._kept, record = opened.kept, opened.record
            self._chat = Chat(toolbox(3))
            self._chat.session = ToolSearchSession(
                ToolCatalog(toolbox(3)),
                config=ToolSearchConfig(tool_schema_mode="tool_search"),
                record=record,
            )
        return self._kept

    async def turn(self, text: str) -> bool:
        """Say something and find a tool; return True if the store has promised to keep it."""
        kept = await self._refresh()
        self._chat.begin(OPENAI, text)
        self._chat.find("tool_001")
        self._chat.answer()
        found = [Discovery(tool=tool(f"found {text.split(maxsplit=1)[0]}"))]
        entries, missing = await self._keeper.append(kept, found)
        self._chat.session.adopt_discoveries(entries)
        notice = await self._keeper.save(kept, self._chat.session.record())
        self.said.append(text)
        return notice is None and missing is None

    async def forget(self) -> None:
        """Erase the conversation."""
        kept, self._kept = self._kept, None
        await self._keeper.forget(self.key, kept)

    async def close(self) -> None:
        """Try all waiting writes."""
        await self._keeper.aclose()


def write(path: str, own: str, notes: str) -> None:
    """Write all kinds of data until the process is killed."""
    asyncio.run(_write(path, own, Notes(notes)))


async def _write(path: str, own: str, notes: Notes) -> None:
    async with SQLiteStore(path, patience_s=30, keep_days=1000) as store:
        backlog = Backlog()
        talks = [Talk(store, own, backlog), Talk(store, SHARED, backlog)]
        for number in range(10**6):
            name = f"{own}.{number}"
            for talk in talks:
                if await talk.turn(name):
                    notes.add("turn" if talk is talks[0] else "shared turn", name)
            await store.add_evidence([Evidence(tool=name, words=(own,), at=2e9)])
            notes.add("evidence", name)
            await store.add_grants([Grant(rule=name), Grant(rule=f"revoked {name}")])
            notes.add("grant", name)
            await store.revoke_grants([Grant(rule=f"revoked {name}")])
            notes.add("revoked", f"revoked {name}")


def write_onto_full_disk(path: str, own: str, notes: str, seed: int) -> None:
    """Write while there is room, then while there is none, then perhaps with room again."""
    asyncio.run(_write_onto_full_disk(path, own, Notes(notes), random.Random(seed)))


async def _write_onto_full_disk(path: str, own: str, notes: Notes, chance: random.Random) -> None:
    async with SQLiteStore(path, patience_s=30) as store:
        backlog = Backlog()
        talk = Talk(store, own, backlog)
        number = 0

        async def turns(count: int) -> None:
            nonlocal number
            for _ in range(count):
                number += 1
                text = f"{own}.{number} {'x' * chance.choice((10, 500, 9000))}"
                if await talk.turn(text):
                    notes.add("turn", text)
                with suppress(StoreError):
                    await store.add_evidence([Evidence(tool=text[:20], words=(own,), at=2e9)])
                    notes.add("evidence", text[:20])

        await turns(chance.randrange(1, 4))
        limits = _no_room if chance.random() < 0.5 else partial(_no_pages, store)
        with limits(Path(path), chance):
            notes.add("full", "")
            await turns(chance.randrange(5, 12))
        if chance.random() < 0.5:
            await talk.close()
            for text in talk.said:
                notes.add("turn", text)
            await turns(2)
        notes.add("end", "")
        await asyncio.Event().wait()


@contextmanager
def _no_room(path: Path, chance: random.Random) -> Iterator[None]:
    """No file of the process may grow beyond a little more than the store has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    most = max(each.stat().st_size for each in path.parent.glob("*.db*"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (most + chance.randrange(40_000), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def _no_pages(store: SQLiteStore, path: Path, chance: random.Random) -> Iterator[None]:
    """Limit SQLite's pages, as on a full disk."""
    _set_pages(store, path.stat().st_size // 4096 + chance.randrange(8))
    try:
        yield
    finally:
        _set_pages(store, 10**6)


def _set_pages(store: SQLiteStore, pages: int) -> None:
    def limit(connection: sqlite3.Connection) -> Any:
        return connection.execute(f"PRAGMA max_page_count = {pages}").fetchone()

    store._file._worker.submit(store._file._transaction, "BEGIN", limit).result()
