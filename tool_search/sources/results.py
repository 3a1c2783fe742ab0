"""A server's answer to a call, as the model reads it.

Source: Model Context Protocol, 2025-11-25 and 2026-07-28, "Tools" (`CallToolResult`).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tool_search.core.messages import ContentPart, ImagePart, TextPart
from tool_search.core.values.clean_text import clean_line, clean_text
from tool_search.i18n import Language, text
from tool_search.runner.execution.results import ExecutionResult, as_result, as_text

__all__ = ["is_long_answer", "result_from_answer"]

_MAX_TEXT_CHARS = 1_000_000
_MAX_ITEMS = 1_000
_MAX_IMAGES = 20
# Anthropic refuses pictures over 5 MB, OpenAI over 20 MB.
_MAX_IMAGE_BYTES = 5_000_000
_MAX_LABEL_CHARS = 500
_FEW_ITEMS, _SHORT_CHARS = 20, 50_000
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")

_Item = Mapping[str, Any]


def result_from_answer(answer: Mapping[str, Any], *, language: Language) -> ExecutionResult:
    """Return the result of `tools/call`; anything that is not as the protocol says is text.

    Args:
        answer: The result as the server sent it.
        language: The language of the words that replace what a model cannot be given.
    """
    content = answer.get("content")
    items = content[:_MAX_ITEMS] if isinstance(content, list) else []
    parts = list(_parts(items, language))
    structured = answer.get("structuredContent")
    if structured is not None and not any(isinstance(part, TextPart) for part in parts):
        parts.insert(0, TextPart(as_text(structured)[:_MAX_TEXT_CHARS]))
    result = (
        as_result(parts, structured, language=language) if parts else ExecutionResult(content="")
    )
    if answer.get("isError") is True:
        shown = result.content or text("call.empty_result", language)
        return ExecutionResult(content=shown, is_error=True, parts=result.parts, failure="failed")
    return result


def is_long_answer(answer: Mapping[str, Any]) -> bool:
    """True if reading an answer may take milliseconds."""
    items = answer.get("content")
    structured = answer.get("structuredContent")
    if not isinstance(items, list) or len(items) > _FEW_ITEMS:
        return True
    if isinstance(structured, Mapping | list) and structured:
        # Its size is not known before it is written; `{"result": 3}` is the usual one.
        values = structured.values() if isinstance(structured, Mapping) else structured
        if len(structured) > _FEW_ITEMS or any(isinstance(v, Mapping | list) for v in values):
            return True
        if sum(len(v) for v in values if isinstance(v, str)) > _SHORT_CHARS:
            return True
    found = [item for item in items if isinstance(item, Mapping)]
    texts = (item.get(key) for item in found for key in ("text", "data"))
    size = sum(len(one) for one in texts if isinstance(one, str))
    return size > _SHORT_CHARS or any("resource" in item for item in found)


def _parts(items: list[object], language: Language) -> Iterator[ContentPart]:
    """Yield the parts of a result, within the limits of text and pictures."""
    room, pictures = _MAX_TEXT_CHARS, 0
    for item in items:
        part = _part(item, language) if isinstance(item, Mapping) else TextPart(as_text(item))
        if isinstance(part, ImagePart):
            pictures += 1
            if pictures > _MAX_IMAGES:
                continue
        elif room <= 0:
            continue
        else:
            part = TextPart(part.text[:room])
            room -= len(part.text)
        yield part


def _part(item: _Item, language: Language) -> TextPart | ImagePart:
    make = _MAKERS.get(str(item.get("type")))
    return TextPart(as_text(item)) if make is None else make(item, language)


def _text(item: _Item, _: Language) -> TextPart:
    written = item.get("text")
    return TextPart(clean_text(as_text(written)[:_MAX_TEXT_CHARS]))


def _image(item: _Item, language: Language) -> TextPart | ImagePart:
    kind, data = str(item.get("mimeType", "")).lower(), item.get("data")
    size = _size(data)
    if isinstance(data, str) and kind in _IMAGES and 0 < size <= _MAX_IMAGE_BYTES:
        return ImagePart(f"data:{kind};base64,{data}")
    return _left_out(kind or "image", size, language)


def _audio(item: _Item, language: Language) -> TextPart:
    # No provider takes sound in the result of a tool.
    return _left_out(str(item.get("mimeType") or "audio"), _size(item.get("data")), language)


def _link(item: _Item, _: Language) -> TextPart:
    label = clean_line(as_text(item.get("title") or item.get("name")), _MAX_LABEL_CHARS)
    about = clean_line(as_text(item.get("description")), _MAX_LABEL_CHARS)
    address = clean_line(as_text(item.get("uri")), _MAX_LABEL_CHARS)
    return TextPart(": ".join(piece for piece in (label, address, about) if piece))


def _resource(item: _Item, language: Language) -> TextPart | ImagePart:
    inner = item.get("resource")
    if not isinstance(inner, Mapping):
        return TextPart(as_text(item))
    address = clean_line(as_text(inner.get("uri")), _MAX_LABEL_CHARS)
    if isinstance(inner.get("text"), str):
        written = clean_text(inner["text"][:_MAX_TEXT_CHARS])
        return TextPart(f"{address}\n{written}" if address else written)
    kind = str(inner.get("mimeType") or "data")
    if kind.lower() in _IMAGES:
        return _image({"mimeType": kind, "data": inner.get("blob")}, language)
    return _left_out(f"{kind} {address}".strip(), _size(inner.get("blob")), language)


def _left_out(kind: str, size: int, language: Language) -> TextPart:
    label = clean_line(kind, _MAX_LABEL_CHARS)
    return TextPart(text("call.left_out", language, kind=label, size=f"{size:,}"))


def _size(data: object) -> int:
    """Return the number of bytes in a base64 text; 0 if it is not one."""
    if not isinstance(data, str):
        return 0
    if len(data) > 2 * _MAX_IMAGE_BYTES:
        return len(data) * 3 // 4
    try:
        return len(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return 0


_MAKERS: Mapping[str, Callable[[_Item, Language], TextPart | ImagePart]] = {
    "text": _text,
    "image": _image,
    "audio": _audio,
    "resource": _resource,
    "resource_link": _link,
}
