"""Definitions by the rules of a service: Moonshot's subset of schemas, Meta's limits, lengths.

Validators check every schema of a request, and refuse the request with a 400 that does not
name the tool. A schema written here keeps what they accept and is never stricter than the
tool's own, which calls are checked against. Needs no SDK.

Sources: MoonshotAI/walle, `docs/mfjs-spec.md` and `docs/validation-principles.md` ("Moonshot
flavored JSON schema", MFJS: what the interface rejects, now and in earlier versions);
vercel/ai 18921 (what customers met); kimi-cli 2531, oh-my-pi 5952, command-code 594. Meta:
opencode 45800 (recursion), 50297 and 50320 (ten levels, the root's own included).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any
from urllib.parse import unquote

from tool_search.catalog.schema.declared import declared_schema, schema_json
from tool_search.catalog.schema.graph import APPLYING_KEYWORDS, Part, SchemaGraph, inner_first
from tool_search.catalog.schema.repair import loosen
from tool_search.core.catalog.tool import Tool
from tool_search.core.profiles import ProviderProfile
from tool_search.core.settings import SchemaRules
from tool_search.core.values.clean_text import cut_text
from tool_search.core.values.json import compact_json, json_bytes, part_at, pointer_steps

__all__ = [
    "is_strict",
    "moonshot_schema",
    "sent_description",
    "sent_schema",
    "sent_schema_json",
    "sent_under",
]

_MAX_DEPTH = 25
_MAX_PLAIN_DEPTH = 4
_MAX_PLAIN_PARTS = 20
_MAX_BYTES = 100_000
_MAX_BRANCHES = 500
_BOOKKEEPING = frozenset(
    {"$defs", "definitions", "$schema", "$id", "$anchor", "$comment", "$dynamicAnchor"}
)
# `$ref` and `anyOf` may have no other constraints with them, only notes for the model.
_NOTES = frozenset({"title", "description", "default", "examples", "deprecated"})
# Negations would become stricter if a part of them were left out; MFJS does not know them either.
_LEFT_OUT = _BOOKKEEPING | {
    "$ref", "not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties",
}  # fmt: skip
_ONE = frozenset({"contains", "propertyNames"})
_MANY = frozenset({"oneOf", "allOf", "anyOf", "prefixItems"})
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
_SHAPES = frozenset({"type", "$ref", "properties", "items", "enum", "const", *_MANY})
_UNFIT = re.compile(r"[^A-Za-z0-9_.-]")
# Source: OpenAI, "Structured outputs", "Supported schemas". A schema counts as strict only if
# every release of that page allows it: one that strict mode refuses is a refused request.
_STRICT_KEYS = frozenset(
    ("additionalProperties", "anyOf", "description", "enum", "items", "properties", "required",
     "title", "type"),
)  # fmt: skip
_STRICT_TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))
_MAX_STRICT_DEPTH = 5
_MAX_STRICT_PROPERTIES = 100
_MAX_STRICT_VALUES = 500


def sent_description(tool: Tool, profile: ProviderProfile) -> str:
    """Return a tool's description, as long as the service takes it."""
    most = profile.max_description
    return tool.description if most is None else cut_text(tool.description, most)


def sent_schema(tool: Tool, profile: ProviderProfile) -> dict[str, Any]:
    """Return a tool's schema by the rules of the service."""
    schema = _WRITERS[profile.schema_rules](declared_schema(tool).schema)
    most = profile.max_schema_levels
    return schema if most is None else _within_levels(schema, most)


def sent_schema_json(tool: Tool, profile: ProviderProfile) -> str:
    """Return `sent_schema` as compact JSON."""
    if profile.schema_rules == "json_schema" and profile.max_schema_levels is None:
        return schema_json(tool)
    return compact_json(sent_schema(tool, profile))


