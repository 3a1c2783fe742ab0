"""Memory, SQLite and a stranger's store under the contract that is shipped for stores of others."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.project.run_page import ROOT, blocks
from tests.stores.contents import discoveries, record
from tool_search.stores import Grant, MemoryStore, SQLiteStore, StoreCore
from tool_search.stores.conversations import Selection
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


def _of_the_page() -> tuple[str, type[StoreCore]]:
    """Return the store over the core that `docs/extending/store.md` shows, and its text."""
    page = blocks(ROOT / "docs" / "extending" / "store.md", "python")
    (text,) = [block.partition("async def main")[0] for block in page if "StoreCore" in block]
    names: dict[str, Any] = {"__name__": "stranger"}
    exec(compile(text, "store.md", "exec"), names)  # noqa: S102  # our own page
    return text, names["FileStore"]


class TestStranger(StoreContract):
    """A store that somebody writes from the page, in fewer than 150 lines."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self._path = tmp_path / "store.json"
        text, self._class = _of_the_page()
        assert len(text[text.index("class FileStore") :].splitlines()) < 150

    @asynccontextmanager
    async def open_store(self) -> AsyncIterator[StoreCore]:
        async with self._class(self._path) as store:  # type: ignore[call-arg]
            yield store

    async def test_erasing_exports_first_and_takes_what_belongs_to_a_conversation(self) -> None:
        """This and more it gets from the core."""
        exported: dict[str, list[Any]] = {}
        granted = Grant(rule="run", conversation="a")
        async with self.open_store() as store:
            for key in ("a", "b"):
                await store.save(key, record("tool_001"))
            await store.append_discoveries("a", discoveries("tool_002"))
            await store.add_grants([granted, Grant(rule="run", conversation="b")])
            erased = await store.erase(
                Selection(conversations=("a",)),
                export=lambda parts: exported.update({k: list(v) for k, v in parts.items()}),
            )
            assert (erased.conversations, erased.grants) == (1, 1)
            (one,) = exported["conversations"]
            assert (one["key"], one["grants"]) == ("a", [granted.to_dict()])
            assert await store.conversations() == ("b",)


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
