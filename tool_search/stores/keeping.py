"""Keeps conversations in a store that may fail: nothing is lost, and no turn ends by it.

What the store does not take stays in memory, and is written as soon as the store is back. A
conversation that cannot be read begins anew in memory, and what is said there is added to
what the store has, once that can be read. The same happens where another process of the bot
went on with a conversation. A record that nobody can read is set aside.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, TypeVar

from tool_search.conversation.history import pair_results
from tool_search.conversation.record import ConversationRecord
from tool_search.conversation.thinking import ThinkingRecord
from tool_search.discovery.state import Discovery, DiscoveryState
from tool_search.errors import StoreError, UnreadableRecordError
from tool_search.i18n import text
from tool_search.messages import Message, Notice
from tool_search.stores import (
    ConversationKey,
    ConversationStore,
    RevisionStore,
    SetAsideStore,
)
from tool_search.stores.backlog import Backlog, timely
from tool_search.values.json import encodable

__all__ = ["ConversationKeeper", "KeptConversation", "OpenedConversation", "joined"]

# As many as a memory keeps: what a store never takes must not fill the process.
_MAX_UNWRITTEN = 2_000
_MAX_TRIES = 8
_REVISION_BITS = 62
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class KeptConversation:
    """One conversation between this process and its store.

    Attributes:
        key: Its name.
        record: What is to be written; None: nothing, or discoveries alone.
        discoveries: What the store was not given yet.
        revision: What the store said when it was last read or written; None: it is new.
        length: How many messages of the history in memory the store has.
        is_partial: True if the store has, or may have, what the memory does not.
        is_forgotten: True if nothing of it may be written any more.
        tried: What a store did not confirm and may have after all, by its revision: all
            that was to be written, and how many messages in memory that holds.
        lock: Held while the store is asked.
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
    """A conversation as a turn goes on with it.

    Attributes:
        kept: What is known of it in the store.
        record: As it was kept; None: it begins.
        notice: What an operator should know of that.
    """

    kept: KeptConversation
    record: ConversationRecord | None = None
    notice: Notice | None = None


