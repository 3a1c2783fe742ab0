"""The neutral history, and the plan of one request.

A history is OpenAI Chat messages under canonical tool names, with search
results as the JSON that `ToolSearchTool` returned. A plan says everything
about a request except how a dialect spells it: that is an adapter's `to_wire`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, overload

from tool_search.catalog.names import NameRule, wire_name
from tool_search.catalog.tool import Tool
from tool_search.config.strategies import StrategyFacts, StrategyName, registered_strategy
from tool_search.values.json import encodable, read_object

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


# Work that the requests of one conversation leave for those that follow.
#
# A request repeats the one before it and adds a little. Whatever writes requests keeps here
# how far it came, so that a message is written once and not once a request. Nothing depends
# on it: without it, the same is made anew.


_T = TypeVar("_T")
# A turn that moves to a fallback and back finds both providers' work.
_MAX_OF_A_KIND = 2


class KeptWork:
    """What was worked out last, by its kind and by what it depends on.

    >>> kept = KeptWork()
    >>> kept.put("a key", ["work"])
    ['work']
    >>> kept.get(list, "a key"), kept.get(list, "another"), kept.last(list)
    (['work'], None, ['work'])
    """

    def __init__(self) -> None:
        self._entries: dict[type, list[tuple[object, Any]]] = {}

    def get(self, kind: type[_T], key: object) -> _T | None:
        """Return the work of a kind that depends on this and nothing else, or None."""
        entries = self._entries.get(kind, [])
        for place, (known, work) in enumerate(entries):
            if known == key:
                entries.insert(0, entries.pop(place))
                found: _T = work
                return found
        return None

    def last(self, kind: type[_T]) -> _T | None:
        """Return the work of a kind that was used last, whatever it depends on."""
        entries = self._entries.get(kind)
        return entries[0][1] if entries else None

    def put(self, key: object, work: _T) -> _T:
        """Keep a piece of work, and drop the one of its kind that was used least recently."""
        others = [entry for entry in self._entries.get(type(work), []) if entry[0] != key]
        self._entries[type(work)] = [(key, work), *others][:_MAX_OF_A_KIND]
        return work

    def clear(self) -> None:
        """Drop everything: it is made anew when it is needed."""
        self._entries.clear()


Role = Literal["user", "assistant", "tool"]
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
    "request_repeated",
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
    """Text, in a message or as a tool's result."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """A picture of the user's, by `https:` or `data:` address."""

    url: str


@dataclass(frozen=True, slots=True)
class ReferencePart:
    """Tools that become callable here: a search result, or what stands before a reply.

    Attributes:
        names: Canonical names.
        tools: Their definitions, where the request brings them here and not in its list.
    """

    names: tuple[str, ...]
    tools: tuple[Tool, ...] = ()


ContentPart = TextPart | ImagePart | ReferencePart
ResultPart = TextPart | ReferencePart


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model's wish to call a tool.

    Attributes:
        id: As the provider gave it, unique in its reply.
        name: Canonical, or as the model wrote it where no such tool exists.
        arguments: JSON as the model wrote it, which may be broken.
        is_cut: True if the reply ended before the call did: it is never run, whatever its
            arguments look like.
    """

    id: str
    name: str
    arguments: str = "{}"
    is_cut: bool = False

    @property
    def is_readable(self) -> bool:
        """Whether the arguments are a JSON object."""
        return self.parsed_arguments() is not None

    def parsed_arguments(self) -> dict[str, Any] | None:
        """The arguments, or None where they are not a JSON object; empty text is `{}`."""
        return read_object(self.arguments)


@dataclass(frozen=True, slots=True)
class NativeReply:
    """A reply's blocks as its provider wrote them, to be sent back unchanged.

    A user's message or a result from an imported history may have its blocks too.

    Attributes:
        origin: The `ProviderProfile.origin` they came from; nobody else takes them.
        blocks: Wire objects; only the adapter of that dialect reads them.
        found: Canonical names that a search of the provider's own brought in with them.
        told: The id of the search in the history that says the same to everybody else,
            and that whoever takes the blocks is not sent.
    """

    origin: str
    blocks: tuple[Mapping[str, Any], ...]
    found: tuple[str, ...] = ()
    told: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One entry of the neutral history.

    Attributes:
        role: Who speaks; a tool's result has the role `tool`.
        content: Text, or parts.
        tool_calls: What an assistant wants called, in order.
        tool_call_id: Which call a result answers.
        name: The tool a result is from, as it was called.
        is_error: Whether a result reports a failure.
        native: The same message in its provider's own blocks, where they matter.
    """

    role: Role
    content: str | tuple[ContentPart, ...] = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    is_error: bool = False
    native: NativeReply | None = None

    @property
    def text(self) -> str:
        """The message's text, its parts joined by line feeds, pictures left out."""
        return plain_text(self.content)


def plain_text(content: str | Iterable[ContentPart]) -> str:
    """The text of a message's content, parts joined by line feeds."""
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in content if isinstance(part, TextPart))


