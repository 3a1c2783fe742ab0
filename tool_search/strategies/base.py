"""The strategy seam: one conversation as a strategy sees it, and what it makes of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar

from tool_search.catalog.catalog import ToolCatalog
from tool_search.catalog.tool import Tool
from tool_search.discovery.modes import Mode
from tool_search.messages import (
    KeptWork,
    Message,
    Phase,
    RequestPlan,
    ResultPart,
    StrategyName,
    TextPart,
    ToolList,
)
from tool_search.providers.profiles import ProviderProfile
from tool_search.search.index.protocol import SearchResult
from tool_search.strategies.arguments import on_wire
from tool_search.strategies.shown import ShownHistory
from tool_search.strategies.tool_lists import ToolsAssembler

__all__ = [
    "DeclaredNames",
    "HistoryShower",
    "PlanInput",
    "ToolSearchStrategy",
    "read_result",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """What a strategy plans a request from; a session makes one for each request.

    Attributes:
        catalog: The tools of now.
        retained: Definitions of tools that are gone but still referred to, by name.
        profile: The provider that will be asked.
        mode: What is sent.
        order: Every declarable name in the order of a whole catalog: the core, the
            search tool, the deferred ones, then what came later.
        ledger: The names a filtered list declares, in the order they came: the core,
            the search tool, then discoveries and late core tools.
        core: Names that are never deferred.
        search_tool: The search tool's definition; None outside `tool_search`.
        call_tool: The definition of the tool that calls what no list has room for.
        history: The neutral history.
        system: The system text, complete.
        selected: The tools a `skills_like` model picked.
        refused: Names whose references this provider has refused.
        hidden: Names that are left out: this turn's user may not call them.
        thinking_from: Index of the first message whose native blocks still hold.
        boundary: What stands behind references to tools; empty for nothing.
        kept: The work of earlier requests of this conversation.
    """

    catalog: ToolCatalog
    profile: ProviderProfile
    mode: Mode
    order: tuple[str, ...]
    ledger: tuple[str, ...]
    core: frozenset[str]
    search_tool: Tool | None
    call_tool: Tool
    history: tuple[Message, ...] = ()
    retained: Mapping[str, Tool] = field(default_factory=dict)
    system: str = ""
    selected: tuple[str, ...] = ()
    refused: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    thinking_from: int = 0
    boundary: str = ""
    kept: KeptWork = field(default_factory=KeptWork, compare=False, repr=False)

    def definition(self, name: str) -> Tool | None:
        """The definition declared under a name, the library's own tools included.

        Outside `tool_search` a catalog may have a tool of such a name.
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
        """The definition of a name, or of a dialect's name for it."""
        return self.definition(name) or self.catalog.by_wire_name.get(name)

    def definitions(self, names: tuple[str, ...]) -> Iterator[Tool]:
        """The definitions to declare under these names, in order.

        Names without one are left out, and tools whose definition the provider refuses.
        """
        found = (self.definition(name) for name in names)
        return (tool for tool in found if tool is not None and not self.sets_aside(tool))

    def sets_aside(self, tool: Tool) -> bool:
        """True if a tool is not declared, because this provider refuses its definition."""
        is_own = tool is self.search_tool or tool is self.call_tool
        return self.profile.sets_aside(tool) and not is_own

    def without_set_aside(self, message: Message) -> Message:
        """The message of a search's result, without tools that are not declared."""
        result = read_result(message.text) if self.profile.set_aside else None
        if result is None:
            return message
        found = ((name, self.definition(name)) for name in result.names)
        gone = {name for name, tool in found if tool is not None and self.sets_aside(tool)}
        return replace(message, content=result.without(gone).to_json()) if gone else message

    def hidden_text(self, result: SearchResult) -> TextPart | None:
        """Return what a result says of tools that are left out, as text; None for nothing."""
        if self.hidden.isdisjoint(result.names):
            return None
        left = replace(
            result,
            matches=tuple(match for match in result.matches if match.name in self.hidden),
            loaded=tuple(name for name in result.loaded if name in self.hidden),
        )
        return TextPart(left.to_json())

    def searches(self, message: Message) -> bool:
        """Whether a message is a result of the search tool."""
        return (
            message.role == "tool"
            and self.search_tool is not None
            and message.name == self.search_tool.name
        )


@lru_cache(maxsize=4096)
def read_result(text: str) -> SearchResult | None:
    """The search result in a history's text; kept, because histories are re-read often."""
    return SearchResult.from_json(text)


class DeclaredNames:
    """Which tools a request declares, and what was asked of that.

    Args:
        tools: The request's list.
    """

    def __init__(self, tools: ToolList) -> None:
        self._tools = tools
        self._asked: dict[str, bool] = {}

    def declares(self, name: str) -> bool:
        """Whether a tool of this canonical name is in the list."""
        return self._asked.setdefault(name, self._tools.declares(name))

    def follow(self, tools: ToolList) -> bool:
        """Asks another list from now on; False: what was asked has another answer there."""
        if tools.fingerprint == self._tools.fingerprint:
            return True
        self._tools = tools
        return all(tools.declares(name) == was for name, was in self._asked.items())


