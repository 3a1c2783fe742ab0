"""A store in Redis, for workers on any number of machines."""

from __future__ import annotations

import asyncio
import json
import math
import re
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tool_search.core.values.json import encodable
from tool_search.errors import ConfigurationError, StoreError, UnreadableRecordError
from tool_search.search.learned import Evidence
from tool_search.stores.base import ConversationKey, Grant
from tool_search.stores.conversations import (
    Change,
    FoundTool,
    Selection,
    StoredConversation,
    Written,
    as_json,
    reading,
)
from tool_search.stores.core import StoreCore
from tool_search.stores.evidence import (
    MAX_SALT,
    MIN_SALT,
    EvidenceRows,
    evidence_of_row,
    readable,
)
from tool_search.stores.grants import read_grant
from tool_search.stores.redis import scripts
from tool_search.stores.redis.connection import VERSION, RedisConnection
from tool_search.stores.redis.keys import Keys, read_key, written_key
from tool_search.stores.redis.server import NodeFacts, node_facts, rewrite_files
from tool_search.stores.sections import Revision, as_number

__all__ = ["RedisStore"]

_DAY_MS = 86_400_000
_HEADS_AT_ONCE = 200
_MAX_TRIES = 8
# A reply or a request of this size holds the event loop for a few milliseconds.
_PAGE_BYTES = 250_000
_MAX_PAGE = 1000
_ENTRY = re.compile(rb"(\d+) (\S+) (.*)", re.DOTALL)
_ASIDE = re.compile(r"(\d+)\.(record|version|message|found)(?:\.(\d+))?")
_Place = tuple[str, ...]


class _Parts(NamedTuple):
    """All that is stored of a conversation, at one moment."""

    state: bytes
    name: bytes | None
    version: bytes | None
    revision: bytes | None
    record: bytes | None
    total: int
    found: Sequence[bytes]
    mode: bytes | None
    aside: Sequence[bytes]
    messages: Sequence[str] = ()


