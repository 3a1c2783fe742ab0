"""What a running call says, and what it comes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic_core import to_jsonable_python

from tool_search.conversation.calls import AnsweredCall, CallDecision, CallResult, RunCall
from tool_search.errors import ToolSearchError
from tool_search.events import CallStep, Outcome, ToolFinished
from tool_search.i18n import Language, text
from tool_search.messages import ContentPart, ImagePart, TextPart, ToolCall, plain_text
from tool_search.values.json import compact_json
from tool_search.values.redaction import redacted_text
from tool_search.values.shortening import cut

__all__ = [
    "MAX_ERROR_CHARS",
    "CallOutputDelta",
    "CallProgress",
    "CallStep",
    "ExecutionEvent",
    "ExecutionResult",
    "Failure",
    "FinishedCall",
    "Outcome",
    "as_result",
    "as_text",
    "cause_of",
    "failure_of",
    "meant_tool",
    "shortened",
    "with_partials",
]


Failure = Literal["invalid", "blocked", "denied", "failed", "timed_out", "cancelled"]
"""Why a call has no result of its tool's."""


@dataclass(frozen=True, slots=True)
class CallProgress:
    """How far a call is, for people."""

    message: str


@dataclass(frozen=True, slots=True)
class CallOutputDelta:
    """A piece of the result before the rest, for people.

    The model reads the final result alone; where there is none, because the call
    failed or was cancelled, it reads the pieces there were.
    """

    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionResult:
    """What a call came to; always the last event, and exactly one.

    A tool may give it itself, where what it returns and what the model reads differ.

    Attributes:
        content: As the model reads it.
        is_error: Whether it reports a failure.
        parts: The same with pictures; empty: the text is all.
        data: What the tool returned, for other tools and for the bot.
        failure: Of which kind a failure is.
        error: The exception behind it.
    """

    content: str
    is_error: bool = False
    parts: tuple[ContentPart, ...] = ()
    data: Any = field(default=None, compare=False)
    failure: Failure | None = field(default=None, compare=False)
    error: BaseException | None = field(default=None, compare=False, repr=False)

    @property
    def outcome(self) -> Outcome:
        """How the call ended."""
        if not self.is_error:
            return "finished"
        if self.failure in ("denied", "blocked"):
            return "denied"
        return "cancelled" if self.failure == "cancelled" else "failed"


ExecutionEvent = CallProgress | CallOutputDelta | ExecutionResult


# What a call of a batch came to: for the session, and as an event.


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCall:
    """A call is over.

    Attributes:
        call: As the model made it.
        decision: What was decided; None: it was cancelled before that.
        result: Its one result.
        duration_s: Seconds from its beginning; 0 where nothing was run.
        steps: What its life was made of, in order.
    """

    call: ToolCall
    decision: CallDecision | None
    result: ExecutionResult
    duration_s: float = 0.0
    steps: tuple[CallStep, ...] = ()

    @property
    def tool(self) -> str:
        """The canonical name of what the call comes down to, `call_tool` looked through."""
        return meant_tool(self.decision) if self.decision is not None else self.call.name

    def to_commit(self) -> CallResult:
        """The same for a session."""
        result = self.result
        decision = self.decision or AnsweredCall(
            call=self.call, content=result.content, is_error=True
        )
        return CallResult(
            decision=decision,
            content=result.content,
            is_error=result.is_error,
            parts=result.parts,
        )

    def finished(self, content: str | None = None) -> ToolFinished:
        """The same as an event.

        Args:
            content: What the model reads, where a history says it otherwise.
        """
        return ToolFinished(
            call=self.call,
            tool=self.tool,
            content=self.result.content if content is None else content,
            is_error=self.result.is_error,
            duration_s=self.duration_s,
            outcome=self.result.outcome,
            parts=self.result.parts,
            steps=self.steps,
        )


def meant_tool(decision: CallDecision) -> str:
    """The canonical name of what a call comes down to, `call_tool` looked through."""
    if isinstance(decision, RunCall):
        return decision.tool.name
    return decision.names_tool.name if decision.names_tool else decision.call.name


# Results and failures as the model reads them.


