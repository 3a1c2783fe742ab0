"""Conversations of a store, over its primitives, which know texts alone.

A history is written message by message, so that a turn writes only its new messages.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import takewhile
from operator import is_
from typing import Any, Literal, NamedTuple

from tool_search.core.discoveries import Discovery, DiscoveryState
from tool_search.core.messages import Message
from tool_search.core.values.json import compact_json, encodable, read_json
from tool_search.errors import CatalogError, StoreError, UnreadableRecordError
from tool_search.search.learned import Evidence, source_hash
from tool_search.stores.base import ConversationKey
from tool_search.stores.record import ConversationRecord, discovery_from_dict, message_to_dict
from tool_search.stores.sections import Sections

__all__ = [
    "Change",
    "Erased",
    "Export",
    "FoundTool",
    "Selection",
    "StoredConversation",
    "StoredConversations",
    "Written",
    "as_json",
    "evidence_object",
    "reading",
    "select_learned",
    "text_of",
]

# Selections of a store's data, to export and to erase.


Export = Callable[[Mapping[str, Iterable[Mapping[str, Any]]]], None]
"""Writes the data to be erased, by kind; if it raises, nothing is erased."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A selection of data to erase.

    Attributes:
        conversations: Conversations with all their data, and the evidence that was last
            renewed in them; None: all conversations.
        tools: Tools whose evidence is erased; None: all evidence.
        users: Users whose grants and evidence are erased; None: all grants.
    """

    conversations: tuple[ConversationKey, ...] | None = ()
    tools: tuple[str, ...] | None = ()
    users: tuple[str, ...] | None = ()


class Erased(NamedTuple):
    """The numbers of erased entries."""

    evidence: int
    conversations: int
    grants: int


def select_learned(
    entries: Sequence[Evidence], selection: Selection, salt: bytes | None
) -> list[Evidence]:
    """Return the selected evidence: of the tools, the users and the conversations.

    Args:
        entries: All evidence of the store.
        selection: The selection.
        salt: The salt of the store's hashes; None: no entry has a source.
    """
    if selection.tools is None:
        return list(entries)
    users: frozenset[str] = frozenset()
    conversations: frozenset[str] = frozenset()
    if salt is not None:
        users = _hashes(selection.users, salt, "user")
        conversations = _hashes(selection.conversations, salt, "conversation")
    return [
        entry
        for entry in entries
        if entry.tool in selection.tools
        or entry.source in users
        or entry.conversation in conversations
    ]


def _hashes(
    names: Sequence[str] | None, salt: bytes, kind: Literal["user", "conversation"]
) -> frozenset[str]:
    return frozenset(source_hash(name, salt=salt, kind=kind) for name in names or ())


def evidence_object(entry: Evidence) -> dict[str, Any]:
    """Return a piece of evidence as JSON values."""
    at = datetime.fromtimestamp(entry.at, UTC).isoformat()
    known = {
        "source": entry.source,
        "conversation": entry.conversation,
        "vector": entry.vector,
    }
    return {
        "tool": entry.tool,
        "words": list(entry.words),
        "strength": entry.strength,
        "at": at,
        **{name: value for name, value in known.items() if value},
    }


def as_json(content: object) -> Any:
    """Return a stored text as JSON values; a text that is not JSON is returned as it is."""
    try:
        return read_json(text_of(content))
    except (ValueError, RecursionError):
        return content if isinstance(content, str) else repr(content)


def text_of(content: object) -> str:
    """Return stored content that is text.

    Raises:
        ValueError: It is not text.
    """
    if not isinstance(content, str):
        raise ValueError(f"it must be text, not {type(content).__name__}")  # noqa: TRY004
    return content


_REVISION_BITS = 62
_MAX_PARTS = 1024
# JSON of this size is read and written aside: it would hold the event loop.
_LARGE_CHARS = 50_000
_LARGE_MESSAGES = 200

Written = Literal["saved", "differs", "whole"]


class FoundTool(NamedTuple):
    """A discovery: the tool's name, its way and its definition."""

    name: str
    via: object
    tool: object


class StoredConversation(NamedTuple):
    """A conversation as it is stored; what is no text was written by another program.

    Attributes:
        revision: The revision of the last save; None: it has none that can be read.
        record: The record without its history; None: discoveries alone.
        messages: The messages of the history.
        found: All discoveries in order.
    """

    revision: int | None
    record: object
    messages: Sequence[object]
    found: Sequence[FoundTool]