class RedisStore(StoreCore):
    """A store of conversations, evidence, grants and modes in Redis 7 or later.

    Each change is one atomic step on the server, single node or cluster. The connection is
    opened on demand. Close the store after use. What `erase` erased may stay in the server's
    files until `rewrite_files`.

    Every method raises StoreError if the server cannot be reached for `patience_s`, or refuses
    a request. The next call tries again.

    Args:
        url: The address of the server, or of any node of a cluster, such as
            `redis://user:password@localhost:6379/0`.
        prefix: The beginning of all keys, without braces; bots with different prefixes may
            share a server.
        keep_days: Days that a conversation is kept after its last use, by the server's clock;
            None: forever.
        patience_s: Seconds to try a request again, and to wait for one answer.

    Raises:
        ConfigurationError: The address or the prefix cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "tool-search",
        keep_days: float | None = None,
        patience_s: float = 5.0,
    ) -> None:
        super().__init__()
        if not prefix or "{" in prefix or "}" in prefix:
            raise ConfigurationError(
                f"the prefix of a store in Redis must be a text without braces, not {prefix!r}"
            )
        self._keys = Keys(prefix)
        self._connection = RedisConnection(url, self._keys, patience_s=patience_s)
        self._keep_ms = 0 if keep_days is None else max(1, round(keep_days * _DAY_MS))

    @property
    def address(self) -> str:
        """The address without user and password."""
        return self._connection.address

    def __repr__(self) -> str:
        return f"RedisStore({self._connection.address!r})"

    async def try_write(self) -> None:
        """Check that the server accepts writes of this user; nothing changes.

        Raises:
            StoreError: It does not, or cannot be reached.
        """
        await self._connection.try_write()

    async def aclose(self) -> None:
        """Close the connection; the store cannot be used again."""
        await self._connection.aclose()

    async def rewrite_files(self) -> str:
        """Let the server write its files anew, so that nothing erased is left in them.

        Returns:
            The reason why something may be left; empty if there is none.
        """
        return await rewrite_files(self._connection)

    async def node_facts(self) -> tuple[NodeFacts, ...]:
        """Return the facts of each node of the server, as operators set them."""
        return await node_facts(self._connection)

    async def add_grants(self, grants: Sequence[Grant], *, source: str | None = None) -> bool:
        """Add grants; accept each source once."""
        is_added = await super().add_grants(grants, source=source)
        if self._keep_ms:
            await self._erase_expired_grants()
        return is_added

    async def lock_turn(self, key: ConversationKey, *, holder: str, lease_s: float) -> bool:
        """Take or renew the lock of a conversation's turns; return False if another has it."""
        lease_ms = max(1, round(lease_s * 1000))
        return bool(await self._ask(scripts.LOCK, self._keys.lock(key), holder, lease_ms))

    async def unlock_turn(self, key: ConversationKey, *, holder: str) -> None:
        """Release the lock, if the holder has it."""
        await self._ask(scripts.UNLOCK, self._keys.lock(key), holder)

    async def _ask(
        self, script: scripts.Script, keys: Sequence[str], *args: str | bytes | float
    ) -> Any:
        return await self._connection.run(script, keys, *args)

    async def _change(
        self, script: scripts.Script, key: ConversationKey, *args: str | bytes | float
    ) -> Any:
        """Run a script that changes a conversation, unless a newer worker wrote it."""
        answer = await self._ask(script, self._place(key), *self._start(key), *args)
        if isinstance(answer, int) and answer > VERSION:
            raise _newer(key, answer)
        return answer

    def _start(self, key: ConversationKey) -> tuple[str, str, str]:
        return str(VERSION), written_key(key), str(self._keep_ms)

    async def _revision(self, key: ConversationKey) -> int | None:
        found = await self._ask(scripts.REVISION, self._place(key))
        number = as_number(found)
        if found is not None and number is None:
            problem = f"its revision must be a whole number, not {found[:80]!r}"
            raise UnreadableRecordError(problem, conversation=key)
        return number

    async def _read(self, key: ConversationKey) -> StoredConversation | None:
        for _ in range(_MAX_TRIES):
            parts = await self._parts_at(self._place(key), "")
            if parts is None:
                continue
            # Not unreadable: it must not be set aside, the newer workers go on with it.
            version = as_number(parts.version) or 0
            if parts.record is not None and version > VERSION:
                raise _newer(key, version)
            with reading(key):
                found = _find(parts.found)
            record = None if parts.record is None else _text(parts.record)
            return StoredConversation(as_number(parts.revision), record, parts.messages, found)
        raise StoreError(
            f"the conversation {key!r} is changed by other processes all the time; let one process "
            "at a time serve a conversation",
            fault="locked",
        )

    async def _parts_at(self, place: _Place, kind: str) -> _Parts | None:
        """Return what is stored, page by page; None if it was changed meanwhile."""
        parts = _Parts(*await self._ask(scripts.READ, place, kind))
        messages: list[str] = []
        while len(messages) < parts.total:
            page = await self._ask(scripts.PAGE, place, parts.state, len(messages), _PAGE_BYTES)
            if not page:
                return None
            messages += map(_text, page)
        return parts._replace(messages=messages)

    async def _write(self, key: ConversationKey, change: Change) -> Written:
        staged = self._keys.staged(key, change.new)
        pages = _pages([message.encode() for message in change.messages])
        count = 0
        for page in pages[:-1]:
            await self._ask(scripts.STAGE, (staged,), count, *page)
            count += len(page)
        expected = "*" if change.expected == "any" else _number(change.expected)
        answer = await self._ask(
            scripts.SAVE,
            (*self._place(key), staged),
            *self._start(key),
            *(expected, _number(change.new), _number(change.base), str(change.start)),
            *(change.record, str(len(change.found)), *_flat(change.found)),
            str(count),
            *pages[-1],
        )
        if answer[0] == b"newer":
            raise _newer(key, answer[1])
        if answer[0] == b"unstaged":
            raise StoreError(
                f"the server lost messages of the conversation {key!r} while they were sent; save "
                "it again",
                fault="unreachable",
            )
        written: Written = answer[0].decode()
        return written

    async def _add_found(
        self, key: ConversationKey, found: Sequence[FoundTool]
    ) -> Sequence[FoundTool]:
        entries = await self._change(scripts.APPEND, key, *_flat(found))
        with reading(key):
            return _find(entries)

    async def _set_aside(self, key: ConversationKey) -> None:
        self._parts.pop(key, None)
        await self._ask(scripts.SET_ASIDE, self._place(key), *self._start(key))

    async def _list_keys(self, since: float | None) -> Iterable[ConversationKey]:
        """Return all conversations; those of an early version have no time, and are among them."""
        places = await self._list_places()
        heads: list[tuple[bytes | None, bytes | None]] = []
        for first in range(0, len(places), _HEADS_AT_ONCE):
            some = places[first : first + _HEADS_AT_ONCE]
            heads += await asyncio.gather(*(self._ask(scripts.USED, each[:1]) for each in some))
        used = [(name, as_number(at)) for name, at in heads if name is not None]
        oldest = -math.inf if since is None else since * 1000
        return [read_key(name) for name, at in used if at is None or at >= oldest]

    async def _load_mode(self, key: ConversationKey) -> str | None:
        mode = await self._ask(scripts.LOAD_MODE, self._place(key)[3:4])
        return None if mode is None else _text(mode)

    async def _save_mode(self, key: ConversationKey, mode: str) -> None:
        await self._change(scripts.SAVE_MODE, key, encodable(mode))

    def _place(self, key: ConversationKey) -> _Place:
        return self._keys.conversation(key)

    async def _list_places(self) -> Sequence[_Place]:
        heads = await self._connection.matching(self._keys.heads)
        return [self._keys.of_head(_text(head)) for head in heads]

    async def _export_place(self, place: _Place) -> tuple[object, dict[str, Any]]:
        while (parts := await self._parts_at(place, "all")) is None:
            pass
        named: dict[str, Any] = {} if parts.name is None else {"key": read_key(parts.name)}
        content = {
            "record": None if parts.record is None else as_json(_text(parts.record)),
            "history": [as_json(message) for message in parts.messages],
            "discoveries": _show(parts.found),
            "set_aside": _put_aside(parts.aside),
            "permission_mode": None if parts.mode is None else _text(parts.mode),
        }
        return parts.state, named | {kind: part for kind, part in content.items() if part}

    async def _erase_place(self, place: _Place, state: object) -> int:
        return int(
            await self._ask(scripts.FORGET, place, state if isinstance(state, bytes) else b"")
        )

    async def _erase_rest(self, selection: Selection) -> None:
        keys = selection.conversations
        tags = None if keys is None else {self._keys.tag(self._place(key)[0]) for key in keys}
        if tags != set():
            # Messages that a large save has sent, and has not yet added.
            for name in map(_text, await self._connection.matching(self._keys.staging)):
                if tags is None or self._keys.tag(name) in tags:
                    await self._ask(scripts.FORGET, (name,), "")
        # After a change by another process, its new entries stay, or the next erasure takes them.
        if selection.tools is None:
            rows = await self._evidence(None, 0.0)
            if not rows.entries:
                await self._ask(scripts.CLEAR_EVIDENCE, self._keys.evidence, rows.revision)
        if selection.users is None:
            revision, texts = await self._grants()
            odd = [text for text in texts if read_grant(text) is None]
            if odd:
                await self._erase_grants(revision, odd)

    async def _evidence_revision(self) -> Revision:
        revision: bytes = await self._ask(scripts.EVIDENCE_REVISION, self._keys.evidence)
        return revision

    async def _evidence(self, tools: Sequence[str] | None, before: float) -> EvidenceRows:
        keys = self._keys.evidence
        if tools is None:
            revision, flat = await self._ask(scripts.LOAD_EVIDENCE, keys)
            named = list(zip(map(_text, flat[::2]), flat[1::2], strict=True))
            return EvidenceRows(revision, await self._aside(_entries, named))
        revision, total, last, lists = await self._ask(scripts.READ_EVIDENCE, keys, before, *tools)
        entries = _entries(list(zip(tools, lists, strict=True)))
        return EvidenceRows(revision, entries, total, float(last) if last else None)

    async def _replace_evidence(
        self, revision: Revision, before: Sequence[Evidence], after: Sequence[Evidence]
    ) -> bool:
        known, staying = _by_member(before), _by_member(after)
        tools: dict[str, list[Evidence]] = defaultdict(list)
        for entry in staying.values():
            tools[encodable(entry.tool)].append(entry)
        named = sorted({encodable(entry.tool) for entry in (*before, *after)})
        gone = [member for member in known if member not in staying]
        new = [
            part
            for member, entry in staying.items()
            if known.get(member) != entry
            for part in (member, entry.at)
        ]
        written = await self._ask(
            scripts.WRITE_EVIDENCE,
            self._keys.evidence,
            *(revision, len(named)),
            *(part for tool in named for part in (tool, _written(tools.get(tool, [])))),
            *(len(gone), *gone, *new),
        )
        return bool(written)

    async def _salt(self, new: bytes | None) -> bytes | None:
        script, args = (scripts.LOAD_SALT, ()) if new is None else (scripts.SALT, (new,))
        salt: bytes | None = await self._ask(script, self._keys.evidence, *args)
        if salt is not None and not MIN_SALT <= len(salt) <= MAX_SALT:
            raise StoreError(
                f"the salt of what was learned has {len(salt)} bytes, and must have {MIN_SALT} to "
                f"{MAX_SALT}; erase what was learned (tool-search forget --learned), and the "
                "field 'salt'",
                fault="foreign",
            )
        return salt

    async def _grant_revision(self) -> Revision:
        revision: bytes = await self._ask(scripts.GRANT_REVISION, self._keys.grants)
        return revision

    async def _grants(self) -> tuple[Revision, Sequence[bytes]]:
        revision, flat = await self._ask(scripts.LOAD_GRANTS, self._keys.grants)
        placed = sorted(zip(flat[1::2], flat[::2], strict=True), key=lambda pair: _first(pair[0]))
        return revision, [text for _, text in placed]

    async def _add_grants(self, grants: Mapping[str, Grant], source: str | None) -> bool:
        named = ("", "") if source is None else ("source", json.dumps(source))
        attempt = secrets.token_hex(8)
        keys = self._keys.grants
        return bool(await self._ask(scripts.ADD_GRANTS, keys, attempt, *named, *grants))

    async def _erase_grants(self, revision: Revision, texts: Sequence[str | bytes]) -> bool:
        return bool(await self._ask(scripts.ERASE_GRANTS, self._keys.grants, revision, *texts))

    async def _erase_expired_grants(self) -> None:
        """Erase the grants of conversations that ended by their age; younger grants stay."""
        revision, old = await self._ask(scripts.OLD_GRANTS, self._keys.grants, self._keep_ms)
        gone = []
        for text in old:
            grant = read_grant(text)
            if grant is not None and grant.conversation is not None:
                name, _ = await self._ask(scripts.USED, self._place(grant.conversation)[:1])
                gone += [text] if name is None else []
        if gone:
            # If the grants were changed meanwhile, the next addition erases these.
            await self._erase_grants(revision, gone)


