"""The events that stream one item of a Responses reply, in the recorded order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_search.testing.server.dialect import pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    JSON = Mapping[str, Any]

__all__ = ["item_events"]

_OPEN: dict[str, dict[str, Any]] = {
    "message": {"content": []},
    "function_call": {"arguments": ""},
    "tool_search_call": {"arguments": {}},
    "tool_search_output": {},
    "reasoning": {"summary": []},
}


def item_events(index: int, item: JSON) -> Iterator[dict[str, Any]]:
    """Opening, parts and end of one item; a search call has no parts."""
    kind = item["type"]
    opened = {**item, **_OPEN[kind]}
    if "status" in item:
        opened["status"] = "in_progress"
    if kind == "tool_search_call" and item["call_id"]:
        opened["call_id"] = f"{item['call_id']}_opening"
    yield {"type": "response.output_item.added", "output_index": index, "item": opened}
    place = {"item_id": item["id"], "output_index": index}
    if kind == "message":
        yield from _message(item, place)
    elif kind == "function_call":
        yield from _arguments(item, place)
    elif kind == "reasoning":
        yield from _summary(item, place)
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _message(item: JSON, place: JSON) -> Iterator[dict[str, Any]]:
    for number, part in enumerate(item["content"]):
        here = {**place, "content_index": number}
        refuses = part["type"] == "refusal"
        extra: dict[str, Any] = {} if refuses else {"logprobs": []}
        key = "refusal" if refuses else "text"
        prefix = "response.refusal" if refuses else "response.output_text"
        started = {"type": "response.content_part.added", "part": {**part, key: ""}}
        yield {**started, **here}
        for piece in pieces(part[key]):
            yield {"type": f"{prefix}.delta", "delta": piece, **extra, **here}
        yield {"type": f"{prefix}.done", key: part[key], **extra, **here}
        yield {"type": "response.content_part.done", "part": part, **here}


def _arguments(item: JSON, place: JSON) -> Iterator[dict[str, Any]]:
    prefix = "response.function_call_arguments"
    for piece in pieces(item["arguments"]):
        yield {"type": f"{prefix}.delta", "delta": piece, **place}
    yield {"type": f"{prefix}.done", "arguments": item["arguments"], **place}


def _summary(item: JSON, place: JSON) -> Iterator[dict[str, Any]]:
    prefix = "response.reasoning_summary"
    for number, part in enumerate(item["summary"]):
        here = {**place, "summary_index": number}
        yield {"type": f"{prefix}_part.added", "part": {**part, "text": ""}, **here}
        for piece in pieces(part["text"]):
            yield {"type": f"{prefix}_text.delta", "delta": piece, **here}
        yield {"type": f"{prefix}_text.done", "text": part["text"], **here}
        yield {"type": f"{prefix}_part.done", "part": part, **here}
