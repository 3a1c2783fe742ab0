"""What of a tool's definition is searched: its fields, as text.

Nothing here trusts a definition: schemas of any depth, schemas that refer to
themselves and descriptions of a megabyte are read up to fixed bounds, the
parts that stand first and highest before the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, get_args

from tool_search.catalog.catalog import Tool
from tool_search.catalog.schema.plain import JSON

__all__ = ["FIELDS", "FieldName", "field_texts"]

FieldName = Literal[
    "name", "aliases", "server", "tags", "description", "parameters", "parameter_texts"
]
FIELDS: tuple[FieldName, ...] = get_args(FieldName)

_DEEPEST = 8
_MOST_NODES = 400
_MOST_VALUES = 40
_NESTED = ("items", "additionalProperties", "not", "if", "then", "else")
_BRANCHES = ("anyOf", "oneOf", "allOf", "prefixItems")
_PARTS = frozenset((*_NESTED, *_BRANCHES))
_STRUCTURE = _PARTS | {"properties"}
_SELDOM = frozenset(("title", "const", "enum"))


def field_texts(tool: Tool) -> dict[FieldName, list[str]]:
    """The tool's texts by field, in the order in which they count.

    Fields: its name; aliases and title; its server; tags, category and
    namespace; description and, where it differs, summary; parameter names,
    nested ones too; parameter descriptions, titles and enum values.
    """
    found: dict[FieldName, list[str]] = {"name": [tool.name]}
    if tool.aliases or tool.title:
        found["aliases"] = _present(*tool.aliases, tool.title)
    if tool.server:
        found["server"] = [tool.server]
    if tool.tags or tool.category or tool.namespace:
        found["tags"] = _present(*tool.tags, tool.category, tool.namespace)
    if tool.description:
        found["description"] = [tool.description]
    if tool.summary and tool.summary not in tool.description:
        found["description"] = _present(tool.description, tool.summary)
    names, texts = _parameter_texts(tool.parameters)
    if names:
        found["parameters"] = names
    if texts:
        found["parameter_texts"] = texts
    return found


def _present(*texts: str | None) -> list[str]:
    return [text for text in texts if text]


def _parameter_texts(schema: JSON) -> tuple[list[str], list[str]]:
    """The names and the texts of a schema's properties, level by level."""
    names: list[str] = []
    texts: list[str] = []
    seen: set[int] = set()
    level: Iterable[Any] = (schema,)
    for depth in range(_DEEPEST + 1):
        below: list[Any] = []
        for part in level:
            node = part
            if isinstance(node, dict) and "$ref" in node:
                node = _target(schema, node["$ref"])
            if not isinstance(node, dict) or id(node) in seen:
                continue
            if len(seen) == _MOST_NODES:
                return names, texts
            seen.add(id(node))
            if depth:
                texts += _own_texts(node)
            # Most nodes are those of a parameter that has no parts.
            if not _STRUCTURE.isdisjoint(node):
                names += _own_names(node)
                below += _children(node)
        level = below
    return [name for name in names if name], texts


def _target(root: JSON, reference: object) -> object:
    """What a local reference points to, or None."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    target: Any = root
    for step in reference[2:].split("/")[:_DEEPEST]:
        target = target.get(step) if isinstance(target, dict) else None
    return target


def _own_texts(node: JSON) -> list[str]:
    description = node.get("description")
    if _SELDOM.isdisjoint(node):
        return [description] if description and isinstance(description, str) else []
    texts = [node.get("title"), description, node.get("const")]
    values = node.get("enum")
    if isinstance(values, list):
        texts += values[:_MOST_VALUES]
    return [text for text in texts if text and isinstance(text, str)]


def _own_names(node: JSON) -> list[str]:
    properties = node.get("properties")
    return list(properties)[:_MOST_NODES] if isinstance(properties, dict) else []


def _children(node: JSON) -> list[Any]:
    properties = node.get("properties")
    found = list(properties.values())[:_MOST_NODES] if isinstance(properties, dict) else []
    if _PARTS.isdisjoint(node):
        return found
    found += [node[key] for key in _NESTED if key in node]
    for key in _BRANCHES:
        branches = node.get(key)
        if isinstance(branches, list):
            found += branches[:_MOST_VALUES]
    return found
