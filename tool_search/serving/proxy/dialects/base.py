"""The base of a client's wire format, as a proxy reads and changes it.

A client's own items go on as they came. A dialect writes three things alone: the tool list,
the system text, and the exchanges with the model that the client does not see.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tool_search.adapters.hosts.chain import ChainItem
from tool_search.core.messages import RequestPlan
from tool_search.core.profiles import ProviderProfile
from tool_search.core.settings import Dialect
from tool_search.core.values.json import compact_json

if TYPE_CHECKING:
    from tool_search.serving.proxy.dialects.client_search import ClientSearch

__all__ = [
    "JSON",
    "CallAnswers",
    "Emulated",
    "ListedTool",
    "ReplyStream",
    "SentEvent",
    "VisibleCall",
    "WireCall",
    "WireDialect",
    "WireTool",
    "summed_usage",
    "undeferred",
    "visible",
    "without_space",
]

JSON = dict[str, Any]
# Characters, of which each value has some 20 beside its text: about 1 ms of work.
_LARGE = 100_000


@dataclass(frozen=True, slots=True)
class SentEvent:
    """A server-sent event: its name, if it has one, and its data."""

    name: str | None
    data: JSON

    @property
    def is_large(self) -> bool:
        """True if reading or writing it would hold the event loop; counts no further than that."""
        left, level = _LARGE, list[Any]([self.data])
        while level and left > 0:
            value = level.pop()
            left -= len(value) + 20 if isinstance(value, str | dict | list) else 20
            if isinstance(value, dict | list) and left > 0:
                level += value.values() if isinstance(value, dict) else value
        return left <= 0

    def encoded(self) -> bytes:
        """Return the event as a stream has it."""
        head = f"event: {self.name}\n" if self.name else ""
        return f"{head}data: {compact_json(self.data)}\n\n".encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class WireTool:
    """A definition in a client's request.

    Attributes:
        definition: The definition as the client wrote it.
        name: The name by which it is called.
        namespace: The namespace that it is in; None: none.
        group: The namespace's own fields, without its tools.
    """

    definition: JSON
    name: str
    namespace: str | None = None
    group: JSON | None = None


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool that a request declares: the client's own, or one of the proxy.

    Attributes:
        wire: The client's definition; None: one of the proxy's own.
        own: The definition of a tool of the proxy, in the dialect.
        deferred: True if it waits to be found.
    """

    wire: WireTool | None
    own: JSON | None = None
    deferred: bool = False

    @property
    def definition(self) -> JSON:
        """The definition; only one that waits has the mark of it."""
        if self.wire is None:
            return self.own or {}
        return self.wire.definition if self.deferred else undeferred(self.wire.definition)


@dataclass(frozen=True, slots=True)
class WireCall:
    """A call in a model's reply.

    Attributes:
        id: The id that its result refers to.
        name: The name that is called.
        arguments: The arguments, as the JSON text that the model wrote.
        namespace: The namespace of the name; None: none.
        is_search: True if it is of the provider's own kind of search.
    """

    id: str
    name: str
    arguments: str
    namespace: str | None = None
    is_search: bool = False


@dataclass(frozen=True, slots=True)
class VisibleCall:
    """The form in which a client sees a call of a model."""

    name: str
    arguments: str
    namespace: str | None = None


CallAnswers = Mapping[str, VisibleCall | None]
"""Calls that the proxy held back, by id: the form that the client sees, or None for hidden."""


@dataclass(frozen=True, slots=True)
class Emulated:
    """A request of a client that defers tools, for a provider that cannot.

    Attributes:
        body: The request, in which references are text.
        found: The names of deferred tools that the history refers to, in order.
        is_searched: True if the provider's own search was declared: ours takes its place.
        client_search: The client's own search, which is a function to the provider; None: it
            has none that the provider has to know.
    """

    body: JSON
    found: tuple[str, ...] = ()
    is_searched: bool = False
    client_search: ClientSearch | None = None


def visible(
    replies: Iterable[Iterable[JSON]],
    answers: CallAnswers,
    call_id: Callable[[JSON], str | None],
    under: Callable[[JSON, VisibleCall], JSON],
) -> list[JSON]:
    """Return the parts of replies as the client sees them.

    Calls that were held back follow the other parts of their reply: a stream has passed those
    on at once.

    Args:
        replies: The parts of each reply.
        answers: The calls that were held back.
        call_id: Returns the id of a call; None for any other part.
        under: Returns a call in the form in which the client sees it.
    """
    shown: list[JSON] = []
    for parts in replies:
        released: list[JSON] = []
        for part in parts:
            known = call_id(part)
            if known is None or known not in answers:
                shown.append(part)
            elif (seen := answers[known]) is not None:
                released.append(under(part, seen))
        shown += released
    return shown


