"""What of a tool's definition is searched: its fields, as text.

Nothing here trusts a definition: schemas of any depth, schemas that refer to
themselves and descriptions of a megabyte are read up to fixed bounds, the
parts that stand first and highest before the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, Literal, get_args

from tool_search.catalog import Tool
from tool_search.schema import JSON

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
_STRUCTURE = frozenset(("properties", *_NESTED, *_BRANCHES))


def field_texts(tool: Tool) -> dict[FieldName, list[str]]:
    """The tool's texts by field, in the order in which they count.

    Fields: its name; aliases and title; its server; tags, category and
    namespace; description and, where it differs, summary; parameter names,
    nested ones too; parameter descriptions, titles and enum values.
    """
    names, texts = _parameter_texts(tool.parameters)
    summary = tool.summary if tool.summary and tool.summary not in tool.description else ""
    found: dict[FieldName, list[str]] = {
        "name": [tool.name],
        "aliases": [*tool.aliases, tool.title or ""],
        "server": [tool.server or ""],
        "tags": [*tool.tags, tool.category or "", tool.namespace or ""],
        "description": [tool.description, summary],
        "parameters": names,
        "parameter_texts": texts,
    }
    return {name: kept for name, lines in found.items() if (kept := [t for t in lines if t])}


def _parameter_texts(schema: JSON) -> tuple[list[str], list[str]]:
    names: list[str] = []
    texts: list[str] = []
    queue: deque[tuple[Any, int]] = deque([(schema, 0)])
    seen: set[int] = set()
    while queue and len(seen) < _MOST_NODES:
        node, depth = queue.popleft()
        if isinstance(node, dict) and "$ref" in node:
            node = _target(schema, node["$ref"])
        if not isinstance(node, dict) or id(node) in seen:
            continue
        seen.add(id(node))
        if depth:
            texts.extend(_own_texts(node))
        properties = node.get("properties")
        if isinstance(properties, dict):
            names.extend(islice(properties, _MOST_NODES))
        if depth < _DEEPEST and not _STRUCTURE.isdisjoint(node):
            queue.extend((child, depth + 1) for child in _children(node))
    return names, texts


def _target(root: JSON, reference: object) -> object:
    """What a local reference points to, or None."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    target: Any = root
    for step in reference[2:].split("/")[:_DEEPEST]:
        target = target.get(step) if isinstance(target, dict) else None
    return target


def _own_texts(node: JSON) -> list[str]:
    texts = [node.get("title"), node.get("description"), node.get("const")]
    values = node.get("enum")
    if isinstance(values, list):
        texts += values[:_MOST_VALUES]
    return [text for text in texts if isinstance(text, str)]


def _children(node: JSON) -> Iterator[Any]:
    properties = node.get("properties")
    if isinstance(properties, dict):
        yield from islice(properties.values(), _MOST_NODES)
    yield from (node[key] for key in _NESTED if key in node)
    for key in _BRANCHES:
        if isinstance(node.get(key), list):
            yield from node[key][:_MOST_VALUES]