class ConversationKeeper:
    """What a runner keeps conversations by.

    Args:
        store: Where they live.
        backlog: What waits for the store.
    """

    def __init__(self, store: ConversationStore, backlog: Backlog) -> None:
        self._store = store
        self._backlog = backlog
        self._unwritten: dict[ConversationKey, KeptConversation] = {}

    async def open(self, key: ConversationKey) -> OpenedConversation:
        """Return a conversation as it was kept, or as a new one, with what is wrong."""
        waiting = self._unwritten.get(key)
        if waiting is not None and waiting.record is not None:
            return OpenedConversation(waiting, waiting.record)
        if _erasing(key) in self._backlog:
            return OpenedConversation(KeptConversation(key))
        kept = KeptConversation(key, is_partial=True)
        began = time.monotonic()
        try:
            return await timely(self._read(kept))
        except Exception as exc:  # noqa: BLE001  # stores are pluggable: none may end a turn
            if not isinstance(exc, UnreadableRecordError):
                self._backlog.failed(exc, began=began)
            problem = "it begins without what was said before, until that can be read"
            return OpenedConversation(kept, notice=_unavailable(kept, problem, str(exc)))

    async def is_current(self, kept: KeptConversation) -> bool:
        """True if a conversation in memory is all there is of it, as far as can be told."""
        async with kept.lock:
            if kept.key in self._unwritten:
                await self._asked(kept, "", partial(self._write, kept))
            if kept.key in self._unwritten:
                return True
            if kept.is_partial or kept.is_forgotten:
                return False
            if not isinstance(self._store, RevisionStore):
                return True
            began = time.monotonic()
            try:
                return await timely(self._store.revision(kept.key)) == kept.revision
            except Exception as exc:  # noqa: BLE001  # as above; the end of the turn says so
                self._backlog.failed(exc, began=began)
                return True

    async def append(
        self, kept: KeptConversation, new: Sequence[Discovery]
    ) -> tuple[tuple[Discovery, ...], Notice | None]:
        """Keep discoveries; return all that are known by now, and what went wrong."""
        async with kept.lock:
            if kept.is_forgotten:
                return tuple(new), None
            kept.discoveries = DiscoveryState((*kept.discoveries, *new)).entries
            append = partial(self._store.append_discoveries, kept.key, kept.discoveries)
            entries, notice = await self._asked(kept, "what it found is in memory alone", append)
            if entries is None:
                return kept.discoveries, notice
            kept.discoveries = ()
            return entries, None

    async def save(self, kept: KeptConversation, record: ConversationRecord) -> Notice | None:
        """Keep a conversation; return what went wrong."""
        async with kept.lock:
            if kept.is_forgotten:
                return None
            kept.record = record
            problem = "it goes on from memory, and is written when the store is back"
            is_written, notice = await self._asked(kept, problem, partial(self._write, kept))
            return _erased(kept) if is_written is False else notice

    async def forget(self, key: ConversationKey, known: KeptConversation | None) -> None:
        """Erase a conversation; a turn of it that goes on is not written any more.

        Raises:
            StoreError: The store fails: the conversation is erased when it is back.
        """
        for kept in (known, self._unwritten.get(key)):
            if kept is not None:
                kept.is_forgotten = True
                async with kept.lock:
                    self._written(kept)
        # Until it is done nobody reads what is there, whatever becomes of this task.
        self._backlog.add(_erasing(key), partial(self._store.forget, key))
        await timely(self._store.forget(key))
        self._backlog.discard(_erasing(key))

    async def aclose(self) -> None:
        """Write what waits a last time."""
        await self._backlog.aclose()
        if self._unwritten:
            _log.error(
                "store_unavailable: the last turns of %d conversations end with this process, "
                "for the store did not take them: %s",
                len(self._unwritten),
                self._backlog.last_error,
            )

    async def _read(self, kept: KeptConversation) -> OpenedConversation:
        store, key = self._store, kept.key
        # Before the record: what is saved between the two is noticed later.
        revision = await store.revision(key) if isinstance(store, RevisionStore) else None
        try:
            record = await store.load(key)
        except UnreadableRecordError as exc:
            if not isinstance(store, SetAsideStore):
                raise
            await store.set_aside(key)
            return OpenedConversation(KeptConversation(key), notice=_set_aside(key, exc))
        kept.revision, kept.is_partial = revision, False
        kept.length = len(record.history) if record else 0
        return OpenedConversation(kept, record)

    async def _asked(
        self, kept: KeptConversation, problem: str, ask: Callable[[], Awaitable[_T]]
    ) -> tuple[_T | None, Notice | None]:
        """Ask the store for something; if it fails the conversation waits to be written."""
        if self._backlog.is_resting:
            self._wait(kept)
            return None, _unavailable(kept, problem, self._backlog.last_error)
        began = time.monotonic()
        try:
            return await timely(ask()), None
        except Exception as exc:  # noqa: BLE001  # stores are pluggable: none may end a turn
            self._backlog.failed(exc, began=began)
            self._wait(kept)
            return None, _unavailable(kept, problem, self._backlog.last_error)
        except asyncio.CancelledError:
            self._wait(kept)
            raise

    def _wait(self, kept: KeptConversation) -> None:
        self._unwritten[kept.key] = kept
        self._backlog.add(_writing(kept.key), partial(self._write_late, kept))
        if len(self._unwritten) > _MAX_UNWRITTEN:
            oldest = next(iter(self._unwritten))
            self._written(self._unwritten[oldest])
            _log.error(
                "store_unavailable: the last turns of the conversation %r are lost, for more than "
                "%d wait for the store: %s",
                oldest,
                _MAX_UNWRITTEN,
                self._backlog.last_error,
            )

    async def _write_late(self, kept: KeptConversation) -> None:
        async with kept.lock:
            if self._unwritten.get(kept.key) is kept and not await self._write(kept):
                notice = _erased(kept)
                _log.warning("%s: %s", notice.code, notice.message)

    async def _write(self, kept: KeptConversation) -> bool:
        """Write what the store does not have; False if another process erased it there."""
        is_written = True
        if _erasing(kept.key) in self._backlog:
            await self._store.forget(kept.key)
            self._backlog.discard(_erasing(kept.key))
        record = kept.record
        if record is None:
            await self._store.append_discoveries(kept.key, kept.discoveries)
        elif isinstance(self._store, RevisionStore):
            is_written = await self._write_over(kept, record, self._store)
        else:
            await self._store.save(kept.key, await self._whole(kept, record))
        if record is not None:
            kept.length = len(record.history)
        self._written(kept)
        return is_written

    def _written(self, kept: KeptConversation) -> None:
        kept.record, kept.discoveries = None, ()
        if self._unwritten.get(kept.key) is kept:
            del self._unwritten[kept.key]
            self._backlog.discard(_writing(kept.key))

    async def _write_over(
        self, kept: KeptConversation, record: ConversationRecord, store: RevisionStore
    ) -> bool:
        """Write a conversation over what it was made from, or add it to what is there."""
        for tries in range(_MAX_TRIES):
            found = kept.revision
            if tries or kept.is_partial:
                found = await store.revision(kept.key)
                if found is None and kept.revision is not None:
                    kept.is_forgotten = True
                    return False
                _compare(kept, found)
            whole = await self._whole(kept, record)
            new = secrets.randbits(_REVISION_BITS) | 1
            kept.tried[new] = whole, len(record.history)
            if await store.save_over(kept.key, whole, expected=found, new=new):
                kept.revision = new
                kept.tried.clear()
                return True
            del kept.tried[new]
        raise StoreError(
            f"the conversation {kept.key!r} is written by other processes all the time; let one "
            "process at a time serve a conversation",
            fault="locked",
        )

    async def _whole(
        self, kept: KeptConversation, record: ConversationRecord
    ) -> ConversationRecord:
        """Return a record with what the store has of the conversation and the memory does not."""
        if not kept.is_partial:
            return record
        try:
            stored = await self._store.load(kept.key)
        except UnreadableRecordError as exc:
            if not isinstance(self._store, SetAsideStore):
                raise
            await self._store.set_aside(kept.key)
            notice = _set_aside(kept.key, exc)
            _log.warning("%s: %s", notice.code, notice.message)
            kept.revision = stored = None
        if stored is None:
            kept.is_partial = False
            return record
        # Both read a whole history: not in the event loop's time.
        kept.length = await asyncio.to_thread(_length_in, kept, stored)
        return await asyncio.to_thread(joined, stored, record, kept.length)


