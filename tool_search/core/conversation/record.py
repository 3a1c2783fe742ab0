"""The state of one conversation, as it goes on after a restart; a store writes and reads it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import Source
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.synthetic_searches import InsertionPoint
from tool_search.core.discoveries import (
    Discovery,
    DiscoveryState,
    Mode,
    ModeDecision,
    ToolOrderRecord,
)
from tool_search.core.messages import Message, RequestPlan
from tool_search.core.profiles import ProviderProfile
from tool_search.core.settings import HiddenTools, SchemaMode
from tool_search.i18n import Language

__all__ = [
    "EVERYBODY",
    "OF_PICTURES",
    "BegunCall",
    "ConversationState",
    "KeyedTurn",
    "LeftOut",
    "Measure",
    "Omission",
    "OmissionReason",
    "PrefixBoundThinking",
    "ShadowTurn",
    "ThinkingRecord",
    "message_digest",
    "referred_names",
    "shown_tools",
]

# Thinking that is bound to its prefix, and the part of it that may be sent back.
#
# Some models refuse a thinking block once `tools`, the system text or an earlier message
# has changed since it was written (Anthropic, "Extended thinking", prefix binding). So
# each request to such a model is compared with the one before: if it does not begin
# as that one did, all earlier blocks are left out.


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingRecord:
    """The last request to a model with bound thinking.

    Attributes:
        holds_from: The index of the first message whose native blocks were sent.
        messages: The number of messages in the request.
        digest: The digest of its tools, system text and messages; empty: there was none, or
            another kind of model was asked since.
    """

    holds_from: int = 0
    messages: int = 0
    digest: str = ""


class PrefixBoundThinking:
    """The thinking of one conversation that is still valid.

    Args:
        record: The value of `record` when the conversation was stored.
    """

    def __init__(self, record: ThinkingRecord | None = None) -> None:
        self.record = record or ThinkingRecord()
        self._prefix = _PrefixDigest()

    def plan(self, make: Callable[[int], RequestPlan]) -> RequestPlan:
        """Return a request to a model with bound thinking, without blocks that it would refuse.

        Args:
            make: Returns the request, with native blocks left out before an index.
        """
        before = self.record
        holds_from, plan = before.holds_from, make(before.holds_from)
        if self._prefix.of(plan, before.messages) != before.digest:
            holds_from, plan = len(plan.messages), make(len(plan.messages))
        count = len(plan.messages)
        self.record = ThinkingRecord(
            holds_from=holds_from, messages=count, digest=self._prefix.of(plan, count)
        )
        return plan

    def cut_back(self, removed: int) -> None:
        """Follow a history that lost its last messages, this many of the last request."""
        count = self.record.messages - removed
        digest = self._prefix.again(count) if count > 0 else ""
        if not digest:
            self.interrupt()
        elif removed > 0:
            holds_from = min(count, self.record.holds_from)
            self.record = ThinkingRecord(holds_from=holds_from, messages=count, digest=digest)

    def interrupt(self) -> None:
        """Record a request to another kind of model, whose thinking is bound to nothing."""
        self.record = ThinkingRecord()


class _PrefixDigest:
    """The digest of a request's beginning; continues from the last one."""

    def __init__(self) -> None:
        self._head: tuple[str, str] | None = None
        self._messages: tuple[Message, ...] = ()
        self._hash = hashlib.sha256()

    def of(self, plan: RequestPlan, count: int) -> str:
        """Return the digest of a request's tools, system text and first messages."""
        head, messages = (plan.tools.fingerprint, plan.system), plan.messages[:count]
        known = len(self._messages)
        # Equal tuples are compared by identity first, which takes no time.
        if head != self._head or messages[:known] != self._messages:
            self._head, known = head, 0
            self._hash = hashlib.sha256(repr(head).encode("utf-8", "replace"))
        for message in messages[known:]:
            self._hash.update(repr(message).encode("utf-8", "replace"))
        self._messages = messages
        return self._hash.hexdigest()[:32]

    def again(self, count: int) -> str:
        """Return the digest of fewer messages; empty if they are not known any more."""
        if self._head is None or count > len(self._messages):
            return ""
        made = hashlib.sha256(repr(self._head).encode("utf-8", "replace"))
        for message in self._messages[:count]:
            made.update(repr(message).encode("utf-8", "replace"))
        return made.hexdigest()[:32]


