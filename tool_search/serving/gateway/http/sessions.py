"""The sessions of the handshake versions over HTTP: a bounded number, the idle ones end first.

The SDK's manager refuses every new client while it has its most sessions, which end after half
an hour: one client that opens sessions and leaves them would shut out all others.

Source: mcp 2.3 `server/streamable_http_manager.py`; Model Context Protocol, 2025-11-25,
"Session management" (DELETE ends a session; 404: begin a new one).
"""

from __future__ import annotations

import logging
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Any

from starlette.types import Message, Receive, Scope, Send

__all__ = ["SESSION_HEADER", "OpenSessions"]

SESSION_HEADER = "mcp-session-id"
_HEADER = SESSION_HEADER.encode()
_LOG_PAUSE_S = 60.0
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _OpenSession:
    user: Any
    requests: int = 0


class OpenSessions:
    """Hands requests to the SDK's manager, and ends idle sessions before there are too many.

    Args:
        manager: The manager.
        limit: The most sessions.
    """

    def __init__(self, manager: Any, limit: int) -> None:
        self._manager = manager
        self._limit = limit
        # The one that was used last is at the end.
        self._open: OrderedDict[str, _OpenSession] = OrderedDict()
        self._ended = 0
        self._logged = -_LOG_PAUSE_S

    async def open(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request that opens a session."""
        while len(self._open) >= self._limit and await self._end_one(scope):
            pass

        async def note(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                given = dict(message["headers"]).get(_HEADER, b"").decode("latin-1")
                if given:
                    self._open[given] = _OpenSession(scope.get("user"))
            await send(message)

        await self._manager.handle_request(scope, receive, note)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of a session."""
        number = dict(scope["headers"]).get(_HEADER, b"").decode("latin-1")
        session = self._open.get(number)
        if session is None or session.user != scope.get("user"):
            await self._manager.handle_request(scope, receive, send)
            return
        self._open.move_to_end(number)
        is_over = scope["method"] == "DELETE"

        async def note(message: Message) -> None:
            nonlocal is_over
            is_over |= message["type"] == "http.response.start" and message["status"] == 404
            await send(message)

        session.requests += 1
        try:
            await self._manager.handle_request(scope, receive, note)
        finally:
            session.requests -= 1
            if is_over:
                self._open.pop(number, None)
            elif number in self._open:
                self._open.move_to_end(number)

    async def _end_one(self, scope: Scope) -> bool:
        """End the session that is idle the longest, of the client with the most sessions.

        Returns:
            False if every session has an open request, such as a stream of notifications.
        """
        idle = [number for number, session in self._open.items() if not session.requests]
        if not idle:
            return False
        counts = Counter(_name(session.user) for session in self._open.values())
        most = max(counts[_name(self._open[number].user)] for number in idle)
        number = next(one for one in idle if counts[_name(self._open[one].user)] == most)
        session = self._open.pop(number)
        headers = [pair for pair in scope["headers"] if pair[0] == b"host"]
        ending = {**scope, "method": "DELETE", "headers": [*headers, (_HEADER, number.encode())]}
        if session.user is not None:
            ending["user"] = session.user
        await self._manager.handle_request(ending, _receive_end, _ignore)
        self._log_end()
        return True

    def _log_end(self) -> None:
        self._ended += 1
        now = time.monotonic()
        if now - self._logged >= _LOG_PAUSE_S:
            self._logged = now
            _log.warning(
                "gateway_sessions: %d sessions are open, the most that are kept: %d idle ones "
                "were ended for new ones so far",
                self._limit,
                self._ended,
            )


def _name(user: Any) -> str:
    return "" if user is None else str(user.display_name)


async def _receive_end() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _ignore(_: Message) -> None:
    return
