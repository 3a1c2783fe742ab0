"""A call's arguments between a wire and the neutral history."""

from __future__ import annotations

import json
from typing import Any

from tool_search.messages import ToolCall
from tool_search.schema import compact_json

__all__ = ["arguments_json", "arguments_object", "arguments_text"]


def arguments_object(call: ToolCall) -> dict[str, Any]:
    """The arguments as a request may carry them; `{}` where they are no JSON object.

    Python reads `NaN` and `1e999`, which are no JSON and which no provider takes.
    """
    value = call.parsed_arguments()
    try:
        compact_json(value)
    except (ValueError, RecursionError):
        return {}
    return value or {}


def arguments_json(call: ToolCall) -> str:
    """The arguments as the model wrote them; `{}` where they are no JSON object."""
    return call.arguments if arguments_object(call) else "{}"


def arguments_text(value: object) -> str:
    """Arguments of a reply as text: some endpoints send an object, some nothing."""
    if isinstance(value, str):
        return value if value.strip() else "{}"
    if value is None:
        return "{}"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