def _newer(key: ConversationKey, version: int) -> StoreError:
    return StoreError(
        f"the conversation {key!r} was written by a newer version of this library: its format is "
        f"{version}, this version reads {VERSION}; update the library",
        fault="newer",
    )


def _text(content: bytes) -> str:
    # Another program may have written invalid UTF-8; the reader of the value checks it.
    return content.decode("utf-8", "replace")


def _number(revision: int | None) -> str:
    # Lua's numbers have 53 bits.
    return "-" if revision is None else str(revision)


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


def _flat(found: Iterable[FoundTool]) -> list[str]:
    return [str(part) for entry in found for part in entry]


def _find(entries: Iterable[bytes]) -> list[FoundTool]:
    """Return discoveries in order.

    Raises:
        ValueError: One is not as this library writes them.
    """
    placed = []
    for entry in entries:
        parts = _ENTRY.fullmatch(entry)
        if parts is None:
            raise ValueError(f"a discovery must have a place, a way and a tool, not {entry[:80]!r}")
        placed.append((int(parts[1]), FoundTool("", _text(parts[2]), _text(parts[3]))))
    return [found for _, found in sorted(placed, key=lambda pair: pair[0])]


def _show(entries: Iterable[bytes]) -> list[Any]:
    """Return the tools of discoveries in order; those that cannot be read as text."""
    placed = []
    for entry in entries:
        parts = entry.split(b" ", 2)
        is_ours = len(parts) > 2 and parts[0].isdigit()
        tool = as_json(_text(parts[2] if is_ours else entry))
        placed.append((int(parts[0]) if is_ours else -1, tool))
    return [tool for _, tool in sorted(placed, key=lambda pair: pair[0])]


