"""The part of a proxy's work that both of OpenAI's formats share.

Source: OpenAI, "Error codes" (the form of an error).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence

from tool_search.adapters.openai_chat.parts import message_text
from tool_search.serving.proxy.dialects.base import JSON, WireCall, WireDialect, WireTool

__all__ = ["OpenAIDialect"]


class OpenAIDialect(WireDialect):
    """A format of OpenAI, in which results are items of their own after a reply."""

    def asked(self, item: JSON) -> str | None:
        """Return the text of the user's message; None for any other item."""
        return message_text(item) if item.get("role") == "user" else None

    @abstractmethod
    def defined(self, item: JSON) -> list[tuple[str | None, str]]:
        """Return the namespaces and names of the functions that an item defines."""

    @abstractmethod
    def definitions_item(self, tools: Sequence[WireTool]) -> JSON:
        """Return the item from which on functions are defined."""

    def without_defined(self, item: JSON, known: Collection[tuple[str | None, str]]) -> JSON | None:
        """Return an item without definitions that came before it; None if nothing is left."""
        del known
        return item

    def with_called(
        self, items: Sequence[JSON], needed: Callable[[WireCall], WireTool | None]
    ) -> list[JSON]:
        """Return a history with the definition of each called tool before its call.

        It comes before the reply that is first to call the tool, so that it stays there.
        """
        written: list[JSON] = []
        known: set[tuple[str | None, str]] = set()
        start = 0
        for given in items:
            item = self.without_defined(given, known)
            if item is None:
                continue
            known.update(self.defined(item))
            wanted = [tool for call in self.calls(item) if (tool := needed(call)) is not None]
            new = {(t.namespace, t.name): t for t in wanted if (t.namespace, t.name) not in known}
            if new:
                written.insert(start, self.definitions_item([*new.values()]))
                known.update(new)
                start += 1
            written.append(item)
            start = start if self.is_reply(item) else len(written)
        return written

    def with_later(self, items: Iterable[JSON], later: Sequence[JSON]) -> list[JSON]:
        """Return the items after a reply, with results that the client has not seen first."""
        return [*later, *items]

    def error_body(self, status: int, message: str) -> JSON:
        """Return the dialect's form of an error of the proxy itself."""
        kind = "invalid_request_error" if 400 <= status < 500 else "server_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}
