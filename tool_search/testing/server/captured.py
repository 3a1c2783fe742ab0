"""Captured requests of a stand-in server."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tool_search.testing.violations import Violation

__all__ = ["CapturedRequest", "member_bytes", "redacted_headers"]

_SECRET_HEADERS = frozenset({"authorization", "x-api-key", "api-key", "cookie"})
_MASK = "***"
_WHITESPACE = " \t\n\r"


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedRequest:
    """One request as it arrived, with the status of its answer.

    Attributes:
        number: Its place in the order of arrival, from 0 after each reset.
        dialect: `anthropic`, `openai_chat`, ...; empty for an unknown path.
        path: The path without the query.
        headers: Lower-case names; keys and cookies are redacted.
        raw_body: The bytes of the body.
        body: The parsed body; empty if it is not a JSON object.
        stream: True if the request asked for a stream.
        status: The HTTP status of the answer; None while it waits, and if the connection
            broke before any answer.
        violation: The rule that it broke, or None.
    """

    number: int
    dialect: str
    path: str
    headers: Mapping[str, str]
    raw_body: bytes
    body: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = False
    status: int | None = None
    violation: Violation | None = None

    @property
    def model(self) -> str:
        """The model the request names, or an empty string."""
        return str(self.body.get("model", ""))

    @property
    def tools_bytes(self) -> bytes | None:
        """The bytes of the `tools` value exactly as sent; None if absent."""
        return member_bytes(self.raw_body, "tools")

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names in `tools`, in their order; the type of a tool that has no name."""
        tools = self.body.get("tools") or ()
        return tuple(
            str(tool.get("name") or tool.get("function", {}).get("name") or tool.get("type"))
            for tool in tools
        )


def redacted_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers by lower-case name, without the value of any secret."""
    lowered = {name.lower(): value for name, value in headers.items()}
    return {name: _MASK if name in _SECRET_HEADERS else text for name, text in lowered.items()}


def member_bytes(raw: bytes, name: str) -> bytes | None:
    """Return the bytes of one top-level member's value in a JSON object; None if absent.

    Raises:
        ValueError: The bytes are not a JSON object.
    """
    text = raw.decode("utf-8")
    decoder = json.JSONDecoder()
    position = _skip(text, text.index("{") + 1)
    while text[position] != "}":
        key, position = decoder.raw_decode(text, position)
        start = _skip(text, text.index(":", position) + 1)
        _, position = decoder.raw_decode(text, start)
        if key == name:
            return text[start:position].encode("utf-8")
        position = _skip(text, position)
        if text[position] == ",":
            position = _skip(text, position + 1)
    return None


def _skip(text: str, position: int) -> int:
    while text[position] in _WHITESPACE:
        position += 1
    return position