def joined(
    stored: ConversationRecord, record: ConversationRecord, length: int
) -> ConversationRecord:
    """Return a conversation as a store has it, with what was said elsewhere after it.

    Args:
        stored: What the store has.
        record: The same conversation in memory.
        length: How many messages of that the store has.
    """
    discoveries = DiscoveryState((*stored.discoveries, *record.discoveries))
    cancelled = text("call.cancelled", stored.language, name="tool")
    history = pair_results((*stored.history, *record.history[length:]), answer=cancelled)
    return replace(
        stored, history=history, discoveries=discoveries.entries, thinking=ThinkingRecord()
    )


def _compare(kept: KeptConversation, found: int | None) -> None:
    """Note what it means that the store has this revision."""
    if found is not None and found in kept.tried:
        # An earlier try of ours was taken, though nobody heard so.
        kept.length = kept.tried[found][1]
    elif found != kept.revision:
        kept.is_partial = True


def _length_in(kept: KeptConversation, stored: ConversationRecord) -> int:
    """Return how many messages in memory a store has, where another process has gone on.

    What was tried is at the beginning of all that came after it, if it was taken.
    """
    said = list(map(_said, stored.history))
    for whole, length in reversed(kept.tried.values()):
        if said[: len(whole.history)] == list(map(_said, whole.history)):
            return length
    return kept.length


def _said(message: Message) -> tuple[object, ...]:
    """Return what stays of a message whatever a provider refused of it."""
    calls = tuple(call.id for call in message.tool_calls)
    return message.role, encodable(message.text), calls, message.tool_call_id


def _writing(key: ConversationKey) -> tuple[str, ConversationKey]:
    """Return under which name a conversation waits to be written."""
    return "write", key


def _erasing(key: ConversationKey) -> tuple[str, ConversationKey]:
    """Return under which name the erasure of a conversation waits for the store."""
    return "erase", key


def _unavailable(kept: KeptConversation, problem: str, cause: str) -> Notice:
    return Notice("store_unavailable", f"the conversation {kept.key!r}: {problem}: {cause}")


def _erased(kept: KeptConversation) -> Notice:
    return Notice(
        "conversation_erased",
        f"the conversation {kept.key!r} was erased by another process while a turn of it went on, "
        "or waited for the store: nothing of the turn is kept",
    )


def _set_aside(key: ConversationKey, error: UnreadableRecordError) -> Notice:
    return Notice(
        "record_unreadable",
        f"{error}; the conversation {key!r} begins anew, and what cannot be read is set aside: "
        "`tool-search forget --conversation KEY --export FILE` shows and erases it",
    )
