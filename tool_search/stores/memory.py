"""A store in this process's memory; its data ends with the process."""

from __future__ import annotations

import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tool_search.core.discovery.state import Discovery, DiscoveryState
from tool_search.search.learned import (
    Evidence,
    forgetting_time,
    merge_evidence,
    select_evidence,
)
from tool_search.stores.base import ConversationKey, Grant, KeptEvidence, KeptGrants
from tool_search.stores.record import ConversationRecord

__all__ = ["DEFAULT_CONVERSATIONS", "MemoryStore"]

DEFAULT_CONVERSATIONS = 2_000
"""The default number of conversations in memory: about twice as many as a runner has open."""
_DAY_S = 86_400.0


class MemoryStore:
    """A store in memory, for tests and for bots whose conversations may end with the process.

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
        self._evidence: tuple[Evidence, ...] = ()
        self._revision = 0
        self._salt = secrets.token_bytes(32)
        self._grants: tuple[Grant, ...] = ()
        self._grant_revision = 0
        self._sources: set[str] = set()
        self._modes: dict[ConversationKey, str] = {}

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
        self._keep_grants(grant for grant in self._grants if grant.conversation != key)

    async def evidence_revision(self) -> int:
        """Return the number of changes of the evidence."""
        return self._revision

    async def load_evidence(self) -> KeptEvidence:
        """Return all evidence."""
        return KeptEvidence(self._revision, self._evidence)

    async def evidence_salt(self) -> bytes:
        """Return the salt of this store."""
        return self._salt

    async def add_evidence(self, entries: Sequence[Evidence]) -> None:
        """Add successes."""
        if entries:
            now = max(entry.at for entry in entries)
            after = merge_evidence(self._evidence, entries).values()
            oldest = forgetting_time((entry.at for entry in self._evidence), now)
            self._evidence = tuple(select_evidence(after, oldest))
            self._revision += 1

    async def forget_evidence(self, tool: str | None = None) -> int:
        """Erase the evidence for one tool, or all of it; return the number of entries."""
        left = tuple(e for e in self._evidence if tool is not None and e.tool != tool)
        erased, self._evidence = len(self._evidence) - len(left), left
        self._revision += bool(erased)
        return erased

    async def grant_revision(self) -> int:
        """Return the number of changes of the grants."""
        return self._grant_revision

    async def load_grants(self) -> KeptGrants:
        """Return all grants."""
        return KeptGrants(self._grant_revision, self._grants)

    async def add_grants(self, grants: Sequence[Grant], *, source: str | None = None) -> bool:
        """Add grants; accept each source once."""
        if source in self._sources:
            return False
        if source is not None:
            self._sources.add(source)
        self._keep_grants((*self._grants, *grants))
        return True

    async def revoke_grants(self, grants: Sequence[Grant]) -> int:
        """Revoke grants; return the number of revoked grants."""
        before = len(self._grants)
        self._keep_grants(g for g in self._grants if not any(r.revokes(g) for r in grants))
        return before - len(self._grants)

    async def load_permission_mode(self, key: ConversationKey) -> str | None:
        """Return the last saved mode, or None."""
        return self._modes.get(key)

    async def save_permission_mode(self, key: ConversationKey, mode: str) -> None:
        """Save a conversation's mode."""
        self._use(key)
        self._modes[key] = mode
        self._use(key)

    def _keep_grants(self, grants: Iterable[Grant]) -> None:
        left = tuple(dict.fromkeys(grants))
        self._grant_revision += left != self._grants
        self._grants = left