def summed_usage(usages: Sequence[JSON], *, before: str, after: str) -> JSON:
    """Return the input of the last reply and the output of all.

    Clients compute from the input how full the context is; a sum would let them compact early.

    Args:
        usages: The usage of each reply.
        before: The key of the input's tokens, if the format has a total.
        after: The key of the output's tokens.
    """
    output = sum(int(usage.get(after) or 0) for usage in usages)
    last = usages[-1] if usages else {}
    total = {"total_tokens": int(last.get(before) or 0) + output} if before else {}
    return {**last, after: output, **total}


def undeferred(definition: JSON) -> JSON:
    """Return a definition without the mark of one that waits to be found."""
    return {key: value for key, value in definition.items() if key != "defer_loading"}


def without_space(text: str) -> str:
    """Return a text without white space."""
    return "".join(text.split())


class ReplyStream(ABC):
    """One reply as a client sees it, streamed from one or more replies of the provider.

    `begin_step` precedes the events of each provider's reply; `finish` gives the end.

    Args:
        holds: Returns True for a call that the client does not see before it is decided, by
            name and namespace.
        body: The client's request.

    Attributes:
        has_begun: True if the client has seen anything.
        failed: True if the provider's reply was an error.
        is_complete: True if the provider's last reply has come to its end.
        next_index: The client's index of the next part.
        indexes: The client's indexes of the parts of the provider's last reply, by its own.
        usages: The usage of each of the provider's replies.
    """

    def __init__(self, holds: Callable[[str, str | None], bool], body: JSON) -> None:
        self.holds = holds
        self.body = body
        self.has_begun = self.failed = False
        self.next_index = 0
        self.usages: list[JSON] = []
        self.begin_step()

    def begin_step(self) -> None:
        """Prepare for the events of the provider's next reply."""
        self.indexes: dict[int, int] = {}
        self.is_complete = False

    def show(self, place: int) -> int:
        """Return the client's index of a part of the provider's reply, which is shown from now."""
        self.indexes[place] = self.next_index
        self.next_index += 1
        return self.indexes[place]

    @abstractmethod
    def read(self, event: SentEvent) -> Iterator[SentEvent]:
        """Take in an event of the provider, and yield those that the client sees."""

    @abstractmethod
    def reply(self) -> JSON:
        """Return the provider's last reply, as a whole one would have come.

        Only the parts that `WireDialect.reply_items` and `merged` read are there.
        """

    @abstractmethod
    def release(self, call_id: str, visible: VisibleCall) -> Iterator[SentEvent]:
        """Yield the events of a call that was held back."""

    @abstractmethod
    def finish(self) -> Iterator[SentEvent]:
        """Yield the events that end the reply."""

    @abstractmethod
    def error(self, status: int, body: JSON | None, message: str) -> Iterator[SentEvent]:
        """Yield the dialect's own form of a failure in the middle of a reply.

        Args:
            status: The provider's status; 0: there was none.
            body: The provider's error.
            message: A description, if the provider gave none.
        """

    def end_mark(self) -> bytes:
        """Return the bytes that follow the last event."""
        return b""


