"""Resources of one server that are watched for changes, over all of its connections.

On the handshake versions a resource is subscribed to, and notifications come on the session.
On 2026-07-28 one stream listens to all of them; it is opened again when their number changes.

Source: Model Context Protocol, 2025-11-25, "Resources" (subscriptions), and 2026-07-28,
`subscriptions/listen`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from tool_search.adapters.mcp.protocol import NotSentError, RefusedError, Session
from tool_search.errors import SourceError
from tool_search.sources.base import OnUpdate, Unsubscribe

__all__ = ["WatchedResources"]

_MAX_WATCHED = 10_000
# A server may send any number of notifications; a resource is reported once in this time.
_REST_S = 0.25
_MIN_PAUSE_S, _MAX_PAUSE_S = 0.5, 30.0
_log = logging.getLogger(__name__)


class WatchedResources:
    """The watched resources of one server.

    Args:
        server: The server's name.
        timeout_s: Seconds for an answer of the server to what no call waits for.
    """

    def __init__(self, server: str, *, timeout_s: float) -> None:
        self._server = server
        self._timeout_s = timeout_s
        self._callbacks: dict[str, Counter[OnUpdate]] = {}
        # The resources that were reported a moment ago, and the last report that waits.
        self._resting: dict[str, str | None] = {}
        self._session: Session | None = None
        self._stream: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._lock = asyncio.Lock()

    async def add(self, session: Session, uri: str, callback: OnUpdate) -> Unsubscribe:
        """Call a function after each change of a resource; return the end of it.

        The same function counts each time that it is added, and is called once.

        Raises:
            SourceError: The server does not offer it, or too many resources are watched.
            RefusedError: The server refuses.
        """
        offered = session.capabilities.get("resources") or {}
        if not offered.get("subscribe"):
            raise SourceError("has no subscriptions to resources", server=self._server)
        if uri not in self._callbacks and len(self._callbacks) >= _MAX_WATCHED:
            problem = f"has {_MAX_WATCHED:,} watched resources already"
            raise SourceError(problem, server=self._server)
        async with self._lock:
            is_new = uri not in self._callbacks
            self._callbacks.setdefault(uri, Counter())[callback] += 1
            if is_new or self._session is not session:
                try:
                    await self._subscribe(session, uri)
                except BaseException:
                    self._remove(uri, callback)
                    raise
        is_open = True

        def end() -> None:
            nonlocal is_open
            if is_open and self._remove(uri, callback):
                self._later(self._unsubscribe(uri))
            is_open = False

        return end

    def hear(self, uri: str) -> None:
        """Take a notification of a session."""
        # The SDK gives those of a stream to both, and the stream says when it was lost.
        if self._session is not None and not self._session.listens:
            self._take(uri)

    def _take(self, uri: str) -> None:
        """Take the address of a changed resource, which may be a part of a watched one."""
        for watched in tuple(self._callbacks):
            if uri == watched or uri.startswith(f"{watched.rstrip('/')}/"):
                self._report(watched, uri)

    async def resume(self, session: Session) -> None:
        """Watch all resources on a new connection; changes may have been missed before it."""
        async with self._lock:
            self._session, uris = session, tuple(self._callbacks)
            try:
                if uris and session.listens:
                    async with asyncio.timeout(self._timeout_s):
                        await self._open_stream(session)
                for uri in () if session.listens else uris:
                    # Each has its own time: a slow server may have thousands.
                    async with asyncio.timeout(self._timeout_s):
                        await session.request("resources/subscribe", {"uri": uri})
            except (RefusedError, NotSentError, ValueError) as exc:
                self._warn(str(exc))
            except TimeoutError:
                self._warn(f"it did not answer within {self._timeout_s:g} seconds")
        for uri in uris:
            self._take(uri)

    def stop(self) -> None:
        """Forget the connection, which is gone; the resources stay watched."""
        self._session = None
        self._stream = None
        for task in tuple(self._tasks):
            task.cancel()

    def _remove(self, uri: str, callback: OnUpdate) -> bool:
        """Return True if nobody watches the resource any more."""
        callbacks = self._callbacks.get(uri)
        if callbacks is None:
            return False
        callbacks[callback] -= 1
        if callbacks[callback] <= 0:
            del callbacks[callback]
        if callbacks:
            return False
        del self._callbacks[uri]
        return True

    def _report(self, watched: str, uri: str) -> None:
        if watched in self._resting:
            self._resting[watched] = uri
            return
        self._resting[watched] = None
        asyncio.get_running_loop().call_later(_REST_S, self._rest, watched)
        for callback in tuple(self._callbacks.get(watched, ())):
            try:
                callback(uri)
            except Exception:  # noqa: BLE001  # the subscriber's own function
                # The failure of one must not keep the others from hearing of it.
                _log.exception("mcp_resource: a subscriber of a resource failed")

    def _rest(self, watched: str) -> None:
        uri = self._resting.pop(watched, None)
        if uri is not None and watched in self._callbacks:
            self._report(watched, uri)

    async def _subscribe(self, session: Session, uri: str) -> None:
        self._session = session
        if session.listens:
            await self._open_stream(session)
        else:
            await session.request("resources/subscribe", {"uri": uri})

    async def _unsubscribe(self, uri: str) -> None:
        async with self._lock:
            session = self._session
            if session is None or uri in self._callbacks:
                return
            with suppress(RefusedError, NotSentError, ValueError, TimeoutError):
                async with asyncio.timeout(self._timeout_s):
                    if session.listens:
                        await self._open_stream(session)
                    else:
                        await session.request("resources/unsubscribe", {"uri": uri})

    def _warn(self, cause: str) -> None:
        _log.warning(
            "mcp_resource: server %r does not report changes of resources any more: %s",
            self._server,
            cause,
        )

    async def _open_stream(self, session: Session) -> None:
        """Listen to all resources in one stream; the one before ends after it has begun."""
        before, uris = self._stream, tuple(self._callbacks)
        self._stream = None
        if uris:
            begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            stream = self._later(self._hear_stream(session, uris, begun.set_result))
            try:
                await asyncio.wait((stream, begun), return_when=asyncio.FIRST_COMPLETED)
                if stream.done():
                    _raise_failure(stream)
            except BaseException:
                stream.cancel()
                self._stream = before
                raise
            self._stream = stream
        if before is not None:
            before.cancel()

    async def _hear_stream(
        self, session: Session, uris: tuple[str, ...], begun: Callable[[None], None]
    ) -> None:
        pause, is_first = _MIN_PAUSE_S, True
        while True:
            try:
                async with session.listen_to(uris) as events:
                    if is_first:
                        is_first = False
                        begun(None)
                    else:
                        # Changes may have been missed since the stream was lost.
                        pause = _MIN_PAUSE_S
                        for uri in uris:
                            self._take(uri)
                    async for uri in events:
                        # Two streams are open while one takes the other's place.
                        if self._stream in (None, asyncio.current_task()):
                            self._take(uri)
            except (RefusedError, NotSentError):
                if is_first:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE_S)

    def _later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _raise_failure(stream: asyncio.Task[None]) -> None:
    """Raise the failure of a stream that has not begun."""
    if stream.cancelled():
        # By `stop`: the task that waits for the stream is not cancelled itself.
        raise NotSentError("the connection is closed")
    stream.result()
