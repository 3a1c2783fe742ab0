"""A store in this process's memory; its data ends with the process."""

from __future__ import annotations

import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tool_search.core.discoveries import Discovery, DiscoveryState
from tool_search.search.learned import Evidence
from tool_search.stores.base import ConversationKey, Grant
from tool_search.stores.evidence import EvidenceRows, StoredEvidence
from tool_search.stores.grants import StoredGrants
from tool_search.stores.record import ConversationRecord

__all__ = ["DEFAULT_CONVERSATIONS", "MemoryStore"]

DEFAULT_CONVERSATIONS = 2_000
"""The default number of conversations in memory: about twice as many as a runner has open."""
_DAY_S = 86_400.0


class MemoryStore(StoredEvidence, StoredGrants):
    """A store in memory, for tests and for bots whose conversations may end with the process.

    Conversations stay objects here: what is no JSON is kept too, and nothing is written out.

    Args:
        keep_days: Days that a conversation is kept after its last use; None: forever.
        keep_conversations: The number of recently used conversations to keep; None: all.
        clock: Returns the seconds since 1970.
    """

    def __init__(
        self,
        *,
        keep_days: float | None = None,
        keep_conversations: int | None = DEFAULT_CONVERSATIONS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._keep_s = math.inf if keep_days is None else keep_days * _DAY_S
        self._most = math.inf if keep_conversations is None else keep_conversations
        self._clock = clock
        self._records: dict[ConversationKey, ConversationRecord] = {}
        self._discoveries: dict[ConversationKey, DiscoveryState] = {}
        # In order of last use, oldest first.
        self._used: OrderedDict[ConversationKey, float] = OrderedDict()
        self._modes: dict[ConversationKey, str] = {}
        self._learned: dict[object, Evidence] = {}
        self._learned_revision = 0
        self._own_salt = secrets.token_bytes(32)
        self._granted: dict[str, Grant] = {}
        self._granted_revision = 0
        self._sources: set[str] = set()

    async def load(self, key: ConversationKey) -> ConversationRecord | None:
        """Return the conversation as last saved, with all discoveries."""
        self._prune()
        record = self._records.get(key)
        if record is None:
            return None
        self._use(key)
        return replace(record, discoveries=self._discoveries[key].entries)

    async def append_discoveries(
        self, key: ConversationKey, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        """Add discoveries; return all discoveries of the conversation in order."""
        state = self._discoveries.setdefault(key, DiscoveryState())
        if state.entries != tuple(entries):
            for entry in entries:
                state.commit((entry.tool,), via=entry.via)
        self._use(key)
        return state.entries

    async def save(self, key: ConversationKey, record: ConversationRecord) -> None:
        """Save the conversation."""
        known = await self.append_discoveries(key, record.discoveries)
        # Most turns discover nothing.
        if known != record.discoveries:
            for entry in record.discoveries:
                self._discoveries[key].refresh(entry.tool)
        self._records[key] = record

    async def forget(self, key: ConversationKey) -> None:
        """Erase the conversation and its grants, if it exists."""
        self._erase(key)

    async def load_permission_mode(self, key: ConversationKey) -> str | None:
        """Return the last saved mode, or None."""
        return self._modes.get(key)

    async def save_permission_mode(self, key: ConversationKey, mode: str) -> None:
        """Save a conversation's mode."""
        self._use(key)
        self._modes[key] = mode
        self._use(key)

    def _use(self, key: ConversationKey) -> None:
        self._used[key] = self._clock()
        self._used.move_to_end(key)
        self._prune()

    def _prune(self) -> None:
        """Erase conversations that are too old or too many."""
        oldest = self._clock() - self._keep_s
        while self._used:
            key, at = next(iter(self._used.items()))
            if at >= oldest and len(self._used) <= self._most:
                return
            self._erase(key)

    def _erase(self, key: ConversationKey) -> None:
        self._used.pop(key, None)
        self._records.pop(key, None)
        self._discoveries.pop(key, None)
        self._modes.pop(key, None)
        self._keep_grants({t: g for t, g in self._granted.items() if g.conversation != key})

    async def _evidence_revision(self) -> int:
        return self._learned_revision

    async def _evidence(self, tools: Sequence[str] | None, before: float) -> EvidenceRows:
        every = self._learned.values()
        return EvidenceRows(
            revision=self._learned_revision,
            entries=[entry for entry in every if tools is None or entry.tool in tools],
            total=len(every),
            last=max((entry.at for entry in every if entry.at <= before), default=None),
        )

    async def _replace_evidence(
        self, revision: object, before: Sequence[Evidence], after: Sequence[Evidence]
    ) -> bool:
        del revision  # no other task runs meanwhile
        for entry in before:
            self._learned.pop(entry.key, None)
        self._learned |= {entry.key: entry for entry in after}
        self._learned_revision += 1
        return True

    async def _salt(self, new: bytes | None) -> bytes:
        del new
        return self._own_salt

    async def _grant_revision(self) -> int:
        return self._granted_revision

    async def _grants(self) -> tuple[int, Sequence[str]]:
        return self._granted_revision, tuple(self._granted)

    async def _add_grants(self, grants: Mapping[str, Grant], source: str | None) -> bool:
        if source in self._sources:
            return False
        if source is not None:
            self._sources.add(source)
        self._keep_grants({**self._granted, **grants})
        return True

    async def _erase_grants(self, revision: object, texts: Sequence[str | bytes]) -> bool:
        del revision  # no other task runs meanwhile
        self._keep_grants({t: g for t, g in self._granted.items() if t not in texts})
        return True

    def _keep_grants(self, grants: dict[str, Grant]) -> None:
        self._granted_revision += grants.keys() != self._granted.keys()
        self._granted = grants
