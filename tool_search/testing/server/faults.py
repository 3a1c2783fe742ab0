"""Faults of a stand-in server, for tests."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tool_search.testing.server.dialect import StreamEvent

__all__ = ["Fault", "FaultPlan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One way for requests to fail; several may be combined.

    `Fault(status=529)` answers with the provider's own error body.
    `Fault(status=529, after_events=3)` sends it as an event inside the stream,
    which both vendors do when they fail after the headers.
    `Fault(broken=True)` closes the connection without an answer,
    `Fault(broken=True, after_events="tool_call")` in the middle of a tool call.

    The model is asked only if its reply is needed: a status, a body, a break before the
    headers and an empty reply use no step of a script.

    Attributes:
        dialect: Only requests of this dialect; None for any.
        path: Only requests to this path; None for any.
        skip: The number of matching requests that succeed first.
        times: The number of requests that fail; None until it is cleared.
        status: The HTTP status to answer with.
        message: The error's message in place of the documented one.
        error_type: The error's type in place of the documented one.
        code: The error's code in place of the documented one.
        headers: Headers to add to the answer, `retry-after` for instance.
        broken: True to close the connection.
        after_events: The number of events of a stream before `status` or `broken` occurs,
            or `tool_call` for the first part of a tool call's arguments. A reply that is
            not streamed breaks in the middle of its body instead.
        delay_s: Seconds before the answer.
        event_delay_s: Seconds between two events of a stream.
        stalls: True to send nothing more after `after_events`; the connection stays open,
            with the dialect's keep-alives every `keep_alive_s`.
        keep_alive_s: Seconds between two keep-alives (`ping`, a comment) while nothing else
            is sent; None for no keep-alives.
        close_connection: True to close the connection after the answer.
        arguments: `cut` ends the JSON of tool arguments early, `bad_escape` puts an escape
            into it that JSON does not know.
        leaves_out: A part that the events of a stream lack, as with compatible services:
            `finish_reason` (Snowflake Cortex), `output_index`, `content_block_stop`.
        empty: True for a reply with neither text nor calls.
        content_type: The answer's content type in place of the right one.
        body: The answer's body in place of the right one, any bytes.
    """

    dialect: str | None = None
    path: str | None = None
    skip: int = 0
    times: int | None = 1
    status: int | None = None
    message: str | None = None
    error_type: str | None = None
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    broken: bool = False
    after_events: int | Literal["tool_call"] | None = None
    delay_s: float = 0.0
    event_delay_s: float = 0.0
    stalls: bool = False
    keep_alive_s: float | None = None
    close_connection: bool = False
    arguments: Literal["cut", "bad_escape"] | None = None
    leaves_out: Literal["finish_reason", "output_index", "content_block_stop"] | None = None
    empty: bool = False
    content_type: str | None = None
    body: bytes | None = None

    def fits(self, dialect: str, path: str) -> bool:
        """True if the fault is for requests like this one."""
        return self.dialect in (None, dialect) and self.path in (None, path)

    def sent(self, event: StreamEvent) -> StreamEvent | None:
        """Return the event without the part that `leaves_out` names; None if nothing is left."""
        if self.leaves_out is None or event.data == "[DONE]":
            return event
        if event.name == self.leaves_out:
            return None
        data = json.loads(event.data)
        data.pop(self.leaves_out, None)
        for choice in data.get("choices") or ():
            choice.pop(self.leaves_out, None)
        return replace(event, data=json.dumps(data, ensure_ascii=False))

    def broken_arguments(self, text: str) -> str:
        """Return the JSON of tool arguments, broken as `arguments` says."""
        if self.arguments == "cut":
            return text[: max(1, len(text) * 2 // 3)]
        if self.arguments == "bad_escape":
            separator = "" if text == "{}" else ", "
            return f'{text[:-1]}{separator}"broken": "\\x"}}'
        return text


class FaultPlan:
    """The pending faults, in the order they were added."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._lock = threading.Lock()

    def add(self, *faults: Fault) -> None:
        """Add faults; a request gets the first one that matches it, and no other."""
        with self._lock:
            self._waiting += [_Waiting(fault, fault.skip, fault.times) for fault in faults]

    def clear(self) -> None:
        """Remove every fault."""
        with self._lock:
            self._waiting.clear()

    @property
    def waiting(self) -> tuple[Fault, ...]:
        """The faults that can still occur."""
        with self._lock:
            return tuple(waiting.fault for waiting in self._waiting)

    def take(self, dialect: str, path: str) -> Fault | None:
        """Return the fault of this request, or None, and count it."""
        with self._lock:
            for waiting in self._waiting:
                if not waiting.fault.fits(dialect, path):
                    continue
                if waiting.skip > 0:
                    waiting.skip -= 1
                    continue
                if waiting.times is not None:
                    waiting.times -= 1
                    if waiting.times <= 0:
                        self._waiting.remove(waiting)
                return waiting.fault
        return None


@dataclass(slots=True)
class _Waiting:
    fault: Fault
    skip: int
    times: int | None
