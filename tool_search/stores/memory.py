"""Conversations and evidence in this process's memory, gone when it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tool_search.discovery import Discovery, DiscoveryState
from tool_search.record import ConversationRecord
from tool_search.search.learned import Evidence, kept, merged
from tool_search.stores.base import ConversationKey, KeptEvidence

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