def user_message(content: str | Sequence[ContentPart]) -> Message:
    """What a user said, as a history keeps it: lone surrogates replaced."""
    if isinstance(content, str):
        return Message(role="user", content=encodable(content))
    parts = (TextPart(encodable(p.text)) if isinstance(p, TextPart) else p for p in content)
    return Message(role="user", content=tuple(parts))


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """One entry of a request's tool list.

    Attributes:
        tool: The definition to declare.
        deferred: Declared, but not shown to the model until it is referred to.
        cache_breakpoint: The prompt cache may end here.
        is_search: The search tool, declared as the provider's own kind of tool.
    """

    tool: Tool
    deferred: bool = False
    cache_breakpoint: bool = False
    is_search: bool = False


class ToolList(Sequence[DeclaredTool]):
    """A request's tool list, immutable, with its bytes in each dialect kept once made.

    Equal lists are one object for as long as an assembler keeps them, so the
    bytes of a catalog are made once, not once a request.
    """

    __slots__ = (
        "_by_wire_name", "_encoded", "_entries", "_fingerprint", "_incomplete", "_names",
    )  # fmt: skip

    def __init__(self, entries: Iterable[DeclaredTool] = ()) -> None:
        self._entries = tuple(entries)
        self._names = frozenset(entry.tool.name for entry in self._entries)
        self._encoded: dict[str, bytes] = {}
        self._by_wire_name: dict[NameRule, Mapping[str, str]] = {}
        self._incomplete: tuple[Tool, ...] | None = None
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
        """Whether a tool of this canonical name is in the list."""
        return name in self._names

    def by_wire_name(self, rule: NameRule) -> Mapping[str, str]:
        """The canonical names by what a dialect calls them, made once for each rule."""
        known = self._by_wire_name.get(rule)
        if known is None:
            named = {wire_name(entry.tool.name, rule): entry.tool.name for entry in self._entries}
            known = self._by_wire_name[rule] = named
        return known

    @property
    def incomplete(self) -> tuple[Tool, ...]:
        """The tools of whose schemas something is left out, in order; found once."""
        if self._incomplete is None:
            tools = (entry.tool for entry in self._entries)
            self._incomplete = tuple(tool for tool in tools if tool.declared_schema.left_out)
        return self._incomplete

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits of SHA-256 over the definitions, their order and deferral."""
        if not self._fingerprint:
            digest = hashlib.sha256()
            for entry in self._entries:
                flags = f"{entry.deferred:d}{entry.is_search:d}"
                digest.update(f"{entry.tool.fingerprint}{flags}".encode())
            self._fingerprint = digest.hexdigest()[:32]
        return self._fingerprint

    def encoded(self, dialect: str, encode: Callable[[DeclaredTool], str]) -> bytes:
        """The list as a JSON array in UTF-8, made at the first call for a dialect.

        Args:
            dialect: Names the wire format, and whatever else `encode` depends on.
            encode: Gives one entry as JSON text; a pure function.
        """
        return self.encoded_whole(dialect, lambda: f"[{','.join(map(encode, self._entries))}]")

    def encoded_whole(self, dialect: str, encode: Callable[[], str]) -> bytes:
        """The list in UTF-8 where a dialect does not write entry by entry, made once too.

        Args:
            dialect: Names the wire format, and whatever else `encode` depends on.
            encode: Gives the whole list as JSON text; a pure function of the list.
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
        phase: What it is for.
        tools: What is declared, in order.
        messages: The history as this request shows it: search results are
            `ReferencePart`s or text, native blocks are left only where they hold.
        system: The system text, complete; empty: none.
        tool_use: Whether the model may call tools; `none` keeps them declared.
        cached_messages: Indexes of messages at whose end the prompt cache may end.
        cache_system: Whether it may end behind the system text.
        kept: Where whoever writes the request finds its work on the last ones.
    """

    strategy: StrategyName
    own_facts: StrategyFacts | None = field(default=None, compare=False, repr=False)
    phase: Phase = "answer"
    tools: ToolList
    messages: tuple[Message, ...]
    system: str = ""
    tool_use: Literal["auto", "none"] = "auto"
    cached_messages: tuple[int, ...] = ()
    cache_system: bool = False
    kept: KeptWork = field(default_factory=KeptWork, compare=False, repr=False)

    @property
    def facts(self) -> StrategyFacts:
        """The facts of the strategy that made the plan.

        Raises:
            UnsupportedStrategyError: The plan has none, and none is registered.
        """
        return self.own_facts or registered_strategy(self.strategy)

    def brought(self) -> Iterator[Tool]:
        """Iterate over the definitions that messages bring, in order."""
        for message in self.messages:
            parts = () if isinstance(message.content, str) else message.content
            for part in parts:
                yield from part.tools if isinstance(part, ReferencePart) else ()


@dataclass(frozen=True, slots=True)
class Notice:
    """Something an operator should know: a cache that breaks, a repair, a limit.

    Attributes:
        code: What kind of thing happened.
        message: English, for logs, with the cause by name.
    """

    code: NoticeCode
    message: str
