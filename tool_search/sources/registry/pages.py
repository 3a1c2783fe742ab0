"""Pages of a list, and the cursors between them.

A cursor is opaque to its users: base64 of the offset, the registry's version and a short
hash of the request. It is refused after any change, so that no page repeats or skips items.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeGuard, TypeVar

from tool_search.core.values.json import compact_json, json_bytes, shown
from tool_search.errors import InvalidCursorError, RegistryError

__all__ = ["Page", "page_of"]

_T = TypeVar("_T")
# A request of ours makes cursors of less than 100.
_MAX_CURSOR_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class Page(Generic[_T]):
    """A part of a list.

    Attributes:
        items: The items, in the order of the list.
        next_cursor: The cursor of the next page; None after the last one.
    """

    items: tuple[_T, ...]
    next_cursor: str | None = None


def page_of(
    items: Sequence[_T], *, limit: int, cursor: str | None, version: int, request: object
) -> Page[_T]:
    """Return one page of a list.

    Args:
        items: The whole list.
        limit: The most items of the page.
        cursor: The cursor that the page before gave; None or "" for the first page.
        version: The version of the list.
        request: What was asked for, as a JSON value: a cursor continues no other request.

    Raises:
        InvalidCursorError: The cursor is malformed, negative, stale, or of another request.
        RegistryError: The limit is not positive.
    """
    check_limit(limit)
    asked = hashlib.sha256(json_bytes(request)).hexdigest()[:12]
    offset = _offset(cursor, version, asked) if cursor else 0
    end = offset + limit
    following = _cursor(end, version, asked) if end < len(items) else None
    return Page(tuple(items[offset:end]), following)


def check_limit(limit: object) -> None:
    """Raise if a page's limit is not a positive whole number."""
    if not isinstance(limit, int) or isinstance(limit, bool) or limit <= 0:
        raise RegistryError(f"limit must be positive, not {shown(limit)}")


def _cursor(offset: int, version: int, asked: str) -> str:
    content = compact_json({"offset": offset, "version": version, "request": asked})
    return base64.b64encode(content.encode()).decode()


def _offset(cursor: object, version: int, asked: str) -> int:
    """Return the offset in a cursor."""
    content = _content(cursor)
    offset, of_version = content.get("offset"), content.get("version")
    if not _is_count(offset) or not _is_count(of_version):
        raise InvalidCursorError(
            f"the cursor {shown(cursor)} is not one of this registry; begin without a cursor"
        )
    if of_version != version:
        raise InvalidCursorError(
            f"the cursor is stale: it is of version {of_version}, the registry is at version "
            f"{version}; begin again without a cursor"
        )
    if content.get("request") != asked:
        raise InvalidCursorError(
            "the cursor is of another request; give the same query and filters, or no cursor"
        )
    return int(offset)


def _content(cursor: object) -> dict[str, object]:
    try:
        if not isinstance(cursor, str) or len(cursor) > _MAX_CURSOR_CHARS:
            return {}
        content = json.loads(base64.b64decode(cursor, validate=True))
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