def _put_aside(flat: Sequence[bytes]) -> list[dict[str, Any]]:
    """Return the data that was set aside, as an export of SQLite has it."""
    kept: dict[int, dict[str, Any]] = {}
    named = zip(map(_ASIDE.fullmatch, map(_text, flat[::2])), flat[1::2], strict=True)
    matched = [(parts, value) for parts, value in named if parts is not None]
    for parts, value in sorted(matched, key=lambda pair: int(pair[0][3] or 0)):
        one = kept.setdefault(int(parts[1]), {})
        if parts[2] == "message":
            one.setdefault("history", []).append(as_json(_text(value)))
        elif parts[2] == "found":
            one.setdefault("discoveries", []).extend(_show([value]))
        elif parts[2] == "record":
            one["record"] = as_json(_text(value))
    return [kept[number] for number in sorted(kept)]


def _first(value: bytes) -> int:
    place = value.partition(b" ")[0]
    return int(place) if place.isdigit() else 0


def _by_member(entries: Iterable[Evidence]) -> dict[str, Evidence]:
    return {json.dumps([e.tool, *e.words, e.source]): e for e in entries}


def _written(entries: Sequence[Evidence]) -> str:
    """Return the entries of a tool as JSON in ASCII; empty without entries."""
    fields = [
        [list(e.words), e.at, e.strength, e.source, e.conversation, e.first, e.definition, e.vector]
        for e in entries
    ]
    return json.dumps(fields) if fields else ""


def _entries(named: Iterable[tuple[str, bytes]]) -> list[Evidence]:
    """Return the entries of tools; skip those that cannot be read."""
    entries: list[Evidence | None] = []
    for tool, written in named:
        try:
            entries += [evidence_of_row((tool, *fields)) for fields in json.loads(written)]
        except (ValueError, TypeError, RecursionError):
            entries.append(None)
    return readable(entries)
