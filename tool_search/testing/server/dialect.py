"""The protocol of a provider API that the stand-in server speaks.

A new API is a folder with `rules`, `view` and `render`, whose class has these
members, and one line in `dialects.py`.
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

__all__ = [
    "Answer",
    "AnswerCall",
    "Dialect",
    "Forgetful",
    "StreamEvent",
    "dump_json",
    "parsed_arguments",
    "pieces",
]

_PIECE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCall:
    """A tool call that a dialect writes.

    Attributes:
        name: The tool's name on the wire.
        arguments: JSON as text, broken or not.
        namespace: The namespace that the call names, or None.
        is_search: True if it calls the dialect's own search tool.
    """

    name: str
    arguments: str
    namespace: str | None = None
    is_search: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A model's reply to one request, for a dialect to render.

    Attributes:
        body: The request as it was sent.
        conversation: The request after the messages that the service kept.
        digest: At least 40 hexadecimal digits, made from the request. Ids are made from
            them: equal conversations get equal ids, and requests of one history get
            different ones, also from several stand-in servers.
        text: The reply's text.
        calls: Its tool calls.
        thinking: Its thinking, or None.
        stop_reason: The dialect's own stop reason, or None for the natural one.
        usage: The token figures.
        searches: The items of hosted searches, which come first.
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
        in_tool_call: True if it has a part of a tool call's arguments.
    """

    data: str
    name: str | None = None
    in_tool_call: bool = False

    def encoded(self) -> bytes:
        """Return the bytes of the event."""
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
        """The bytes that a stream sends while it waits."""
        ...

    @property
    def count_path(self) -> str | None:
        """The path that only counts tokens, or None."""
        ...

    def check_headers(self, headers: Mapping[str, str]) -> Violation | None:
        """Return the violation of the headers (lower-case names), or None."""
        ...

    def recall(self, body: Mapping[str, Any], memory: ReplyMemory) -> Mapping[str, Any] | Violation:
        """Return the request with the kept part of its conversation, or a violation."""
        ...

    def remember(self, answer: Answer, memory: ReplyMemory) -> None:
        """Keep the reply for later requests that refer to it."""
        ...

    def check(
        self, body: Mapping[str, Any], endpoint: Endpoint, *, counting: bool
    ) -> Violation | None:
        """Return the first rule that a request from `recall` breaks, or None."""
        ...

    def unreadable_body(self, reason: str) -> Violation:
        """Return the answer to a body that is not a JSON object."""
        ...

    def view(self, body: Mapping[str, Any]) -> ModelView:
        """Return the model's view of a body that has passed `check`."""
        ...

    def run_search(
        self, conversation: Mapping[str, Any], arguments: Mapping[str, Any], *, made: str
    ) -> tuple[Mapping[str, Any], tuple[Mapping[str, Any], ...]]:
        """Return the conversation after a hosted search, and the items of that search.

        Called only if a view has such a tool; `made` is the suffix of the items' ids.
        """
        ...

    def count_body(self, tokens: int) -> Mapping[str, Any]:
        """Return the body that answers `count_path`."""
        ...

    def complete(self, answer: Answer) -> Mapping[str, Any]:
        """Return the body of a reply that is not streamed."""
        ...

    def stream(self, answer: Answer) -> Iterator[StreamEvent]:
        """Yield the events of a streamed reply."""
        ...

    def documented_error(self, status: int) -> Violation:
        """Return the error that the provider documents for that status."""
        ...

    def error_body(self, violation: Violation, request_id: str) -> Mapping[str, Any]:
        """Return the body of an error."""
        ...

    def error_event(self, violation: Violation, request_id: str) -> StreamEvent:
        """Return the event that reports an error after the headers went out."""
        ...

    def headers(self, request_id: str) -> Mapping[str, str]:
        """Return the headers of every answer."""
        ...


class Forgetful:
    """A dialect whose requests always have the whole conversation."""

    def run_search(
        self,
        conversation: Mapping[str, Any],
        arguments: Mapping[str, Any],  # noqa: ARG002 - the service runs no search
        *,
        made: str,  # noqa: ARG002 - likewise
    ) -> tuple[Mapping[str, Any], tuple[Mapping[str, Any], ...]]:
        """Return the conversation unchanged."""
        return conversation, ()

    def recall(
        self,
        body: Mapping[str, Any],
        memory: ReplyMemory,  # noqa: ARG002 - there is nothing to recall
    ) -> Mapping[str, Any] | Violation:
        """Return the request unchanged."""
        return body

    def remember(self, answer: Answer, memory: ReplyMemory) -> None:
        """Keep nothing."""


def dump_json(data: Mapping[str, Any]) -> str:
    """Return JSON as the services write it into a stream."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def parsed_arguments(arguments: str) -> object:
    """Return a call's arguments as an object, or unchanged if they are not JSON.

    The services themselves only ever send an object; endpoints that imitate them have sent strings.
    """
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def pieces(text: str) -> Iterator[str]:
    """Yield the text in parts, as a stream delivers it."""
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]
