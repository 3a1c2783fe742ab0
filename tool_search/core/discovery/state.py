"""The discoveries of a conversation: ordered, append-only, never reordered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import DiscoveryWay

__all__ = ["Discovery", "DiscoveryState", "DiscoveryWay"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """One deferred tool that became callable in a conversation.

    Attributes:
        tool: Its last known definition, kept for when its server goes away.
        via: A search returned it, the model called it by name, it was preloaded, or it was
            found after an answer that said there is no tool.
    """

    tool: Tool
    via: DiscoveryWay = "search"

    @property
    def name(self) -> str:
        """The tool's canonical name."""
        return self.tool.name


class DiscoveryState:
    """The discoveries of one conversation, in the order they were made.

    They are kept outside the message history, so that no compaction and no change of
    provider loses one.

    >>> state = DiscoveryState()
    >>> state.commit([Tool(name="b"), Tool(name="a"), Tool(name="b")], via="search")
    ('b', 'a')
    >>> state.names
    ('b', 'a')

    Attributes:
        version: A number that grows with each addition and each refreshed definition.
    """

    def __init__(self, entries: Iterable[Discovery] = ()) -> None:
        self.version = 0
        self._entries: dict[str, Discovery] = {}
        for entry in entries:
            self._entries.setdefault(entry.name, entry)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[Discovery]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def names(self) -> tuple[str, ...]:
        """The discovered tools' names, oldest first."""
        return tuple(self._entries)

    @property
    def entries(self) -> tuple[Discovery, ...]:
        """The discoveries, oldest first."""
        return tuple(self._entries.values())

    def __getitem__(self, name: str) -> Discovery:
        return self._entries[name]

    def commit(self, tools: Iterable[Tool], *, via: DiscoveryWay) -> tuple[str, ...]:
        """Append the tools that are not discovered yet, and return their names in order."""
        new = []
        for tool in tools:
            if tool.name not in self._entries:
                self._entries[tool.name] = Discovery(tool=tool, via=via)
                self.version += 1
                new.append(tool.name)
        return tuple(new)

    def refresh(self, tool: Tool) -> None:
        """Replace the definition of a tool in its old place, if the tool is discovered."""
        entry = self._entries.get(tool.name)
        if entry is not None and entry.tool != tool:
            self._entries[tool.name] = Discovery(tool=tool, via=entry.via)
            self.version += 1
