"""The base of strategies: what a provider family is sent about tools.

A strategy of your own declares tools and formats search results::

    class Listing(GenericToolSearchStrategy):
        name = "listing"

        def format_result(self, result: SearchResult) -> ResultPart:
            return TextPart(", ".join(result.names) or "nothing")

    register_strategy(Listing)

`strategy: listing` in a configuration then chooses it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar

from tool_search.core.catalog.names import wire_name
from tool_search.core.kinds import Dialect
from tool_search.core.messages import (
    Message,
    Phase,
    ReferencePart,
    RequestPlan,
    ResultPart,
    StrategyName,
    TextPart,
    ToolList,
)
from tool_search.core.results import SearchMatch, SearchResult
from tool_search.core.strategies.history import (
    DeclaredNames,
    DefinitionRenderer,
    MessageRenderer,
    RenderedHistory,
)
from tool_search.core.strategies.plan_input import PlanInput, read_result
from tool_search.core.strategies.tool_lists import ToolsAssembler
from tool_search.core.strategy_facts import DefinitionsRole

__all__ = ["ToolSearchStrategy"]


class ToolSearchStrategy(ABC):
    """Present tool definitions in one provider family's format.

    Two methods have to be written: `declare` and `format_result`. Class attributes state
    the facts that other modules need; each has a default but `name`.

    A strategy is pure: the same conversation gives the same plan. It may be shared
    by any number of conversations.

    Args:
        assembler: Builds and caches tool lists; a shared one builds each list once.

    Attributes:
        name: The name in configurations and profiles.
        list_grows: True if discoveries are appended to the tool list. False promises that
            the list of a conversation stays as it is, so that prompt caches hold.
        sends_definitions_in_messages: True if definitions follow the message that found
            them: references of `format_result` then get the definitions.
        definitions_role: The role of a message of OpenAI Chat that holds definitions.
        dialect: The only dialect that can write the requests; None: any.
        requires: What a model must have, for the error; empty: any model will do.
        rejected_by: A service's words if it does not know the feature, searched in
            "code message"; the conversation goes on with the generic strategy. None: the
            tables beside the adapters' errors have them.
        uses_limits: True if `max_deferred` and `max_tool_bytes` of a profile apply.
    """

    name: ClassVar[StrategyName]
    list_grows: ClassVar[bool] = False
    sends_definitions_in_messages: ClassVar[bool] = False
    definitions_role: ClassVar[DefinitionsRole] = "system"
    dialect: ClassVar[Dialect | None] = None
    requires: ClassVar[str] = ""
    rejected_by: ClassVar[re.Pattern[str] | None] = None
    uses_limits: ClassVar[bool] = False

    def __init__(self, assembler: ToolsAssembler | None = None) -> None:
        self._assembler = assembler or ToolsAssembler()

    @abstractmethod
    def declare(self, conversation: PlanInput) -> ToolList:
        """Return the tools that a request declares, in order."""

    @abstractmethod
    def format_result(self, result: SearchResult) -> ResultPart:
        """Return a search result as text, or as references to the tools it found."""

    def system_text(self, conversation: PlanInput) -> str:
        """Return the system text, with the listing of tools that wait to be found.

        A strategy whose requests show those tools in another way returns it without.
        """
        return "\n\n".join(filter(None, (conversation.system, conversation.listing)))

    def show_result(
        self, message: Message, conversation: PlanInput, tools: DeclaredNames
    ) -> Message:
        """Return a search result of the history as the current request shows it.

        The default uses `format_result`. Text gets the names and schemas that the request
        calls by; references are left to tools that it declares or defines.
        """
        result = read_result(message.text)
        if result is None:
            return message
        if isinstance(self.format_result(result), ReferencePart):
            # Services take only text in an error.
            return (
                message if message.is_error else self._refer(message, result, conversation, tools)
            )
        shown = _callable_result(result, conversation, tools)
        part = self.format_result(shown)
        # The history has the result's JSON, in these or other spaces.
        if shown == result and part == TextPart(result.to_json()):
            return message
        return replace(message, content=(part,))

    def plan(self, conversation: PlanInput, *, phase: Phase = "answer") -> RequestPlan:
        """Return the next request, before a dialect writes it."""
        tools = self._tools(conversation, phase)
        messages = self._messages(conversation, tools)
        system = self.system_text(conversation)
        return RequestPlan(
            strategy=self.name,
            own_facts=type(self),
            phase=phase,
            tools=tools,
            messages=messages,
            system=system,
            listing=conversation.listing if system.endswith(conversation.listing) else "",
            tool_use="none" if phase == "final" and tools else "auto",
            cached_messages=_cache_ends(messages),
            cache_system=bool(system),
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
        rendered = kept.get(RenderedHistory, key)
        if (
            rendered is None
            or not rendered.precedes(history)
            or not rendered.renderer.follow(conversation, tools)
        ):
            renderer = self._renderer(replace(conversation, history=()), tools)
            rendered = kept.put(key, RenderedHistory(renderer, kept.last(RenderedHistory)))
        return rendered.through(history)

    def _key(self, conversation: PlanInput) -> object:
        """Return what decides how a message is shown, without what a renderer follows."""
        return (
            self.name,
            conversation.profile,
            conversation.mode,
            conversation.thinking_from,
            conversation.text_after_references,
            conversation.refused,
            conversation.hidden,
            conversation.catalog.fingerprint,
            conversation.search_tool,
            conversation.call_tool,
            conversation.retained,
        )

    def _renderer(self, conversation: PlanInput, tools: ToolList) -> MessageRenderer:
        has_definitions = self.sends_definitions_in_messages and conversation.search_tool
        kind = DefinitionRenderer if has_definitions else MessageRenderer
        return kind(conversation, tools, self.show_result)

    def _refer(
        self,
        message: Message,
        result: SearchResult,
        conversation: PlanInput,
        tools: DeclaredNames,
    ) -> Message:
        """Return a result as references; without a tool to refer to, as its JSON."""
        if self.sends_definitions_in_messages:
            text = TextPart(_under_wire_names(result, conversation).to_json())
            return replace(message, content=(text, ReferencePart(result.names)))
        names = tuple(
            name
            for name in dict.fromkeys(result.names)
            if tools.declares(name) and name not in conversation.refused
        )
        if not names:
            return replace(message, content=(TextPart(result.to_json()),))
        hidden = conversation.hidden_text(result)
        return replace(message, content=(ReferencePart(names), *((hidden,) if hidden else ())))


def _cache_ends(messages: tuple[Message, ...]) -> tuple[int, ...]:
    """Return the indexes of the last message and of the user's last: later requests repeat them."""
    last = len(messages) - 1
    users = (index for index in range(last, -1, -1) if messages[index].role == "user")
    return tuple(sorted({next(users, last), last})) if messages else ()


