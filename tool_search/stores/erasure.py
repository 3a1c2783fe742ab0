"""Selections of a store's data, to export and to erase."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from tool_search.core.values.json import read_json
from tool_search.search.learned import Evidence, source_hash
from tool_search.stores.base import ConversationKey

__all__ = [
    "Erased",
    "Export",
    "Selection",
    "as_json",
    "evidence_object",
    "select_learned",
    "text_of",
]

Export = Callable[[Mapping[str, Iterable[Mapping[str, Any]]]], None]
"""Writes the data to be erased, by kind; if it raises, nothing is erased."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A selection of data to erase.

    Attributes:
        conversations: Conversations with all their data, and the evidence that was last
            renewed in them; None: all conversations.
        tools: Tools whose evidence is erased; None: all evidence.
        users: Users whose grants and evidence are erased; None: all grants.
    """

    conversations: tuple[ConversationKey, ...] | None = ()
    tools: tuple[str, ...] | None = ()
    users: tuple[str, ...] | None = ()


class Erased(NamedTuple):
    """The numbers of erased entries."""

    evidence: int
    conversations: int
    grants: int


def select_learned(
    entries: Sequence[Evidence], selection: Selection, salt: bytes | None
) -> list[Evidence]:
    """Return the selected evidence: of the tools, the users and the conversations.

    Args:
        entries: All evidence of the store.
        selection: The selection.
        salt: The salt of the store's hashes; None: no entry has a source.
    """
    if selection.tools is None:
        return list(entries)
    users: frozenset[str] = frozenset()
    conversations: frozenset[str] = frozenset()
    if salt is not None:
        users = _hashes(selection.users, salt, "user")
        conversations = _hashes(selection.conversations, salt, "conversation")
    return [
        entry
        for entry in entries
        if entry.tool in selection.tools
        or entry.source in users
        or entry.conversation in conversations
    ]


def _hashes(
    names: Sequence[str] | None, salt: bytes, kind: Literal["user", "conversation"]
) -> frozenset[str]:
    return frozenset(source_hash(name, salt=salt, kind=kind) for name in names or ())


def evidence_object(entry: Evidence) -> dict[str, Any]:
    """Return a piece of evidence as JSON values."""
    at = datetime.fromtimestamp(entry.at, UTC).isoformat()
    known = {"source": entry.source, "conversation": entry.conversation}
    return {
        "tool": entry.tool,
        "words": list(entry.words),
        "strength": entry.strength,
        "at": at,
        **{name: value for name, value in known.items() if value},
    }


def as_json(content: object) -> Any:
    """Return a stored text as JSON values; a text that is not JSON is returned as it is."""
    try:
        return read_json(text_of(content))
    except (ValueError, RecursionError):
        return content if isinstance(content, str) else repr(content)


def text_of(content: object) -> str:
    """Return stored content that is text.

    Raises:
        ValueError: It is not text.
    """
    if not isinstance(content, str):
        raise ValueError(f"it must be text, not {type(content).__name__}")  # noqa: TRY004
    return content
