"""How OpenAI's APIs word what is wrong with one value; every text names its place.

Source: recorded errors, and GitHub issues that quote the service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tool_search.testing.violations import invalid

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from tool_search.testing.violations import Violation

__all__ = [
    "empty_array",
    "missing",
    "refused_schema",
    "too_long",
    "unknown_parameters",
    "unmatched",
    "unsupported_value",
    "wrong_type",
]

_SAYS = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}


def missing(where: str) -> Violation:
    """A required value is not there."""
    return invalid(
        f"Missing required parameter: '{where}'.", param=where, code="missing_required_parameter"
    )


def refused_schema(where: str, name: str) -> Violation:
    """A function's schema has a fault that the service alone knows."""
    return invalid(
        f"Invalid schema for function '{name}': it is not valid under any of the given schemas.",
        param=f"{where}.parameters",
        code="invalid_function_parameters",
    )


def wrong_type(where: str, expected: str, value: object) -> Violation:
    """A value is of another JSON type; `expected` with its article."""
    got = "null" if value is None else _SAYS.get(type(value), "a number")
    return invalid(
        f"Invalid type for '{where}': expected {expected}, but got {got} instead.",
        param=where,
        code="invalid_type",
    )


def unsupported_value(where: str, value: object, supported: Collection[str]) -> Violation:
    """A value is none of those that are known."""
    listed = ", ".join(f"'{name}'" for name in supported)
    return invalid(
        f"Invalid value: '{value}'. Supported values are: {listed}.",
        param=where,
        code="invalid_value",
    )


def empty_array(where: str) -> Violation:
    """A list needs at least one entry."""
    return invalid(
        f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an "
        "empty array instead.",
        param=where,
        code="empty_array",
    )


def too_long(where: str, value: str, most: int) -> Violation:
    """A string is over its length."""
    return invalid(
        f"Invalid '{where}': string too long. Expected a string with maximum length {most}, but "
        f"got a string with length {len(value)} instead.",
        param=where,
        code="string_above_max_length",
    )


def unmatched(where: str, pattern: str) -> Violation:
    """A string does not look as it has to."""
    return invalid(
        f"Invalid '{where}': string does not match pattern. Expected a string that matches the "
        f"pattern '{pattern}'.",
        param=where,
        code="invalid_value",
    )


def unknown_parameters(
    where: str, value: Mapping[str, object], known: Collection[str]
) -> Iterator[Violation]:
    """Each member that is not known."""
    for name in value:
        if name not in known:
            at = f"{where}.{name}" if where else name
            yield invalid(f"Unknown parameter: '{at}'.", param=at, code="unknown_parameter")
