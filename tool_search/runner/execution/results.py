"""Events of a running call, and its result as the model reads it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

from pydantic_core import to_jsonable_python

from tool_search.core.conversation.calls import AnsweredCall, CallDecision, CallResult, RunCall
from tool_search.core.messages import ContentPart, ImagePart, TextPart, ToolCall, plain_text
from tool_search.core.values.json import compact_json
from tool_search.core.values.redaction import redacted_text
from tool_search.core.values.shortening import cut
from tool_search.errors import ToolSearchError
from tool_search.i18n import Language, text
from tool_search.runner.events import CallStep, Outcome, SearchFinished, ToolFinished

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
    "called_tool_name",
    "describe_exception",
    "failure_result",
    "shorten",
    "with_partials",
]


Failure = Literal["invalid", "blocked", "denied", "failed", "timed_out", "cancelled"]
"""The reason why a call has no result from its tool."""


@dataclass(frozen=True, slots=True)
class CallProgress:
    """A progress message for people."""

    message: str


@dataclass(frozen=True, slots=True)
class CallOutputDelta:
    """A piece of a result, shown to people before the rest.

    The model reads the final result alone. If the call fails or is cancelled, it reads the
    pieces so far.
    """

    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionResult:
    """The result of a call: exactly one, and always the last event.

    A tool may return one itself if the model should read something else than the value.

    Attributes:
        content: The text that the model reads.
        is_error: True if it reports a failure.
        parts: The content with pictures; empty: the text is everything.
        data: The tool's return value, for other tools and for the bot.
        failure: The kind of failure.
        error: The exception that caused the failure.
    """

    content: str
    is_error: bool = False
    parts: tuple[ContentPart, ...] = ()
    data: Any = field(default=None, compare=False)
    failure: Failure | None = field(default=None, compare=False)
    error: BaseException | None = field(default=None, compare=False, repr=False)

    @property
    def outcome(self) -> Outcome:
        """The outcome of the call."""
        if not self.is_error:
            return "finished"
        if self.failure in ("denied", "blocked"):
            return "denied"
        return "cancelled" if self.failure == "cancelled" else "failed"


ExecutionEvent = CallProgress | CallOutputDelta | ExecutionResult


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCall:
    """A finished call of a batch.

    Attributes:
        call: The model's call.
        decision: The decision; None: the call was cancelled before that.
        result: The one result.
        duration_s: Seconds from its start; 0 if nothing was run.
        steps: The steps of the call with their durations, in order.
    """

    call: ToolCall
    decision: CallDecision | None
    result: ExecutionResult
    duration_s: float = 0.0
    steps: tuple[CallStep, ...] = ()

    @property
    def tool(self) -> str:
        """The canonical name of the called tool, or of the tool inside `call_tool`."""
        return called_tool_name(self.decision) if self.decision is not None else self.call.name

    def to_commit(self) -> CallResult:
        """Return the result for `ToolSearchSession.commit`."""
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

    def searched(self) -> SearchFinished | None:
        """Return the event for observers, if the call was a search."""
        result = self.decision.result if isinstance(self.decision, AnsweredCall) else None
        if result is None:
            return None
        return SearchFinished(
            call=self.call,
            query=result.query,
            found=result.names,
            best_score=max((match.score for match in result.matches), default=None),
            total_found=result.total_found,
            total_tools=result.total_tools,
            is_error=result.error is not None,
            duration_s=sum(step.duration_s for step in self.steps),
        )

    def finished(self, content: str | None = None) -> ToolFinished:
        """Return the event for the bot.

        Args:
            content: The text in the history, if it differs from the result's.
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


def called_tool_name(decision: CallDecision) -> str:
    """Return the canonical name of the called tool, or of the tool inside `call_tool`."""
    if isinstance(decision, RunCall):
        return decision.tool.name
    return decision.names_tool.name if decision.names_tool else decision.call.name


_log = logging.getLogger(__name__)
_PARTS = (TextPart, ImagePart)
_MAY_HAVE_PARTS = (*_PARTS, list, tuple)
MAX_ERROR_CHARS = 10_000
"""Characters of an error; a longer one keeps its first and last half."""


def as_text(value: object) -> str:
    """Return a value as the model reads it: text as it is, None as "", other values as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)
    try:
        return compact_json(to_jsonable_python(value, fallback=_fallback))
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _fallback(value: object) -> str:
    """Return an object that is not JSON as its own text; log it if it has none."""
    kind = type(value)
    if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__:
        _log_formless(kind.__qualname__)
    return str(value)


@lru_cache(maxsize=256)
def _log_formless(kind: str) -> None:
    # Cached, so that each type is named once.
    _log.warning(
        "result_without_form: a tool returned a %s, which is neither JSON nor a text: a model "
        "sees '<%s object at 0x...>'; return text, a dict, a dataclass or a pydantic model, or "
        "give render= to tool_from_function",
        kind,
        kind,
    )


def as_result(value: object, data: object = None, *, language: Language) -> ExecutionResult:
    """Return a result with the value's text, and with parts if it has pictures.

    Args:
        value: The value of a tool or its renderer: any value, text, parts of content, or a
            whole result, which stays as it is.
        data: The tool's return value, if a renderer made `value` from it.
        language: The language of the words that replace pictures.
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


def failure_result(
    failure: Failure, key: str, language: Language, **values: object
) -> ExecutionResult:
    """Return a failure with a text of `tool_search.i18n`.

    Args:
        failure: The kind of failure.
        key: The key of the text.
        language: The conversation's language.
        values: The values of the text's placeholders.
    """
    return ExecutionResult(content=text(key, language, **values), is_error=True, failure=failure)


def _parts(value: Any) -> tuple[ContentPart, ...] | None:
    """Return a value as parts of content, or None if it contains no part."""
    if isinstance(value, _PARTS):
        return (value,)
    if not any(isinstance(item, _PARTS) for item in value):
        return None
    return tuple(item if isinstance(item, _PARTS) else TextPart(as_text(item)) for item in value)


def describe_exception(exc: BaseException) -> str:
    """Return an exception as one text without secrets: type, message and program output.

    The output is `stderr` and `stdout` of `subprocess.CalledProcessError`, or of any other
    exception with these attributes.
    """
    kind, message = type(exc).__name__, _message(exc)
    # Messages of our own errors are sentences already.
    headline = message if isinstance(exc, ToolSearchError) else f"{kind}: {message}"
    streams = (_stream(getattr(exc, name, None)) for name in ("stderr", "stdout"))
    whole = "\n".join([headline if message else kind, *(text for text in streams if text)])
    # Exceptions quote addresses, headers and settings, and a model repeats what it reads.
    return redacted_text(whole)


def _message(exc: BaseException) -> str:
    try:
        return str(exc)
    except Exception:  # noqa: BLE001  # a foreign exception's __str__ may raise anything
        return ""


def _stream(written: Any) -> str:
    if isinstance(written, bytes):
        written = written.decode("utf-8", "replace")
    return written.strip() if isinstance(written, str) else ""


def shorten(result: ExecutionResult, *, longest: int, language: Language) -> ExecutionResult:
    """Return a result whose text is cut in the middle to `longest` characters."""
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
    """Return a failure together with the pieces of output before it."""
    given = "\n".join(piece for piece in partials if piece)
    if not result.is_error or not given:
        return result
    noted = text("call.partial", language, content=given)
    return replace(result, content=f"{result.content}\n{noted}")
