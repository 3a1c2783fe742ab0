"""Iterators that end with their reader: no connection and no tool outlives a turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

__all__ = ["closing"]

_ItemT = TypeVar("_ItemT")


@asynccontextmanager
async def closing(items: AsyncIterator[_ItemT]) -> AsyncGenerator[AsyncIterator[_ItemT], None]:
    """Closes an iterator at the end of the block, where it is one that can be closed.

    The protocols of this library promise an iterator and no more; a generator that is
    only dropped would hold on to what it has opened until the event loop finds it.
    """
    try:
        yield items
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
