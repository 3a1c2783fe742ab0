"""The seam every store stands behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tool_search.discovery import Discovery
from tool_search.record import ConversationRecord

__all__ = ["ConversationKey", "ConversationStore"]

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
