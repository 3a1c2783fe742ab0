"""The base of a store's parts: sections that run whole, and work beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Literal, Self, TypeVar

__all__ = ["Access", "Revision", "Sections", "UnbrokenSections", "as_number", "result_of"]

Access = Literal["read", "write", "durable", "quick"]
"""The kind of a section: `durable` has to reach the disk, `quick` may be lost with the machine."""
Revision = int | bytes
"""A number of changes; bytes as a server has them, which another program may have written."""

_MAX_DIGITS = 20
_T = TypeVar("_T")


class Sections:
    """A store that is open within `async with`, and whose steps belong together in sections."""

    async def __aenter__(self) -> Self:
        """Open the store, so that a problem with it raises at once."""
        try:
            await self._section(self._open, "read")
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the store; it cannot be used again."""

    async def _open(self) -> None:
        """Read something, so that the store is opened."""

    async def _section(self, work: Callable[[], Coroutine[Any, Any, _T]], access: Access) -> _T:
        """Run primitives, and nothing else of any process meanwhile where the store can do that.

        A store that cannot has primitives that are each one step, and that refuse a revision
        which is no longer the current one.
        """
        del access
        return await work()

    async def _aside(self, work: Callable[..., _T], *args: Any) -> _T:
        """Run work that would hold the event loop."""
        return await asyncio.to_thread(work, *args)

    def _asking(self) -> Callable[[Coroutine[Any, Any, _T]], _T]:
        """Return a function that runs primitives for work that is aside."""
        loop = asyncio.get_running_loop()
        return lambda ask: asyncio.run_coroutine_threadsafe(ask, loop).result()


class UnbrokenSections(Sections):
    """Sections of a store whose primitives never wait: all of one runs at once, by `result_of`."""

    async def _aside(self, work: Callable[..., _T], *args: Any) -> _T:
        return work(*args)

    def _asking(self) -> Callable[[Coroutine[Any, Any, _T]], _T]:
        return result_of


def result_of(work: Coroutine[Any, Any, _T]) -> _T:
    """Run primitives that never wait to their end."""
    try:
        work.send(None)
    except StopIteration as end:
        result: _T = end.value
        return result
    raise RuntimeError("a primitive of a store with unbroken sections waits")


def as_number(revision: Revision | None) -> int | None:
    """Return a whole number, or None if the content is not one that this library writes."""
    if not isinstance(revision, bytes):
        return revision
    return int(revision) if revision.isdigit() and len(revision) <= _MAX_DIGITS else None