class WireDialect(ABC):
    """A wire format of requests and replies, without state.

    Attributes:
        name: The dialect.
        path: The path of its requests, under the client's base URL.
        items_key: The field of a request that has the history.
    """

    name: ClassVar[Dialect]
    path: ClassVar[str]
    items_key: ClassVar[str] = "messages"

    def items(self, body: JSON) -> list[JSON]:
        """Return the history's items; a field of another form gives none."""
        given = body.get(self.items_key)
        if not isinstance(given, list) or not all(isinstance(item, dict) for item in given):
            return []
        return given

    def is_searchable(self, body: JSON) -> bool:
        """True if a hidden exchange can be part of the request."""
        return bool(self.items(body))

    def tools(self, body: JSON) -> tuple[list[WireTool], list[JSON]]:
        """Return the functions of a request, and the tools that the provider runs itself."""
        listed = self.listed(body.get("tools") or ())
        own = [entry.wire for entry in listed if entry.wire is not None]
        return own, [entry.own for entry in listed if entry.own is not None]

    @abstractmethod
    def listed(self, tools: Iterable[JSON]) -> list[ListedTool]:
        """Return the entries of a list of tools; `own` is what the provider runs itself."""

    @abstractmethod
    def write_tools(
        self, given: Sequence[JSON], listed: Sequence[ListedTool], others: Sequence[JSON]
    ) -> list[JSON]:
        """Return the list of tools: first the provider's own, which no discovery moves.

        Args:
            given: The client's list.
            listed: The tools that are declared.
            others: The entries that go on as they came.
        """

    def defers(self, body: JSON) -> bool:  # noqa: ARG002  # for formats that can
        """True if a client defers tools by itself."""
        return False

    def emulated(self, body: JSON) -> Emulated:
        """Return the request for a provider that does not know deferred tools."""
        return Emulated(body)

    def write_plain(self, tools: Sequence[WireTool]) -> list[JSON]:
        """Return definitions as the client wrote them."""
        return [tool.definition for tool in tools]

    @abstractmethod
    def required_tools(self, body: JSON) -> list[tuple[str | None, str]]:
        """Return the namespaces and names that `tool_choice` names."""

    @abstractmethod
    def write_system(self, body: JSON, instruct: Callable[[str], str]) -> None:
        """Put the instructions of a search into a request, which is changed in place."""

    @abstractmethod
    def chain_item(self, item: JSON) -> ChainItem | None:
        """Return what no client changes of an item; None for one that clients may drop.

        The text of a reply is without white space: clients trim its blocks, and join them.
        """

    def chained(self, items: Sequence[JSON]) -> list[tuple[int, ChainItem]]:
        """Return what no client changes of a history, each with the index of its last item."""
        each = enumerate(map(self.chain_item, items))
        return [(index, chained) for index, chained in each if chained is not None]

    def is_reply(self, item: JSON) -> bool:
        """True for an item of the model."""
        return item.get("role") == "assistant"

    @abstractmethod
    def asked(self, item: JSON) -> str | None:
        """Return the text of the user's message; None for any other item."""

    @abstractmethod
    def calls(self, item: JSON) -> list[WireCall]:
        """Return the calls in an item of the model, in order."""

    @abstractmethod
    def answered(self, item: JSON) -> list[tuple[str, bool]]:
        """Return the ids of the calls that an item answers, and True for those that failed."""

    def received(self, reply: JSON, body: JSON) -> JSON:  # noqa: ARG002  # for formats that differ
        """Return a provider's reply with calls as the client's request declares their tools."""
        return reply

    @abstractmethod
    def reply_items(self, reply: JSON) -> list[JSON]:
        """Return a provider's reply as the items that the next request has."""

    def settled(self, items: list[JSON], declared: Sequence[JSON]) -> list[JSON]:  # noqa: ARG002
        """Return a history as the provider takes it beside a list of tools."""
        return items

    def with_called(
        self,
        items: Sequence[JSON],
        needed: Callable[[WireCall], WireTool | None],  # noqa: ARG002  # for formats that have any
    ) -> list[JSON]:
        """Return a history with the definition of each called tool before its call.

        Args:
            items: The history.
            needed: Returns the definition that a call needs in a message; None: it needs none.
        """
        return [*items]

    def without_thinking(self, body: JSON, items: list[JSON]) -> tuple[JSON, list[JSON]]:
        """Return a request and its history without the thinking of earlier replies."""
        return body, items

    @abstractmethod
    def is_cut(self, reply: JSON) -> bool:
        """True if the provider cut a reply off, so that its last call may be broken."""

    def with_definitions(
        self,
        items: Sequence[JSON],
        tool_of: Callable[[str], WireTool | None],  # noqa: ARG002  # for formats that have any
    ) -> list[JSON]:
        """Return results with definitions as the client wrote them, if they have any.

        Args:
            items: The results.
            tool_of: Returns the client's definition of a name.
        """
        return [*items]

    def waits_for_client(self, reply: JSON) -> bool:  # noqa: ARG002  # for formats with such kinds
        """True if a reply has something that only the client answers, besides function calls."""
        return False

    @abstractmethod
    def visible_items(self, replies: Sequence[JSON], answers: CallAnswers) -> list[JSON]:
        """Return the provider's replies as the client sends them back."""

    @abstractmethod
    def wire(self, plan: RequestPlan, profile: ProviderProfile) -> JSON:
        """Return the request of a plan, without marks of the cache: those are the client's."""

    def result_items(self, plan: RequestPlan, profile: ProviderProfile) -> list[JSON]:
        """Return the results at the end of a plan's history as items."""
        items: list[JSON] = self.wire(plan, profile)[self.items_key]
        last = max((i for i, item in enumerate(items) if self.is_reply(item)), default=-1)
        return items[last + 1 :]

    def own_tools(self, plan: RequestPlan, profile: ProviderProfile) -> list[JSON]:
        """Return the `tools` of a plan, in its order."""
        tools: list[JSON] = self.wire(plan, profile).get("tools", [])
        return tools

    @abstractmethod
    def with_later(self, items: Iterable[JSON], later: Sequence[JSON]) -> list[JSON]:
        """Return the items after a reply, with results that the client has not seen first."""

    @abstractmethod
    def stream(self, holds: Callable[[str, str | None], bool], body: JSON) -> ReplyStream:
        """Return a reader of streamed replies."""

    @abstractmethod
    def merged(self, replies: Sequence[JSON], answers: CallAnswers) -> JSON:
        """Return the one reply that the client sees."""

    def is_kept(self, body: JSON) -> bool:  # noqa: ARG002  # for services that keep any
        """True if the service keeps the reply to a request, under its id."""
        return False

    def echoed(self, reply: JSON, body: JSON) -> JSON:  # noqa: ARG002  # for formats that do
        """Return a reply that repeats the client's request, if the format has replies do so."""
        return reply

    @abstractmethod
    def error_body(self, status: int, message: str) -> JSON:
        """Return the dialect's form of an error of the proxy itself."""
