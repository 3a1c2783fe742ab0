"""Blocks of Anthropic's Messages and what is in them, wherever they are read.

Requests, replies, their streams and histories have them. Needs no SDK. Sources: Anthropic,
"Messages API", "Streaming Messages" (deltas of a block), "Tool search tool" (references, blocks
of a server-side search), "Citations" (`citations_delta`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tool_search.adapters.wire.values import mappings_of, text_of
from tool_search.core.values.json import read_object

__all__ = [
    "EMPTY_TEXT",
    "THINKING",
    "StreamedBlock",
    "blocks_of",
    "blocks_text",
    "is_search",
    "is_search_block",
    "references_in",
]

JSON = Mapping[str, Any]

EMPTY_TEXT = "…"
"""Text of a message without content: a request with an empty message is refused."""
THINKING = frozenset({"thinking", "redacted_thinking"})
"""The types of blocks of reasoning, which go back unchanged or not at all."""

_SEARCH_TOOL = "tool_search_tool"
# For each kind of delta: the field with its text, and the block's field that the text extends.
_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "input"),
}


def blocks_of(message: JSON) -> list[dict[str, Any]]:
    """Return the blocks of a message or of a result; a text is one."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return mappings_of(content)


def blocks_text(blocks: Iterable[JSON]) -> str:
    """Return the text in blocks."""
    return "".join(text_of(b.get("text")) for b in blocks if b.get("type") == "text")


def is_search(tool: JSON) -> bool:
    """True for the service's own search in a list of tools: its type has a version's date."""
    return text_of(tool.get("type")).startswith(_SEARCH_TOOL)


def is_search_block(block: JSON) -> bool:
    """True if a block belongs to Claude's own server-side tool search."""
    kind = block.get("type")
    if kind == "server_tool_use":
        return text_of(block.get("name")).startswith(_SEARCH_TOOL)
    return kind == "tool_search_tool_result"


def references_in(block: JSON) -> list[dict[str, Any]]:
    """Return the references to tools in the result of a call or of a server-side search."""
    content = block.get("content")
    parts = content.get("tool_references") if isinstance(content, Mapping) else content
    return [part for part in mappings_of(parts) if part.get("type") == "tool_reference"]


@dataclass(slots=True)
class StreamedBlock:
    """A block of a stream, with the pieces received so far.

    Attributes:
        start: The block as it began.
        position: The number of calls before it.
        pieces: The pieces of its texts, by the field that they extend.
        is_closed: True if it has ended.
    """

    start: JSON
    position: int = 0
    pieces: dict[str, list[str]] = field(default_factory=dict)
    is_closed: bool = False
    _citations: list[Any] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """Its type."""
        return text_of(self.start.get("type"))

    @property
    def is_slow(self) -> bool:
        """True while silence is expected: before its first piece, in thinking, in a call.

        The service sends a call's arguments by whole values, each once it is written.
        Source: Anthropic, "Streaming Messages", input JSON delta.
        """
        if self.is_closed:
            return False
        return not self.pieces or self.kind in ("thinking", "tool_use")

    def extend(self, delta: JSON) -> str:
        """Add a delta, and return its text."""
        said, extended = _DELTAS.get(text_of(delta.get("type")), ("", ""))
        text = text_of(delta.get(said))
        if text:
            self.pieces.setdefault(extended, []).append(text)
        elif "citation" in delta:
            self._citations.append(delta["citation"])
        return text

    def whole(self) -> dict[str, Any]:
        """Return the block with its pieces; a call's arguments as the model wrote them."""
        block = dict(self.start)
        if self._citations:
            block["citations"] = [*(block.get("citations") or ()), *self._citations]
        for key, pieces in self.pieces.items():
            if key != "input":
                block[key] = "".join([text_of(block.get(key)), *pieces])
        written = "".join(self.pieces.get("input", ()))
        if written.strip():
            # Broken or not: who reads a call takes text too. What the service runs is an object.
            block["input"] = written if self.kind == "tool_use" else read_object(written) or {}
        return block