_PARTS = (TextPart, ImagePart)
_MAY_HAVE_PARTS = (*_PARTS, list, tuple)
MAX_ERROR_CHARS = 10_000
"""Characters of an error; of a longer one the first and the last half are kept."""


def as_text(value: object) -> str:
    """A value as the model reads it: text as it is, nothing as "", anything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)
    try:
        return compact_json(to_jsonable_python(value, fallback=str))
    except (TypeError, ValueError, RecursionError):
        return str(value)


def as_result(value: object, data: object = None, *, language: Language) -> ExecutionResult:
    """A result with its text, and its parts where there are pictures among them.

    Args:
        value: Whatever a tool or its renderer gave: a value, text, parts of content, or
            a whole result, which stays as it is.
        data: What the tool returned, where a renderer made the value of it.
        language: Of the words that stand for pictures.
    """
    if isinstance(value, ExecutionResult):
        return value
    kept = value if data is None else data
    parts = _parts(value) if isinstance(value, _MAY_HAVE_PARTS) else None
    if parts is None:
        return ExecutionResult(content=as_text(value), data=kept)
    words = plain_text(parts)
    pictures = sum(isinstance(part, ImagePart) for part in parts)
    if not pictures:
        return ExecutionResult(content=words, data=kept)
    # A provider that takes no pictures in results shows the text alone.
    noted = text("call.pictures", language, count=pictures)
    shown = TextPart(f"{words}\n{noted}" if words.strip() else noted)
    whole: tuple[ContentPart, ...] = (shown, *(p for p in parts if isinstance(p, ImagePart)))
    return ExecutionResult(content=shown.text, parts=whole, data=kept)


def failure_of(failure: Failure, key: str, language: Language, **values: object) -> ExecutionResult:
    """A failure in our words.

    Args:
        failure: Of which kind.
        key: The sentence, of `tool_search.i18n`.
        language: The conversation's.
        values: What the sentence speaks of.
    """
    said = text(key, language, **values)
    return ExecutionResult(content=said, is_error=True, failure=failure)


def _parts(value: Any) -> tuple[ContentPart, ...] | None:
    """The parts of content a value is, or None where it is none."""
    if isinstance(value, _PARTS):
        return (value,)
    if not any(isinstance(item, _PARTS) for item in value):
        return None
    return tuple(item if isinstance(item, _PARTS) else TextPart(as_text(item)) for item in value)


def cause_of(exc: BaseException) -> str:
    """An exception in one text without secrets: its kind, its message, a program's output.

    Standard error and output are those of `subprocess.CalledProcessError` and of
    whatever else has them by these names.
    """
    kind, message = type(exc).__name__, _message(exc)
    # What is ours is a sentence for whoever reads it.
    said = message if isinstance(exc, ToolSearchError) else f"{kind}: {message}"
    written = (_stream(getattr(exc, name, None)) for name in ("stderr", "stdout"))
    whole = "\n".join([said if message else kind, *(text for text in written if text)])
    # A model repeats what it reads, and an exception quotes addresses, headers and settings.
    return redacted_text(whole)


def _message(exc: BaseException) -> str:
    try:
        return str(exc)
    except Exception:  # noqa: BLE001  # an exception of anybody's
        return ""


def _stream(written: Any) -> str:
    if isinstance(written, bytes):
        written = written.decode("utf-8", "replace")
    return written.strip() if isinstance(written, str) else ""


def shortened(result: ExecutionResult, *, longest: int, language: Language) -> ExecutionResult:
    """A result whose text is cut in the middle if it is longer than this; pictures stay."""
    content, parts = result.content, result.parts
    if len(content) > longest:
        content = cut(content, longest=longest, language=language)
    words = plain_text(parts)
    if len(words) > longest:
        words = cut(words, longest=longest, language=language)
        parts = (TextPart(words), *(part for part in parts if not isinstance(part, TextPart)))
    if content is result.content and parts is result.parts:
        return result
    return replace(result, content=content, parts=parts)


def with_partials(
    result: ExecutionResult, partials: Sequence[str], *, language: Language
) -> ExecutionResult:
    """A failure with what the tool had given before it."""
    given = "\n".join(piece for piece in partials if piece)
    if not result.is_error or not given:
        return result
    noted = text("call.partial", language, content=given)
    return replace(result, content=f"{result.content}\n{noted}")
