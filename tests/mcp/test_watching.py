"""Watched resources of a server whose connection ends at the wrong moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tool_search.adapters.mcp.protocol import NotSentError
from tool_search.adapters.mcp.watching import WatchedResources


class SlowSession:
    """A session of 2026-07-28 that confirms its first stream alone."""

    capabilities = {"resources": {"subscribe": True}}  # noqa: RUF012
    listens = True

    def __init__(self) -> None:
        self.opened = 0
        self.waits = asyncio.Event()

    @asynccontextmanager
    async def listen_to(self, _: Sequence[str]) -> AsyncGenerator[Any]:
        self.opened += 1
        if self.opened > 1:
            self.waits.set()
            await asyncio.Event().wait()
        yield self._events()

    async def _events(self) -> AsyncGenerator[str]:
        await asyncio.Event().wait()
        yield ""


async def test_a_connection_that_ends_while_a_stream_begins_leaves_no_task() -> None:
    before = asyncio.all_tasks()
    watched, session = WatchedResources("notes"), SlowSession()
    await watched.add(session, "note://1", print)  # type: ignore[arg-type]
    second = asyncio.create_task(
        watched.add(session, "note://2", print)  # type: ignore[arg-type]
    )
    await session.waits.wait()

    watched.stop()

    with pytest.raises(NotSentError, match="closed"):
        await asyncio.wait_for(second, 5)
    left = asyncio.all_tasks() - before
    if left:
        await asyncio.wait(left, timeout=5)
    assert asyncio.all_tasks() == before
