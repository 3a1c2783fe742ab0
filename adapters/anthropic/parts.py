"""Content blocks of an Anthropic history as parts of the neutral form, and as they are.

Needs no SDK. Sources: Anthropic, "Messages API" (content blocks), "Citations"
(`document`, `search_result`), "Files API".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tool_search.adapters.wire.imported_values import attachment, fields_of, mappings_of
from tool_search.adapters.wire.values import text_of
from tool_search.i18n import Language
from tool_search.messages import ContentPart, ImagePart, TextPart

__all__ = ["kept_blocks", "parts_of"]

JSON = Mapping[str, Any]


def parts_of(blocks: Iterable[JSON], language: Language) -> tuple[ContentPart, ...]:
    """Return the parts of a user's blocks or a result's.

    Args:
        blocks: Text, pictures and documents; others are passed over.
        language: The language of the lines in place of what has no text.
    """
    parts: list[ContentPart] = []
    for block in blocks:
        kind = block.get("type")
        address = _image_url(fields_of(block.get("source"))) if kind == "image" else ""
        if address:
            parts.append(ImagePart(address))
            continue
        said = "\n".join(filter(str.strip, _texts(block, language)))
        if said:
            parts.append(TextPart(said))
    return tuple(parts)


def kept_blocks(blocks: Iterable[JSON]) -> list[dict[str, Any]]:
    """Return blocks as a request takes them back: no empty text, no nulls, no cache mark."""
    kept = []
    for block in blocks:
        if not text_of(block.get("type")):
            continue
        if block["type"] != "text" or text_of(block.get("text")).strip():
            given = {k: v for k, v in block.items() if v is not None and k != "cache_control"}
            kept.append(given)
    return kept


def _texts(block: JSON, language: Language) -> Iterator[str]:
    """Yield what a block says, line by line."""
    kind = block.get("type")
    if kind == "text":
        yield text_of(block.get("text"))
    elif kind == "image":
        yield attachment("picture", language)
    elif kind == "document":
        yield from _document(block, language)
    elif kind == "search_result":
        yield text_of(block.get("title"))
        yield text_of(block.get("source"))
        yield from (text_of(part.get("text")) for part in mappings_of(block.get("content")))
    elif kind == "container_upload":
        yield attachment("file", language, [block.get("file_id")])


def _document(block: JSON, language: Language) -> Iterator[str]:
    title, source = block.get("title"), fields_of(block.get("source"))
    content = source.get("content")
    inner = [{"type": "text", "text": content}] if isinstance(content, str) else content
    texts = [text_of(part.get("text")) for part in mappings_of(inner)]
    if source.get("type") == "text":
        texts.append(text_of(source.get("data")))
    if any(map(str.strip, texts)):
        yield from (text_of(title), text_of(block.get("context")), *texts)
    else:
        names = [title, source.get("url"), source.get("file_id"), source.get("media_type")]
        yield attachment("file", language, names)
        yield text_of(block.get("context"))


def _image_url(source: JSON) -> str:
    if source.get("type") == "base64":
        kind = text_of(source.get("media_type"))
        return f"data:{kind};base64,{text_of(source.get('data'))}"
    return text_of(source.get("url"))
