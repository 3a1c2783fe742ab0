"""Conversations in Redis.

A history is a list with one entry a message, so that a turn sends only its new messages.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import takewhile
from operator import is_
from typing import Any, NamedTuple, TypeVar

from tool_search.core.catalog.tool import Tool
from tool_search.core.discovery.state import Discovery
from tool_search.core.messages import Message
from tool_search.core.values.json import compact_json, encodable, read_json
from tool_search.errors import CatalogError, StoreError, UnreadableRecordError
from tool_search.stores.base import ConversationKey
from tool_search.stores.record import ConversationRecord, message_to_dict
from tool_search.stores.record_shape import check_discovery
from tool_search.stores.redis.connection import VERSION, RedisConnection
from tool_search.stores.redis.keys import Keys, read_key, read_number, written_key
from tool_search.stores.redis.scripts import (
    APPEND,
    FORGET,
    LOAD,
    LOAD_MODE,
    NAME,
    PAGE,
    REVISION,
    SAVE,
    SAVE_MODE,
    SET_ASIDE,
    STAGE,
    USED,
)

__all__ = ["Head", "RedisConversations"]

_MAX_PARTS = 1024
_HEADS_AT_ONCE = 200
_MAX_TRIES = 8
# A reply or a request of this size holds the event loop for a few milliseconds.
_PAGE_BYTES = 250_000
_MAX_PAGE = 1000
# JSON of this size is read and written in a thread: it would hold the event loop.
_LARGE_BYTES = 50_000
_LARGE_MESSAGES = 200
_ENTRY = re.compile(rb"(\d+) (\S+) (.*)", re.DOTALL)
_T = TypeVar("_T")


class _KeptParts(NamedTuple):
    """The state of a conversation when this process last read or wrote it."""

    revision: str
    messages: tuple[Message, ...]
    discoveries: tuple[Discovery, ...]


class Head(NamedTuple):
    """The first key of a conversation.

    Attributes:
        key: The key in Redis.
        name: The written key of the conversation; None if another program wrote it.
        at: Its last use in seconds since 1970, by the server's clock; None: not known.
    """

    key: str
    name: bytes | None
    at: float | None


class RedisConversations:
    """The conversations of a store.

    Args:
        connection: The connection.
        keys: The keys of the store.
        keep_ms: Milliseconds that a conversation is kept after its last use; 0: forever.
    """

    def __init__(self, connection: RedisConnection, keys: Keys, keep_ms: int) -> None:
        self._connection = connection
        self._keys = keys
        self._keep_ms = keep_ms
        self._parts: OrderedDict[ConversationKey, _KeptParts] = OrderedDict()

    async def load(self, key: ConversationKey) -> ConversationRecord | None:
        """Return a conversation with all its discoveries, or None if it is new.

        Raises:
            UnreadableRecordError: The stored data is not a record of this version.
        """
        for _ in range(_MAX_TRIES):
            loaded = await self._connection.run(LOAD, self._of(key))
            if loaded is None:
                return None
            version, revision, record, count, found = loaded
            _check_version(key, version)
            messages = await self._messages(key, revision, count)
            if messages is None:
                continue
            size = len(record) + sum(map(len, messages)) + sum(map(len, found))
            read = await _aside(_read_record, key, record, messages, found, is_large=_large(size))
            self._remember(key, _text(revision), read)
            return read
        raise _too_busy(key)

    async def _messages(
        self, key: ConversationKey, revision: bytes, count: int
    ) -> list[bytes] | None:
        """Return the history page by page; None if the conversation was saved meanwhile."""
        messages: list[bytes] = []
        while len(messages) < count:
            page = await self._connection.run(
                PAGE, self._of(key), revision, len(messages), _PAGE_BYTES
            )
            if not page:
                return None
            messages += page
        return messages

    async def revision(self, key: ConversationKey) -> int | None:
        """Return a number that changes with every save, or None if there is no conversation."""
        found = await self._connection.run(REVISION, self._of(key))
        number = read_number(found)
        if found is not None and number is None:
            problem = f"its revision must be a whole number, not {found[:80]!r}"
            raise UnreadableRecordError(problem, conversation=key)
        return number

    async def append(
        self, key: ConversationKey, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        """Add discoveries; return all discoveries of the conversation in order."""
        found = await self._connection.run(
            APPEND, self._of(key), *self._start(key), *_written_discoveries(entries)
        )
        if isinstance(found, int):
            raise _newer(key, found)
        size = sum(map(len, found))
        return await _aside(_read_discoveries, key, found, is_large=_large(size))

    async def save(
        self, key: ConversationKey, record: ConversationRecord, *, expected: str, new: int
    ) -> bool:
        """Save a conversation; return False if it does not have the expected revision.

        Args:
            key: The conversation's key.
            record: The whole conversation.
            expected: The revision, `*` for any, `-` for a conversation that is not there.
            new: The new revision.
        """
        known = self._parts.get(key)
        if known is not None:
            answer = await self._save(key, record, expected, new, known)
            if answer[0] != b"whole":
                return self._saved(key, record, new, answer)
        return self._saved(key, record, new, await self._save(key, record, expected, new, None))

    async def _save(
        self,
        key: ConversationKey,
        record: ConversationRecord,
        expected: str,
        new: int,
        known: _KeptParts | None,
    ) -> Any:
        start = 0 if known is None else _common_length(known.messages, record.history)
        is_known = known is not None and known.discoveries == record.discoveries
        discoveries = () if is_known else record.discoveries
        written, messages = await _aside(
            _written_record,
            key,
            record,
            start,
            discoveries,
            is_large=len(record.history) - start > _LARGE_MESSAGES
            or any(_large(len(message.text)) for message in record.history[start:]),
        )
        base = "-" if known is None else known.revision
        staged = self._keys.staged(key, new)
        pages = _pages(messages)
        count = 0
        for page in pages[:-1]:
            await self._connection.run(STAGE, (staged,), count, *page)
            count += len(page)
        return await self._connection.run(
            SAVE,
            (*self._of(key), staged),
            *self._start(key),
            *(expected, str(new), base, start),
            *written,
            count,
            *pages[-1],
        )

    def _saved(
        self, key: ConversationKey, record: ConversationRecord, new: int, answer: Any
    ) -> bool:
        if answer[0] == b"newer":
            raise _newer(key, answer[1])
        if answer[0] == b"unstaged":
            raise StoreError(
                f"the server lost messages of the conversation {key!r} while they were sent; save "
                "it again",
                fault="unreachable",
            )
        if answer[0] == b"saved":
            self._remember(key, str(new), record)
        return bool(answer[0] == b"saved")

    async def forget(self, key: ConversationKey) -> int:
        """Erase a conversation; return the number of erased conversations."""
        self._parts.pop(key, None)
        return int(await self._connection.run(FORGET, self._of(key)))

    async def set_aside(self, key: ConversationKey) -> None:
        """Move the data of a conversation out of reach until it is forgotten."""
        self._parts.pop(key, None)
        await self._connection.run(SET_ASIDE, self._of(key), *self._start(key))

    async def is_there(self, key: ConversationKey) -> bool:
        """Return True if anything of a conversation is stored."""
        return await self._connection.run(NAME, self._of(key)[:1]) is not None

    async def list_keys(self, since: float | None = None) -> tuple[ConversationKey, ...]:
        """Return all conversations, sorted.

        Args:
            since: Only those that were used since this time, and those without a time.
        """
        keys = []
        for found in await self.list_heads():
            is_old = since is not None and found.at is not None and found.at < since
            if found.name is not None and not is_old:
                keys.append(read_key(found.name))
        return tuple(sorted(set(keys)))

    async def list_heads(self) -> list[Head]:
        """Return the first key of every conversation, with its name and its last use."""
        heads = await self._connection.matching(self._keys.heads)
        found = []
        for first in range(0, len(heads), _HEADS_AT_ONCE):
            asked = [self._head(_text(head)) for head in heads[first : first + _HEADS_AT_ONCE]]
            found += await asyncio.gather(*asked)
        return found

    async def _head(self, head: str) -> Head:
        name, at = await self._connection.run(USED, (head,))
        used = read_number(at)
        return Head(head, name, None if used is None else used / 1000)

    async def load_mode(self, key: ConversationKey) -> str | None:
        """Return the permission mode of a conversation, or None if none was set."""
        mode = await self._connection.run(LOAD_MODE, self._of(key)[3:4])
        return None if mode is None else _text(mode)

    async def save_mode(self, key: ConversationKey, mode: str) -> None:
        """Save the permission mode of a conversation."""
        ahead = await self._connection.run(
            SAVE_MODE, self._of(key), *self._start(key), encodable(mode)
        )
        if ahead:
            raise _newer(key, ahead)

    def _of(self, key: ConversationKey) -> tuple[str, ...]:
        return self._keys.conversation(key)

    def _start(self, key: ConversationKey) -> tuple[int, str, int]:
        return VERSION, written_key(key), self._keep_ms

    def _remember(self, key: ConversationKey, revision: str, record: ConversationRecord) -> None:
        """Note a conversation's parts, so that its next turn sends only its additions."""
        self._parts[key] = _KeptParts(revision, record.history, record.discoveries)
        self._parts.move_to_end(key)
        if len(self._parts) > _MAX_PARTS:
            self._parts.popitem(last=False)