def sent_under(profile: ProviderProfile) -> str:
    """Return a key of all by which one profile's definitions differ from another's."""
    schemas = f"{profile.schema_rules}/{profile.max_schema_levels}/{profile.max_description}"
    return f"{profile.name_rule}/{profile.takes_strict}/{schemas}"


def _without_circles(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without the references that lead back to what they stand in."""
    whole = deepcopy(dict(schema))
    graph = SchemaGraph(whole)
    _, circles = inner_first(graph.parts, Part.inner)
    for part in circles:
        part.schema.pop("$ref")
    loosen(graph, {id(part.schema) for part in circles})
    return _without_unused(whole)


def _within_levels(schema: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Return a schema without circles that has so many levels at most, the root's included."""
    whole = _without_circles(schema)
    graph = SchemaGraph(whole)
    ordered, _ = inner_first(graph.parts, Part.inner)
    level = dict.fromkeys(ordered, 1)
    deepest: list[Part] = []
    for part in reversed(ordered):
        target = graph.target(part.schema["$ref"]) if "$ref" in part.schema else None
        is_last = level[part] >= most
        for inner in (target,) if is_last else part.inner():
            if inner is not None:
                level[inner] = max(level[inner], level[part] + (inner is not target))
        if is_last and not (APPLYING_KEYWORDS - {"$ref"}).isdisjoint(part.schema):
            deepest.append(part)
    for part in deepest:
        has_items = "array" in part.schema.get("type", ())  # an array must say of what
        for keyword in (APPLYING_KEYWORDS - {"$ref"}) | {"required", *["type"] * has_items}:
            part.schema.pop(keyword, None)
    loosen(graph, {id(part.schema) for part in deepest})
    return _without_unused(whole)


def _without_unused(whole: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without definitions to which nothing refers any more."""
    graph, known = SchemaGraph(whole), whole.pop("$defs", {})
    used = {name: part for name, part in known.items() if graph.of(part) is not None}
    return {**whole, "$defs": used} if used else whole


def _plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema of names and types alone, for services that refuse more."""
    return {"properties": {}, **_plain_part({**schema, "type": "object"}, schema, 0)}


def _plain_part(part: object, root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    kind = _plain_type(part, root)
    if not isinstance(part, Mapping) or depth > _MAX_PLAIN_DEPTH:
        return {"type": kind}
    if kind == "array":
        return {"type": kind, "items": _plain_part(part.get("items"), root, depth + 1)}
    named = part.get("properties") or {}
    if kind != "object" or not named:
        return {"type": kind}
    plain = {name: _plain_part(inner, root, depth + 1) for name, inner in named.items()}
    required = [name for name in part.get("required", ()) if name in plain]
    return {"type": kind, "properties": plain, **({"required": required} if required else {})}


def _plain_type(part: object, root: Mapping[str, Any]) -> str:
    """Return the first type that a value may have; a text where none is stated."""
    parts = [part]
    for _ in range(_MAX_PLAIN_PARTS):
        if not parts:
            break
        one = parts.pop(0)
        if not isinstance(one, Mapping):
            continue
        stated = one.get("type")
        kinds = [stated] if isinstance(stated, str) else stated or ()
        if found := next((kind for kind in kinds if kind != "null"), None):
            return str(found)
        if "properties" in one:
            return "object"
        group, _, name = str(one.get("$ref", "")).removeprefix("#/").partition("/")
        parts += [root.get(group, {}).get(name)] if name else []
        parts += [inner for key in ("anyOf", "oneOf", "allOf") for inner in one.get(key, ())]
    return "string"


def moonshot_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object schema that Moonshot accepts; one that is too large becomes any object."""
    written = _Writer(schema).whole()
    if len(json_bytes(written)) > _MAX_BYTES:
        return {"type": "object"}
    return written


class _Writer:
    """A writer of one schema; definitions that it refers to are moved to the top."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._names: dict[str, str] = {}
        self._definitions: dict[str, dict[str, Any]] = {}

    def whole(self) -> dict[str, Any]:
        """Return the whole schema."""
        whole = self._node(self._root, 0)
        if self._definitions:
            whole["$defs"] = self._definitions
        recursive = _recursive_references(whole, self._definitions)
        for node in _nodes(whole):
            _drop_endless(node, recursive)
        return whole

    def _node(self, schema: object, depth: int) -> dict[str, Any]:
        # `{}` is the one way to say "anything"; "nothing" cannot be said.
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
            return {}
        notes = {key: value for key, value in schema.items() if key in _NOTES}
        target = self._reference(schema.get("$ref"), depth)
        if target is not None:
            return {"$ref": target, **notes}
        node = {
            key: self._value(key, value, depth + 1)
            for key, value in schema.items()
            if key not in _LEFT_OUT
        }
        if "oneOf" in node:  # with loosened branches, two may match where one did
            node.setdefault("anyOf", node["oneOf"])
            del node["oneOf"]
        if not isinstance(node.get("items", {}), dict):
            del node["items"]
        _require_what_is_there(node)
        return _distribute(node, notes) if "anyOf" in node else node

    def _value(self, key: str, value: Any, depth: int) -> Any:
        if key in _NAMED and isinstance(value, Mapping):
            return {name: self._node(inner, depth) for name, inner in value.items()}
        if key in _MANY and isinstance(value, list | tuple):
            return [self._node(inner, depth) for inner in value[:_MAX_BRANCHES]]
        is_schema = key in _ONE or key in ("items", "additionalProperties")
        if is_schema and (isinstance(value, Mapping) or key in _ONE):
            return self._node(value, depth)
        return value

    def _reference(self, reference: object, depth: int) -> str | None:
        """Return the reference to a definition at the top; None if its target is not here."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        pointer = unquote(reference[1:])
        if not pointer:
            return "#"
        if pointer not in self._names:
            # `#name` is read as `#/name`.
            target = part_at(self._root, pointer_steps(f"/{pointer.removeprefix('/')}"))
            if not isinstance(target, Mapping | bool):
                return None
            self._names[pointer] = name = self._new_name(pointer)
            self._definitions[name] = {}
            self._definitions[name] |= self._node(target, depth + 1)
        return f"#/$defs/{self._names[pointer]}"

    def _new_name(self, pointer: str) -> str:
        plain = _UNFIT.sub("_", pointer.rpartition("/")[2]) or "schema"
        taken = self._definitions
        number = next(n for n in range(len(taken) + 1) if f"{plain}{n or ''}" not in taken)
        return f"{plain}{number or ''}"


def _require_what_is_there(node: dict[str, Any]) -> None:
    required = node.pop("required", None)
    if not isinstance(required, list | tuple):
        return
    properties = node.get("properties", {})
    kept = [name for name in required if name in properties]
    if kept:
        node["required"] = kept


def _distribute(node: dict[str, Any], notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node with its constraints moved into each branch of its `anyOf`."""
    rest = {key: value for key, value in node.items() if key not in notes and key != "anyOf"}
    branches = [branch for branch in node["anyOf"] if isinstance(branch, dict)]
    if not branches or (rest and all(_SHAPES.isdisjoint(branch) for branch in branches)):
        return {**rest, **notes}
    possible = [branch for branch in branches if _types(branch) & _types(rest)] or branches
    return {**notes, "anyOf": [_join(rest, branch) for branch in possible]}


def _join(rest: Mapping[str, Any], branch: dict[str, Any]) -> dict[str, Any]:
    if not rest or "$ref" in branch or "anyOf" in branch:
        return branch
    joined = {**rest, **branch}
    for key in _NAMED & rest.keys() & branch.keys():
        joined[key] = {**rest[key], **branch[key]}
    if "required" in rest and "required" in branch:
        joined["required"] = list(dict.fromkeys((*rest["required"], *branch["required"])))
    return joined


_ALL_TYPES = frozenset(("null", "boolean", "object", "array", "number", "integer", "string"))


def _types(node: Mapping[str, Any]) -> frozenset[str]:
    """Return the types that a node allows; an integer is a number too."""
    given = node.get("type")
    if given is None:
        return _ALL_TYPES
    types = frozenset((given,) if isinstance(given, str) else given)
    return types | {"integer"} if "number" in types else types


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    waiting = [node]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield value
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _targets(node: Any) -> set[str]:
    found = (inner.get("$ref") for inner in _nodes(node))
    return {target for target in found if isinstance(target, str)}


def _recursive_references(
    whole: Mapping[str, Any], definitions: Mapping[str, Mapping[str, Any]]
) -> frozenset[str]:
    """Return the references whose targets refer back to them."""
    body = {key: value for key, value in whole.items() if key != "$defs"}
    leads = {"#": _targets(body)}
    leads |= {f"#/$defs/{name}": _targets(inner) for name, inner in definitions.items()}
    return frozenset(start for start in leads if start in _reachable(leads, start))


def _reachable(leads: Mapping[str, set[str]], start: str) -> set[str]:
    """Return all direct and indirect targets of one definition's references."""
    found: set[str] = set()
    waiting = list(leads[start])
    while waiting:
        target = waiting.pop()
        if target not in found:
            found.add(target)
            waiting += leads.get(target, ())
    return found


def _drop_endless(node: dict[str, Any], recursive: frozenset[str]) -> None:
    """Require nothing that needs itself: earlier versions refuse even a list of its own kind."""
    required, properties = node.get("required"), node.get("properties")
    if not isinstance(required, list) or not isinstance(properties, dict) or not recursive:
        return
    kept = [name for name in required if recursive.isdisjoint(_targets(properties[name]))]
    if kept:
        node["required"] = kept
    else:
        del node["required"]


_WRITERS: Mapping[SchemaRules, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "json_schema": dict,
    "moonshot": moonshot_schema,
    "acyclic": _without_circles,
    "plain": _plain_schema,
}


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Return True if strict mode accepts a schema unchanged and so enforces its arguments."""
    parts = list(_strict_parts(schema, 1))
    return (
        None not in parts
        and sum(len(part.get("properties", ())) for part in parts if part) <= _MAX_STRICT_PROPERTIES
        and sum(len(part.get("enum", ())) for part in parts if part) <= _MAX_STRICT_VALUES
    )


def _strict_parts(schema: object, depth: int) -> Iterator[Mapping[str, Any] | None]:
    """Yield the schema and all within it; None in place of what strict mode does not know."""
    if (
        not isinstance(schema, Mapping)
        or depth > _MAX_STRICT_DEPTH
        or not _is_known_to_strict(schema)
    ):
        yield None
        return
    yield schema
    for inner in (*schema.get("properties", {}).values(), *schema.get("anyOf", ())):
        yield from _strict_parts(inner, depth + 1)
    if "items" in schema:
        yield from _strict_parts(schema["items"], depth + 1)


def _is_known_to_strict(schema: Mapping[str, Any]) -> bool:
    kinds = schema.get("type")
    listed = kinds if isinstance(kinds, list) else [kinds]
    if not (
        _STRICT_KEYS.issuperset(schema)
        and ("anyOf" in schema or _STRICT_TYPES.issuperset(map(str, listed)))
    ):
        return False
    shapes = (("anyOf", list), ("enum", list), ("properties", dict), ("required", list))
    if any(not isinstance(schema.get(key, kind()), kind) for key, kind in shapes):
        return False
    if "array" in listed and "items" not in schema:
        return False
    if "object" not in listed:
        return "properties" not in schema
    # Recorded: an object without properties that leaves `required` out is not sent as strict.
    return (
        schema.get("additionalProperties") is False
        and "required" in schema
        and set(map(str, schema["required"])) == set(schema.get("properties", ()))
    )
