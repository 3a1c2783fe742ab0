"""Arguments of a call, in a dialect's format and in the neutral history."""

from __future__ import annotations

import json
import re
from typing import Any

from tool_search.core.messages import ToolCall
from tool_search.core.values.json import compact_json, read_object

__all__ = ["ObjectEnd", "arguments_json", "arguments_object", "arguments_text", "is_whole"]

_MARK = re.compile(r'["{}\\]')


def arguments_object(call: ToolCall) -> dict[str, Any]:
    """Return the arguments as a request may have them; `{}` if they are not a JSON object.

    Python reads `NaN` and `1e999`, which are not JSON: every provider refuses them.
    """
    value = call.parsed_arguments()
    try:
        compact_json(value)
    except (ValueError, RecursionError):
        return {}
    return value or {}


def arguments_json(call: ToolCall) -> str:
    """Return the arguments as the model wrote them; `{}` if they are not a JSON object."""
    return call.arguments if arguments_object(call) else "{}"


def arguments_text(value: object) -> str:
    """Return the arguments of a reply as text; some endpoints send an object, some nothing."""
    if isinstance(value, str):
        return value if value.strip() else "{}"
    if value is None:
        return "{}"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def is_whole(written: object) -> bool:
    """True if arguments are the text of a complete JSON object."""
    return isinstance(written, str) and bool(written.strip()) and read_object(written) is not None


class ObjectEnd:
    """A reader of a JSON object that comes in pieces; it reads each character once.

    Attributes:
        is_over: True while nothing but space follows the object's last bracket.
    """

    def __init__(self) -> None:
        self.is_over = False
        self._depth = 0
        self._in_string = False
        self._is_escaped = False

    def feed(self, piece: str) -> None:
        """Read the next piece."""
        if not piece:
            return
        escaped = 0 if self._is_escaped else -1
        end = 0 if self.is_over else None
        for mark in _MARK.finditer(piece):
            if mark.start() == escaped:
                continue
            end = None
            sign = mark.group()
            if sign == "\\":
                escaped = mark.end() if self._in_string else escaped
            elif sign == '"':
                self._in_string = not self._in_string
            elif not self._in_string:
                self._depth += 1 if sign == "{" else -1
                end = mark.end() if self._depth == 0 else None
        self._is_escaped = escaped == len(piece)
        self.is_over = end is not None and not piece[end:].strip()
