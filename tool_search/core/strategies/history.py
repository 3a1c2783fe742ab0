"""One conversation as a strategy sees it, and the messages of its history as requests show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import wire_name
from tool_search.core.catalog.schemas import Declared, Schemas, TooComplexError
from tool_search.core.catalog.tool import Tool
from tool_search.core.discoveries import Mode
from tool_search.core.messages import (
    ContentPart,
    KeptWork,
    Message,
    ReferencePart,
    TextPart,
    ToolCall,
    ToolList,
)
from tool_search.core.profiles import ProviderProfile
from tool_search.core.services import SearchResult
from tool_search.core.values.json import compact_json, read_arguments
from tool_search.i18n import Language, text

__all__ = [
    "DeclaredNames",
    "DefinitionRenderer",
    "MessageRenderer",
    "PlanInput",
    "RenderedHistory",
    "ShowResult",
    "history_as_text",
    "inner_call",
    "on_wire",
    "read_result",
    "under_own_keys",
]

# One conversation as a strategy sees it.


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


# Arguments of calls, translated between a tool's own keys in a history and those on the wire.
#
# Keys on the wire are the same in every dialect, so that a call made through one provider
# reads the same when the history is sent to another.


Find = Callable[[str], Tool | None]
_Declare = Callable[[Tool], Declared]
_Translate = Callable[[Declared, str], str]


def under_own_keys(
    message: Message, find: Find, call_tool_name: str, declared: _Declare
) -> Message:
    """Return a reply whose calls have arguments under the tools' own keys.

    Unreadable arguments stay as they are, and so do those with a key under both its names:
    the decision about the call reports them.

    Args:
        message: The reply.
        find: Returns the tool of a name.
        call_tool_name: The name of the tool that calls other tools.
        declared: Returns the schema of a tool as it is declared.
    """
    return _translate(message, find, call_tool_name, declared, _own_text)


def on_wire(message: Message, find: Find, call_tool_name: str, declared: _Declare) -> Message:
    """Return a reply whose calls have arguments under the keys on the wire.

    Args:
        message: The reply.
        find: Returns the tool of a name.
        call_tool_name: The name of the tool that calls other tools.
        declared: Returns the schema of a tool as it is declared.
    """
    return _translate(message, find, call_tool_name, declared, _wire_text)


def inner_call(arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """Return the call inside `call_tool`; arguments written as a JSON string are read too."""
    name, inner = arguments.get("name"), arguments.get("arguments")
    if not isinstance(name, str):
        return None
    if inner is None or isinstance(inner, str):
        inner = read_arguments(inner or "")
    return (name, inner) if isinstance(inner, Mapping) else None


def _translate(
    message: Message, find: Find, call_tool_name: str, declared: _Declare, text: _Translate
) -> Message:
    calls = tuple(_call(call, find, call_tool_name, declared, text) for call in message.tool_calls)
    unchanged = all(a is b for a, b in zip(calls, message.tool_calls, strict=True))
    return message if unchanged else replace(message, tool_calls=calls)


def _call(
    call: ToolCall, find: Find, call_tool_name: str, declared: _Declare, text: _Translate
) -> ToolCall:
    tool = find(call.name)
    if call.name != call_tool_name or (tool is not None and tool.name != call_tool_name):
        return call if tool is None else _with(call, text(declared(tool), call.arguments))
    given = read_arguments(call.arguments)
    inner = inner_call(given) if given is not None else None
    tool = find(inner[0]) if inner is not None else None
    if given is None or inner is None or tool is None or not declared(tool).is_renamed:
        return call
    before = compact_json(inner[1])
    after = text(declared(tool), before)
    if after == before:
        return call
    return _with(call, compact_json({**given, "arguments": read_arguments(after)}))


def _with(call: ToolCall, arguments: str) -> ToolCall:
    return call if arguments == call.arguments else replace(call, arguments=arguments)


def _own_text(declared: Declared, arguments: str) -> str:
    return _read_own(declared, arguments) if declared.is_renamed else arguments


def _wire_text(declared: Declared, arguments: str) -> str:
    return _read_wire(declared, arguments) if declared.is_renamed else arguments


# A request repeats every call of its history.
@lru_cache(maxsize=512)
def _read_wire(declared: Declared, arguments: str) -> str:
    given = read_arguments(arguments)
    if given is None:
        return arguments
    try:
        written = declared.on_wire(given)
    except TooComplexError:
        return arguments
    return arguments if written == given else compact_json(written)


@lru_cache(maxsize=512)
def _read_own(declared: Declared, arguments: str) -> str:
    given = read_arguments(arguments)
    if given is None:
        return arguments
    try:
        own, twice = declared.canonical(given)
    except TooComplexError:
        return arguments
    return arguments if twice or own == given else compact_json(own)


# The messages of a history as the requests of one strategy show them.


class DeclaredNames:
    """The names that a request declares; the answers that were given are remembered.

    Args:
        tools: The request's list.
    """

    def __init__(self, tools: ToolList) -> None:
        self._tools = tools
        self._asked: dict[str, bool] = {}

    def declares(self, name: str) -> bool:
        """True if a tool of this canonical name is in the list."""
        return self._asked.setdefault(name, self._tools.declares(name))

    def follow(self, tools: ToolList) -> bool:
        """Use another list from now on; False if an answer that was given changes."""
        if tools.fingerprint == self._tools.fingerprint:
            return True
        self._tools = tools
        return all(tools.declares(name) == was for name, was in self._asked.items())


ShowResult = Callable[[Message, PlanInput, DeclaredNames], Message]


class MessageRenderer:
    """Renders the messages of one conversation's history, in order.

    Args:
        conversation: The conversation.
        tools: The request's list.
        show_result: Renders a search result.
    """

    def __init__(self, conversation: PlanInput, tools: ToolList, show_result: ShowResult) -> None:
        self._conversation = conversation
        self._declared = DeclaredNames(tools)
        self._show_result = show_result

    def follow(self, conversation: PlanInput, tools: ToolList) -> bool:
        """Go on with another request whose strategy has the same key.

        Returns:
            False if a message that was rendered would be rendered otherwise there.
        """
        del conversation
        return self._declared.follow(tools)

    def render(self, history: Sequence[Message], index: int) -> Message:
        """Return the message of a history at an index; all before it are rendered."""
        message, conversation = history[index], self._conversation
        # A user's documents are bound to nothing.
        is_bound = message.native is not None and message.role == "assistant"
        if is_bound and index < conversation.thinking_from:
            message = replace(message, native=None)
        # The service's own findings would show tools that this turn's user may not know.
        if conversation.hidden and message.native is not None and message.native.told:
            message = replace(message, native=None)
        if message.tool_calls:
            message = on_wire(
                message,
                conversation.named,
                conversation.call_tool.name,
                conversation.schemas.declared,
            )
        if conversation.searches(message):
            message = conversation.without_set_aside(message)
            return self._show_result(message, conversation, self._declared)
        return message


class DefinitionRenderer(MessageRenderer):
    """Puts each definition at the place of a history that first needs it.

    Args:
        conversation: The conversation.
        tools: The request's list; what it declares needs no definition in a message.
        show_result: Renders a search result.
    """

    def __init__(self, conversation: PlanInput, tools: ToolList, show_result: ShowResult) -> None:
        super().__init__(conversation, tools, show_result)
        self._tools = tools
        self._loaded = frozenset(tool.name for tool in tools.loaded)
        self._rule = conversation.profile.name_rule
        self._declared_order = conversation.declared_order
        self._discovered = self._by_wire_name(conversation)
        self._asked: dict[str, str | None] = {}
        self._shown: set[str] = set()

    def follow(self, conversation: PlanInput, tools: ToolList) -> bool:
        """Go on with another request; a name that was called unknown may be discovered."""
        if conversation.declared_order != self._declared_order:
            discovered = self._by_wire_name(conversation)
            if any(discovered.get(name) != was for name, was in self._asked.items()):
                return False
            self._declared_order, self._discovered = conversation.declared_order, discovered
        return super().follow(conversation, tools) and self._loads(tools)

    def _loads(self, tools: ToolList) -> bool:
        """True if a list declares the same tools to begin with."""
        if tools is not self._tools:
            self._tools = tools
            return self._loaded == frozenset(tool.name for tool in tools.loaded)
        return True

    def render(self, history: Sequence[Message], index: int) -> Message:
        """Return a history's next message with the definitions that it is first to need."""
        message = super().render(history, index)
        if message.role == "assistant" and message.tool_calls:
            return self._with_called(message)
        if message.role == "tool" and not isinstance(message.content, str):
            # Kimi refuses a second definition; at Responses a result may have nothing else.
            repeats = self._conversation.profile.dialect != "openai_chat"
            parts = (self._with_definitions(p, repeats=repeats) for p in message.content)
            return replace(message, content=tuple(filter(None, parts)))
        return message

    def _by_wire_name(self, conversation: PlanInput) -> dict[str, str]:
        """Return the discoveries by the names that a model may write: the dialect's."""
        own = conversation.search_tool
        return {
            wire_name(name, self._rule): name
            for name in conversation.declared_order
            if own is None or name != own.name
        }

    def _with_called(self, message: Message) -> Message:
        called = map(self._called_tool, message.tool_calls)
        part = self._reference([name for name in called if name and name not in self._shown])
        if not part.names:
            return message
        content = message.content
        rest: tuple[ContentPart, ...] = (
            content if not isinstance(content, str) else (TextPart(content),) if content else ()
        )
        return replace(message, content=(part, *rest))

    def _called_tool(self, call: ToolCall) -> str | None:
        """Return the discovery that a call means, `call_tool` resolved; None if it is none."""
        name = call.name
        if name == self._conversation.call_tool.name:
            name = str((call.parsed_arguments() or {}).get("name", name))
        # A model may call a tool that its request did not declare by its name on the wire.
        # A long name's short form has another short form of its own.
        return self._discovery(wire_name(name, self._rule)) or self._discovery(name)

    def _discovery(self, name: str) -> str | None:
        return self._asked.setdefault(name, self._discovered.get(name))

    def _with_definitions(self, part: ContentPart, *, repeats: bool) -> ContentPart | None:
        if not isinstance(part, ReferencePart):
            return part
        new = [name for name in part.names if name not in self._shown]
        return self._reference(new or part.names) if new or repeats else None

    def _reference(self, names: tuple[str, ...] | list[str]) -> ReferencePart:
        """Return these names with their definitions, without those that the list declares."""
        wanted = tuple(name for name in dict.fromkeys(names) if name not in self._loaded)
        tools = tuple(self._conversation.definitions(wanted))
        self._shown.update(tool.name for tool in tools)
        return ReferencePart(tuple(tool.name for tool in tools), tools)