class HistoryShower:
    """Shows the messages of a history as the requests of one conversation do.

    Args:
        conversation: Whose history it is.
        tools: What the request declares.
        show_result: Shows a search's result.
    """

    def __init__(
        self,
        conversation: PlanInput,
        tools: ToolList,
        show_result: Callable[[Message, PlanInput, DeclaredNames], Message],
    ) -> None:
        self._conversation = conversation
        self._declared = DeclaredNames(tools)
        self._show_result = show_result

    def follow(self, conversation: PlanInput, tools: ToolList) -> bool:
        """Goes on with another request, for which the strategy's key is the same.

        Returns:
            False: something that was shown would be shown otherwise there.
        """
        del conversation
        return self._declared.follow(tools)

    def show(self, history: Sequence[Message], index: int) -> Message:
        """The message of a history at an index, after all that are before it."""
        message, conversation = history[index], self._conversation
        # A user's documents are bound to nothing.
        is_bound = message.native is not None and message.role == "assistant"
        if is_bound and index < conversation.thinking_from:
            message = replace(message, native=None)  # it no longer holds
        if conversation.hidden and message.native is not None and message.native.told:
            # What the service found itself says more than this turn's user may know.
            message = replace(message, native=None)
        if message.tool_calls:
            message = on_wire(message, conversation.named, conversation.call_tool.name)
        if conversation.searches(message):
            message = conversation.without_set_aside(message)
            return self._show_result(message, conversation, self._declared)
        return message


class _Shown(ShownHistory):
    """A history that was shown, and what goes on showing it."""

    def __init__(self, shower: HistoryShower, before: ShownHistory | None) -> None:
        super().__init__(shower.show, before)
        self.shower = shower


class ToolSearchStrategy(ABC):
    """How one provider family is told which tools there are.

    A strategy is pure: the same conversation gives the same plan. It may be shared
    by any number of conversations.

    Args:
        assembler: Makes and keeps tool lists; a shared one saves making a list twice.
    """

    name: ClassVar[StrategyName]

    def __init__(self, assembler: ToolsAssembler | None = None) -> None:
        self._assembler = assembler or ToolsAssembler()

    @abstractmethod
    def declare(self, conversation: PlanInput) -> ToolList:
        """The tools that a request of this conversation declares."""

    @abstractmethod
    def format_result(self, result: SearchResult) -> ResultPart:
        """A search result as this provider family takes it."""

    def plan(self, conversation: PlanInput, *, phase: Phase = "answer") -> RequestPlan:
        """The next request, before a dialect writes it."""
        tools = self._tools(conversation, phase)
        messages = self._messages(conversation, tools)
        return RequestPlan(
            strategy=self.name,
            phase=phase,
            tools=tools,
            messages=messages,
            system=conversation.system,
            tool_use="none" if phase == "final" and tools else "auto",
            cached_messages=_cache_ends(messages),
            cache_system=bool(conversation.system),
            kept=conversation.kept,
        )

    def _tools(self, conversation: PlanInput, phase: Phase) -> ToolList:
        if phase == "detail":
            return self._assembler.chosen(conversation)
        if conversation.mode == "skills_like":
            return self._assembler.light(conversation)
        return self.declare(conversation)

    def _messages(self, conversation: PlanInput, tools: ToolList) -> tuple[Message, ...]:
        kept, key, history = conversation.kept, self._key(conversation), conversation.history
        shown = kept.get(_Shown, key)
        if (
            shown is None
            or not shown.precedes(history)
            or not shown.shower.follow(conversation, tools)
        ):
            shower = self._shower(replace(conversation, history=()), tools)
            shown = kept.put(key, _Shown(shower, kept.last(_Shown)))
        return shown.through(history)

    def _key(self, conversation: PlanInput) -> object:
        """All that decides how this strategy shows a message, but for what a shower follows."""
        return (
            self.name,
            conversation.profile,
            conversation.mode,
            conversation.thinking_from,
            conversation.boundary,
            conversation.refused,
            conversation.hidden,
            conversation.catalog.fingerprint,
            conversation.search_tool,
            conversation.call_tool,
            conversation.retained,
        )

    def _shower(self, conversation: PlanInput, tools: ToolList) -> HistoryShower:
        """Shows the messages of a conversation's history, in order."""
        return HistoryShower(conversation, tools, self._show_result)

    @abstractmethod
    def _show_result(
        self, message: Message, conversation: PlanInput, tools: DeclaredNames
    ) -> Message:
        """A search result of the history as this request shows it."""


def _cache_ends(messages: tuple[Message, ...]) -> tuple[int, ...]:
    """The last message, and the user's last one: what the next requests begin with."""
    last = len(messages) - 1
    users = (index for index in range(last, -1, -1) if messages[index].role == "user")
    return tuple(sorted({next(users, last), last})) if messages else ()
