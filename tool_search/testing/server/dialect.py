"""What a dialect has to say for the stand-in server to speak it.

A new API is a module of rules and a module of rendering that has one class
with these members, and one line in `dialects.py`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tool_search.testing.server.endpoint import Endpoint, ReasoningField
    from tool_search.testing.server.memory import ReplyMemory
    from tool_search.testing.server.usage import UsageFigures
    from tool_search.testing.view import ModelView
    from tool_search.testing.violations import Violation

__all__ = ["Answer", "AnswerCall", "Dialect", "Forgetful", "StreamEvent", "dumped", "pieces"]

_PIECE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCall:
    """A tool call ready to be written.

    Attributes:
        name: The tool's name on the wire.
        arguments: JSON as text, broken or not.
        namespace: The namespace that the call names, or None.
        is_search: It asks the dialect's own search tool.
    """

    name: str
    arguments: str
    namespace: str | None = None
    is_search: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a dialect renders: a model's reply to one request.

    Attributes:
        body: The request as it was sent.
        conversation: The same with what the service remembered put in front.
        digest: At least 40 hexadecimal digits that stand for the request. Ids
            are made of them, so the same conversation always gets the same
            ids, and no two requests of one history the same, whichever of
            several stand-in servers answered them.
        text: The reply's text.
        calls: Its tool calls.
        thinking: Its thinking, or None.
        stop_reason: The dialect's own stop reason, or None for the natural one.
        usage: The token figures.
        searches: The items of searches that the service ran itself, which come first.
        reasoning_field: The name of reasoning in the OpenAI Chat dialect.
    """

    body: Mapping[str, Any]
    conversation: Mapping[str, Any]
    digest: str
    text: str
    calls: tuple[AnswerCall, ...]
    thinking: str | None
    stop_reason: str | None
    usage: UsageFigures
    searches: tuple[Mapping[str, Any], ...] = ()
    reasoning_field: ReasoningField = "reasoning_content"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvent:
    """One server-sent event.

    Attributes:
        data: The text after `data:`.
        name: The text after `event:`, or None for none.
        in_tool_call: It carries a part of a tool call's arguments.
    """

    data: str
    name: str | None = None
    in_tool_call: bool = False

    def encoded(self) -> bytes:
        """The event as it goes over the wire."""
        named = f"event: {self.name}\n" if self.name is not None else ""
        return f"{named}data: {self.data}\n\n".encode("utf-8", "replace")


class Dialect(Protocol):
    """One provider API: its rules and its rendering."""

    @property
    def name(self) -> str:
        """`anthropic`, `openai_chat`, ..."""
        ...

    @property
    def path(self) -> str:
        """The path that asks the model."""
        ...

    @property
    def keep_alive(self) -> bytes:
        """What a stream sends while it has nothing to say."""
        ...

    @property
    def count_path(self) -> str | None:
        """The path that only counts tokens, where the API has one."""
        ...

    def check_headers(self, headers: Mapping[str, str]) -> Violation | None:
        """What is wrong with the headers (lower-case names), or None."""
        ...

    def recalled(
        self, body: Mapping[str, Any], memory: ReplyMemory
    ) -> Mapping[str, Any] | Violation:
        """The request with the remembered part of its conversation, or why there is none."""
        ...

    def remember(self, answer: Answer, memory: ReplyMemory) -> None:
        """Keeps what a later request may refer to."""
        ...

    def check(
        self, body: Mapping[str, Any], endpoint: Endpoint, *, counting: bool
    ) -> Violation | None:
        """The first rule that the request, as `recalled` gave it, breaks, or None."""
        ...

    def unreadable(self, reason: str) -> Violation:
        """The answer to a body that is not a JSON object."""
        ...

    def view(self, body: Mapping[str, Any]) -> ModelView:
        """What the model is shown; the body has passed `check`."""
        ...

    def searched(
        self, conversation: Mapping[str, Any], arguments: Mapping[str, Any], *, made: str
    ) -> tuple[Mapping[str, Any], tuple[Mapping[str, Any], ...]]:
        """The conversation after a search that the service runs itself, and its items.

        Asked for only where a view has such a tool; `made` makes the items' ids.
        """
        ...

    def counted(self, tokens: int) -> Mapping[str, Any]:
        """The body that answers `count_path`."""
        ...

    def complete(self, answer: Answer) -> Mapping[str, Any]:
        """The body of a reply that is not streamed."""
        ...

    def stream(self, answer: Answer) -> Iterator[StreamEvent]:
        """The events of a streamed reply."""
        ...

    def documented(self, status: int) -> Violation:
        """The error that the provider documents for that status."""
        ...

    def error_body(self, violation: Violation, request_id: str) -> Mapping[str, Any]:
        """The body of an error."""
        ...

    def error_event(self, violation: Violation, request_id: str) -> StreamEvent:
        """The event that reports an error after the headers went out."""
        ...

    def headers(self, request_id: str) -> Mapping[str, str]:
        """Headers that every answer has."""
        ...


class Forgetful:
    """A dialect whose requests always carry the whole conversation, searches too."""

    def searched(
        self,
        conversation: Mapping[str, Any],
        arguments: Mapping[str, Any],  # noqa: ARG002 - the service runs no search
        *,
        made: str,  # noqa: ARG002 - likewise
    ) -> tuple[Mapping[str, Any], tuple[Mapping[str, Any], ...]]:
        """The conversation as it is."""
        return conversation, ()

    def recalled(
        self,
        body: Mapping[str, Any],
        memory: ReplyMemory,  # noqa: ARG002 - there is nothing to recall
    ) -> Mapping[str, Any] | Violation:
        """The request as it is."""
        return body

    def remember(self, answer: Answer, memory: ReplyMemory) -> None:
        """Nothing is kept."""


def dumped(data: Mapping[str, Any]) -> str:
    """JSON as the services write it into a stream."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def pieces(text: str) -> Iterator[str]:
    """The text in parts, as a stream delivers it."""
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]
