"""What can be made to go wrong at a stand-in server."""

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

    The model is asked only where its reply is needed: a status, a body, a
    break before the headers and an empty reply take no step of a script.

    Attributes:
        dialect: Only requests of this dialect; None for any.
        path: Only requests to this path; None for any.
        skip: How many fitting requests go through first.
        times: How many requests it strikes; None: until it is cleared.
        status: The HTTP status to answer with.
        message: The error's message in place of the documented one.
        error_type: The error's type in place of the documented one.
        code: The error's code in place of the documented one.
        headers: Headers to add to the answer, `retry-after` for instance.
        broken: The connection is closed.
        after_events: How many events of a stream go out before `status` or
            `broken` strikes, or `tool_call`: at the first part of a tool call's
            arguments. A reply that is not streamed breaks in the middle of its
            body instead.
        delay_s: Seconds before anything is answered.
        event_delay_s: Seconds between two events of a stream.
        stalls: Nothing more comes where `after_events` strikes, but the connection stays,
            with the dialect's keep-alives every `keep_alive_s`.
        keep_alive_s: Seconds between two keep-alives (`ping`, a comment) while nothing else
            is sent; None: there are none.
        close_connection: The answer closes the connection, keep-alive or not.
        arguments: `cut` ends the JSON of tool arguments early, `bad_escape`
            puts an escape into it that JSON does not know.
        leaves_out: What the events of a stream lack, as compatible services have left it out:
            `finish_reason` (Snowflake Cortex), `output_index`, `content_block_stop`.
        empty: The reply has neither text nor calls.
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
        """Whether the fault is meant for requests like this one."""
        return self.dialect in (None, dialect) and self.path in (None, path)

    def sent(self, event: StreamEvent) -> StreamEvent | None:
        """The event without what `leaves_out` names; None: nothing of it is left."""
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
        """The JSON of tool arguments, broken as `arguments` says."""
        if self.arguments == "cut":
            return text[: max(1, len(text) * 2 // 3)]
        if self.arguments == "bad_escape":
            separator = "" if text == "{}" else ", "
            return f'{text[:-1]}{separator}"broken": "\\x"}}'
        return text


class FaultPlan:
    """The faults that wait for requests, in the order they were added."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._lock = threading.Lock()

    def add(self, *faults: Fault) -> None:
        """Adds faults; the first one that fits a request strikes it, and no other."""
        with self._lock:
            self._waiting += [_Waiting(fault, fault.skip, fault.times) for fault in faults]

    def clear(self) -> None:
        """Lets every request through again."""
        with self._lock:
            self._waiting.clear()

    @property
    def waiting(self) -> tuple[Fault, ...]:
        """The faults that can still strike."""
        with self._lock:
            return tuple(waiting.fault for waiting in self._waiting)

    def take(self, dialect: str, path: str) -> Fault | None:
        """The fault that strikes this request, or None; counts it."""
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
