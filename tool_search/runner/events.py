"""The events of a turn: frozen records, in the order in which they happen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tool_search.core.conversation.record import OmissionReason
from tool_search.core.messages import ContentPart, DiscoveryWay, Phase, ToolCall
from tool_search.providers.base import StopReason, Usage

__all__ = [
    "CallStep",
    "ContentLeftOut",
    "Done",
    "Outcome",
    "ProviderSwitched",
    "RequestFinished",
    "RequestStarted",
    "RunnerEvent",
    "RunnerWarning",
    "SearchFinished",
    "TextDelta",
    "ToolCallStarted",
    "ToolFinished",
    "ToolOutputDelta",
    "ToolProgress",
    "ToolsDiscovered",
    "TurnEnd",
    "TurnEvent",
    "TurnObserver",
    "Warning",
]


Outcome = Literal["finished", "failed", "denied", "cancelled"]
"""The end of a call: `finished` has the result of its tool, the others do not."""

TurnEnd = Literal["answer", "length", "refusal", "max_steps", "timeout", "pause", "other"]
"""The end of a turn, in one word for every provider: `answer`, the answer is complete;
`length`, it was cut; `refusal`, the model declined, or a filter of the service ended the
reply; `max_steps`, the turn had no calls left, and the model answered without; `timeout`, the
turn took too long; `pause`, the service had not finished after the last step; `other`, the
service named another reason or none."""


class CallStep(NamedTuple):
    """One step of a call, and its seconds."""

    name: str
    duration_s: float


@dataclass(frozen=True, slots=True)
class RunnerEvent:
    """The base of all events of a turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta(RunnerEvent):
    """More text of the answer; void when a `ProviderSwitched` follows.

    Attributes:
        text: The piece, to append to those before it.
    """

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallStarted(RunnerEvent):
    """The start of a tool call.

    Attributes:
        call: The call as the model made it.
        tool: The canonical name of the tool that it runs.
    """

    call: ToolCall
    tool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress(RunnerEvent):
    """The progress of a running tool.

    Attributes:
        call: The call.
        message: For people.
    """

    call: ToolCall
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutputDelta(RunnerEvent):
    """A piece of the result of a running tool.

    Attributes:
        call: The call.
        content: The piece, to append to those before it.
    """

    call: ToolCall
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished(RunnerEvent):
    """The one result of a call.

    Attributes:
        call: The call.
        tool: The canonical name of the tool that it ran.
        content: The result as the model reads it.
        is_error: True if it reports a failure.
        duration_s: Seconds from start to result; 0 if no tool was run.
        outcome: The end of the call.
        parts: The content with its pictures; empty if it is only text.
        steps: The steps of the call, in order.
        repeated: True if it is the result of an earlier try of the turn: nothing was run.
    """

    call: ToolCall
    tool: str
    content: str
    is_error: bool
    duration_s: float = 0.0
    outcome: Outcome = "finished"
    parts: Sequence[ContentPart] = ()
    steps: Sequence[CallStep] = ()
    repeated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsDiscovered(RunnerEvent):
    """Tools that the model can call from the next request on.

    Attributes:
        names: The new tools, in order.
        total: The number of tools that the conversation has discovered.
        via: `search` or `call` of the model, `preload` for the user's message, or
            `second_chance` after an answer that said there is no tool for it.
    """

    names: Sequence[str]
    total: int
    via: DiscoveryWay = "search"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSwitched(RunnerEvent):
    """The change to another provider, or a new start of a reply.

    Attributes:
        from_provider: The `id` of the provider before.
        to_provider: The `id` of the provider that goes on; the same if it begins the
            reply again.
        cause: The error of the first; between two turns `requested` (by `runner.use`) or
            `primary_available` (the first provider in order that is not cooling down);
            `second_chance`, if an answer said that it has no tool and one was found.
        discarded_text: The streamed text of a reply that does not count any more.
    """

    from_provider: str
    to_provider: str
    cause: str
    discarded_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentLeftOut(RunnerEvent):
    """A part of the user's message that is left out, since no provider takes it.

    `tools_unknown`: the tools are, from now on, since the model of this provider takes none.

    Attributes:
        provider: The `id` of the provider that answers.
        reason: The reason, for programs.
        text: The reason for the user, in the language of the conversation.
    """

    provider: str
    reason: OmissionReason | Literal["tools_unknown"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerWarning(RunnerEvent):
    """A warning for the operator.

    Attributes:
        code: The kind of warning, for programs.
        message: English, for logs.
    """

    code: str
    message: str


Warning = RunnerWarning  # noqa: A001 - its former name, which hides the builtin


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(RunnerEvent):
    """The end of the turn; always the last event.

    Attributes:
        answer: The whole answer.
        provider: The `id` of the provider that gave it.
        steps: The number of requests that were answered.
        usage: The tokens of all of them.
        stop_reason: The end of the turn.
        repeated: True if it is the end of an earlier try of the turn: nothing was asked.
    """

    answer: str
    provider: str
    steps: int
    usage: Usage
    stop_reason: TurnEnd = "answer"
    repeated: bool = False


# The three below are for observers of turns: `run` does not yield them.


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStarted(RunnerEvent):
    """The start of one request to a model. Tokens of definitions are estimates.

    Attributes:
        provider: The `id` of the provider.
        model: The model's name.
        origin: The dialect, the host and the model.
        strategy: The name of the strategy that shows tools.
        phase: The purpose of the request.
        tools: The number of definitions in the tool list.
        deferred: The number of them that the model is not shown yet.
        tool_tokens: The tokens of the definitions that the model is shown.
        saved_tokens: The tokens of all definitions of the catalog, without `tool_tokens`.
        is_prefix_kept: True if the last request to this provider is a prefix of this one;
            None: it is the first one.
    """

    provider: str
    model: str
    origin: str
    strategy: str
    phase: Phase
    tools: int
    deferred: int
    tool_tokens: int
    saved_tokens: int
    is_prefix_kept: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFinished(RunnerEvent):
    """The end of one request to a model, answered or not.

    Attributes:
        request: The request.
        duration_s: Seconds from its start to the end of the reply.
        first_s: Seconds to the first text or call; None: none came.
        usage: The tokens, as the provider counted them.
        stop_reason: The end of the reply; None: the request failed.
        error: The kind of failure: an HTTP status, the name of an exception, or `cancelled`;
            empty: none.
        response_id: The service's id of the reply; empty: it gave none.
        response_model: The model that answered, as the service names it; likewise.
    """

    request: RequestStarted
    duration_s: float
    first_s: float | None = None
    usage: Usage = field(default_factory=Usage)
    stop_reason: StopReason | None = None
    error: str = ""
    response_id: str = ""
    response_model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFinished(RunnerEvent):
    """The end of one search of the model.

    Attributes:
        call: The call that searched.
        query: The query; several are joined by " | ".
        found: The names of the tools that were found, best first, callable ones last.
        best_score: The score of the best match, from 0 to 1; None: nothing was found.
        total_found: The number of tools that fit, before any cut.
        total_tools: The number of tools that were searched.
        is_error: True if nothing could be searched.
        duration_s: Seconds that the search took.
    """

    call: ToolCall
    query: str
    found: Sequence[str]
    best_score: float | None
    total_found: int
    total_tools: int
    is_error: bool = False
    duration_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEvent:
    """An event, as observers of turns get it.

    Attributes:
        conversation: The key of the conversation.
        elapsed_s: Seconds since the turn was asked for.
        event: The event.
    """

    conversation: str
    elapsed_s: float
    event: RunnerEvent


TurnObserver = Callable[[TurnEvent], Awaitable[object] | object]
"""Called with each event of a turn, before whoever runs the turn gets it.

An awaitable that it returns is awaited in a task of its own, in the order of the events.
"""
