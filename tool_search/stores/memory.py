"""Conversations, evidence and grants in this process's memory, gone when it ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tool_search.discovery import Discovery, DiscoveryState
from tool_search.record import ConversationRecord
from tool_search.search.learned import Evidence, kept, merged
from tool_search.stores.base import ConversationKey, Grant, KeptEvidence, KeptGrants

__all__ = ["MemoryStore"]


class MemoryStore:
    """Keeps every conversation until it is forgotten.

    For bots that serve a bounded number of chats, and for tests.
    """

    def __init__(self) -> None:
        self._records: dict[ConversationKey, ConversationRecord] = {}
        self._discoveries: dict[ConversationKey, DiscoveryState] = {}
        self._evidence: tuple[Evidence, ...] = ()
        self._revision = 0
        self._grants: tuple[Grant, ...] = ()
        self._grant_revision = 0
        self._sources: set[str] = set()
        self._modes: dict[ConversationKey, str] = {}

    async def load(self, key: ConversationKey) -> ConversationRecord | None:
        """The conversation as it was last saved, with all discoveries."""
        record = self._records.get(key)
        if record is None:
            return None
        return replace(record, discoveries=self._discoveries[key].entries)

    async def append_discoveries(
        self, key: ConversationKey, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        """Adds discoveries; gives all of the conversation in their order."""
        state = self._discoveries.setdefault(key, DiscoveryState())
        for entry in entries:
            state.commit((entry.tool,), via=entry.via)
        return state.entries

    async def save(self, key: ConversationKey, record: ConversationRecord) -> None:
        """Keeps the conversation."""
        await self.append_discoveries(key, record.discoveries)
        for entry in record.discoveries:
            self._discoveries[key].refresh(entry.tool)
        self._records[key] = record

    async def forget(self, key: ConversationKey) -> None:
        """Erases the conversation, if it is there."""
        self._records.pop(key, None)
        self._discoveries.pop(key, None)
        self._modes.pop(key, None)
        self._keep_grants(grant for grant in self._grants if grant.conversation != key)

    async def evidence_revision(self) -> int:
        """How often the evidence has changed."""
        return self._revision

    async def load_evidence(self) -> KeptEvidence:
        """All evidence."""
        return KeptEvidence(self._revision, self._evidence)

    async def add_evidence(self, entries: Sequence[Evidence]) -> None:
        """Adds successes."""
        if entries:
            newest = max(entry.at for entry in entries)
            self._evidence = tuple(kept(merged(self._evidence, entries).values(), newest))
            self._revision += 1

    async def forget_evidence(self, tool: str | None = None) -> int:
        """Erases the evidence for one tool, or all of it."""
        left = tuple(e for e in self._evidence if tool is not None and e.tool != tool)
        erased, self._evidence = len(self._evidence) - len(left), left
        self._revision += bool(erased)
        return erased

    async def grant_revision(self) -> int:
        """Return how often the grants have changed."""
        return self._grant_revision

    async def load_grants(self) -> KeptGrants:
        """Return all grants."""
        return KeptGrants(self._grant_revision, self._grants)

    async def add_grants(self, grants: Sequence[Grant], *, source: str | None = None) -> bool:
        """Keep grants; from one source once."""
        if source in self._sources:
            return False
        if source is not None:
            self._sources.add(source)
        self._keep_grants((*self._grants, *grants))
        return True

    async def revoke_grants(self, grants: Sequence[Grant]) -> int:
        """Take grants back."""
        before = len(self._grants)
        self._keep_grants(g for g in self._grants if not any(r.revokes(g) for r in grants))
        return before - len(self._grants)

    async def load_permission_mode(self, key: ConversationKey) -> str | None:
        """Return the mode that was last saved, or None."""
        return self._modes.get(key)

    async def save_permission_mode(self, key: ConversationKey, mode: str) -> None:
        """Keep a conversation's mode."""
        self._modes[key] = mode

    def _keep_grants(self, grants: Iterable[Grant]) -> None:
        left = tuple(dict.fromkeys(grants))
        self._grant_revision += left != self._grants
        self._grants = left