class Change(NamedTuple):
    """A save of a conversation.

    Attributes:
        expected: The revision that the conversation must have; None: it is not there;
            `any`: no matter.
        new: The new revision.
        base: The revision whose first messages stay; None: none stay.
        start: The number of messages that stay.
        record: The record without its history.
        messages: The messages from `start` on.
        found: Discoveries: new ones are added, known ones get this definition and keep their
            place and their way.
    """

    expected: int | Literal["any"] | None
    new: int
    base: int | None
    start: int
    record: str
    messages: Sequence[str]
    found: Sequence[FoundTool]


class _KeptParts(NamedTuple):
    """The state of a conversation when this process last read or wrote it."""

    revision: int
    messages: tuple[Message, ...]
    discoveries: tuple[Discovery, ...]


class StoredConversations(Sections, ABC):
    """The conversations of a store, with their permission modes.

    A store has `ConversationStore`, `RevisionStore`, `SetAsideStore` and `PermissionModeStore`
    by it.
    """

    def __init__(self) -> None:
        self._parts: OrderedDict[ConversationKey, _KeptParts] = OrderedDict()

    @abstractmethod
    async def _revision(self, key: ConversationKey) -> int | None:
        """Return the revision of the last save, or None if there is none."""

    @abstractmethod
    async def _read(self, key: ConversationKey) -> StoredConversation | None:
        """Return a conversation, or None if nothing is stored."""

    @abstractmethod
    async def _write(self, key: ConversationKey, change: Change) -> Written:
        """Save a conversation.

        Returns:
            `differs` if it has not the expected revision, `whole` if not that of `base`; then
            nothing has changed.
        """

    @abstractmethod
    async def _add_found(
        self, key: ConversationKey, found: Sequence[FoundTool]
    ) -> Sequence[FoundTool]:
        """Add discoveries after those that are there, which stay; return all in order."""

    @abstractmethod
    async def _set_aside(self, key: ConversationKey) -> None:
        """Move record, history and discoveries out of reach until they are forgotten."""

    @abstractmethod
    async def _forget(self, key: ConversationKey) -> None:
        """Erase a conversation with all that belongs to it."""

    @abstractmethod
    async def _list_keys(self, since: float | None) -> Iterable[ConversationKey]:
        """Return all conversations; with a time, those that were used since then."""

    @abstractmethod
    async def _load_mode(self, key: ConversationKey) -> str | None:
        """Return the permission mode of a conversation, or None if none was set."""

    @abstractmethod
    async def _save_mode(self, key: ConversationKey, mode: str) -> None:
        """Write the permission mode of a conversation."""

    async def load(self, key: ConversationKey) -> ConversationRecord | None:
        """Return the conversation as last saved, with all discoveries.

        Raises:
            UnreadableRecordError: The stored data is not a record of this version.
        """
        return await self._section(partial(self._load, key), "read")

    async def append_discoveries(
        self, key: ConversationKey, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        """Add discoveries; return all discoveries of the conversation in order."""
        return await self._section(partial(self._append, key, entries), "write")

    async def save(self, key: ConversationKey, record: ConversationRecord) -> None:
        """Save the conversation."""
        new = secrets.randbits(_REVISION_BITS) | 1
        await self._section(partial(self._save, key, record, "any", new), "write")

    async def revision(self, key: ConversationKey) -> int | None:
        """Return a number that changes with every save, or None if there is no conversation."""
        return await self._section(partial(self._revision, key), "read")

    async def save_over(
        self, key: ConversationKey, record: ConversationRecord, *, expected: int | None, new: int
    ) -> bool:
        """Save the conversation, unless another process saved or erased it meanwhile."""
        return await self._section(partial(self._save, key, record, expected, new), "write")

    async def set_aside(self, key: ConversationKey) -> None:
        """Set unreadable data aside; `forget` erases it, an export shows it."""
        await self._section(partial(self._set_aside, key), "write")

    async def forget(self, key: ConversationKey) -> None:
        """Erase the conversation and its grants, if it exists."""
        await self._section(partial(self._forget, key), "durable")

    async def conversations(self, *, since: float | None = None) -> tuple[ConversationKey, ...]:
        """Return all conversations, sorted.

        Args:
            since: Only those that were last used at this time or later, in seconds since 1970.
        """
        return tuple(sorted(set(await self._section(partial(self._list_keys, since), "read"))))

    async def load_permission_mode(self, key: ConversationKey) -> str | None:
        """Return the last saved mode, or None."""
        return await self._section(partial(self._load_mode, key), "read")

    async def save_permission_mode(self, key: ConversationKey, mode: str) -> None:
        """Save a conversation's mode."""
        await self._section(partial(self._save_mode, key, mode), "durable")

    async def _load(self, key: ConversationKey) -> ConversationRecord | None:
        stored = await self._read(key)
        if stored is None or stored.record is None:
            return None
        work = partial(_read_record, key, stored)
        is_large = _is_large((stored.record, *stored.messages, *(e.tool for e in stored.found)))
        record = await self._aside(work) if is_large else work()
        if stored.revision:
            self._remember(key, stored.revision, record)
        return record

    async def _append(
        self, key: ConversationKey, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        found = await self._add_found(key, _written_discoveries(entries))
        work = partial(_read_discoveries, key, found)
        return await self._aside(work) if _is_large(e.tool for e in found) else work()

    async def _save(
        self,
        key: ConversationKey,
        record: ConversationRecord,
        expected: int | Literal["any"] | None,
        new: int,
    ) -> bool:
        known = self._parts.get(key)
        answer: Written = "whole"
        for base in (known, None) if known is not None else (None,):
            if answer == "whole":
                start = _common_length(base, record)
                later = record.history[start:]
                work = partial(_change_of, key, record, base, later)
                is_large = len(later) > _LARGE_MESSAGES or _is_large(m.text for m in later)
                written = await self._aside(work) if is_large else work()
                answer = await self._write(key, written._replace(expected=expected, new=new))
        if answer == "saved":
            # If a commit fails, the store has another revision, and this is ignored.
            self._remember(key, new, record)
        return answer == "saved"

    def _remember(self, key: ConversationKey, revision: int, record: ConversationRecord) -> None:
        """Note a conversation's parts, so that its next turn writes only its additions."""
        self._parts[key] = _KeptParts(revision, record.history, record.discoveries)
        self._parts.move_to_end(key)
        if len(self._parts) > _MAX_PARTS:
            self._parts.popitem(last=False)


@contextmanager
def reading(key: ConversationKey) -> Iterator[None]:
    """Add the conversation's key to errors of unreadable data."""
    try:
        yield
    except UnreadableRecordError as exc:
        raise UnreadableRecordError(exc.problem, conversation=key) from exc
    except (ValueError, RecursionError, CatalogError) as exc:
        raise UnreadableRecordError(str(exc), conversation=key) from exc


def _change_of(
    key: ConversationKey,
    record: ConversationRecord,
    known: _KeptParts | None,
    later: Sequence[Message],
) -> Change:
    """Return the save of a record after what this process knows of its conversation.

    Args:
        key: The conversation's key.
        record: The whole conversation.
        known: Its state when this process last read or wrote it.
        later: The messages that this state lacks.
    """
    content = replace(record, history=(), discoveries=()).to_dict()
    del content["history"]
    try:
        return Change(
            expected=None,
            new=0,
            base=None if known is None else known.revision,
            start=len(record.history) - len(later),
            record=_encode(content),
            messages=[_encode(message_to_dict(message)) for message in later],
            found=()
            if known is not None and known.discoveries == record.discoveries
            else _written_discoveries(record.discoveries),
        )
    except (ValueError, TypeError, RecursionError) as exc:
        raise StoreError(
            f"the conversation {key!r} cannot be written as JSON ({exc}); remove that value"
        ) from exc


def _common_length(known: _KeptParts | None, record: ConversationRecord) -> int:
    """Return the length of the common prefix of messages that are the same objects."""
    before = () if known is None else known.messages
    return sum(takewhile(bool, map(is_, before, record.history)))


def _written_discoveries(entries: Iterable[Discovery]) -> list[FoundTool]:
    return [FoundTool(encodable(e.name), e.via, _encode(e.tool.to_dict())) for e in entries]


def _read_record(key: ConversationKey, stored: StoredConversation) -> ConversationRecord:
    with reading(key):
        content = read_json(text_of(stored.record))
        # Records of the first version had their history inside.
        if isinstance(content, dict) and "history" not in content:
            content["history"] = [read_json(text_of(message)) for message in stored.messages]
        record = ConversationRecord.from_dict(content)
    return replace(record, discoveries=_read_discoveries(key, stored.found))


def _read_discoveries(key: ConversationKey, found: Iterable[FoundTool]) -> tuple[Discovery, ...]:
    with reading(key):
        return DiscoveryState(
            discovery_from_dict({"tool": read_json(text_of(each.tool)), "via": each.via})
            for each in found
        ).entries


def _is_large(texts: Iterable[object]) -> bool:
    return sum(len(text) for text in texts if isinstance(text, str)) > _LARGE_CHARS


def _encode(content: object) -> str:
    return encodable(compact_json(content))
