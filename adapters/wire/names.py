"""Calls of a reply, with canonical names for the names in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from tool_search.adapters.wire.arguments import arguments_text
from tool_search.adapters.wire.requests import definitions_in
from tool_search.adapters.wire.values import text_of
from tool_search.core.catalog.naming import NameRule, wire_name
from tool_search.core.messages import Message, RequestPlan, ToolCall

__all__ = ["canonical_names", "made_call"]


def canonical_names(plan: RequestPlan, rule: NameRule) -> Callable[[str], str]:
    """Return a function from wire names to canonical names; unknown names stay unchanged.

    It knows the tools that the plan declares and those that its messages define. The name
    that a model has seen precedes an equal canonical name of another tool.
    """
    declared = plan.tools.by_wire_name(rule)

    @cache
    def sent_names() -> Mapping[str, str]:
        known = plan.kept.get(_SentNames, rule)
        if known is None or not known.precedes(plan.messages):
            known = plan.kept.put(rule, _SentNames(rule))
        return known.through(plan.messages)

    def canonical(name: str) -> str:
        return declared.get(name) or sent_names().get(name, name)

    return canonical


def made_call(
    canonical: Callable[[str], str], place: int, call_id: object, name: object, arguments: object
) -> ToolCall:
    """Return a call of a reply; some services give calls no id, so their place names them."""
    return ToolCall(
        id=text_of(call_id) or f"call_{place}",
        name=canonical(text_of(name)),
        arguments=arguments_text(arguments),
    )


class _SentNames:
    """The tools that a history defines, by wire name; extended at each request."""

    def __init__(self, rule: NameRule) -> None:
        self._rule = rule
        self._messages: tuple[Message, ...] = ()
        self._names: dict[str, str] = {}

    def precedes(self, messages: tuple[Message, ...]) -> bool:
        """True if a history continues the one that was read."""
        # Equal tuples are compared by identity first, which takes no time.
        return messages[: len(self._messages)] == self._messages

    def through(self, messages: tuple[Message, ...]) -> Mapping[str, str]:
        """Return the canonical names by wire name."""
        for message in messages[len(self._messages) :]:
            tools = definitions_in(message)
            self._names |= {wire_name(tool.name, self._rule): tool.name for tool in tools}
        self._messages = messages
        return self._names