def _written_record(
    key: ConversationKey,
    record: ConversationRecord,
    start: int,
    discoveries: Sequence[Discovery],
) -> tuple[list[str | int], list[bytes]]:
    """Return the arguments of a script for a record, and its messages from `start` on."""
    content = replace(record, history=(), discoveries=()).to_dict()
    del content["history"]
    try:
        messages = [
            _encode(message_to_dict(message)).encode() for message in record.history[start:]
        ]
        written = _encode(content)
    except (ValueError, TypeError, RecursionError) as exc:
        raise StoreError(
            f"the conversation {key!r} cannot be written as JSON ({exc}); remove that value"
        ) from exc
    return [written, len(discoveries), *_written_discoveries(discoveries)], messages


def _pages(messages: Sequence[bytes]) -> list[list[bytes]]:
    """Return the messages in pages that a request may hold; at least one, which may be empty."""
    pages: list[list[bytes]] = [[]]
    size = 0
    for message in messages:
        if pages[-1] and (size + len(message) > _PAGE_BYTES or len(pages[-1]) == _MAX_PAGE):
            pages.append([])
            size = 0
        pages[-1].append(message)
        size += len(message)
    return pages


def _written_discoveries(entries: Sequence[Discovery]) -> list[str]:
    """Return name, way and tool of each discovery."""
    parts = ((encodable(e.name), e.via, _encode(e.tool.to_dict())) for e in entries)
    return [part for entry in parts for part in entry]


