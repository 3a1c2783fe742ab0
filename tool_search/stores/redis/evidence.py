"""Evidence in Redis: one entry a tool, read, merged here, and written if nobody wrote meanwhile."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import random
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tool_search.core.values.json import encodable
from tool_search.errors import StoreError
from tool_search.search.learned import (
    DAY_S,
    MAX_EVIDENCE,
    Evidence,
    forgetting_time,
    merge_evidence,
    select_evidence,
)
from tool_search.stores.base import KeptEvidence
from tool_search.stores.redis.connection import RedisConnection
from tool_search.stores.redis.keys import Keys, read_number
from tool_search.stores.redis.scripts import (
    CLEAR_EVIDENCE,
    EVIDENCE_REVISION,
    LOAD_EVIDENCE,
    LOAD_SALT,
    READ_EVIDENCE,
    SALT,
    WRITE_EVIDENCE,
)

__all__ = ["RedisEvidence"]

_MAX_TRIES = 200
_MIN_SALT, _MAX_SALT = 16, 64
_MAX_PAUSE_S = 0.02
# The last second of the year 9999, which dates end with.
_MAX_TIME = 253_402_300_799.0
_log = logging.getLogger(__name__)


class RedisEvidence:
    """The evidence of a store.

    Args:
        connection: The connection.
        keys: The keys of the store.
    """

    def __init__(self, connection: RedisConnection, keys: Keys) -> None:
        self._connection = connection
        self._keys = keys.evidence

    async def revision(self) -> int:
        """Return a number that grows with every change."""
        return read_number(await self._connection.run(EVIDENCE_REVISION, self._keys)) or 0

    async def salt(self) -> bytes:
        """Return the salt of the hashes in the evidence."""
        return _checked(await self._connection.run(SALT, self._keys, secrets.token_bytes(32)))

    async def known_salt(self) -> bytes | None:
        """Return the salt, or None if no hash was made yet."""
        salt = await self._connection.run(LOAD_SALT, self._keys)
        return None if salt is None else _checked(salt)

    async def load(self) -> KeptEvidence:
        """Return all evidence."""
        revision, known = await self._load()
        entries = tuple(entry for own in known.values() for entry in own)
        return KeptEvidence(read_number(revision) or 0, entries)

    async def add(self, entries: Sequence[Evidence]) -> None:
        """Add successes to the known evidence, within its bounds."""
        now = max(entry.at for entry in entries)
        tools = sorted({encodable(entry.tool) for entry in entries})
        for _ in range(_MAX_TRIES):
            revision, count, last, lists = await self._connection.run(
                READ_EVIDENCE, self._keys, now - DAY_S, *tools
            )
            known = [e for tool, own in zip(tools, lists, strict=True) for e in _read(tool, own)]
            oldest = forgetting_time([float(last)] if last else (), now)
            staying = select_evidence(merge_evidence(known, entries).values(), oldest)
            if not await self._write(revision, known, staying):
                await _pause()
            elif count + len(staying) - len(known) > MAX_EVIDENCE:
                await self._shrink()
                return
            else:
                return
        raise _too_busy()

    async def forget(self, tool: str | None) -> int:
        """Erase the evidence for one tool, or all of it; return the number of entries."""
        return await self.erase(
            lambda known: [e for e in known if tool is None or e.tool == encodable(tool)]
        )

    async def clear(self) -> None:
        """Erase what is left if it cannot be read."""
        revision, known = await self._load()
        if not any(known.values()):
            # After a change by another process, its new entries stay.
            await self._connection.run(CLEAR_EVIDENCE, self._keys, revision)

    async def _shrink(self) -> None:
        """Erase the weakest entries beyond the bound of the whole store."""
        # A time before all: this erases what is too much, and forgets nothing by its age.
        await self.erase(lambda known: _beyond(known, select_evidence(known, 0.0)))

    async def erase(self, select: Callable[[Sequence[Evidence]], Sequence[Evidence]]) -> int:
        """Erase the entries that a function selects; return their number."""
        for _ in range(_MAX_TRIES):
            revision, known = await self._load()
            every = [entry for own in known.values() for entry in own]
            gone = select(every)
            tools = {entry.tool for entry in gone}
            before = [entry for entry in every if entry.tool in tools]
            if not gone or await self._write(revision, before, _beyond(before, gone)):
                return len(gone)
            await _pause()
        raise _too_busy()

    async def _load(self) -> tuple[bytes, dict[str, list[Evidence]]]:
        revision, flat = await self._connection.run(LOAD_EVIDENCE, self._keys)
        named = zip(flat[::2], flat[1::2], strict=True)
        known = await asyncio.to_thread(
            lambda: {_text(t): _read(_text(t), own) for t, own in named}
        )
        return revision, known

    async def _write(
        self, revision: bytes, known: Iterable[Evidence], staying: Iterable[Evidence]
    ) -> bool:
        """Replace the entries of some tools; return False if the revision differs."""
        before, after = _by_member(known), _by_member(staying)
        tools: dict[str, list[Evidence]] = defaultdict(list)
        for entry in after.values():
            tools[encodable(entry.tool)].append(entry)
        named = sorted({encodable(entry.tool) for entry in (*before.values(), *after.values())})
        lists = [part for tool in named for part in (tool, _written(tools.get(tool, [])))]
        gone = [member for member in before if member not in after]
        new = [
            part
            for member, entry in after.items()
            if before.get(member) != entry
            for part in (member, entry.at)
        ]
        return bool(
            await self._connection.run(
                WRITE_EVIDENCE, self._keys, revision, len(named), *lists, len(gone), *gone, *new
            )
        )


def _checked(salt: bytes) -> bytes:
    if not _MIN_SALT <= len(salt) <= _MAX_SALT:
        raise StoreError(
            f"the salt of what was learned has {len(salt)} bytes, and must have {_MIN_SALT} to "
            f"{_MAX_SALT}; erase what was learned (tool-search forget --learned), and the field "
            "'salt'",
            fault="foreign",
        )
    return salt


def _beyond(known: Iterable[Evidence], staying: Iterable[Evidence]) -> list[Evidence]:
    """Return the entries that are not among others."""
    others = {entry.key for entry in staying}
    return [entry for entry in known if entry.key not in others]


def _by_member(entries: Iterable[Evidence]) -> dict[str, Evidence]:
    return {json.dumps([e.tool, *e.words, e.source]): e for e in entries}


def _written(entries: Sequence[Evidence]) -> str:
    """Return the entries of a tool as JSON in ASCII; empty without entries."""
    fields = [[list(e.words), e.at, e.strength, e.source, e.conversation] for e in entries]
    return json.dumps(fields) if fields else ""


def _read(tool: str, written: bytes) -> list[Evidence]:
    """Return the entries of a tool; skip those that cannot be read."""
    try:
        fields = json.loads(written)
        entries = [_entry(tool, entry) for entry in fields]
    except (ValueError, TypeError, RecursionError):
        entries = [None]
    if None in entries:
        _log.warning("stored evidence cannot be read; it is skipped")
    return [entry for entry in entries if entry is not None]


def _entry(tool: str, fields: Any) -> Evidence | None:
    try:
        words, at, strength, source, conversation = fields
    except (ValueError, TypeError):
        return None
    texts = (*words, source, conversation) if isinstance(words, list) else (None,)
    if not all(isinstance(text, str) for text in texts):
        return None
    if not (isinstance(at, float) and isinstance(strength, float)):
        return None
    if not (0 <= at <= _MAX_TIME and 0 < strength < math.inf):
        return None
    return Evidence(
        tool=tool,
        words=tuple(words),
        at=at,
        strength=strength,
        source=source,
        conversation=conversation,
    )


async def _pause() -> None:
    """Let the process that wrote meanwhile go ahead."""
    await asyncio.sleep(random.uniform(0, _MAX_PAUSE_S))  # noqa: S311


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _too_busy() -> StoreError:
    return StoreError(
        "the evidence is changed by other processes all the time; try again", fault="locked"
    )
