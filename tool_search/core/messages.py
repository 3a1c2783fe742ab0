"""The neutral history, and the plan of one request.

A history is OpenAI Chat messages under canonical tool names, with search
results as the JSON that `ToolSearchTool` returned. A plan says everything
about a request except how a dialect spells it: that is an adapter's `to_wire`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, overload

from tool_search.core.catalog.naming import NameRule, wire_name
from tool_search.core.catalog.schemas import Declared
from tool_search.core.catalog.tool import Tool
from tool_search.core.settings import StrategyFacts, StrategyName, registered_strategy
from tool_search.core.values.json import encodable, read_object

__all__ = [
    "ContentPart",
    "DeclaredTool",
    "ImagePart",
    "KeptWork",
    "Message",
    "NativeReply",
    "Notice",
    "NoticeCode",
    "Phase",
    "ReferencePart",
    "RequestPlan",
    "ResultPart",
    "Role",
    "StrategyName",
    "TextPart",
    "ToolCall",
    "ToolList",
    "plain_text",
    "user_message",
]


# A request repeats the one before it and adds a little. Code that writes requests keeps its
# state here, so that a message is written once and not once a request. Without it, the same
# bytes are written again.


_T = TypeVar("_T")
# A turn that moves to a fallback and back finds both providers' work.
_MAX_OF_A_KIND = 2


class KeptWork:
    """The most recent work of each kind, with the key that it depends on.

    >>> kept = KeptWork()
    >>> kept.put("a key", ["work"])
    ['work']
    >>> kept.get(list, "a key"), kept.get(list, "another"), kept.last(list)
    (['work'], None, ['work'])
    """

    def __init__(self) -> None:
        self._entries: dict[type, list[tuple[object, Any]]] = {}

    def get(self, kind: type[_T], key: object) -> _T | None:
        """Return the work of a kind that has this key, or None."""
        entries = self._entries.get(kind, [])
        for place, (known, work) in enumerate(entries):
            if known == key:
                entries.insert(0, entries.pop(place))
                found: _T = work
                return found
        return None

    def last(self, kind: type[_T]) -> _T | None:
        """Return the work of a kind that was used last, under any key."""
        entries = self._entries.get(kind)
        return entries[0][1] if entries else None

    def put(self, key: object, work: _T) -> _T:
        """Keep a piece of work, and drop the one of its kind that was used least recently."""
        others = [entry for entry in self._entries.get(type(work), []) if entry[0] != key]
        self._entries[type(work)] = [(key, work), *others][:_MAX_OF_A_KIND]
        return work

    def clear(self) -> None:
        """Drop all work."""
        self._entries.clear()


Role = Literal["user", "assistant", "tool"]
DiscoveryWay = Literal["search", "call", "preload", "second_chance"]
"""The cause of a discovery: a search found the tool, or the model named it; or a message of the
user, or a reply that lacked a tool, was searched for it."""

Phase = Literal["answer", "select", "detail", "final"]
"""`answer`: the ordinary request; `select` and `detail`: the two of `skills_like`;
`final`: an answer without tools, after `max_steps`."""

NoticeCode = Literal[
    "core_tool_gone",
    "catalog_changed",
    "catalog_refused",
    "catalog_over_limit",
    "mode_changed",
    "schema_changed",
    "schema_incomplete",
    "tool_set_aside",
    "search_unavailable",
    "search_limited",
    "settings_changed",
    "strategy_replaced",
    "request_repaired",
    "rendered_within_limit",
    "answer_missing",
    "prefix_moved",
    "late_definition",
    "results_shortened",
    "turns_left_out",
    "content_left_out",
    "history_compacted",
    "compaction_failed",
    "message_refused",
    "reply_cut",
    "reply_refused",
    "turn_timed_out",
    "provider_waited_for",
    "cache_marks_refused",
    "permitted_tools_changed",
    "reasoning_required",
    "form_refused",
    "reasoning_refused",
    "reasoning_off",
    "request_repeated",
    "second_chance_failed",
    "server_failed",
    "store_unavailable",
    "record_unreadable",
    "conversation_erased",
    "learning_unavailable",
    "tool_renamed",
    "tool_refused",
    "tool_copied",
    "definition_cut",
]


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text in a message or in the result of a tool."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """A picture, by its `https:` or `data:` address."""

    url: str


@dataclass(frozen=True, slots=True)
class ReferencePart:
    """Tools that the model can call from here on: a search result, or tools before a reply.

    Attributes:
        names: Canonical names.
        tools: Their definitions, if the request has them here and not in its list.
    """

    names: tuple[str, ...]
    tools: tuple[Tool, ...] = ()


ContentPart = TextPart | ImagePart | ReferencePart
ResultPart = TextPart | ReferencePart


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call requested by the model.

    Attributes:
        id: The id that the provider gave, unique in its reply.
        name: The canonical name; as the model wrote it if there is no such tool.
        arguments: The JSON that the model wrote, which may be invalid.
        is_cut: True if the reply ended before the call did. Such a call is never run.
    """

    id: str
    name: str
    arguments: str = "{}"
    is_cut: bool = False

    @property
    def is_readable(self) -> bool:
        """True if the arguments are a JSON object."""
        return self.parsed_arguments() is not None

    def failed(self, content: str) -> Message:
        """Return an error as the result of the call."""
        return Message(
            role="tool", content=content, tool_call_id=self.id, name=self.name, is_error=True
        )

    def parsed_arguments(self) -> dict[str, Any] | None:
        """Return the arguments, or None if they are not a JSON object; empty text is `{}`."""
        return read_object(self.arguments)


