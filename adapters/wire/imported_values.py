"""Values of another client's history, of whatever types the client has made them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tool_search.adapters.wire.arguments import arguments_text
from tool_search.adapters.wire.values import text_of
from tool_search.i18n import Language, text

__all__ = ["attachment", "fields_of", "items_of", "label_of", "mappings_of", "readable"]

JSON = Mapping[str, Any]

_MAX_NAME_CHARS = 200


def label_of(value: object) -> str:
    """Return an id or a name, which some clients write as a number; empty if it is neither."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number else text_of(value)


def fields_of(value: object) -> JSON:
    """Return an object's fields; those of an SDK's type too, empty for anything else.

    Clients append the replies of an SDK to their messages as they are.
    """
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    dumped = dump(mode="json", exclude_unset=True) if callable(dump) else None
    return dumped if isinstance(dumped, Mapping) else {}


def items_of(value: object) -> list[Any]:
    """Return a list's items; a tuple's too, empty for anything else."""
    return list(value) if isinstance(value, list | tuple) else []


def mappings_of(value: object) -> list[JSON]:
    """Return the objects of a list."""
    return [fields for item in items_of(value) if (fields := fields_of(item))]


def readable(value: object) -> str:
    """Return a result as text; one that a client has left as an object, as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return arguments_text(value)


def attachment(kind: str, language: Language, names: Iterable[object] = ()) -> str:
    """Return a line of text in place of what the neutral history has no form for.

    Args:
        kind: `file`, `audio` or `picture`.
        language: The language of the line.
        names: What it may be called by, best first.
    """
    line = text(f"imported.{kind}", language)
    named = next((name for name in map(label_of, names) if name.strip()), "")[:_MAX_NAME_CHARS]
    return f"[{line}: {named}]" if named else f"[{line}]"
