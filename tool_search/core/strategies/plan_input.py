"""One conversation as a strategy sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.schemas import Schemas
from tool_search.core.catalog.tool import Tool
from tool_search.core.discovery.modes import Mode
from tool_search.core.messages import KeptWork, Message, TextPart
from tool_search.core.profiles import ProviderProfile
from tool_search.core.results import SearchResult
from tool_search.i18n import Language

__all__ = ["PlanInput", "read_result"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """The input of one plan; a session makes one for each request.

    Attributes:
        catalog: The current tools.
        retained: Definitions of removed tools that the history still refers to, by name.
        profile: The provider that will be asked.
        schemas: The readers of tools' schemas.
        mode: The mode of this request.
        catalog_order: Every declarable name in the order of a whole catalog: the core, the
            search tool, the deferred tools, then later tools.
        declared_order: The names of a filtered list in the order they came: the core, the
            search tool, then discoveries and later core tools.
        core: Names that are never deferred.
        search_tool: The search tool's definition; None outside the mode `tool_search`.
        call_tool: The definition of the tool that calls tools for which a list has no room.
        history: The neutral history.
        system: The system text, without the listing.
        listing: The listing of tools that wait to be found, for the end of the system text.
        selected: The tools that a `skills_like` model picked.
        refused: Names whose references this provider has refused.
        hidden: Names that are left out, because this turn's user may not call them.
        thinking_from: Index of the first message whose native blocks are still valid.
        text_after_references: The text that follows references to tools; empty for none.
        prompt: The system text of a request without tools.
        language: The language of text for the model.
        kept: The work of earlier requests of this conversation.
    """

    catalog: ToolCatalog
    profile: ProviderProfile
    schemas: Schemas
    mode: Mode
    catalog_order: tuple[str, ...]
    declared_order: tuple[str, ...]
    core: frozenset[str]
    search_tool: Tool | None
    call_tool: Tool
    history: tuple[Message, ...] = ()
    retained: Mapping[str, Tool] = field(default_factory=dict)
    system: str = ""
    listing: str = ""
    selected: tuple[str, ...] = ()
    refused: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    thinking_from: int = 0
    text_after_references: str = ""
    prompt: str = ""
    language: Language = "en-US"
    kept: KeptWork = field(default_factory=KeptWork, compare=False, repr=False)

    def definition(self, name: str) -> Tool | None:
        """Return the definition that is declared under a name, or None.

        The library's own tools are included. Outside the mode `tool_search` a catalog may
        have a tool of such a name.
        """
        if self.search_tool is not None and self.search_tool.name == name:
            return self.search_tool
        if name in self.hidden:
            return None
        tool = self.catalog.get(name)
        if tool is not None and tool.active:
            return tool
        return self.call_tool if name == self.call_tool.name else self.retained.get(name)

    def named(self, name: str) -> Tool | None:
        """Return the definition of a name, or of a dialect's name for it, or None."""
        return self.definition(name) or self.catalog.by_wire_name.get(name)

    def definitions(self, names: tuple[str, ...]) -> Iterator[Tool]:
        """Iterate over the definitions to declare under these names, in their order.

        Names without a definition are left out, and tools that the provider refuses.
        """
        found = (self.definition(name) for name in names)
        return (tool for tool in found if tool is not None and not self.sets_aside(tool))

    def sets_aside(self, tool: Tool) -> bool:
        """True if a tool is not declared, because this provider refuses its definition."""
        is_own = tool is self.search_tool or tool is self.call_tool
        return self.profile.sets_aside(tool) and not is_own

    def without_set_aside(self, message: Message) -> Message:
        """Return the message of a search result without tools that are not declared."""
        result = read_result(message.text) if self.profile.set_aside else None
        if result is None:
            return message
        found = ((name, self.definition(name)) for name in result.names)
        gone = {name for name, tool in found if tool is not None and self.sets_aside(tool)}
        return replace(message, content=result.without(gone).to_json()) if gone else message

    def hidden_text(self, result: SearchResult) -> TextPart | None:
        """Return the part of a result about hidden tools, as text; None if it has none."""
        if self.hidden.isdisjoint(result.names):
            return None
        left = replace(
            result,
            matches=tuple(match for match in result.matches if match.name in self.hidden),
            loaded=tuple(name for name in result.loaded if name in self.hidden),
        )
        return TextPart(left.to_json())

    def searches(self, message: Message) -> bool:
        """True if a message is a result of the search tool."""
        return (
            message.role == "tool"
            and self.search_tool is not None
            and message.name == self.search_tool.name
        )


# A request repeats every result of its history.
@lru_cache(maxsize=4096)
def read_result(text: str) -> SearchResult | None:
    """Return the search result in a history's text, or None."""
    return SearchResult.from_json(text)
