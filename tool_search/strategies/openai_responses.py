"""The core and the service's own kind of search tool; definitions come where they are found.

Chosen for OpenAI models on endpoints known to support it. Follows OpenAI's "Tool
search": the client answers a `tool_search_call` with the definitions themselves, and
they are callable from there on, so that `tools` stays byte for byte what it was and
the prompt cache holds. Models without tool search get them through `additional_tools`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from tool_search.catalog.names import wire_name
from tool_search.messages import (
    ContentPart,
    Message,
    ReferencePart,
    ResultPart,
    StrategyName,
    TextPart,
    ToolCall,
    ToolList,
)
from tool_search.search.index.protocol import SearchResult
from tool_search.strategies.base import (
    DeclaredNames,
    HistoryShower,
    PlanInput,
    ToolSearchStrategy,
    read_result,
)

__all__ = [
    "OpenAIResponsesToolSearchStrategy",
    "ToolsInMessagesToolSearchStrategy",
]


class OpenAIResponsesToolSearchStrategy(ToolSearchStrategy):
    """Declares the core and a search tool; a search result is the definitions it found.

    Definitions that earlier messages have shown are not repeated, unless a result
    would hold nothing else. What a model called without a search is shown before the
    call. A profile's `search_form` says how much more is declared.
    """

    name: ClassVar[StrategyName] = "openai_responses"

    def declare(self, conversation: PlanInput) -> ToolList:
        """The search tool and the core; in `full` mode every tool."""
        if conversation.mode == "tool_search":
            return self._assembler.natively_searched(conversation)
        return self._assembler.full(conversation)

    def format_result(self, result: SearchResult) -> ResultPart:
        """References to all the result makes callable, or its JSON where that is nothing."""
        return ReferencePart(result.names) if result.names else TextPart(result.to_json())

    def _shower(self, conversation: PlanInput, tools: ToolList) -> HistoryShower:
        if conversation.search_tool is None:
            return super()._shower(conversation, tools)
        return _IntroducingShower(conversation, tools, self._show_result)

    def _show_result(
        self,
        message: Message,
        conversation: PlanInput,
        tools: DeclaredNames,  # noqa: ARG002 - definitions come with the message
    ) -> Message:
        """What was found, beside its text where the search is an ordinary function."""
        result = read_result(message.text)
        if result is None or message.is_error:
            return message
        part = self.format_result(result)
        if not isinstance(part, ReferencePart):
            return message
        if conversation.profile.search_form != "additional":
            hidden = conversation.hidden_text(result)
            return replace(message, content=(part, *((hidden,) if hidden else ())))
        text = TextPart(_under_wire_names(result, conversation).to_json())
        return replace(message, content=(text, part))


class _IntroducingShower(HistoryShower):
    """Puts each definition where a history first needs it.

    Args:
        conversation: Whose history it is.
        tools: What the request declares anyway.
        show_result: Shows a search's result.
    """

    def __init__(
        self,
        conversation: PlanInput,
        tools: ToolList,
        show_result: Callable[[Message, PlanInput, DeclaredNames], Message],
    ) -> None:
        super().__init__(conversation, tools, show_result)
        self._tools = tools
        self._loaded = frozenset(tool.name for tool in tools.loaded)
        self._rule = conversation.profile.name_rule
        self._ledger = conversation.ledger
        self._discovered = self._by_wire_name(conversation)
        self._asked: dict[str, str | None] = {}
        self._shown: set[str] = set()

    def follow(self, conversation: PlanInput, tools: ToolList) -> bool:
        """Goes on with another request; a name called unknown may be discovered there."""
        if conversation.ledger != self._ledger:
            discovered = self._by_wire_name(conversation)
            if any(discovered.get(name) != was for name, was in self._asked.items()):
                return False
            self._ledger, self._discovered = conversation.ledger, discovered
        return super().follow(conversation, tools) and self._loads(tools)

    def _loads(self, tools: ToolList) -> bool:
        """Whether a list declares the same tools to begin with."""
        if tools is not self._tools:
            self._tools = tools
            return self._loaded == frozenset(tool.name for tool in tools.loaded)
        return True

    def show(self, history: Sequence[Message], index: int) -> Message:
        """A history's next message, with the definitions that it is the first to need."""
        message = super().show(history, index)
        if message.role == "assistant" and message.tool_calls:
            return self._called(message)
        if message.role == "tool" and not isinstance(message.content, str):
            return replace(message, content=tuple(map(self._found, message.content)))
        return message

    def _by_wire_name(self, conversation: PlanInput) -> dict[str, str]:
        """The discoveries by their names as a model may write them: as the dialect does."""
        own = conversation.search_tool
        return {
            wire_name(name, self._rule): name
            for name in conversation.ledger
            if own is None or name != own.name
        }

    def _called(self, message: Message) -> Message:
        called = map(self._called_tool, message.tool_calls)
        part = self._part([name for name in called if name and name not in self._shown])
        if not part.names:
            return message
        content = message.content
        rest: tuple[ContentPart, ...] = (
            content if not isinstance(content, str) else (TextPart(content),) if content else ()
        )
        return replace(message, content=(part, *rest))

    def _called_tool(self, call: ToolCall) -> str | None:
        """The discovery that a call comes down to, `call_tool` looked through; None: no one."""
        name = call.name
        if name == self._conversation.call_tool.name:
            name = str((call.parsed_arguments() or {}).get("name", name))
        # A tool that its request did not declare may be called by its name on the wire,
        # and a long name's short form has another form of its own.
        return self._discovery(wire_name(name, self._rule)) or self._discovery(name)

    def _discovery(self, name: str) -> str | None:
        return self._asked.setdefault(name, self._discovered.get(name))

    def _found(self, part: ContentPart) -> ContentPart:
        if not isinstance(part, ReferencePart):
            return part
        new = [name for name in part.names if name not in self._shown]
        return self._part(new) if new else self._part(part.names)

    def _part(self, names: tuple[str, ...] | list[str]) -> ReferencePart:
        """These names with their definitions, those left out that the request declares."""
        wanted = tuple(name for name in dict.fromkeys(names) if name not in self._loaded)
        tools = tuple(self._conversation.definitions(wanted))
        self._shown.update(tool.name for tool in tools)
        return ReferencePart(tuple(tool.name for tool in tools), tools)


def _under_wire_names(result: SearchResult, conversation: PlanInput) -> SearchResult:
    rule = conversation.profile.name_rule
    return replace(
        result,
        matches=tuple(replace(m, name=wire_name(m.name, rule)) for m in result.matches),
        loaded=tuple(wire_name(name, rule) for name in result.loaded),
    )


# The core and our search; what it finds is appended to the messages, not to the list.
#
# Chosen for Kimi K3 where Moonshot serves it. Follows Moonshot AI's "Dynamic tool
# loading": a system message with `tools` and no content makes them callable from its
# place on, so that the list stays byte for byte what it was and the prompt cache holds.


class ToolsInMessagesToolSearchStrategy(OpenAIResponsesToolSearchStrategy):
    """Declares the core and our search as functions; definitions follow what found them.

    It is what Responses models without tool search get, in another dialect: its
    profiles have the `search_form` `additional`.
    """

    name: ClassVar[StrategyName] = "late_tools"