@dataclass(frozen=True, slots=True)
class NativeReply:
    """The blocks of a reply as its provider wrote them, to send back unchanged.

    A user's message or a result from an imported history may have its blocks too.

    Attributes:
        origin: The `ProviderProfile.origin` of the reply; other providers refuse the blocks.
        blocks: Wire objects; only the adapter of that dialect reads them.
        found: Canonical names of tools that the provider's own search found.
        told: The id of the search in the history that has the same result for other
            providers. A provider that gets the blocks is not sent that search.
    """

    origin: str
    blocks: tuple[Mapping[str, Any], ...]
    found: tuple[str, ...] = ()
    told: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One entry of the neutral history.

    Attributes:
        role: The speaker; the result of a tool has the role `tool`.
        content: Text, or parts.
        tool_calls: The calls that an assistant requests, in order.
        tool_call_id: The id of the call that a result belongs to.
        name: The tool of a result, under the name by which it was called.
        is_error: True if a result reports a failure.
        native: The same message in the blocks of its provider, if they matter.
        turn: The `KeyedTurn` that a user's message began; empty: its turn has no key.
    """

    role: Role
    content: str | tuple[ContentPart, ...] = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    is_error: bool = False
    native: NativeReply | None = None
    turn: str = field(default="", compare=False)

    @property
    def text(self) -> str:
        """The text of the message: its parts joined by line feeds, without pictures."""
        return plain_text(self.content)


def plain_text(content: str | Iterable[ContentPart]) -> str:
    """Return the text of a message's content: its parts joined by line feeds."""
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in content if isinstance(part, TextPart))


def user_message(content: str | Sequence[ContentPart]) -> Message:
    """Return a user's message for the history, with lone surrogates replaced."""
    if isinstance(content, str):
        return Message(role="user", content=encodable(content))
    parts = (TextPart(encodable(p.text)) if isinstance(p, TextPart) else p for p in content)
    return Message(role="user", content=tuple(parts))


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """One entry of a request's tool list.

    Attributes:
        tool: The definition to declare.
        deferred: True if the model is not shown the definition before a reference to it.
        cache_breakpoint: True if the prompt cache may end here.
        is_search: True for the search tool, declared as the provider's own kind of tool.
    """

    tool: Tool
    deferred: bool = False
    cache_breakpoint: bool = False
    is_search: bool = False


