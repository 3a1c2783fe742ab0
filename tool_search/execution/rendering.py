"""Results and failures as the model reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_core import to_jsonable_python

from tool_search.catalog.schema.plain import compact_json
from tool_search.errors import ToolSearchError
from tool_search.execution.results import ExecutionResult, Failure
from tool_search.i18n import Language, text
from tool_search.messages import ContentPart, ImagePart, TextPart, plain_text
from tool_search.values.redaction import redacted_text
from tool_search.values.shortening import cut

__all__ = [
    "LONGEST_ERROR",
    "as_result",
    "as_text",
    "cause_of",
    "failure_of",
    "shortened",
    "with_partials",
]

_PARTS = (TextPart, ImagePart)
_MAY_HAVE_PARTS = (*_PARTS, list, tuple)
LONGEST_ERROR = 10_000
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
