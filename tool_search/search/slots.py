"""Which tool of an index lives in which slot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tool_search.catalog import Tool
from tool_search.search.tokenizer import folded

__all__ = ["Slots"]


class Slots:
    """An immutable table of tools by slot and of slots by name.

    Args:
        tools: The tools by slot; None where a slot is free.
    """

    __slots__ = ("_by_folded_name", "_by_name", "_free", "tools")

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self.tools: list[Tool | None] = [*sorted(tools, key=lambda tool: tool.name)]
        self._free: list[int] = []
        self._by_name: dict[str, int] = {}
        self._by_folded_name: dict[str, tuple[int, ...]] = {}
        for slot, tool in enumerate(self.tools):
            if tool is not None:
                self._enter(slot, tool)

    def __len__(self) -> int:
        """How many tools there are; free slots do not count."""
        return len(self._by_name)

    def taken(self) -> list[tuple[int, Tool]]:
        """Every tool with its slot, slots ascending."""
        return [(slot, tool) for slot, tool in enumerate(self.tools) if tool is not None]

    def named(self, text: str) -> tuple[int, ...]:
        """The slots of the tools that the text names, exactly or but for case and width."""
        exact = self._by_name.get(text)
        return self._by_folded_name.get(folded(text), ()) if exact is None else (exact,)

    def changed(
        self, *, added: Sequence[Tool], removed: Sequence[str]
    ) -> tuple[Slots, list[tuple[int, Tool]], list[tuple[int, Tool]]]:
        """A table with tools added or replaced and others gone.

        Equal tools and unknown names change nothing.

        Returns:
            The table, what left it and what entered it, each with its slot.
        """
        new = {tool.name: tool for tool in added}
        old = {name: self._by_name.get(name) for name in (*removed, *new)}
        left = [
            (slot, tool)
            for name, slot in old.items()
            if slot is not None and (tool := self.tools[slot]) is not None and tool != new.get(name)
        ]
        staying = {name for name, slot in old.items() if slot is not None} - {
            tool.name for _, tool in left
        }
        table = self._copy()
        for slot, tool in left:
            table._leave(slot, tool)  # noqa: SLF001 - its own kind
        entering = (new[name] for name in sorted(new.keys() - staying))
        entered = [(table._take(tool), tool) for tool in entering]  # noqa: SLF001
        return table, left, entered

    def _copy(self) -> Slots:
        table = Slots()
        table.tools = self.tools.copy()
        table._free = self._free.copy()
        table._by_name = self._by_name.copy()
        table._by_folded_name = self._by_folded_name.copy()
        return table

    def _take(self, tool: Tool) -> int:
        if self._free:
            slot = self._free.pop()
            self.tools[slot] = tool
        else:
            slot = len(self.tools)
            self.tools.append(tool)
        self._enter(slot, tool)
        return slot

    def _enter(self, slot: int, tool: Tool) -> None:
        self._by_name[tool.name] = slot
        key = folded(tool.name)
        self._by_folded_name[key] = (*self._by_folded_name.get(key, ()), slot)

    def _leave(self, slot: int, tool: Tool) -> None:
        self.tools[slot] = None
        self._free.append(slot)
        del self._by_name[tool.name]
        key = folded(tool.name)
        others = tuple(other for other in self._by_folded_name[key] if other != slot)
        if others:
            self._by_folded_name[key] = others
        else:
            del self._by_folded_name[key]
