"""Memory and SQLite under the contract that is shipped for stores of others."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tool_search.stores import MemoryStore, SQLiteStore
from tool_search.testing.store_contract import (
    ConversationContract,
    EvidenceContract,
    GrantContract,
    PermissionModeContract,
    StoreContract,
)


class TestMemory(ConversationContract, EvidenceContract, GrantContract, PermissionModeContract):
    """The store in memory."""

    @asynccontextmanager
    async def open_store(self) -> AsyncIterator[MemoryStore]:
        yield MemoryStore()


class TestSQLite(StoreContract):
    """The store in a file."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self._path = tmp_path / "bot" / "store.db"

    @asynccontextmanager
    async def open_store(self) -> AsyncIterator[SQLiteStore]:
        async with SQLiteStore(self._path) as store:
            yield store


class _LosingStore(MemoryStore):
    """A store that forgets discoveries which were made before a save."""

    async def save(self, key: str, record: object) -> None:
        await self.forget(key)
        await super().save(key, record)  # type: ignore[arg-type]


class _Losing(StoreContract):
    @asynccontextmanager
    async def open_store(self) -> AsyncIterator[MemoryStore]:
        yield _LosingStore()


async def test_a_store_that_breaks_its_contract_fails_the_tests_of_what_it_breaks() -> None:
    failed = []
    for name, test in inspect.getmembers(_Losing(), inspect.iscoroutinefunction):
        try:
            await test()
        except (AssertionError, AttributeError):
            failed.append(name)
    conversations = [name for name in failed if hasattr(ConversationContract, name)]
    assert conversations == [
        "test_discoveries_before_the_first_save_are_kept",
        "test_saving_keeps_what_was_appended_meanwhile",
    ]
    assert "test_a_save_over_the_expected_revision_is_kept" in failed