# Tools that a request leaves out, because this turn's user may not call them.
#
# A list with every definition (`full`, `skills_like`, a search of the service's own) would
# reveal tools to a user who may not know of them. So it has the tools that the user may
# call, and those that the conversation refers to already. Each list is made once a turn, and
# a change from the turn before is announced: it ends the prompt cache.


_Form = Literal["every tool", "what is shown"]


class LeftOut:
    """The tools that are left out in one conversation.

    Args:
        digests: As `digests` was when the conversation was stored.
    """

    def __init__(self, digests: Mapping[str, str] | None = None) -> None:
        self._digests = dict(digests or {})
        self._names: dict[_Form, frozenset[str]] = {}
        self._hidden: HiddenTools = "keep"

    @property
    def digests(self) -> Mapping[str, str]:
        """A digest of the left-out names for each form of list, as a store keeps it."""
        return dict(self._digests)

    def begin_turn(self, hidden: HiddenTools) -> None:
        """Begin a turn, in which the lists do not change."""
        self._names = {}
        self._hidden = hidden

    def names(
        self,
        profile: ProviderProfile,
        mode: Mode,
        *,
        catalog: ToolCatalog,
        shown: Callable[[], Iterable[Tool]],
        referred: Callable[[], Iterable[str]],
        denied: Callable[[Iterable[Tool]], frozenset[str]],
    ) -> tuple[frozenset[str], bool]:
        """Return the names that are left out, and True if the list is another than before.

        Args:
            profile: The provider.
            mode: The mode of the conversation.
            catalog: The tools.
            shown: Returns the tools that a filtered list shows the model.
            referred: Returns the names that the conversation refers to.
            denied: Returns the names of those tools that this turn's user may not call.
        """
        form = self._form(profile, mode)
        if form is None:
            return frozenset(), False
        if form in self._names:
            return self._names[form], False
        tools = [*shown(), *(catalog.active if form == "every tool" else ())]
        names = denied(tools)
        if names and self._hidden == "keep":
            names = names.difference(referred())
        self._names[form] = names
        digest = _digest(names)
        before = self._digests.get(form, digest)
        self._digests[form] = digest
        return names, before != digest

    def _form(self, profile: ProviderProfile, mode: Mode) -> _Form | None:
        """Return which list shows tools that this user may not call; None: none does."""
        searches_itself = profile.search_form == "hosted" and profile.is_native
        if mode != "tool_search" or searches_itself:
            return "every tool"
        return "what is shown" if self._hidden == "strict" else None


def _digest(names: frozenset[str]) -> str:
    written = "\0".join(sorted(names)).encode("utf-8", "replace")
    return hashlib.sha256(written).hexdigest()[:16] if names else ""


def referred_names(
    discoveries: DiscoveryState, history: Iterable[Message], catalog: ToolCatalog
) -> Iterator[str]:
    """Yield the tools that a conversation refers to: discovered, or called with success.

    A call that failed is not a reference: a user who guesses a hidden name would learn of it.
    """
    yield from discoveries.names
    for message in history:
        if message.role == "tool" and message.name and not message.is_error:
            tool = catalog.by_wire_name.get(message.name)
            yield message.name if tool is None else tool.name


def shown_tools(
    core: Iterable[str], discoveries: DiscoveryState, catalog: ToolCatalog
) -> Iterator[Tool]:
    """Yield the tools that a filtered list may have: the core and the discoveries."""
    yield from (catalog[name] for name in core if catalog.is_active(name))
    for entry in discoveries:
        yield catalog.get(entry.name) or entry.tool


Measure = Literal["tokens", "bytes"]
"""The unit of an estimated size: tokens of a model's context, or bytes of a request."""

EVERYBODY = ""
"""The key of omissions that apply to every endpoint."""

OmissionReason = Literal[
    "picture_refused",
    "pictures_unknown",
    "too_many_pictures",
    "message_refused",
    "message_too_long",
]
"""The reason to leave out a content: `picture_refused`, the service could not read its pictures;
`pictures_unknown`, the model takes none; `too_many_pictures`, it takes fewer, or smaller ones;
`message_refused`, the service refused the message; `message_too_long`, it does not fit into the
model's context."""

