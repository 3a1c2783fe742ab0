"""The stores under one contract: a line here adds a new one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest

from tool_search.stores import (
    ConversationStore,
    EvidenceStore,
    GrantStore,
    MemoryStore,
    SQLiteStore,
)


class Store(ConversationStore, EvidenceStore, GrantStore, Protocol):
    """All protocols of a store."""


@asynccontextmanager
async def _memory(_folder: Path) -> AsyncIterator[Store]:
    yield MemoryStore()


@asynccontextmanager
async def _sqlite(folder: Path) -> AsyncIterator[Store]:
    async with SQLiteStore(folder / "bot" / "store.db") as store:
        yield store


STORES: dict[str, Callable[[Path], AbstractAsyncContextManager[Store]]] = {
    "memory": _memory,
    "sqlite": _sqlite,
}


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """An empty store of each kind."""
    async with STORES[request.param](tmp_path) as opened:
        yield opened
