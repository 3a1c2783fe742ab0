"""The messages of a history as the requests of one strategy show them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tool_search.core.catalog.names import wire_name
from tool_search.core.messages import (
    ContentPart,
    Message,
    ReferencePart,
    TextPart,
    ToolCall,
    ToolList,
)
from tool_search.core.strategies.arguments import on_wire
from tool_search.core.strategies.plan_input import PlanInput
from tool_search.i18n import text

__all__ = [
    "DeclaredNames",
    "DefinitionRenderer",
    "MessageRenderer",
    "RenderedHistory",
    "ShowResult",
    "history_as_text",
]


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
