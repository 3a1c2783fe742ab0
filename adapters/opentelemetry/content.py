"""The text of users, models and tools, in the JSON of the conventions.

It is recorded only if the operator asks for it. Secrets are masked, and of a long history the
last messages are kept.

Source: OpenTelemetry, "gen-ai-input-messages.json" and "gen-ai-output-messages.json".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tool_search.core.messages import ImagePart, Message, ReferencePart
from tool_search.core.values.json import compact_json
from tool_search.core.values.redaction import redacted

__all__ = ["input_messages", "output_messages", "system_instructions"]

# About 2 ms of writing and masking. An exporter sends no larger batch than a few megabytes.
_MAX_CHARS = 30_000
_MAX_PART_CHARS = 10_000


def input_messages(messages: Sequence[Message]) -> str:
    """Return the last messages of a history, as many as 30,000 characters hold."""
    kept: list[str] = []
    left = _MAX_CHARS
    for message in reversed(messages):
        written = _written(message)
        left -= len(written)
        if left < 0 and kept:
            break
        kept.append(written)
    return f"[{','.join(reversed(kept))}]"


def output_messages(reply: Message, finish_reason: str) -> str:
    """Return a reply."""
    return f"[{_written(reply, finish_reason=finish_reason)}]"


def system_instructions(system: str) -> str:
    """Return the system text."""
    return compact_json([_text(system)])


def _written(message: Message, **more: str) -> str:
    content = {"role": message.role, "parts": list(_parts(message)), **more}
    return compact_json(content)


def _parts(message: Message) -> Iterable[dict[str, Any]]:
    if message.role == "tool":
        yield {
            "type": "tool_call_response",
            "id": message.tool_call_id,
            "response": _mask(message.text),
        }
        return
    parts = message.content
    for part in (parts,) if isinstance(parts, str) else parts:
        if isinstance(part, ImagePart):
            # A data address is a whole picture.
            yield {"type": "uri", "modality": "image", "uri": part.url.partition(",")[0][:200]}
        elif isinstance(part, ReferencePart):
            yield _text(f"tools: {', '.join(part.names)}")
        elif text := part if isinstance(part, str) else part.text:
            yield _text(text)
    for call in message.tool_calls:
        arguments = call.parsed_arguments()
        yield {
            "type": "tool_call",
            "id": call.id,
            "name": call.name,
            "arguments": _mask(call.arguments) if arguments is None else _small(arguments),
        }


def _small(arguments: dict[str, Any]) -> Any:
    """Return masked arguments; as cut text if they are long."""
    written = compact_json(arguments)
    return redacted(arguments) if len(written) <= _MAX_PART_CHARS else _mask(written)


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "content": _mask(text)}


def _mask(text: str) -> str:
    cut = text if len(text) <= _MAX_PART_CHARS else f"{text[:_MAX_PART_CHARS]}…"
    masked: str = redacted(cut)
    return masked
