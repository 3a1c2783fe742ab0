"""Where conversations live between their turns."""

from __future__ import annotations

from tool_search.stores.base import ConversationKey, ConversationStore
from tool_search.stores.memory import MemoryStore

__all__ = ["ConversationKey", "ConversationStore", "MemoryStore"]