class RenderedHistory:
    """A history as requests show it; each message is rendered once.

    Args:
        renderer: Renders one message. It may look at the run of results that the message
            is in and at what it rendered before, and depends on nothing else.
        before: The same history as it was rendered otherwise. Messages that come out equal
            are taken from it, so that the module that wrote them recognizes them.

    Attributes:
        renderer: The renderer.
        messages: The messages as they were rendered last.
    """

    def __init__(self, renderer: MessageRenderer, before: RenderedHistory | None = None) -> None:
        self.renderer = renderer
        self._before = before.messages if before is not None else ()
        self._history: tuple[Message, ...] = ()
        self._rendered: list[Message] = []
        self.messages: tuple[Message, ...] = ()

    def precedes(self, history: tuple[Message, ...]) -> bool:
        """True if a history continues the one that was rendered."""
        count = len(self._history)
        # Equal tuples are compared by identity first, which takes no time.
        if history[:count] != self._history:
            return False
        # Results of one reply are rendered together.
        is_open = count > 0 and self._history[-1].role == "tool"
        return not (is_open and len(history) > count and history[count].role == "tool")

    def through(self, history: tuple[Message, ...]) -> tuple[Message, ...]:
        """Render a history that continues the one that was rendered."""
        for index in range(len(self._history), len(history)):
            shown = self.renderer.render(history, index)
            if shown is not history[index] and index < len(self._before):
                known = self._before[index]
                shown = known if known == shown else shown
            self._rendered.append(shown)
        if len(self.messages) != len(self._rendered):
            self.messages = tuple(self._rendered)
        self._history, self._before = history, ()
        return self.messages