OF_PICTURES: frozenset[OmissionReason] = frozenset(
    {"picture_refused", "pictures_unknown", "too_many_pictures"}
)
"""The reasons that leave out pictures alone."""


class ShadowTurn(NamedTuple):
    """The offer of a search in a turn that was sent every tool.

    Attributes:
        message: The digest of the user's message.
        offered: The names of the tools, the best first.
    """

    message: str
    offered: tuple[str, ...]


class BegunCall(NamedTuple):
    """A call of a keyed turn whose tool was started, or was about to be.

    Attributes:
        tool: The canonical name of the tool.
        key: The idempotency key that the tool was given.
        has_ended: True if its result is known; False: it may have run.
    """

    tool: str
    key: str
    has_ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedTurn:
    """A turn that has an idempotency key; its messages are in the history.

    Attributes:
        key: The digest of the user and the key.
        message: The digest of the user's message.
        at: The time at which it began, in seconds since 1970.
        calls: The calls that have begun, by id.
        done: The values of its `Done`; None: it has no answer yet.
    """

    key: str
    message: str
    at: float
    calls: Mapping[str, BegunCall] = field(default_factory=dict)
    done: Mapping[str, Any] | None = None


def message_digest(text: str) -> str:
    """Return the digest by which a user's message is known again: 16 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """The omissions of requests to one endpoint, or of all requests.

    Attributes:
        endpoint: The `ProviderProfile.origin`, or `EVERYBODY`.
        turns_before: Index of the first message that is sent.
        results_before: Index of the first message that is whole if it is a result.
        opening: Messages in place of those that are not sent.
        contents: The reason to leave out a message's content, by the message's index.
    """

    endpoint: str = EVERYBODY
    turns_before: int = 0
    results_before: int = 0
    opening: tuple[Message, ...] = ()
    contents: Mapping[int, OmissionReason] = field(default_factory=dict)

    @property
    def reach(self) -> int:
        """The number of messages, from the first, that it depends on."""
        return max(self.turns_before, self.results_before, *(i + 1 for i in self.contents), 0)

    def merged_with(self, other: Omission) -> Omission:
        """Return an omission that leaves out all that both leave out."""
        further = self if self.turns_before >= other.turns_before else other
        return replace(
            self,
            turns_before=further.turns_before,
            opening=further.opening,
            results_before=max(self.results_before, other.results_before),
            contents={**other.contents, **self.contents},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationState:
    """Everything that a conversation needs to go on after a restart.

    Attributes:
        language: The language, frozen at the start.
        decision: The mode, and the reason for it.
        search_tool: The search tool's definition, frozen at the start.
        tool_order: The declared tools, in both orders.
        discoveries: The discoveries, oldest first.
        insertion_points: Synthetic searches in a history that the bot owns.
        history: The neutral history.
        thinking: The last request to a model whose thinking is bound to the prefix.
        left_out: Digests of the tools that were left out of lists, because a user may
            not call them, by the form of the list.
        configured: The `tool_schema_mode` that decided the mode; None: not recorded.
        listing: The listing of tools that wait to be found, frozen with the search tool.
        former_search_names: Earlier names of the search tool, oldest first.
        omissions: The parts of the history that requests leave out.
        shadow: What searches would have offered, in the mode `shadow`, oldest first.
        turns: The latest turns that have an idempotency key, oldest first.
    """

    language: Language
    decision: ModeDecision
    search_tool: Tool
    tool_order: ToolOrderRecord
    discoveries: tuple[Discovery, ...] = ()
    insertion_points: tuple[InsertionPoint, ...] = ()
    history: tuple[Message, ...] = ()
    thinking: ThinkingRecord = field(default_factory=ThinkingRecord)
    left_out: Mapping[str, str] = field(default_factory=dict)
    configured: SchemaMode | None = None
    listing: str = ""
    former_search_names: tuple[str, ...] = ()
    omissions: tuple[Omission, ...] = ()
    shadow: tuple[ShadowTurn, ...] = ()
    turns: tuple[KeyedTurn, ...] = ()

    @property
    def names(self) -> dict[Source, str]:
        """The owner of each name that the conversation refers to."""
        listed = {**self.tool_order.former, **(self.tool_order.sources or {})}
        known = {source: name for name, source in listed.items()}
        return known | {entry.tool.source: entry.name for entry in self.discoveries}
