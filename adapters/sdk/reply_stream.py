"""One reply, read from an HTTP response: streamed or whole, within its limits."""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from tool_search.adapters.sdk.failures import (
    BROKEN_REPLY,
    REPLY_TOO_LARGE,
    TIMEOUT,
    Failure,
    ReplyFailedError,
    http_errors,
)
from tool_search.adapters.wire.incoming import (
    DEFAULT_LIMITS,
    LARGE_BYTES,
    EventDecoder,
    joined,
    parse_json,
    read_json,
)
from tool_search.adapters.wire.values import mended, mended_value, named_of
from tool_search.config.limits import LimitSettings
from tool_search.core.messages import Message, NativeReply, RequestPlan, ToolCall
from tool_search.core.profiles import ProviderProfile
from tool_search.providers.base import (
    CallDelta,
    ReplyDelta,
    ReplyEnd,
    ReplyEvent,
    StopReason,
    Usage,
)

__all__ = [
    "ReplyLimits",
    "ReplyMeter",
    "ReplyProgress",
    "ReplyReader",
    "read_stream",
    "read_whole",
    "reply_end",
    "reply_events",
]

# Limits of the time and the size of one reply.
#
# Time that a consumer takes between two events does not count, so it cannot make a provider
# fail. Keep-alives (comments, `ping`, empty pieces) do not count as progress.


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


_OVER = b"[DONE]"
_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
# A connection is used again only if its last reply was read to the end. The end usually comes
# at once; an endpoint that goes on sending is not waited for.
_DRAIN_S = 0.5
_MAX_DRAIN_BYTES = 64 * 1024
# About 3 ms of work; the calls of a longer reply are put together off the event loop.
_MAX_CALLS_AT_ONCE = 200


class ReplyReader(ABC):
    """A reader of one streamed reply; each dialect has one.

    Args:
        plan: The request that is answered.
        profile: The model that answers.

    Attributes:
        progress: The progress of the reply.
    """

    def __init__(self, plan: RequestPlan, profile: ProviderProfile) -> None:
        self.progress = ReplyProgress()
        self._plan = plan
        self._profile = profile

    @abstractmethod
    def read(self, event: object) -> Iterable[ReplyEvent]:
        """Return what one event of the stream adds.

        Raises:
            ReplyFailedError: It reports an error.
        """

    @staticmethod
    def broken(last: str) -> ReplyFailedError:
        """Return the error of a stream that ended before its last event."""
        return ReplyFailedError(
            Failure(detail=f"the stream ended before {last}", code=BROKEN_REPLY)
        )

    @abstractmethod
    def end(self, *, announced: bool = False) -> Iterable[ReplyEvent]:
        """Return what the end of the stream adds, `ReplyEnd` last.

        Args:
            announced: True if the stream itself said that it is over, by `[DONE]`.

        Raises:
            ReplyFailedError: The reply is not complete.
        """


def reply_end(
    reply: object,
    *,
    text: str,
    calls: tuple[ToolCall, ...],
    native: NativeReply | None,
    reason: StopReason,
    usage: Usage,
    detail: str = "",
) -> ReplyEnd:
    """Return a reply in the neutral form, with its own name of itself and of its model."""
    return ReplyEnd(
        message=Message(role="assistant", content=text, tool_calls=calls, native=native),
        stop_reason=reason,
        usage=usage,
        detail=detail,
        id=named_of(reply, "id"),
        model=named_of(reply, "model"),
    )


def reply_events(end: ReplyEnd) -> Iterator[ReplyEvent]:
    """Yield the events of a reply that came in one piece, `ReplyEnd` last."""
    if end.message.text:
        yield ReplyDelta(end.message.text)
    yield from map(CallDelta, end.message.tool_calls)
    yield end


async def read_stream(
    response: Any, reader: ReplyReader, meter: ReplyMeter
) -> AsyncGenerator[ReplyEvent]:
    """Yield the reply as it arrives.

    Args:
        response: A streamed response of httpx or httpx2.
        reader: The reader that puts it together.
        meter: The meter that compares it with its limits.

    Raises:
        ReplyFailedError: It reports an error, is malformed, or goes beyond a limit.
        ValueError: An event is not JSON.
        Exception: That of the HTTP library: the connection broke before the reply's end.
    """
    limits, progress = meter.limits.incoming, meter.progress
    decoder = EventDecoder(max_bytes=limits.max_bytes)
    texts, broken = _Texts(), None
    clock, paused_s = asyncio.get_running_loop().time, 0.0
    async with aclosing(response.aiter_bytes()) as chunks:
        has_more, announced = True, False
        while has_more and not (announced or progress.is_over):
            try:
                chunk = await meter.next(chunks, paused_s)
            except tuple(http_errors()) as exc:
                broken = exc
                break
            has_more, paused_s = chunk is not None, 0.0
            for sent in await decoder.decode(chunk):
                announced = sent.data.startswith(_OVER)
                if announced or progress.is_over:
                    break
                parse = _read_error if sent.name == b"error" else read_json
                event = await parse(sent.data, limits)
                progress.event_size = len(sent.data)
                read = partial(_read_event, reader, texts, event, sent.data)
                is_large = len(sent.data) > LARGE_BYTES
                for made in await asyncio.to_thread(read) if is_large else read():
                    began = clock()
                    yield made
                    paused_s += clock() - began
        meter.check(paused_s)
        last = partial(_last_events, reader, texts, broken, announced=announced)
        is_large = progress.calls > _MAX_CALLS_AT_ONCE
        for made in await asyncio.to_thread(last) if is_large else last():
            if isinstance(made, ReplyEnd):
                meter.check_calls(len(made.message.tool_calls))
            yield made
        if has_more:
            await _drain(chunks)


