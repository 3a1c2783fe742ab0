"""The seam every store stands behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from tool_search.discovery import Discovery
from tool_search.record import ConversationRecord
from tool_search.search.learned import Evidence

__all__ = ["ConversationKey", "ConversationStore", "EvidenceStore", "KeptEvidence"]

ConversationKey = str
"""Names a conversation in its bot: any text."""


class ConversationStore(Protocol):
    """Keeps conversations; every method may be awaited from any task."""

    async def load(self, key: ConversationKey) -> ConversationRecord | None:
        """The conversation as it was last saved, or None where it is new."""
        ...

    async def append_discoveries(
        self, key: ConversationKey, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        """Adds discoveries at once; gives all of the conversation in their order.

        Entries that are there already keep their place.
        """
        ...

    async def save(self, key: ConversationKey, record: ConversationRecord) -> None:
        """Keeps the conversation; discoveries that were appended meanwhile stay."""
        ...

    async def forget(self, key: ConversationKey) -> None:
        """Erases the conversation, if it is there."""
        ...


class KeptEvidence(NamedTuple):
    """All evidence of a store at one moment.

    Attributes:
        revision: Grows with every change of the evidence, whoever makes it.
        entries: In no order.
    """

    revision: int
    entries: tuple[Evidence, ...]


@runtime_checkable
class EvidenceStore(Protocol):
    """Keeps what searches have taught; every method may be awaited from any task.

    Stays within the bounds of `tool_search.search.learned.kept`, give or take what
    was added last.
    """

    async def evidence_revision(self) -> int:
        """The revision of now: a cheap way to see whether there is anything new."""
        ...

    async def load_evidence(self) -> KeptEvidence:
        """All of it."""
        ...

    async def add_evidence(self, entries: Sequence[Evidence]) -> None:
        """Adds successes at once; what is known by its words already grows stronger."""
        ...

    async def forget_evidence(self, tool: str | None = None) -> int:
        """Erases the evidence for one tool, or all of it; gives how much that was."""
        ...
