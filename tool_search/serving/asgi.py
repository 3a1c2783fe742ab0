"""Work for a client of an ASGI server, which may go away before it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeVar

from tool_search.core.values.aside import end

__all__ = ["until_disconnect"]

_T = TypeVar("_T")


async def until_disconnect(
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]], work: Awaitable[_T]
) -> _T | None:
    """Return the result of the work; None if the client goes away, and the work is cancelled.

    Args:
        receive: The server's `receive`, after the body of the request was read.
        work: The work; what it raises is raised.
    """
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        return await task if task.done() else None
    finally:
        await end(task, gone)


async def _disconnected(receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
