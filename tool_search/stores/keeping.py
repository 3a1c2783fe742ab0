"""Conversations in a store that may fail: no turn ends by a failure, and nothing is lost.

Data that the store does not accept stays in memory and is written when the store works again.
A conversation that cannot be read starts again in memory; its new messages are appended to the
stored ones as soon as these can be read. The same happens after another process has continued
a conversation. An unreadable record is set aside.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, TypeVar

from tool_search.core.conversation.history import pair_results
from tool_search.core.conversation.record import KeyedTurn, ThinkingRecord
from tool_search.core.discoveries import Discovery, DiscoveryState
from tool_search.core.messages import Message, Notice
from tool_search.core.values.json import encodable
from tool_search.errors import StoreError, UnreadableRecordError
from tool_search.i18n import text
from tool_search.stores import (
    ConversationKey,
    ConversationStore,
    RevisionStore,
    SetAsideStore,
)
from tool_search.stores.record import ConversationRecord

__all__ = [
    "Backlog",
    "ConversationKeeper",
    "KeptConversation",
    "OpenedConversation",
    "join_records",
    "within_patience",
]

# Writes that a store did not accept, tried again until it does.


_PATIENCE_S = 30.0
# After a failure that takes this long, turns do not wait for the store until the next retry.
_SLOW_S = 1.0
_FIRST_RETRY_S = 1.0
_LAST_RETRY_S = 60.0
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


async def within_patience(answer: Awaitable[_T]) -> _T:
    """Return a store's answer within half a minute, also from a store without timeouts.

    Raises:
        StoreError: The store does not answer in time.
    """
    try:
        async with asyncio.timeout(_PATIENCE_S) as limit:
            return await answer
    except TimeoutError as exc:
        if not limit.expired():
            raise
        raise StoreError(
            f"the store gave no answer within {_PATIENCE_S:g} s; check that it is reachable",
            fault="locked",
        ) from exc


class Backlog:
    """Failed writes, tried again after 1 s, 2 s, 4 s, up to every minute.

    Attributes:
        last_error: The text of the latest failure.
    """

    def __init__(self) -> None:
        self.last_error = ""
        self._waiting: dict[Hashable, Callable[[], Awaitable[object]]] = {}
        self._retrying: asyncio.Task[None] | None = None
        self._cooldown_until = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, name: Hashable) -> bool:
        return name in self._waiting

    @property
    def is_cooling_down(self) -> bool:
        """True if the store has just failed slowly, so that writes should wait."""
        return time.monotonic() < self._cooldown_until

    def failed(self, error: BaseException, *, began: float) -> None:
        """Note that the store failed.

        Args:
            error: The failure.
            began: The start of the request, by `time.monotonic`.
        """
        self.last_error = str(error) or type(error).__name__
        now = time.monotonic()
        if now - began > _SLOW_S:
            self._cooldown_until = now + _FIRST_RETRY_S

    def add(self, name: Hashable, write: Callable[[], Awaitable[object]]) -> None:
        """Write later; replace a write that waits under the same name."""
        self._waiting[name] = write
        if self._retrying is None or self._retrying.done():
            self._retrying = asyncio.get_running_loop().create_task(self._retry())

    def discard(self, name: Hashable) -> None:
        """Drop the write that waits under a name."""
        self._waiting.pop(name, None)

    async def flush(self) -> None:
        """Try all waiting writes; those that fail keep waiting."""
        for name, write in tuple(self._waiting.items()):
            began = time.monotonic()
            try:
                await within_patience(write())
            except Exception as exc:  # noqa: BLE001  # stores are pluggable: the others are tried too
                self.failed(exc, began=began)
                if self.is_cooling_down:
                    return
            else:
                if self._waiting.get(name) is write:
                    del self._waiting[name]

    async def aclose(self) -> None:
        """Try all waiting writes a last time, then give up."""
        task, self._retrying = self._retrying, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        await self.flush()

    async def _retry(self) -> None:
        delay = _FIRST_RETRY_S
        while self._waiting:
            await asyncio.sleep(delay)
            before = len(self._waiting)
            await self.flush()
            delay = _FIRST_RETRY_S if len(self._waiting) < before else min(2 * delay, _LAST_RETRY_S)
        _log.info("the store works again; all waiting writes are done")


# As many as a MemoryStore keeps: writes that never succeed must not fill the memory.
_MAX_UNWRITTEN = 2_000
_MAX_TRIES = 8
_REVISION_BITS = 62


@dataclass(slots=True, eq=False)
class KeptConversation:
    """The state of one conversation between this process and its store.

    Attributes:
        key: The conversation's key.
        record: The record to write; None: nothing, or discoveries alone.
        discoveries: Discoveries that the store does not have yet.
        revision: The revision at the last read or write; None: it is new.
        length: The number of messages in memory that the store has.
        is_partial: True if the store may have messages that the memory lacks.
        is_forgotten: True if nothing may be written any more.
        tried: Writes that the store did not confirm but may have done, by revision: the
            whole record, and the number of messages in memory that it contains.
        lock: Held during requests to the store.
    """

    key: ConversationKey
    record: ConversationRecord | None = None
    discoveries: tuple[Discovery, ...] = ()
    revision: int | None = None
    length: int = 0
    is_partial: bool = False
    is_forgotten: bool = False
    tried: dict[int, tuple[ConversationRecord, int]] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class OpenedConversation(NamedTuple):
    """A conversation opened for a turn.

    Attributes:
        kept: Its state between process and store.
        record: The stored record; None: the conversation is new.
        notice: A problem that an operator should know.
    """

    kept: KeptConversation
    record: ConversationRecord | None = None
    notice: Notice | None = None


class ConversationKeeper:
    """Reads and writes a runner's conversations, and survives failures of the store.

    Args:
        store: The store.
        backlog: The writes that wait for the store.
    """

    def __init__(self, store: ConversationStore, backlog: Backlog) -> None:
        self._store = store
        self._backlog = backlog
        self._unwritten: dict[ConversationKey, KeptConversation] = {}

    async def open(self, key: ConversationKey) -> OpenedConversation:
        """Return a stored or new conversation, with a notice if the store failed."""
        waiting = self._unwritten.get(key)
        if waiting is not None and waiting.record is not None:
            return OpenedConversation(waiting, waiting.record)
        if _erase_name(key) in self._backlog:
            return OpenedConversation(KeptConversation(key))
        kept = KeptConversation(key, is_partial=True)
        began = time.monotonic()
        try:
            return await within_patience(self._read_stored(kept))
        except Exception as exc:  # noqa: BLE001  # stores are pluggable: none may end a turn
            if not isinstance(exc, UnreadableRecordError):
                self._backlog.failed(exc, began=began)
            problem = "it begins without what was said before, until that can be read"
            return OpenedConversation(kept, notice=_unavailable_notice(kept, problem, str(exc)))

    async def is_current(
        self, kept: KeptConversation, turns: tuple[KeyedTurn, ...] | None = None
    ) -> bool:
        """Return True unless the store is known to have more than the memory.

        Args:
            kept: The conversation.
            turns: The keyed turns in memory; a store without revisions is asked for its own.
        """
        async with kept.lock:
            if kept.key in self._unwritten:
                await self._ask_store(kept, "", partial(self._write, kept))
            if kept.key in self._unwritten:
                return True
            if kept.is_partial or kept.is_forgotten:
                return False
            if not isinstance(self._store, RevisionStore) and turns is None:
                return True
            began = time.monotonic()
            try:
                if isinstance(self._store, RevisionStore):
                    return await within_patience(self._store.revision(kept.key)) == kept.revision
                record = await within_patience(self._store.load(kept.key))
            except Exception as exc:  # noqa: BLE001  # as above; the end of the turn reports it
                self._backlog.failed(exc, began=began)
                return True
            return turns == (record.turns if record else ())

    async def append(
        self, kept: KeptConversation, new: Sequence[Discovery]
    ) -> tuple[tuple[Discovery, ...], Notice | None]:
        """Save discoveries; return all that are known, and a notice of a failure."""
        async with kept.lock:
            if kept.is_forgotten:
                return tuple(new), None
            kept.discoveries = DiscoveryState((*kept.discoveries, *new)).entries
            append = partial(self._store.append_discoveries, kept.key, kept.discoveries)
            entries, notice = await self._ask_store(
                kept, "what it found is in memory alone", append
            )
            if entries is None:
                return kept.discoveries, notice
            kept.discoveries = ()
            return entries, None

    async def save(self, kept: KeptConversation, record: ConversationRecord) -> Notice | None:
        """Save a conversation; return a notice of a failure."""
        async with kept.lock:
            if kept.is_forgotten:
                return None
            kept.record = record
            problem = "it goes on from memory, and is written when the store is back"
            is_written, notice = await self._ask_store(kept, problem, partial(self._write, kept))
            return _erased_notice(kept) if is_written is False else notice

    async def forget(self, key: ConversationKey, known: KeptConversation | None) -> None:
        """Erase a conversation; a running turn of it is not written any more.

        Raises:
            StoreError: The store fails; the conversation is erased when it works again.
        """
        for kept in (known, self._unwritten.get(key)):
            if kept is not None:
                kept.is_forgotten = True
                async with kept.lock:
                    self._mark_written(kept)
        # If this task is cancelled, the backlog erases it, and nobody reads it until then.
        self._backlog.add(_erase_name(key), partial(self._store.forget, key))
        await within_patience(self._store.forget(key))
        self._backlog.discard(_erase_name(key))

    async def aclose(self) -> None:
        """Try all waiting writes a last time."""
        await self._backlog.aclose()
        if self._unwritten:
            _log.error(
                "store_unavailable: the last turns of %d conversations are lost, because the "
                "store did not accept them: %s",
                len(self._unwritten),
                self._backlog.last_error,
            )

    async def _read_stored(self, kept: KeptConversation) -> OpenedConversation:
        store, key = self._store, kept.key
        try:
            # Read before the record, so that a save between the two reads is noticed later.
            revision = await store.revision(key) if isinstance(store, RevisionStore) else None
            record = await store.load(key)
        except UnreadableRecordError as exc:
            if not isinstance(store, SetAsideStore):
                raise
            await store.set_aside(key)
            return OpenedConversation(KeptConversation(key), notice=_set_aside_notice(key, exc))
        kept.revision, kept.is_partial = revision, False
        kept.length = len(record.history) if record else 0
        return OpenedConversation(kept, record)

    async def _ask_store(
        self, kept: KeptConversation, problem: str, ask: Callable[[], Awaitable[_T]]
    ) -> tuple[_T | None, Notice | None]:
        """Run a request to the store; if it fails, the conversation waits to be written."""
        if self._backlog.is_cooling_down:
            self._wait(kept)
            return None, _unavailable_notice(kept, problem, self._backlog.last_error)
        began = time.monotonic()
        try:
            return await within_patience(ask()), None
        except Exception as exc:  # noqa: BLE001  # stores are pluggable: none may end a turn
            self._backlog.failed(exc, began=began)
            self._wait(kept)
            return None, _unavailable_notice(kept, problem, self._backlog.last_error)
        except asyncio.CancelledError:
            self._wait(kept)
            raise

    def _wait(self, kept: KeptConversation) -> None:
        self._unwritten[kept.key] = kept
        self._backlog.add(_write_name(kept.key), partial(self._write_late, kept))
        if len(self._unwritten) > _MAX_UNWRITTEN:
            oldest = next(iter(self._unwritten))
            self._mark_written(self._unwritten[oldest])
            _log.error(
                "store_unavailable: the last turns of the conversation %r are lost, because more "
                "than %d conversations wait for the store: %s",
                oldest,
                _MAX_UNWRITTEN,
                self._backlog.last_error,
            )

    async def _write_late(self, kept: KeptConversation) -> None:
        async with kept.lock:
            if self._unwritten.get(kept.key) is kept and not await self._write(kept):
                notice = _erased_notice(kept)
                _log.warning("%s: %s", notice.code, notice.message)

    async def _write(self, kept: KeptConversation) -> bool:
        """Write pending data; return False if another process erased the conversation."""
        is_written = True
        if _erase_name(kept.key) in self._backlog:
            await self._store.forget(kept.key)
            self._backlog.discard(_erase_name(kept.key))
        record = kept.record
        if record is None:
            await self._store.append_discoveries(kept.key, kept.discoveries)
        elif isinstance(self._store, RevisionStore):
            is_written = await self._write_over(kept, record, self._store)
        else:
            await self._store.save(kept.key, await self._merge_stored(kept, record))
        if record is not None:
            kept.length = len(record.history)
        self._mark_written(kept)
        return is_written

    def _mark_written(self, kept: KeptConversation) -> None:
        kept.record, kept.discoveries = None, ()
        if self._unwritten.get(kept.key) is kept:
            del self._unwritten[kept.key]
            self._backlog.discard(_write_name(kept.key))

    async def _write_over(
        self, kept: KeptConversation, record: ConversationRecord, store: RevisionStore
    ) -> bool:
        """Write a conversation over its old revision, or append to what another process wrote."""
        for tries in range(_MAX_TRIES):
            found = kept.revision
            if tries or kept.is_partial:
                found = await store.revision(kept.key)
                if found is None and kept.revision is not None:
                    kept.is_forgotten = True
                    return False
                _note_revision(kept, found)
            whole = await self._merge_stored(kept, record)
            new = secrets.randbits(_REVISION_BITS) | 1
            kept.tried[new] = whole, len(record.history)
            if await store.save_over(kept.key, whole, expected=found, new=new):
                kept.revision = new
                kept.tried.clear()
                return True
            del kept.tried[new]
        raise StoreError(
            f"the conversation {kept.key!r} is changed by other processes all the time; let one "
            "process at a time serve a conversation",
            fault="locked",
        )

    async def _merge_stored(
        self, kept: KeptConversation, record: ConversationRecord
    ) -> ConversationRecord:
        """Return a record with the messages that only the store has."""
        if not kept.is_partial:
            return record
        try:
            stored = await self._store.load(kept.key)
        except UnreadableRecordError as exc:
            if not isinstance(self._store, SetAsideStore):
                raise
            await self._store.set_aside(kept.key)
            notice = _set_aside_notice(kept.key, exc)
            _log.warning("%s: %s", notice.code, notice.message)
            kept.revision = stored = None
        if stored is None:
            kept.is_partial = False
            return record
        # Both read a whole history, which must not hold the event loop.
        kept.length = await asyncio.to_thread(_length_in, kept, stored)
        return await asyncio.to_thread(join_records, stored, record, kept.length)


def join_records(
    stored: ConversationRecord, record: ConversationRecord, length: int
) -> ConversationRecord:
    """Return a stored conversation with the later messages of the memory appended.

    Args:
        stored: The record in the store.
        record: The record in memory.
        length: The number of messages in memory that the store has.
    """
    discoveries = DiscoveryState((*stored.discoveries, *record.discoveries))
    cancelled = text("call.cancelled", stored.language, name="tool")
    ours = {turn.key: turn for turn in record.turns}
    # Another worker has gone on with these turns, while this one was halted.
    theirs = {turn.key for turn in stored.turns if _goes_on(turn, ours.get(turn.key))}
    later, turn = [], ""
    for place, message in enumerate(record.history):
        turn = message.turn if message.role == "user" else turn
        if place >= length and turn not in theirs:
            later.append(message)
    merged = {turn.key: turn for turn in stored.turns}
    merged |= {key: turn for key, turn in ours.items() if key not in theirs}
    return replace(
        stored,
        history=pair_results((*stored.history, *later), answer=cancelled),
        discoveries=discoveries.entries,
        thinking=ThinkingRecord(),
        turns=tuple(merged.values()),
    )


def _goes_on(stored: KeyedTurn, ours: KeyedTurn | None) -> bool:
    """Return True if the store has more of a turn than this process."""
    if ours is None or stored == ours:
        return False
    return stored.done is not None or not stored.calls.keys() <= ours.calls.keys()


def _note_revision(kept: KeptConversation, found: int | None) -> None:
    """Update the state for the revision that the store has."""
    if found is not None and found in kept.tried:
        # An earlier write of ours succeeded although its answer was lost.
        kept.length = kept.tried[found][1]
    elif found != kept.revision:
        kept.is_partial = True


def _length_in(kept: KeptConversation, stored: ConversationRecord) -> int:
    """Return the number of messages in memory that a store has, if another process continued.

    A write that succeeded unconfirmed is a prefix of the stored history.
    """
    said = list(map(_message_key, stored.history))
    for whole, length in reversed(kept.tried.values()):
        if said[: len(whole.history)] == list(map(_message_key, whole.history)):
            return length
    return kept.length


def _message_key(message: Message) -> tuple[object, ...]:
    """Return the parts of a message that stay when a provider refuses some of it."""
    calls = tuple(call.id for call in message.tool_calls)
    return message.role, encodable(message.text), calls, message.tool_call_id


def _write_name(key: ConversationKey) -> tuple[str, ConversationKey]:
    """Return the name in the backlog for writing a conversation."""
    return "write", key


def _erase_name(key: ConversationKey) -> tuple[str, ConversationKey]:
    """Return the name in the backlog for erasing a conversation."""
    return "erase", key


def _unavailable_notice(kept: KeptConversation, problem: str, cause: str) -> Notice:
    return Notice("store_unavailable", f"the conversation {kept.key!r}: {problem}: {cause}")


def _erased_notice(kept: KeptConversation) -> Notice:
    return Notice(
        "conversation_erased",
        f"the conversation {kept.key!r} was erased by another process while a turn of it went on, "
        "or waited for the store: nothing of the turn is kept",
    )


def _set_aside_notice(key: ConversationKey, error: UnreadableRecordError) -> Notice:
    return Notice(
        "record_unreadable",
        f"{error}; the conversation {key!r} begins anew, and what cannot be read is set aside: "
        "`tool-search forget --conversation KEY --export FILE` shows and erases it",
    )
