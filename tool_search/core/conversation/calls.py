"""The decision on one tool call: run it, search, or answer it here.

Pure: it depends on the conversation's catalog alone, and never runs anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import NAME_RULES, wire_name
from tool_search.core.catalog.schemas import Schemas, TooComplexError
from tool_search.core.catalog.tool import Tool
from tool_search.core.discoveries import DiscoveryState
from tool_search.core.messages import (
    ContentPart,
    ImagePart,
    Message,
    TextPart,
    ToolCall,
    plain_text,
    user_message,
)
from tool_search.core.services import SearchMatch, SearchResult, SearchTool, clean_match
from tool_search.core.strategies.history import inner_call, under_own_keys
from tool_search.core.values.clean_text import look_alike_keys, quoted
from tool_search.core.values.json import compact_json, encodable, read_arguments, read_json
from tool_search.i18n import Language, text

__all__ = [
    "AnsweredCall",
    "CallDecision",
    "CallResolver",
    "CallResult",
    "RunCall",
    "allowed_to_all",
    "denial_of_roles",
    "result_message",
]

_MAX_SHOWN_CHARS = 200
_MAX_NEAR = 3
_MAX_SCHEMA_CHARS = 4000
_MAX_FOUND_SCHEMA_CHARS = 1500
_MAX_SHOWN_KEYS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCall:
    """A call to hand to the executor.

    Attributes:
        call: The call as the model made it; its id is the result's.
        tool: The tool that is called, also by way of `call_tool`, under the name that its
            executor knows, even if the conversation has another name for it.
        arguments: The parsed arguments; they fit the tool's schema.
    """

    call: ToolCall
    tool: Tool
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredCall:
    """A call that needs no executor, with its result.

    Attributes:
        call: The call as the model made it.
        content: The result's text.
        is_error: True if the result reports a failure.
        is_denied: True if the caller may not call the tool. Only programs read it: the model
            may read that there is no such tool.
        result: The search result, if the call was a search, or called an invented name.
        names_tool: A deferred tool that the model named, and so discovered.
    """

    call: ToolCall
    content: str
    is_error: bool = False
    is_denied: bool = False
    result: SearchResult | None = None
    names_tool: Tool | None = None


CallDecision = RunCall | AnsweredCall


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """The result of one call.

    Attributes:
        decision: The decision of `decide`.
        content: The result's text, as the model reads it.
        is_error: True if it reports a failure.
        parts: The same with its pictures, for providers that take them in results;
            empty: the text is all.
    """

    decision: CallDecision
    content: str
    is_error: bool = False
    parts: tuple[ContentPart, ...] = ()


def allowed_to_all(tool: Tool) -> str | None:  # noqa: ARG001  # the same for each
    """Return None: a conversation without permissions denies no tool."""
    return None


def denial_of_roles(tool: Tool) -> str | None:
    """Deny tools that ask for a role: a view knows no roles, its `allowed` may."""
    return "" if tool.roles else None


class CallResolver:
    """The decisions on the calls of one conversation.

    Args:
        catalog: The current tools.
        schemas: The readers of their schemas.
        discoveries: The discoveries, with definitions of tools that are gone.
        core: Names of core tools.
        search_tool: The search tool; None outside `tool_search`.
        search_tool_name: The search tool's name.
        call_tool_name: The name of the tool that calls other tools.
        language: The language of answers.
        denial_reason: Returns why this caller may not call a tool, as the model reads it; empty
            text: the call is answered like that of an unknown name; None: the caller may.
        denied: Returns the names of those tools that this caller may not call.
        set_aside: The names of tools that are not declared to the provider: their calls are
            answered with the reason, and no search finds them.
    """

    def __init__(
        self,
        *,
        catalog: ToolCatalog,
        schemas: Schemas,
        discoveries: DiscoveryState,
        core: Collection[str],
        search_tool: SearchTool | None,
        search_tool_name: str,
        call_tool_name: str,
        language: Language,
        denial_reason: Callable[[Tool], str | None],
        denied: Callable[[Iterable[Tool]], frozenset[str]],
        set_aside: frozenset[str] = frozenset(),
    ) -> None:
        self.catalog = catalog
        self.schemas = schemas
        self.discoveries = discoveries
        self.core = core
        self.search_tool = search_tool
        self.search_tool_name = search_tool_name
        self.call_tool_name = call_tool_name
        self.language = language
        self.denial_reason = denial_reason
        self.denied = denied
        self.set_aside = set_aside

    def decide(self, call: ToolCall) -> CallDecision:
        """Decide how to handle a call; no text of a model raises."""
        if call.is_cut:
            return self._refuse(call, self._say("incomplete", call.name))
        arguments: Mapping[str, Any] | None = read_arguments(call.arguments)
        if arguments is None:
            return AnsweredCall(
                call=call,
                content=self.broken_json(call),
                is_error=True,
                names_tool=self._meant(call.name),
            )
        name = call.name
        if name == self.call_tool_name and name not in self.catalog:
            inner = inner_call(arguments)
            if inner is None:
                shown = compact_json(arguments)[:_MAX_SHOWN_CHARS]
                return self._refuse(call, self._say("broken_json", name, cause="name", start=shown))
            name, arguments = inner
        if name == self.search_tool_name and self.search_tool is not None:
            # Under its own name, so that its result is read as a search's.
            return self._search(replace(call, name=name), self.search_tool, arguments)
        tool = self.find(name)
        if tool is None:
            return self._answer_unknown(call, name)
        return self._decide_known(call, name, tool, arguments)

    def under_own_keys(self, reply: Message) -> Message:
        """Return a reply, the arguments of its calls under the tools' own keys."""

        def find(name: str) -> Tool | None:
            return None if name == self.search_tool_name else self.find(name)

        return under_own_keys(reply, find, self.call_tool_name, self.schemas.declared)

    def _decide_known(
        self, call: ToolCall, name: str, tool: Tool, arguments: Mapping[str, Any]
    ) -> CallDecision:
        why = self.denial_reason(tool)
        if why is not None:
            if not why:
                # Without a reason this caller may not learn that the tool exists.
                return replace(self._answer_unknown(call, name), is_denied=True)
            return AnsweredCall(call=call, content=why, is_error=True, is_denied=True)
        present = self.catalog.get(tool.name)
        if present is None or not present.active:
            return self._refuse(call, self._gone(tool))
        if present.name in self.set_aside:
            return self._refuse(call, self._say("set_aside", tool.name))
        try:
            arguments, twice = self.schemas.declared(tool).canonical(arguments)
        except TooComplexError as exc:
            return self._refuse(call, self._say("invalid", tool.name, complaints=str(exc)))
        if twice:
            pairs = (f"{name} = {own[:_MAX_SHOWN_CHARS]}" for name, own in twice[:_MAX_SHOWN_KEYS])
            keys = "; ".join(pairs)
            return self._refuse(call, self._say("keys_twice", tool.name, keys=keys))
        complaints = self.schemas.complaints(tool, arguments)
        if not complaints:
            return RunCall(call=call, tool=self.catalog.executable(tool), arguments=arguments)
        message = self._say("invalid", tool.name, complaints="; ".join(complaints))
        is_listed = tool.name in self.core or tool.name in self.discoveries
        if is_listed and call.name != self.call_tool_name:
            return self._refuse(call, message)
        schema = self.schemas.declared(tool).json[:_MAX_SCHEMA_CHARS]
        hint = self._say("schema", tool.name, schema=schema)
        return AnsweredCall(call=call, content=f"{message} {hint}", is_error=True, names_tool=tool)

    def _meant(self, name: str) -> Tool | None:
        """Return the tool of the catalog that a call names, if this caller may call it."""
        tool = self.find(name)
        present = self.catalog.get(tool.name) if tool else None
        if present is None or not present.active or self.denial_reason(present) is not None:
            return None
        return present

    def _search(
        self, call: ToolCall, search_tool: SearchTool, arguments: Mapping[str, Any]
    ) -> AnsweredCall:
        result = self.search(search_tool, arguments)
        return AnsweredCall(
            call=call,
            content=result.to_json(),
            is_error=result.error is not None,
            result=result,
        )

    def search(self, search_tool: SearchTool, arguments: Mapping[str, Any]) -> SearchResult:
        """Return what a search finds of the tools that this caller may have."""
        hidden = self.denied(self.catalog.active) | self.set_aside
        return search_tool.run(
            arguments,
            callable_now=frozenset(self.core).union(self.discoveries.names),
            discovered=len(self.discoveries),
            allowed=(lambda name: name not in hidden) if hidden else None,
        )

    def find(self, name: str) -> Tool | None:
        """Return the tool of a name: canonical, gone, as a dialect writes it, or an alias."""
        tool = self.catalog.get(name)
        if tool is not None and tool.active:
            return tool
        if name in self.discoveries:
            return self.discoveries[name].tool
        return (
            self.catalog.by_wire_name.get(name)
            or self._gone_by_wire_name(name)
            or self._by_alias(name)
        )

    def _gone_by_wire_name(self, name: str) -> Tool | None:
        """Return a discovered tool that is gone, by its name in a dialect."""
        gone = (entry.tool for entry in self.discoveries if entry.name not in self.catalog)
        named = ((wire_name(tool.name, rule), tool) for tool in gone for rule in NAME_RULES)
        return next((tool for sent, tool in named if sent == name), None)

    def _by_alias(self, name: str) -> Tool | None:
        """Return the only tool that has this alias, whoever may call it."""
        # If several have it, the alias means none of them: a server's tool could otherwise
        # take the calls of a tool that this caller may not make.
        found = [
            tool
            for tool in self.catalog.active
            if name in tool.aliases and self._may_have(tool, name)
        ]
        return found[0] if len(found) == 1 else None

    def _may_have(self, tool: Tool, alias: str) -> bool:
        """True unless a server's tool has an alias that looks like another tool's name."""
        owners = self.catalog.book.owners
        return not tool.is_third_party or all(
            owners.get(key, tool.source) == tool.source for key in look_alike_keys(alias)
        )

    def _answer_unknown(self, call: ToolCall, name: str) -> AnsweredCall:
        """Answer a call of an invented name with the tools that a search for it finds.

        They are callable from the next request on, as after a search; the answer has their
        definitions, since a provider may show definitions only after a search of its own kind.
        """
        result = self._found_by_name(name)
        if result is None:
            return self._refuse(call, self._unknown(name))
        lines = (
            f"{match.name}: {match.description} "
            f"{self._schema_of(match.name)[:_MAX_FOUND_SCHEMA_CHARS]}"
            for match in result.matches
        )
        content = self._say("unknown_found", name[:_MAX_SHOWN_CHARS], tools="\n".join(lines))
        return AnsweredCall(call=call, content=content, is_error=True, result=result)

    def _schema_of(self, name: str) -> str:
        return self.schemas.declared(self.catalog[name]).json

    def _found_by_name(self, name: str) -> SearchResult | None:
        """Return tools of similar names, then those that a search for its words finds.

        None if there are none, or nothing can be searched.
        """
        if self.search_tool is None:
            return None
        words = " ".join(re.findall(r"[^\W_]+", name[:_MAX_SHOWN_CHARS]))
        found = self.search(self.search_tool, {"queries": [words], "limit": _MAX_NEAR})
        near = [each for each in self._near(name) if each not in self.set_aside]
        names = list(dict.fromkeys((*near, *found.names)))[:_MAX_NEAR]
        if not names:
            return None
        tools = (self.catalog[each] for each in names)
        matches = (
            clean_match(SearchMatch(name=t.name, description=t.description, server=t.server))
            for t in tools
        )
        return replace(found, matches=tuple(matches), loaded=(), hint=None, error=None)

    def _near(self, name: str) -> list[str]:
        active = self.catalog.active
        denied = self.denied(active)
        known = [tool.name for tool in active if tool.name not in denied]
        return get_close_matches(name[:64], known, n=_MAX_NEAR, cutoff=0.7)

    def _unknown(self, name: str) -> str:
        shown = name[:_MAX_SHOWN_CHARS]
        if self.search_tool is None:
            near = self._near(name)
            listed = f" ({', '.join(near)}?)" if near else ""
            return self._say("unknown", shown) + listed
        return self._say("unknown_search", shown, search_tool=self.search_tool_name)

    def _gone(self, tool: Tool) -> str:
        if tool.server:
            return self._say("server_gone", tool.name, server=quoted(tool.server))
        return self._say("tool_gone", tool.name)

    def broken_json(self, call: ToolCall) -> str:
        """Return the answer to a call whose arguments are not a JSON object."""
        try:
            cause = f"it is a {type(read_json(call.arguments)).__name__}"
        except (ValueError, RecursionError) as exc:
            cause = str(exc)
        start = repr(call.arguments[:_MAX_SHOWN_CHARS])
        return self._say("broken_json", call.name, cause=cause, start=start)

    def _say(self, key: str, name: str, **values: object) -> str:
        return text(f"call.{key}", self.language, name=name, **values)

    @staticmethod
    def _refuse(call: ToolCall, content: str) -> AnsweredCall:
        return AnsweredCall(call=call, content=content, is_error=True)


def result_message(result: CallResult, language: Language) -> Message:
    """Return the message that a call's result is in the history."""
    call, content = result.decision.call, encodable(result.content)
    pictures = sum(isinstance(part, ImagePart) for part in result.parts)
    parts = result.parts
    if pictures and not plain_text(parts).strip():
        # Providers that take no pictures in results would read nothing.
        noted = text("call.pictures", language, count=pictures)
        parts = (TextPart(content if content.strip() else noted), *parts)
    written = content if content.strip() else text("call.empty_result", language)
    return Message(
        role="tool",
        tool_call_id=call.id,
        name=call.name,
        content=user_message(parts).content if parts else written,
        is_error=result.is_error,
    )
