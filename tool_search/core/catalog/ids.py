"""Ids of tools in a registry, and the form of their tags.

An id is `name`, `namespace:name` or `namespace:name:version`; a version without a namespace
is not a part of it. A colon or percent sign inside a part is written as in a URL, so that
each id has one reading.

Source: tooldiscovery and toolfoundation, https://github.com/jonwraymond/toolfoundation,
package `model`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from tool_search.core.values.json import shown
from tool_search.errors import InvalidToolError

__all__ = ["ToolId", "normal_tags", "parse_tool_id", "tool_id"]

_MAX_PARTS = 3
_MAX_TAGS = 20
_MAX_TAG_CHARS = 64
_UNFIT_IN_TAG = re.compile(r"[^a-z0-9_.-]")


class ToolId(NamedTuple):
    """The parts of a tool's id.

    Attributes:
        namespace: The namespace, or None.
        name: The tool's name.
        version: The version, or None; only an id with a namespace has one.
    """

    namespace: str | None
    name: str
    version: str | None = None

    def __str__(self) -> str:
        return tool_id(*self)


def tool_id(namespace: str | None, name: str, version: str | None = None) -> str:
    """Return the id of a tool.

    >>> tool_id("git", "status"), tool_id("git", "status", "2.0"), tool_id(None, "status", "2.0")
    ('git:status', 'git:status:2.0', 'status')
    """
    parts = (namespace, name, version) if namespace else (name,)
    return ":".join(_escape(part) for part in parts if part)


def parse_tool_id(text: str) -> ToolId:
    """Return the parts of an id.

    Raises:
        InvalidToolError: It has more than two colons, or an empty part.

    >>> parse_tool_id("git:status:2.0")
    ToolId(namespace='git', name='status', version='2.0')
    """
    if not isinstance(text, str):
        raise InvalidToolError(f"a tool's id must be a string, not {shown(text)}")
    parts = text.split(":")
    if len(parts) > _MAX_PARTS or not all(parts):
        raise InvalidToolError(
            f"invalid tool id {shown(text)}: an id is name, namespace:name or "
            "namespace:name:version, without empty parts"
        )
    first, *rest = map(_unescape, parts)
    return ToolId(first, *rest) if rest else ToolId(None, first)


def normal_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags in the form in which a registry compares and lists them.

    Lower case, spaces as `-`, of `a-z0-9-_.` only, at most 64 characters each; at most 20,
    without empty or repeated ones.

    >>> normal_tags(["  Source Control ", "git", "GIT", "a/b", "!"])
    ('source-control', 'git', 'ab')
    """
    found: dict[str, None] = {}
    for tag in tags:
        joined = "-".join(tag.lower().split())
        written = _UNFIT_IN_TAG.sub("", joined)[:_MAX_TAG_CHARS]
        if written:
            found.setdefault(written)
        if len(found) == _MAX_TAGS:
            break
    return tuple(found)


def _escape(part: str) -> str:
    return part.replace("%", "%25").replace(":", "%3A")


def _unescape(part: str) -> str:
    return part.replace("%3A", ":").replace("%25", "%")
