"""Values of a reply, whatever an endpoint has put in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["count_of", "known", "list_of", "mapping_of", "position_of", "text_of"]

# No request has so many tokens; a count that is no count must not become a sum of ours.
_LARGEST_COUNT = 10**12


def text_of(value: object) -> str:
    """The text; empty where it is none."""
    return value if isinstance(value, str) else ""


def mapping_of(value: object) -> Mapping[str, Any]:
    """The object; empty where it is none."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: object) -> list[Any]:
    """The array; empty where it is none."""
    return value if isinstance(value, list) else []


def count_of(value: object) -> int:
    """The number of tokens; 0 where it is none."""
    number = position_of(value)
    return number if number is not None and number <= _LARGEST_COUNT else 0


def position_of(value: object) -> int | None:
    """The place in a list; None where it is none."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return None


def known(value: object) -> dict[str, Any]:
    """The object without its nulls: in a stream they mean "as before"."""
    return {key: item for key, item in mapping_of(value).items() if item is not None}
