"""Schemas that Moonshot rejects, by its validator as users' reports show it.

Source: MoonshotAI/walle, `docs/validation-principles.md` (the texts, and the further rules
of earlier versions); vercel/ai 18921 and kimi-cli 2531, which quote the service.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["moonshot_complaint"]

_PLACES = ("properties", "$defs")
_BESIDE = frozenset({"title", "description", "default", "examples", "deprecated", "$defs", "$id"})


def moonshot_complaint(schema: object) -> str | None:
    """Return the first fault of a tool's schema in Moonshot's words, or None."""
    if not isinstance(schema, Mapping):
        return "<At path 'root': schema must be an object>"
    defined = schema.get("$defs", {})
    return next(_complaints(schema, "root", defined), None)


def _complaints(node: Any, path: str, defined: Mapping[str, Any]) -> Iterator[str]:
    yield from _own(node, path)
    reference = node.get("$ref")
    if isinstance(reference, str) and reference != "#":
        name = reference.removeprefix("#/$defs/")
        if name == reference:
            yield f"<At path '{path}.$ref': references must start with #/$defs/>"
        elif name not in defined:
            yield f"<At path '{path}.$ref': $defs not found for reference: {reference}>"
    for place in _PLACES:
        inner = node.get(place, {})
        for name, value in inner.items():
            if not isinstance(value, Mapping):
                yield f"<At path '{path}.{place}': property schema for '{name}' must be an object>"
            else:
                yield from _complaints(value, f"{path}.{place}.{name}", defined)
    items = node.get("items", {})
    if not isinstance(items, Mapping):
        yield f"<At path '{path}': items must be an object>"
    else:
        yield from _complaints(items, f"{path}.items", defined) if items else ()
    for index, branch in enumerate(node.get("anyOf", ())):
        yield from _complaints(branch, f"{path}.anyOf[{index}]", defined)


def _own(node: Mapping[str, Any], path: str) -> Iterator[str]:
    for word, place in (("anyOf", "anyOf items"), ("$ref", "the referenced schema")):
        if word in node and "type" in node:
            yield (
                f"<At path '{path}': when using {word}, type should be defined in {place} instead "
                "of the parent schema>"
            )
        for key in node.keys() - _BESIDE - {word} if word in node else ():
            yield f"<At path '{path}': {key} is not allowed at the same level as {word}>"
    for name in node.get("required", ()):
        if name not in node.get("properties", {}):
            yield f"<At path '{path}': required property '{name}' is not defined in properties>"