def _read_event(reader: ReplyReader, texts: _Texts, event: object, data: bytes) -> list[ReplyEvent]:
    """Return what an event adds; with a large one, this runs in a thread."""
    new = list(reader.read(event))
    return list(texts.mended(new, data)) if texts.has_any or b"\\u" in data else new


def _last_events(
    reader: ReplyReader, texts: _Texts, broken: Exception | None, *, announced: bool
) -> list[ReplyEvent]:
    """Return what the end of the stream adds; with many calls, this runs in a thread.

    A connection that breaks after the end of the reply has lost nothing.
    """
    try:
        return list(texts.mended(reader.end(announced=announced)))
    except ReplyFailedError as exc:
        raise broken or exc from None


async def read_whole(
    response: Any, meter: ReplyMeter, events_of: Callable[[object], Iterable[ReplyEvent]]
) -> list[ReplyEvent]:
    """Return the events of a reply that comes in one piece.

    Args:
        response: The response.
        meter: The meter that compares it with its limits.
        events_of: Reads the JSON; of a large reply, in a thread.

    Raises:
        ReplyFailedError: It goes beyond a limit.
        ValueError: It is not JSON.
    """
    pieces: list[bytes] = []
    async with aclosing(response.aiter_bytes()) as chunks:
        while (chunk := await meter.next(chunks)) is not None:
            pieces.append(chunk)
            if chunk.strip():  # DeepSeek sends empty lines until its reply begins
                meter.progress.is_waiting = False
                meter.progress.event_size = len(chunk)
                meter.progress.count_event()
    data = await joined(pieces)
    read = partial(_events_of, data, meter, events_of)
    return await asyncio.to_thread(read) if len(data) > LARGE_BYTES else read()


def _events_of(
    data: bytes, meter: ReplyMeter, events_of: Callable[[object], Iterable[ReplyEvent]]
) -> list[ReplyEvent]:
    value = parse_json(data, meter.limits.incoming)
    return list(events_of(mended_value(value) if _HALF_PAIR.search(data) else value))


async def _read_error(data: bytes, limits: LimitSettings) -> object:
    """Return the JSON of an event whose name alone may say that it is an error, in plain text."""
    try:
        event = await read_json(data, limits)
    except ValueError:
        failure = Failure(detail=data.decode("utf-8", "replace"), code=BROKEN_REPLY)
        raise ReplyFailedError(failure) from None
    if isinstance(event, Mapping) and not event.get("error"):
        return {"type": "error", "error": event}
    return event


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read the rest of a reply that is over, so that its connection can be used again."""
    left = _MAX_DRAIN_BYTES
    with suppress(TimeoutError, *http_errors()):
        async with asyncio.timeout(_DRAIN_S):
            async for chunk in chunks:
                left -= len(chunk)
                if left < 0:
                    return


class _Texts:
    """A filter that joins surrogate pairs cut in two pieces, and replaces lone halves."""

    def __init__(self) -> None:
        self._half = ""
        self.has_any = False

    def mended(self, events: Iterable[ReplyEvent], data: bytes = b"") -> Iterator[ReplyEvent]:
        """Yield the events without a lone surrogate.

        Args:
            events: The events that were read from the data.
            data: The JSON; halves of surrogate pairs are escapes in it.
        """
        self.has_any = self.has_any or bool(_HALF_PAIR.search(data))
        if not self.has_any:
            yield from events
            return
        for event in events:
            if isinstance(event, ReplyDelta):
                text = self._whole(event.text)
                if text:
                    yield ReplyDelta(text)
            elif isinstance(event, CallDelta):
                yield CallDelta(_mended_call(event.call))
            else:
                if self._half:
                    yield ReplyDelta(mended(self._half))
                yield replace(event, message=_mended_message(event.message))

    def _whole(self, text: str) -> str:
        """Return the text without a first half at its end, which is kept for the next piece."""
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return mended(text)


def _mended_call(call: ToolCall) -> ToolCall:
    return replace(
        call, id=mended(call.id), name=mended(call.name), arguments=mended(call.arguments)
    )


def _mended_message(message: Message) -> Message:
    native = message.native
    if native is not None:
        native = replace(native, blocks=tuple(mended_value(list(native.blocks))))
    return replace(
        message,
        content=mended(message.text),
        tool_calls=tuple(map(_mended_call, message.tool_calls)),
        native=native,
    )
