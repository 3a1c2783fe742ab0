"""The book of grants over stores that work, fail and are shared."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tool_search import StoreError
from tool_search.runner.execution import Grant, GrantBook, GrantFile, GrantStore
from tool_search.stores import MemoryStore, SQLiteStore

MAIL = Grant(rule="send_mail", user="ann", fingerprint="f1")
CHAT = Grant(rule="run(git *)", user=None, conversation="group:1")
REVOKE = """
import asyncio, sys
from tool_search.runner.execution import Grant, GrantBook
from tool_search.stores import SQLiteStore

async def revoke(path):
    async with SQLiteStore(path) as store:
        await GrantBook(store).revoke(Grant(rule="send_mail", user="ann"))

asyncio.run(revoke(*sys.argv[1:]))
"""


async def kept_in(store: GrantStore) -> list[Grant]:
    return list((await store.load_grants()).entries)


async def test_a_revocation_in_another_process_counts_at_the_next_call(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with SQLiteStore(path) as store:
        book = GrantBook(store)
        await book.add(MAIL)
        assert book.rules(user="ann", conversation="c") == ("send_mail",)
        subprocess.run([sys.executable, "-c", REVOKE, path], check=True, timeout=60)  # noqa: ASYNC221, S603
        await book.read()
        assert book.rules(user="ann", conversation="c") == ()


@pytest.mark.parametrize(
    "entry", ["{", "[]", "5", "{}", '{"rule": 5}', '{"rule": "*", "until": "tomorrow"}', "[" * 9999]
)
async def test_a_grant_that_cannot_be_read_grants_nothing(
    tmp_path: Path, entry: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "store.db"
    async with SQLiteStore(path) as store:
        await store.add_grants([MAIL])
        other = sqlite3.connect(path)
        with other:
            other.execute("INSERT INTO permission_grant (entry) VALUES (?)", (entry,))
        other.close()
        assert await kept_in(store) == [MAIL]
    assert "it is skipped" in caplog.text


class Failing(MemoryStore):
    """A store that works, then fails, then works again."""

    broken = False

    async def grant_revision(self) -> int:
        """Fail while it is broken."""
        if self.broken:
            raise StoreError("no such disk")
        return await super().grant_revision()

    async def add_grants(self, grants: Sequence[Grant], *, source: str | None = None) -> bool:
        """Fail while it is broken."""
        await self.grant_revision()
        return await super().add_grants(grants, source=source)

    async def revoke_grants(self, grants: Sequence[Grant]) -> int:
        """Fail while it is broken."""
        await self.grant_revision()
        return await super().revoke_grants(grants)


async def test_nothing_kept_is_granted_while_the_store_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A grant may have been revoked there; new grants count and are written later."""
    store = Failing()
    book = GrantBook(store)
    await book.add(MAIL)
    store.broken = True
    await book.read()
    await book.add(CHAT)
    assert list(book.entries) == [CHAT]
    assert caplog.text.count("grants_unavailable") == 1
    store.broken = False
    await book.read()
    assert list(book.entries) == [MAIL, CHAT]
    assert await kept_in(store) == [MAIL, CHAT]


async def test_a_revocation_that_the_store_does_not_take_is_an_error_and_holds() -> None:
    store = Failing()
    book = GrantBook(store)
    await book.add(MAIL)
    store.broken = True
    with pytest.raises(StoreError):
        await book.revoke(MAIL)
    assert book.entries == ()
    store.broken = False
    await book.read()
    assert await kept_in(store) == []


async def test_granted_again_after_a_revocation_it_holds_again() -> None:
    store = Failing()
    book = GrantBook(store)
    await book.add(MAIL)
    store.broken = True
    with pytest.raises(StoreError):
        await book.revoke(MAIL)
    await book.add(MAIL)
    assert book.entries == (MAIL,)
    store.broken = False
    await book.read()
    assert book.entries == (MAIL,)
    assert await kept_in(store) == [MAIL]


async def test_grants_of_an_older_version_are_taken_over_once(tmp_path: Path) -> None:
    path = tmp_path / "grants.json"
    path.write_text('[{"rule": "send_mail", "user": "ann"}]')
    store = MemoryStore()
    first = GrantBook(file=GrantFile(path))
    first.keep_in(store)
    await first.read()
    assert first.rules(user="ann", conversation="c") == ("send_mail",)
    await first.revoke(first.entries[0])
    again = GrantBook(store, file=GrantFile(path))
    await again.read()
    assert again.entries == ()
    assert path.is_file()
