"""Limits of the time and the size of one reply.

Time that a consumer takes between two events does not count, so it cannot make a provider
fail. Keep-alives (comments, `ping`, empty pieces) do not count as progress.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from typing import TypeVar

from tool_search.adapters.sdk.failures import REPLY_TOO_LARGE, TIMEOUT, Failure, ReplyFailedError
from tool_search.adapters.wire.incoming import DEFAULT_LIMITS
from tool_search.config.limits import LimitSettings

__all__ = [
    "ReplyLimits",
    "ReplyMeter",
    "ReplyProgress",
]


class ReplyProgress:
    """The progress of a reply, as its reader counts it.

    Attributes:
        steps: The number of events with content; keep-alives and empty pieces have none.
        size: The number of characters that are kept.
        calls: The number of calls.
        is_waiting: True as long as silence is normal: nothing has come yet, or the next
            piece is known to take long (thinking).
        is_over: True after the reply's last event was read.
        event_size: The number of characters of the current event.
    """

    __slots__ = ("calls", "event_size", "is_over", "is_waiting", "size", "steps")

    def __init__(self) -> None:
        self.steps = 0
        self.size = 0
        self.calls = 0
        self.is_waiting = True
        self.is_over = False
        self.event_size = 0

    def count_text(self, text: str) -> None:
        """Count a piece of the reply; an empty one is not progress."""
        if text:
            self.steps += 1
            self.size += len(text)

    def count_event(self) -> None:
        """Count an event that is kept whole."""
        self.steps += 1
        self.size += self.event_size


_ValueT = TypeVar("_ValueT")

# DeepSeek writes 384,000 tokens at most, each in an event of some 300 bytes.
_WIRE_BYTES_PER_BYTE_KEPT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyLimits:
    """The limits of one reply.

    Attributes:
        first_byte_s: Seconds until it begins; headers and keep-alives are not a beginning.
            Also the longest silence while the model thinks, or while Claude writes a call.
        silence_s: Seconds without anything new after that.
        reply_s: Seconds for the whole reply; None for no limit.
        incoming: Bounds of one body or event, and of what is kept of a reply; a stream may have
            eight times as many bytes.
        max_idle_bytes: Bytes in a row without anything new.
        max_calls: The number of its calls.
    """

    first_byte_s: float = 600.0
    silence_s: float = 60.0
    reply_s: float | None = None
    incoming: LimitSettings = DEFAULT_LIMITS
    max_idle_bytes: int = 16 * 1024 * 1024
    max_calls: int = 10_000


class ReplyMeter:
    """A meter that compares one reply with its limits.

    Args:
        limits: The limits.
        progress: The progress that its reader counts.
    """

    def __init__(self, limits: ReplyLimits, progress: ReplyProgress) -> None:
        self.limits = limits
        self.progress = progress
        self._clock = asyncio.get_running_loop().time
        self._began = self._alive = self._clock()
        self._bytes = self._idle_bytes = 0
        self._steps = 0

    async def next(self, chunks: AsyncIterator[bytes], paused_s: float = 0.0) -> bytes | None:
        """Return the next bytes of the reply, None at its end.

        Args:
            chunks: The bytes.
            paused_s: Seconds that the consumer took since the last ones: they are not the
                service's.

        Raises:
            ReplyFailedError: It is beyond a limit, or the bytes do not come in time.
        """
        self.check(paused_s)
        chunk = await self.wait(anext(chunks, None))
        if chunk is not None:
            self._bytes += len(chunk)
            self._idle_bytes += len(chunk)
            max_bytes = self.limits.incoming.max_bytes * _WIRE_BYTES_PER_BYTE_KEPT
            if self._bytes > max_bytes:
                raise _too_large(f"it has more than {max_bytes:,} bytes on the wire")
        return chunk

    async def wait(self, work: Awaitable[_ValueT]) -> _ValueT:
        """Return the service's answer, if it comes in time.

        Raises:
            ReplyFailedError: It does not come in time.
        """
        deadline, _ = self._deadline()
        try:
            async with asyncio.timeout_at(deadline) as patience:
                return await work
        except TimeoutError as exc:
            if patience.expired():
                raise self._too_late() from exc
            raise ReplyFailedError(
                Failure(detail=f"no answer in time: {exc}", code=TIMEOUT)
            ) from exc

    def _deadline(self) -> tuple[float, str]:
        """Return the time at which waiting ends, and the name of the limit."""
        limits = self.limits
        silence = (self._alive + limits.silence_s, f"{limits.silence_s:g} seconds (timeout_s)")
        if self.progress.is_waiting:
            silence = (
                self._alive + limits.first_byte_s,
                f"{limits.first_byte_s:g} seconds (first_byte_timeout_s)",
            )
        if limits.reply_s is None:
            return silence
        whole = (self._began + limits.reply_s, f"{limits.reply_s:g} seconds (reply_timeout_s)")
        return min(silence, whole)

    def _too_late(self) -> ReplyFailedError:
        _, limit = self._deadline()
        what = "the reply was not complete" if "reply_" in limit else "nothing new came"
        return ReplyFailedError(Failure(detail=f"{what} within {limit}", code=TIMEOUT))

    def check(self, paused_s: float = 0.0) -> None:
        """Compare the reply with its limits, once for each piece of the stream.

        Args:
            paused_s: As in `next`.

        Raises:
            ReplyFailedError: It has too many calls, too much text, or nothing new for too
                long.
        """
        self._began += paused_s
        self._alive += paused_s
        progress, limits = self.progress, self.limits
        if progress.steps != self._steps:
            self._steps = progress.steps
            self._alive = self._clock()
            self._idle_bytes = 0
        elif self._idle_bytes > limits.max_idle_bytes:
            raise _too_large(f"{limits.max_idle_bytes:,} bytes came with nothing new in them")
        elif self._clock() > self._deadline()[0]:
            # Bytes that arrived without waiting do not extend the time.
            raise self._too_late()
        if progress.size > limits.incoming.max_bytes:
            raise _too_large(f"it has more than {limits.incoming.max_bytes:,} characters")
        self.check_calls(progress.calls)

    def check_calls(self, calls: int) -> None:
        """Compare the number of calls alone.

        Raises:
            ReplyFailedError: There are too many.
        """
        if calls > self.limits.max_calls:
            raise _too_large(f"it has more than {self.limits.max_calls:,} calls")


def _too_large(why: str) -> ReplyFailedError:
    return ReplyFailedError(Failure(detail=f"the reply was abandoned: {why}", code=REPLY_TOO_LARGE))
