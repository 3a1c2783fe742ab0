"""What a runner tells while a turn goes on: frozen records, in the order they happen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tool_search.messages import ContentPart, ToolCall
from tool_search.providers.base import Usage
from tool_search.providers.omissions import OmissionReason

__all__ = [
    "CallStep",
    "ContentLeftOut",
    "Done",
    "Outcome",
    "ProviderSwitched",
    "RunnerEvent",
    "RunnerWarning",
    "TextDelta",
    "ToolCallStarted",
    "ToolFinished",
    "ToolOutputDelta",
    "ToolProgress",
    "ToolsDiscovered",
    "TurnEnd",
    "Warning",
]


Outcome = Literal["finished", "failed", "denied", "cancelled"]
"""How a call ended: with its tool's result, or without."""

TurnEnd = Literal["answer", "length", "refusal", "max_steps", "timeout", "pause", "other"]
"""How a turn ended, in one word on every provider: `answer`, the model had said all;
`length`, its answer was cut; `refusal`, the model declined, or a filter of the service ended
the reply; `max_steps`, it wanted more calls than a turn may have, and had to answer without;
`timeout`, the turn's time was over; `pause`, the service had not finished after the last
step; `other`, the service named a reason that is not known, or none."""


class CallStep(NamedTuple):
    """One step of a call's life, and the seconds it took."""

    name: str
    duration_s: float


@dataclass(frozen=True, slots=True)
class RunnerEvent:
    """The base of everything a turn yields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta(RunnerEvent):
    """More text of the answer; void when a `ProviderSwitched` follows.

    Attributes:
        text: To be appended to what was shown.
    """

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallStarted(RunnerEvent):
    """A tool call begins.

    Attributes:
        call: As the model made it.
        tool: The canonical name of what it comes down to.
    """

    call: ToolCall
    tool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress(RunnerEvent):
    """A running tool says how far it is.

    Attributes:
        call: The call.
        message: For people.
    """

    call: ToolCall
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutputDelta(RunnerEvent):
    """A running tool shows a piece of its result.

    Attributes:
        call: The call.
        content: The piece, to be appended to those before it.
    """

    call: ToolCall
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished(RunnerEvent):
    """A call has its one result.

    Attributes:
        call: The call.
        tool: The canonical name of what it came down to.
        content: The result as the model reads it.
        is_error: Whether it reports a failure.
        duration_s: Seconds from start to result; 0 where nothing was run.
        outcome: How it ended.
        parts: The content with its pictures; empty: the text is all.
        steps: What its life was made of, in order.
    """

    call: ToolCall
    tool: str
    content: str
    is_error: bool
    duration_s: float = 0.0
    outcome: Outcome = "finished"
    parts: Sequence[ContentPart] = ()
    steps: Sequence[CallStep] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsDiscovered(RunnerEvent):
    """Tools are callable from the next request on.

    Attributes:
        names: The new ones, in order.
        total: How many the conversation has discovered in all.
    """

    names: Sequence[str]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSwitched(RunnerEvent):
    """Another provider takes the turn over.

    Attributes:
        from_provider: The `id` of the one before.
        to_provider: The `id` of the one that goes on; the same one where it begins the
            reply again.
        cause: The error of the first; between two turns `requested` (by `runner.use`) or
            `primary_available` (the first provider in order that is not cooling down).
        discarded_text: What it had streamed of a reply that is void now.
    """

    from_provider: str
    to_provider: str
    cause: str
    discarded_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentLeftOut(RunnerEvent):
    """The answer is given without something that the user sent: no provider takes it.

    Attributes:
        provider: The `id` of the one that answers.
        reason: Why it is left out.
        text: The same for the user, in the conversation's language.
    """

    provider: str
    reason: OmissionReason
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerWarning(RunnerEvent):
    """Something an operator should know.

    Attributes:
        code: What kind of thing happened.
        message: English, for logs.
    """

    code: str
    message: str


Warning = RunnerWarning  # noqa: A001 - its name before it stopped hiding the builtin


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(RunnerEvent):
    """The turn is over; always the last event.

    Attributes:
        answer: The whole answer.
        provider: The `id` of the provider that gave it.
        steps: How many requests were answered.
        usage: Of all of them.
        stop_reason: How the turn ended.
    """

    answer: str
    provider: str
    steps: int
    usage: Usage
    stop_reason: TurnEnd = "answer"
