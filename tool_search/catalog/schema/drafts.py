"""Keywords of older drafts and of OpenAPI under those of JSON Schema 2020-12.

Source: JSON Schema, "Migrating from older drafts" (tuple `items`, `dependencies`,
boolean `exclusiveMinimum`, `$recursiveRef`); OpenAPI 3.0, "Schema Object" (`nullable`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["modern"]

Note = Callable[[str, str], None]
"""Takes a keyword and what became of it."""

_OLD = frozenset(("additionalItems", "dependencies", "nullable", "$recursiveRef", "$dynamicRef"))
_EXCLUSIVE = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_NULL = {"type": "null"}


def modern(schema: Mapping[str, Any], note: Note) -> tuple[dict[str, Any], dict[str, str]]:
    """Return one schema under keywords of 2020-12, and what its new keywords were called.

    Parts within it are left as they are.

    >>> modern({"items": [{}], "additionalItems": False}, print)[0]
    items becomes prefixItems
    {'prefixItems': [{}], 'items': False}
    """
    names: dict[str, str] = {}
    changed = dict(schema)
    if isinstance(schema.get("items"), list):
        changed = _tuple(schema, names)
        note("items", "becomes prefixItems")
    for keyword, bound in _EXCLUSIVE.items():
        if isinstance(changed.get(keyword), bool):
            _exclusive(changed, keyword, bound)
            note(keyword, "becomes a number")
    if _OLD.isdisjoint(changed):
        return changed, names
    # Without tuple `items`, the older drafts give it no meaning.
    changed.pop("additionalItems", None)
    for keyword in ("$recursiveRef", "$dynamicRef"):
        if keyword in changed:
            changed.setdefault("$ref", changed.pop(keyword))
            note(keyword, "becomes $ref")
    if "dependencies" in changed:
        _dependencies(changed, names)
        note("dependencies", "becomes dependentRequired and dependentSchemas")
    if "nullable" in changed and changed.pop("nullable") is True:
        changed = _nullable(changed)
        note("nullable", "becomes the type null")
    return changed, names


def _tuple(schema: Mapping[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """The schema with `prefixItems` in the place of `items`."""
    changed: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword == "items":
            if value:
                changed["prefixItems"] = value
                names["prefixItems"] = "items"
        elif keyword == "additionalItems":
            changed["items"] = value
            names["items"] = "additionalItems"
        elif keyword != "prefixItems":
            changed[keyword] = value
    return changed


def _exclusive(schema: dict[str, Any], keyword: str, bound: str) -> None:
    """Replaces a boolean that says of the bound beside it that it is exclusive."""
    if schema.pop(keyword) and not isinstance(schema.get(bound), bool | None):
        schema[keyword] = schema.pop(bound)


def _dependencies(schema: dict[str, Any], names: dict[str, str]) -> None:
    found = schema.pop("dependencies")
    if not isinstance(found, Mapping):
        return
    lists = {
        key: [needed] if isinstance(needed, str) else needed
        for key, needed in found.items()
        if isinstance(needed, str | list)
    }
    schemas = {key: needed for key, needed in found.items() if isinstance(needed, Mapping | bool)}
    for keyword, parts in (("dependentRequired", lists), ("dependentSchemas", schemas)):
        if parts and keyword not in schema:
            schema[keyword] = parts
            names[keyword] = "dependencies"


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with null allowed, by whatever says its type."""
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    if isinstance(values := schema.get("enum"), list) and None not in values:
        schema["enum"] = [*values, None]
    kind = schema.get("type")
    if isinstance(kind, str | list):
        kinds = [kind] if isinstance(kind, str) else kind
        schema["type"] = kinds if "null" in kinds else [*kinds, "null"]
        return schema
    for keyword in ("anyOf", "oneOf"):
        if isinstance(branches := schema.get(keyword), list):
            schema[keyword] = branches if _NULL in branches else [*branches, _NULL]
            return schema
    if "$ref" not in schema:
        return schema
    reference = {"$ref": schema.pop("$ref")}
    return {**schema, "anyOf": [reference, _NULL]}
