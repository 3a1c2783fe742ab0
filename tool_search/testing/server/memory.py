"""Replies that a stand-in service keeps for later requests."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    JSON = Mapping[str, Any]

__all__ = ["ReplyMemory"]


class ReplyMemory:
    """Conversations by the id of their last reply or by a name, and items by their own id.

    OpenAI's are sequences of items; Anthropic's threads are request bodies.
    """

    def __init__(self) -> None:
        self._threads: dict[str, JSON] = {}
        self._continued: set[str] = set()
        self._conversations: dict[str, tuple[JSON, ...]] = {}
        self._named: dict[str, tuple[JSON, ...]] = {}
        self._items: dict[str, JSON] = {}
        self._reasoning: dict[str, str] = {}
        self._lock = threading.Lock()

    def keep(self, reply: str, conversation: Sequence[JSON]) -> None:
        """Keep a whole conversation, the reply's items last."""
        with self._lock:
            self._conversations[reply] = tuple(conversation)
            thought: str | None = None
            for item in conversation:
                name = item.get("id")
                if name:
                    self._items[name] = item
                if item.get("type") == "reasoning":
                    thought = name
                elif name and thought:
                    self._reasoning[name] = thought
                    thought = None

    def conversation(self, reply: str) -> tuple[JSON, ...] | None:
        """Return the conversation up to the end of a reply; None if it was not kept."""
        with self._lock:
            return self._conversations.get(reply)

    def begin_conversation(self, items: Sequence[JSON]) -> str:
        """Return the id of a new conversation that requests can name."""
        with self._lock:
            name = f"conv_{len(self._named):040x}"
            self._named[name] = tuple(items)
            return name

    def named(self, name: str) -> tuple[JSON, ...] | None:
        """Return the items of a conversation by its id; None for an unknown one."""
        with self._lock:
            return self._named.get(name)

    def keep_named(self, name: str, items: Sequence[JSON]) -> None:
        """Keep the items of a conversation after another reply."""
        with self._lock:
            self._named[name] = tuple(items)

    def reasoning_of(self, name: str) -> str | None:
        """Return the id of the reasoning that a kept item directly followed, or None."""
        with self._lock:
            return self._reasoning.get(name)

    def item(self, name: str) -> JSON | None:
        """Return one kept item, or None."""
        with self._lock:
            return self._items.get(name)

    def keep_thread(self, reply: str, body: JSON) -> None:
        """Keep the body of a request and its reply, for one request that continues it."""
        with self._lock:
            self._threads[reply] = body

    def thread(self, reply: str) -> JSON | None:
        """Return the body of the conversation up to the end of a reply; None if it was not kept."""
        with self._lock:
            return self._threads.get(reply)

    def continued(self, reply: str) -> None:
        """Record that a request has continued a thread from this reply."""
        with self._lock:
            self._continued.add(reply)

    def is_continued(self, reply: str) -> bool:
        """True if a request has continued a thread from this reply."""
        with self._lock:
            return reply in self._continued
