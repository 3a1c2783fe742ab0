"""JSON values of services and of other clients' histories, read whatever their types are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tool_search.adapters.wire.arguments import arguments_text
from tool_search.i18n import Language, text

__all__ = [
    "attachment",
    "count_of",
    "fields_of",
    "known",
    "label_of",
    "list_of",
    "mapping_of",
    "mappings_of",
    "mended",
    "mended_value",
    "named_of",
    "position_of",
    "readable",
    "text_of",
]


# Names that a service gives to its models and replies go into logs and traces.
_MAX_ORIGIN_CHARS = 200


def mended(text: str) -> str:
    """Return the text with halves of surrogate pairs joined, and lone ones replaced."""
    # In UTF-16, a surrogate pair is its two halves, one after the other.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def mended_value(value: Any) -> Any:
    """Return a JSON value with all its texts mended."""
    return json.loads(mended(json.dumps(value, ensure_ascii=False)))


# No request has so many tokens: a larger number is not a count, and must not enter our sums.
_MAX_COUNT = 10**12


def text_of(value: object) -> str:
    """Return the value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def mapping_of(value: object) -> Mapping[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: object) -> list[Any]:
    """Return the value if it is an array, else an empty one; a client may write a tuple."""
    return value if isinstance(value, list) else list(value) if isinstance(value, tuple) else []


def count_of(value: object) -> int:
    """Return the value if it is a number of tokens, else 0."""
    number = position_of(value)
    return number if number is not None and number <= _MAX_COUNT else 0


def named_of(reply: object, key: str) -> str:
    """Return a reply's own name of itself or of its model, without line breaks; empty: none."""
    named = mended(text_of(mapping_of(reply).get(key))[:_MAX_ORIGIN_CHARS])
    return named if named.isprintable() else ""


def position_of(value: object) -> int | None:
    """Return the value if it is a place in a list, else None."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return None


def known(value: object) -> dict[str, Any]:
    """Return an object without its nulls, which in a stream mean "as before"."""
    return {key: item for key, item in mapping_of(value).items() if item is not None}


# Values of another client's history may have any type.

_MAX_NAME_CHARS = 200


def label_of(value: object) -> str:
    """Return an id or a name, which some clients write as a number; empty if it is neither."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number else text_of(value)


def fields_of(value: object) -> dict[str, Any]:
    """Return an object's fields; those of an SDK's type too, empty for anything else.

    Clients append the replies of an SDK to their messages as they are.
    """
    if not isinstance(value, Mapping):
        dump = getattr(value, "model_dump", None)
        value = dump(mode="json", exclude_unset=True) if callable(dump) else None
    return value if isinstance(value, dict) else dict(mapping_of(value))


def mappings_of(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list."""
    return [fields for item in list_of(value) if (fields := fields_of(item))]


def readable(value: object) -> str:
    """Return a result as text; one that a client has left as an object, as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return arguments_text(value)


def attachment(kind: str, language: Language, names: Iterable[object] = ()) -> str:
    """Return a line of text for content that the neutral history has no form for.

    Args:
        kind: `file`, `audio` or `picture`.
        language: The language of the line.
        names: Possible names of the content, the best first.
    """
    line = text(f"imported.{kind}", language)
    named = next((name for name in map(label_of, names) if name.strip()), "")[:_MAX_NAME_CHARS]
    return f"[{line}: {named}]" if named else f"[{line}]"
