"""Evidence of a store, over four primitives: read, merged here, and written if nobody wrote."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

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
from tool_search.stores.sections import Revision, Sections, as_number

__all__ = ["MAX_SALT", "MIN_SALT", "EvidenceRows", "StoredEvidence", "evidence_of_row", "readable"]

MIN_SALT, MAX_SALT = 16, 64
"""The numbers of bytes of a salt."""

_MAX_TRIES = 200
_MAX_PAUSE_S = 0.02
# The last second of the year 9999, which dates end with.
_MAX_TIME = 253_402_300_799.0
_log = logging.getLogger(__name__)


class EvidenceRows(NamedTuple):
    """Evidence of some tools, or all of it, at one moment.

    Attributes:
        revision: The revision that it was read at.
        entries: The entries.
        total: The number of entries of the whole store.
        last: The time of the last success before the time that was asked for, of any tool.
    """

    revision: Revision
    entries: Sequence[Evidence]
    total: int = 0
    last: float | None = None


class StoredEvidence(Sections, ABC):
    """The evidence of a store; a store has `EvidenceStore` and `EvidenceSaltStore` by it."""

    @abstractmethod
    async def _evidence_revision(self) -> Revision:
        """Return a number that grows with every change."""

    @abstractmethod
    async def _evidence(self, tools: Sequence[str] | None, before: float) -> EvidenceRows:
        """Return the entries of some tools, or all; `last` is the last time up to `before`."""

    @abstractmethod
    async def _replace_evidence(
        self, revision: Revision, before: Sequence[Evidence], after: Sequence[Evidence]
    ) -> bool:
        """Write the entries `after` in the place of those before; False if the revision differs."""

    @abstractmethod
    async def _salt(self, new: bytes | None) -> bytes | None:
        """Return the salt; where there is none, keep the new one."""

    async def _open(self) -> None:
        await self._evidence_revision()

    async def evidence_revision(self) -> int:
        """Return a number that grows with every change of the evidence."""
        return as_number(await self._section(self._evidence_revision, "read")) or 0

    async def load_evidence(self) -> KeptEvidence:
        """Return all evidence."""
        rows = await self._section(partial(self._evidence, None, 0.0), "read")
        return KeptEvidence(as_number(rows.revision) or 0, tuple(rows.entries))

    async def evidence_salt(self) -> bytes:
        """Return the salt of the hashes in the evidence."""
        salt = await self._section(partial(self._salt, None), "read")
        if salt is None:
            new = secrets.token_bytes(32)
            salt = await self._section(partial(self._salt, new), "durable") or new
        return salt

    async def add_evidence(self, entries: Sequence[Evidence]) -> None:
        """Add successes to the known evidence, within its bounds."""
        if entries:
            await self._section(partial(self._add_evidence, entries), "write")

    async def forget_evidence(self, tool: str | None = None) -> int:
        """Erase the evidence for one tool, or all of it; return the number of entries."""
        return await self._section(partial(self._forget_evidence, tool), "durable")

    async def _forget_evidence(self, tool: str | None) -> int:
        name = None if tool is None else encodable(tool)
        return await self._erase_evidence(
            lambda known: [entry for entry in known if name in (None, entry.tool)]
        )

    async def _add_evidence(self, entries: Sequence[Evidence]) -> None:
        now = max(entry.at for entry in entries)
        tools = sorted({encodable(entry.tool) for entry in entries})
        for _ in range(_MAX_TRIES):
            rows = await self._evidence(tools, now - DAY_S)
            oldest = forgetting_time(() if rows.last is None else (rows.last,), now)
            staying = select_evidence(merge_evidence(rows.entries, entries).values(), oldest)
            if await self._replace_evidence(rows.revision, rows.entries, staying):
                if rows.total + len(staying) - len(rows.entries) > MAX_EVIDENCE:
                    # A time before all: this erases what is too much, and forgets nothing by age.
                    await self._erase_evidence(lambda k: _beyond(k, select_evidence(k, 0.0)))
                return
            await _pause()
        raise _too_busy()

    async def _erase_evidence(
        self, select: Callable[[Sequence[Evidence]], Sequence[Evidence]]
    ) -> int:
        """Erase the entries that a function selects; return their number."""
        for _ in range(_MAX_TRIES):
            rows = await self._evidence(None, 0.0)
            gone = select(rows.entries)
            tools = {entry.tool for entry in gone}
            before = [entry for entry in rows.entries if entry.tool in tools]
            if not gone or await self._replace_evidence(
                rows.revision, before, _beyond(before, gone)
            ):
                return len(gone)
            await _pause()
        raise _too_busy()


def evidence_of_row(row: Sequence[Any]) -> Evidence | None:
    """Return an entry of the fields of `Evidence` in a store's order, if it is one.

    Older versions kept neither the time of the first success, nor the definition, nor a vector.
    """
    fields = [*row, *(0.0, "", "")[max(len(row) - 6, 0) :]][:9]
    tool, words, at, strength, source, conversation, first, definition, vector = fields
    texts = (None,)
    if isinstance(words, list):
        texts = (tool, *words, source, conversation, definition, vector)
    if not all(isinstance(text, str) for text in texts):
        return None
    if not all(isinstance(number, float) for number in (at, strength, first)):
        return None
    if not (0 <= at <= _MAX_TIME and 0 < strength < math.inf and 0 <= first <= _MAX_TIME):
        return None
    return Evidence(
        tool=tool,
        words=tuple(words),
        at=at,
        strength=strength,
        source=source,
        conversation=conversation,
        first=first,
        definition=definition,
        vector=vector,
    )


def readable(entries: Sequence[Evidence | None]) -> list[Evidence]:
    """Return the entries that could be read."""
    if None in entries:
        _log.warning("stored evidence cannot be read; it is skipped")
    return [entry for entry in entries if entry is not None]


def _beyond(known: Iterable[Evidence], staying: Iterable[Evidence]) -> list[Evidence]:
    """Return the entries that are not among others."""
    others = {entry.key for entry in staying}
    return [entry for entry in known if entry.key not in others]


async def _pause() -> None:
    """Let the process that wrote meanwhile go ahead."""
    await asyncio.sleep(random.uniform(0, _MAX_PAUSE_S))  # noqa: S311


def _too_busy() -> StoreError:
    return StoreError(
        "the evidence is changed by other processes all the time; try again", fault="locked"
    )