def _under_wire_names(result: SearchResult, conversation: PlanInput) -> SearchResult:
    rule = conversation.profile.name_rule
    return replace(
        result,
        matches=tuple(replace(m, name=wire_name(m.name, rule)) for m in result.matches),
        loaded=tuple(wire_name(name, rule) for name in result.loaded),
    )


def _callable_result(
    result: SearchResult, conversation: PlanInput, tools: DeclaredNames
) -> SearchResult:
    """Return a result with the names and schemas that a request calls by."""
    if not result.names:
        return result
    return replace(
        result,
        matches=tuple(_callable_match(m, conversation, tools) for m in result.matches),
        loaded=tuple(wire_name(n, conversation.profile.name_rule) for n in result.loaded),
    )


def _callable_match(
    match: SearchMatch, conversation: PlanInput, tools: DeclaredNames
) -> SearchMatch:
    """Return a match under its declared name, with its schema if the request declares none."""
    name = wire_name(match.name, conversation.profile.name_rule)
    # Under bound thinking the list lags by a turn, and a message must not change when the
    # tool enters the list: each match has its schema.
    needed = conversation.profile.thinking_bound_to_prefix or not tools.declares(match.name)
    tool = conversation.definition(match.name)
    if not needed or tool is None:
        return match if name == match.name else replace(match, name=name)
    # oh-my-pi's answers have names alone.
    described = match.description or tool.description
    schema = conversation.schemas.declared(tool).schema
    return replace(match, name=name, description=described, parameters=schema)