def history_as_text(conversation: PlanInput) -> tuple[Message, ...]:
    """Return the history for a request without tools.

    Results with their calls are text beside what the user says, since a model that sees calls
    among its own words writes more of them. Searches are left out, and neighbours of one role
    are one message: some templates refuse others.
    """
    calls: dict[str | None, ToolCall] = {}
    shown: list[Message] = []
    for message in conversation.history:
        calls.update((call.id, call) for call in message.tool_calls)
        said = message
        if message.role == "assistant":
            # Blocks of its own may be calls, and belong to requests with tools.
            said = replace(message, tool_calls=(), native=None)
        elif message.role == "tool":
            said = Message(role="user", content=_result_as_text(message, calls, conversation))
        if (said.role == "assistant" and not said.text.strip()) or conversation.searches(message):
            continue
        before = shown[-1] if shown else None
        if before and before.role == said.role and not (before.native or said.native):
            shown[-1] = replace(said, content=(*_parts(before), *_parts(said)))
        else:
            shown.append(said)
    return tuple(shown)


def _result_as_text(
    message: Message, calls: Mapping[str | None, ToolCall], conversation: PlanInput
) -> str:
    call = calls.get(message.tool_call_id)
    return text(
        "tools.result",
        conversation.language,
        name=call.name if call else message.name,
        arguments=call.arguments if call else "{}",
        result=message.text,
    )


def _parts(message: Message) -> tuple[ContentPart, ...]:
    content = message.content
    return (TextPart(content),) if isinstance(content, str) else content
