"""Which tool of an index lives in which slot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from tool_search.catalog.catalog import Tool
from tool_search.search.index.layered import BlockedList, LayeredTable
from tool_search.search.text.tokenizer import folded

__all__ = ["SlotChange", "Slots"]


class Slots:
    """An immutable table of tools by slot and of slots by name.

    Args:
        tools: What the slots hold; names differ.

    Attributes:
        tools: The tools by slot; None where a slot is free.
    """

    __slots__ = ("_by_name", "_free", "tools")

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        ordered: list[Tool] = sorted(tools, key=attrgetter("name"))
        self.tools: BlockedList[Tool | None] = BlockedList(ordered)
        self._free: tuple[int, ...] = ()
        by_name: dict[str, tuple[int, ...]] = {}
        for slot, tool in self.taken():
            key = folded(tool.name)
            by_name[key] = (*by_name.get(key, ()), slot)
        # Slots by folded name; the few tools that differ in case alone share an entry.
        self._by_name = LayeredTable(by_name)

    def __len__(self) -> int:
        """How many tools there are; free slots do not count."""
        return len(self.tools) - len(self._free)

    def taken(self) -> list[tuple[int, Tool]]:
        """Every tool with its slot, slots ascending."""
        return [(slot, tool) for slot, tool in enumerate(self.tools) if tool is not None]

    def named(self, text: str) -> tuple[int, ...]:
        """The slots of the tools that the text names, exactly or but for case and width."""
        slots = self._by_name.get(folded(text)) or ()
        exact = self._slot(text)
        return slots if exact is None else (exact,)

    def changed(self, *, added: Sequence[Tool], removed: Sequence[str]) -> SlotChange:
        """A table with tools added or replaced and others gone.

        Equal tools and unknown names change nothing.
        """
        new = {tool.name: tool for tool in added}
        left: list[tuple[int, Tool]] = []
        for name in dict.fromkeys((*removed, *new)):
            slot = self._slot(name)
            tool = None if slot is None else self.tools[slot]
            if slot is None or tool is None:
                continue
            if tool == new.get(name):
                del new[name]
            else:
                left.append((slot, tool))
        # In their order: what replaces a server's tools stands in their order mostly too.
        free = [*self._free, *sorted((slot for slot, _ in left), reverse=True)]
        places: dict[int, Tool | None] = {slot: None for slot, _ in left}
        entered: list[tuple[int, Tool]] = []
        end = len(self.tools)
        for tool in sorted(new.values(), key=lambda tool: tool.name):
            slot = free.pop() if free else end
            end = max(end, slot + 1)
            places[slot] = tool
            entered.append((slot, tool))
        slots = Slots()
        slots.tools, slots._free = self.tools.changed(places), tuple(free)
        slots._by_name = self._by_name.changed(self._renamed(left, entered))
        return SlotChange(slots, left, entered)

    def _slot(self, name: str) -> int | None:
        for slot in self._by_name.get(folded(name)) or ():
            tool = self.tools[slot]
            if tool is not None and tool.name == name:
                return slot
        return None

    def _renamed(
        self, left: Iterable[tuple[int, Tool]], entered: Iterable[tuple[int, Tool]]
    ) -> dict[str, tuple[int, ...] | None]:
        entries: dict[str, tuple[int, ...] | None] = {}
        for slot, tool in left:
            key = folded(tool.name)
            others = entries.get(key, self._by_name.get(key)) or ()
            entries[key] = tuple(other for other in others if other != slot) or None
        for slot, tool in entered:
            key = folded(tool.name)
            entries[key] = (*(entries.get(key, self._by_name.get(key)) or ()), slot)
        return entries


class SlotChange(NamedTuple):
    """What became of a table of slots.

    Attributes:
        slots: The new table.
        left: What is no longer in its slot.
        entered: What is new in its slot, which may be one that was left.
    """

    slots: Slots
    left: list[tuple[int, Tool]]
    entered: list[tuple[int, Tool]]