class ToolList(Sequence[DeclaredTool]):
    """The immutable tool list of a request, with its bytes in each dialect.

    Equal lists are one object as long as an assembler keeps them, so that the bytes of
    a catalog are written once and not once a request.
    """

    __slots__ = (
        "_by_wire_name", "_encoded", "_entries", "_fingerprint", "_incomplete", "_names",
        "_sizes",
    )  # fmt: skip

    def __init__(self, entries: Iterable[DeclaredTool] = ()) -> None:
        self._entries = tuple(entries)
        self._names = frozenset(entry.tool.name for entry in self._entries)
        self._encoded: dict[str, bytes] = {}
        self._by_wire_name: dict[NameRule, Mapping[str, str]] = {}
        self._incomplete: tuple[Tool, ...] | None = None
        self._sizes: tuple[int, int] | None = None
        self._fingerprint = ""

    @overload
    def __getitem__(self, index: int) -> DeclaredTool: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[DeclaredTool, ...]: ...
    def __getitem__(self, index: int | slice) -> DeclaredTool | tuple[DeclaredTool, ...]:
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[DeclaredTool]:
        return iter(self._entries)

    @property
    def names(self) -> tuple[str, ...]:
        """The canonical names, in order."""
        return tuple(entry.tool.name for entry in self._entries)

    @property
    def loaded(self) -> tuple[Tool, ...]:
        """The definitions that the model is shown from the start, in order."""
        return tuple(entry.tool for entry in self._entries if not entry.deferred)

    def declares(self, name: str) -> bool:
        """Return True if a tool of this canonical name is in the list."""
        return name in self._names

    def by_wire_name(self, rule: NameRule) -> Mapping[str, str]:
        """Return the canonical names by their names on the wire; computed once for each rule."""
        known = self._by_wire_name.get(rule)
        if known is None:
            named = {wire_name(entry.tool.name, rule): entry.tool.name for entry in self._entries}
            known = self._by_wire_name[rule] = named
        return known

    def incomplete(self, declared: Callable[[Tool], Declared]) -> tuple[Tool, ...]:
        """Return the tools whose schemas are declared in part, in order.

        Args:
            declared: Returns a tool's schema as it is declared; a pure function.
        """
        if self._incomplete is None:
            tools = (entry.tool for entry in self._entries)
            self._incomplete = tuple(tool for tool in tools if declared(tool).left_out)
        return self._incomplete

    @property
    def sizes(self) -> tuple[int, int]:
        """The number of deferred entries, and the estimated tokens of the others."""
        if self._sizes is None:
            loaded = self.loaded
            tokens = sum(tool.estimated_tokens for tool in loaded)
            self._sizes = len(self._entries) - len(loaded), tokens
        return self._sizes

    @property
    def fingerprint(self) -> str:
        """The first 32 hexadecimal digits of SHA-256 over definitions, order and deferral."""
        if not self._fingerprint:
            digest = hashlib.sha256()
            for entry in self._entries:
                flags = f"{entry.deferred:d}{entry.is_search:d}"
                digest.update(f"{entry.tool.fingerprint}{flags}".encode())
            self._fingerprint = digest.hexdigest()[:32]
        return self._fingerprint

    def encoded(self, dialect: str, encode: Callable[[DeclaredTool], str]) -> bytes:
        """Return the list as a JSON array in UTF-8, written at the first call for a dialect.

        Args:
            dialect: Names the wire format, and whatever else `encode` depends on.
            encode: Writes one entry as JSON text; a pure function.
        """
        return self.encoded_whole(dialect, lambda: f"[{','.join(map(encode, self._entries))}]")

    def encoded_whole(self, dialect: str, encode: Callable[[], str]) -> bytes:
        """Return the list in UTF-8 for a dialect that does not write entry by entry.

        Args:
            dialect: Names the wire format, and whatever else `encode` depends on.
            encode: Writes the whole list as JSON text; a pure function of the list.
        """
        known = self._encoded.get(dialect)
        if known is None:
            known = self._encoded[dialect] = encode().encode("utf-8", "replace")
        return known


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPlan:
    """One request, before a dialect writes it.

    Attributes:
        strategy: The name of the strategy that made it.
        own_facts: The facts of that strategy; None: those of the one registered under its name.
        phase: The purpose of the request.
        tools: The declared tools, in order.
        messages: The history as this request shows it: search results are
            `ReferencePart`s or text, and native blocks are there only for their origin.
        system: The complete system text; empty: none.
        listing: The end of `system` that lists the tools that wait to be found.
        tool_use: `auto` if the model may call tools; `none` keeps them declared.
        cached_messages: Indexes of messages after which the prompt cache may end.
        cache_system: True if the prompt cache may end after the system text.
        form: The fields of the provider's profile that are others in this request.
        kept: The work on earlier requests, for the code that writes this one.
    """

    strategy: StrategyName
    own_facts: StrategyFacts | None = field(default=None, compare=False, repr=False)
    phase: Phase = "answer"
    tools: ToolList
    messages: tuple[Message, ...]
    system: str = ""
    listing: str = ""
    tool_use: Literal["auto", "none"] = "auto"
    cached_messages: tuple[int, ...] = ()
    cache_system: bool = False
    form: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    kept: KeptWork = field(default_factory=KeptWork, compare=False, repr=False)

    @property
    def facts(self) -> StrategyFacts:
        """The facts of the strategy that made the plan.

        Raises:
            UnsupportedStrategyError: The plan has none, and none is registered.
        """
        return self.own_facts or registered_strategy(self.strategy)

    def without_system(self) -> RequestPlan:
        """Return the request with its system text as the user's first words."""
        said = (user_message(self.system), *self.messages) if self.system else self.messages
        marks = tuple(index + len(said) - len(self.messages) for index in self.cached_messages)
        return replace(self, system="", messages=said, cached_messages=marks)

    def brought(self) -> Iterator[Tool]:
        """Iterate over the definitions that messages bring, in order."""
        for message in self.messages:
            parts = () if isinstance(message.content, str) else message.content
            for part in parts:
                yield from part.tools if isinstance(part, ReferencePart) else ()


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice for the operator: a cache that ends, a repair, a limit.

    Attributes:
        code: The kind of notice, for programs.
        message: English, for logs; names the cause.
    """

    code: NoticeCode
    message: str