def _read_record(
    key: ConversationKey, record: bytes, messages: Sequence[bytes], found: Sequence[bytes]
) -> ConversationRecord:
    try:
        content = read_json(_text(record))
        if isinstance(content, dict):
            content["history"] = [read_json(_text(message)) for message in messages]
        read = ConversationRecord.from_dict(content)
    except UnreadableRecordError as exc:
        raise UnreadableRecordError(exc.problem, conversation=key) from exc
    except (ValueError, RecursionError, CatalogError) as exc:
        raise UnreadableRecordError(str(exc), conversation=key) from exc
    return replace(read, discoveries=_read_discoveries(key, found))


def _read_discoveries(key: ConversationKey, found: Sequence[bytes]) -> tuple[Discovery, ...]:
    try:
        entries = sorted((_read_discovery(entry) for entry in found), key=lambda pair: pair[0])
    except UnreadableRecordError as exc:
        raise UnreadableRecordError(exc.problem, conversation=key) from exc
    except (ValueError, RecursionError, CatalogError) as exc:
        raise UnreadableRecordError(str(exc), conversation=key) from exc
    return tuple(discovery for _, discovery in entries)


def _read_discovery(written: bytes) -> tuple[int, Discovery]:
    parts = _ENTRY.fullmatch(written)
    if parts is None:
        raise ValueError(f"a discovery must have a place, a way and a tool, not {written[:80]!r}")
    entry = {"tool": read_json(_text(parts[3])), "via": _text(parts[2])}
    check_discovery(entry)
    return int(parts[1]), Discovery(tool=Tool.from_dict(entry["tool"]), via=entry["via"])


def _common_length(before: Sequence[Message], after: Sequence[Message]) -> int:
    """Return the length of the common prefix of messages that are the same objects."""
    return sum(takewhile(bool, map(is_, before, after)))


def _encode(content: object) -> str:
    return encodable(compact_json(content))


def _text(content: bytes) -> str:
    # Another program may have written invalid UTF-8; the reader of the value checks it.
    return content.decode("utf-8", "replace")


def _large(size: int) -> bool:
    return size > _LARGE_BYTES


async def _aside(work: Callable[..., _T], *args: Any, is_large: bool) -> _T:
    return await asyncio.to_thread(work, *args) if is_large else work(*args)


def _check_version(key: ConversationKey, version: bytes | None) -> None:
    # Not unreadable: it must not be set aside, the newer workers go on with it.
    if version is not None and version.isdigit() and int(version) > VERSION:
        raise _newer(key, int(version))


def _newer(key: ConversationKey, version: int) -> StoreError:
    return StoreError(
        f"the conversation {key!r} was written by a newer version of this library: its format is "
        f"{version}, this version reads {VERSION}; update the library",
        fault="newer",
    )


def _too_busy(key: ConversationKey) -> StoreError:
    return StoreError(
        f"the conversation {key!r} is changed by other processes all the time; let one process "
        "at a time serve a conversation",
        fault="locked",
    )
