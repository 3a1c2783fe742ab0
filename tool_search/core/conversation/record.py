"""The state of one conversation, as it goes on after a restart; a store writes and reads it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from tool_search.core.catalog.naming import Source
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.synthetic_searches import InsertionPoint
from tool_search.core.conversation.thinking import ThinkingRecord
from tool_search.core.discovery.modes import ModeDecision
from tool_search.core.discovery.state import Discovery
from tool_search.core.discovery.tool_order import ToolOrderRecord
from tool_search.core.messages import Message
from tool_search.core.settings import SchemaMode
from tool_search.i18n import Language

__all__ = [
    "EVERYBODY",
    "OF_PICTURES",
    "BegunCall",
    "ConversationState",
    "KeyedTurn",
    "Measure",
    "Omission",
    "OmissionReason",
    "ShadowTurn",
    "message_digest",
]

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
