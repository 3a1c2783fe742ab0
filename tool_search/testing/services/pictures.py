"""Pictures that a service cannot read or its model does not accept, and the error texts.

Sources: Anthropic, Vision ("image exceeds 5 MB maximum" and "Could not process image" as in
claude-code 46127); OpenAI, Images and vision (PNG, JPEG, WebP and GIF; `ResponseError.code`);
DeepSeek's error for `image_url` (rikkahub 1433); vLLM ("is not a multimodal model").
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tool_search.testing.violations import Violation, invalid

if TYPE_CHECKING:
    from tool_search.testing.server.endpoint import Endpoint

__all__ = ["picture_violations"]

JSON = Mapping[str, Any]

_MAX_CLAUDE_BYTES = 5 * 1024 * 1024
_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
)
_DEEPSEEK = (
    "Failed to deserialize the JSON body into the target type: messages[{index}]: unknown variant "
    "`image_url`, expected `text` at line 1 column {column}"
)
_CHAT = (
    "You uploaded an unsupported image. Please make sure your image is below 20 MB in size and is "
    "of one the following formats: ['png', 'jpeg', 'gif', 'webp']."
)
_RESPONSES = (
    "The image data you provided does not represent a valid image. Please check your input and try "
    "again with one of the supported image formats: ['image/jpeg', 'image/png', 'image/gif', "
    "'image/webp']."
)


class _Picture(NamedTuple):
    """A picture of a request: its place, and its data unless it is a URL."""

    entry: int
    where: str
    kind: str | None
    data: str | None


def picture_violations(dialect: str, body: JSON, endpoint: Endpoint) -> Iterator[Violation]:
    """Yield a violation for each picture that the service does not accept."""
    entries = body.get("input" if dialect == "openai_responses" else "messages")
    for picture in _pictures(entries):
        if not endpoint.takes_pictures:
            yield _unseen_picture(dialect, picture, body)
        elif picture.data is not None:
            yield from _unread(dialect, picture)


def _pictures(entries: Any) -> Iterator[_Picture]:
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        if not isinstance(entry, Mapping):
            continue
        for name in ("content", "output"):
            yield from _in_content(entry.get(name), index, f"messages.{index}.{name}")


def _in_content(content: Any, index: int, where: str) -> Iterator[_Picture]:
    for place, block in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(block, Mapping):
            continue
        at = f"{where}.{place}"
        if block.get("type") == "image" and isinstance(block.get("source"), Mapping):
            source = block["source"]
            is_data = source.get("type") == "base64"
            data = str(source.get("data", "")) if is_data else None
            yield _Picture(index, f"{at}.image.source.base64", source.get("media_type"), data)
        elif block.get("type") in ("image_url", "input_image"):
            url = block.get("image_url")
            yield _of_url(url.get("url") if isinstance(url, Mapping) else url, index, at)
        elif block.get("type") == "tool_result":
            yield from _in_content(block.get("content"), index, f"{at}.content")


def _of_url(url: object, index: int, where: str) -> _Picture:
    if not isinstance(url, str) or not url.startswith("data:"):
        return _Picture(index, where, None, None)
    head, _, data = url.removeprefix("data:").partition(",")
    return _Picture(index, where, head.partition(";")[0], data)


def _unseen_picture(dialect: str, picture: _Picture, body: JSON) -> Violation:
    if dialect == "openai_chat":
        return invalid(_DEEPSEEK.format(index=picture.entry, column=len(str(body))))
    return invalid(f"{body.get('model')} is not a multimodal model")


def _unread(dialect: str, picture: _Picture) -> Iterator[Violation]:
    try:
        raw = base64.b64decode(picture.data or "", validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    kind = next((kind for start, kind in _BEGINNINGS if raw.startswith(start)), None)
    if dialect == "anthropic" and len(raw) > _MAX_CLAUDE_BYTES:
        yield invalid(
            f"{picture.where}: image exceeds 5 MB maximum: {len(raw)} bytes > "
            f"{_MAX_CLAUDE_BYTES} bytes"
        )
    elif kind is None:
        yield _unreadable(dialect)
    elif dialect == "anthropic" and kind != picture.kind:
        yield invalid(
            f"{picture.where}: Image does not match the provided media type {picture.kind}"
        )


def _unreadable(dialect: str) -> Violation:
    if dialect == "anthropic":
        return invalid("Could not process image")
    if dialect == "openai_chat":
        return invalid(_CHAT, code="image_parse_error")
    return invalid(_RESPONSES, param="input", code="invalid_value")
