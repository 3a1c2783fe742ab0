"""Raw services on loopback, which end with the test that started them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
_HUNG_UP = (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError)


@asynccontextmanager
async def listening(serve: Serve, *, port: int = 0, limit: int = 2**22) -> AsyncIterator[int]:
    """Serve connections for as long as the block lasts, and give the port.

    No connection outlives the block: one that the garbage collector closes warns of it in
    whatever test runs by then.
    """
    writers: list[asyncio.StreamWriter] = []
    tasks: list[asyncio.Future[None]] = []

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        tasks.append(asyncio.ensure_future(serve(reader, writer)))

    server = await asyncio.start_server(connected, "127.0.0.1", port, limit=limit)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            writer.transport.abort()
        # An aborted transport closes its socket in the loop's next round.
        await asyncio.sleep(0)
    for error in ended:
        if isinstance(error, BaseException) and not isinstance(error, _HUNG_UP):
            raise error
