"""The schema of a tool as models and providers read it.

Made once for each definition: valid JSON Schema 2020-12, an object at the top, with keys
that every provider takes, and bounded in the work that it may cause. Calls are made by the
schema that the tool's author gave; arguments are translated between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tool_search.catalog.schema.renaming import ArgumentKeys, Twice, named_keys, renamed
from tool_search.catalog.schema.repair import Changes, SchemaChange, repaired
from tool_search.catalog.schema.vocabulary import MAX_VALUES, WireKeys, is_wire_key
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import COMBINATORS, MAX_SCHEMA_BYTES, TYPES, Tool, schema_of
from tool_search.core.values.json import JSON, compact_json, part_at, pointer_steps

__all__ = [
    "REFUSED_AT_TOP",
    "DeclaredSchema",
    "declare",
    "declared_schema",
    "is_plain_object",
    "is_sound",
    "object_schema",
    "schema_json",
    "text_bytes",
]

# A quick check for schemas that need no repair, as most do.
#
# Catalogs have thousands of definitions, nearly all of them plain; one pass without a copy
# decides for those. Anything unknown is left to the full repair.


# Few enough that no bound of the thorough way is near.
_MAX_PARTS = 500
_MAX_SOUND_DEPTH = 16


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return type(value) is int or type(value) is float


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_type(value: object) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return (
        isinstance(value, list)
        and len(value) > 1
        and all(isinstance(each, str) and each in TYPES for each in value)
        and len(set(value)) == len(value)
    )


def _is_required(value: object) -> bool:
    return (
        isinstance(value, list)
        and all(isinstance(key, str) and is_wire_key(key) for key in value)
        and len(set(value)) == len(value)
    )


_VALUES: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("title", "description", "format"), _is_string),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_count),
    "type": _is_type,
    "required": _is_required,
    "enum": lambda value: isinstance(value, list) and 0 < len(value) <= MAX_VALUES,
    "examples": lambda value: isinstance(value, list) and len(value) <= MAX_VALUES,
    "uniqueItems": lambda value: isinstance(value, bool),
    "default": lambda value: True,  # noqa: ARG005 - anything
    "const": lambda value: True,  # noqa: ARG005 - anything
    "nullable": lambda value: False,  # noqa: ARG005 - not of 2020-12
}
_BRANCHES = frozenset(("anyOf", "oneOf", "allOf"))


def is_sound(schema: Mapping[str, Any]) -> bool:
    """True if a schema is surely valid 2020-12, within bounds, under keys of the wire.

    False decides nothing.
    """
    level: list[Any] = [schema]
    parts = 0
    for _ in range(_MAX_SOUND_DEPTH):
        parts += len(level)
        if parts > _MAX_PARTS:
            return False
        below: list[Any] = []
        for part in level:
            if not isinstance(part, dict) or not _is_sound_part(part, below):
                return False
        if not below:
            return True
        level = below
    return False


def _is_sound_part(part: dict[str, Any], below: list[Any]) -> bool:
    """True if the part is sound, except for the parts that it adds to the list."""
    for keyword, value in part.items():
        check = _VALUES.get(keyword)
        if check is not None:
            if not check(value):
                return False
            continue
        inner = _inner(keyword, value)
        if inner is None:
            return False
        below += inner
    kinds = part.get("type", ())
    if "required" in part and "properties" not in part and "object" in kinds:
        return False
    return "items" in part or not (kinds == "array" or "array" in kinds)


def _inner(keyword: str, value: Any) -> Iterable[Any] | None:
    """Return the parts that a keyword applies; None if it is unknown or not valid."""
    if keyword == "properties":
        is_named = isinstance(value, dict) and all(map(is_wire_key, value))
        return value.values() if is_named else None
    if keyword == "items":
        return (value,)
    if keyword == "additionalProperties":
        return () if isinstance(value, bool) else (value,)
    if keyword in _BRANCHES:
        return value if isinstance(value, list) and value else None
    return None


# JSON Schema of tool arguments in plain forms.
#
# Providers agree on an object schema at the top and on nothing else there:
# Anthropic refuses `oneOf`, `anyOf` and `allOf` at the top level of an
# `input_schema`, OpenAI those and `enum` and `not`. Validation always uses the
# schema as it was given; only the schema for a model passes `object_schema`.


REFUSED_AT_TOP = (*COMBINATORS, "enum", "not", "if", "then", "else", "$ref")
_NOT_PLAIN = frozenset(REFUSED_AT_TOP)
# References may go round in a circle.
_MAX_DEPTH = 8


def object_schema(schema: JSON) -> dict[str, Any]:
    """Return the schema as every provider takes it: `type: object`, no combinator at the top.

    Branches of a top-level combinator, and the target of a top-level `$ref`, are merged into
    one list of properties. A key is required if every way of filling the schema requires it.
    A schema that is already plain is returned with its keys in their order.
    """
    if is_plain_object(schema):
        return {**schema, "properties": dict(schema["properties"])}
    merged = _Merger(schema).merged(schema, _MAX_DEPTH)
    plain = {key: value for key, value in schema.items() if key not in REFUSED_AT_TOP}
    if plain.get("type") != "object":
        plain = {"type": "object", **{k: v for k, v in plain.items() if k != "type"}}
    if merged.properties or not isinstance(plain.get("properties"), Mapping):
        plain["properties"] = merged.properties
    if merged.required or not isinstance(plain.get("required", []), list):
        plain["required"] = merged.required
    return plain


def is_plain_object(schema: JSON) -> bool:
    """True if `object_schema` would return an equal schema; a quick check."""
    return (
        schema.get("type") == "object"
        and isinstance(schema.get("properties"), Mapping)
        and _strings(required := schema.get("required", [])) == required
        and schema.keys().isdisjoint(_NOT_PLAIN)
    )


@dataclass(frozen=True, slots=True)
class _Fields:
    """The arguments an object schema asks for, branches and references looked through."""

    properties: dict[str, Any]
    required: list[str]


class _Merger:
    """Merges parts of one schema, each once for each depth: many may refer to one.

    Args:
        root: The schema that references refer into.
    """

    def __init__(self, root: JSON) -> None:
        self._root = root
        self._done: dict[tuple[int, int], _Fields] = {}

    def merged(self, part: JSON, depth: int) -> _Fields:
        """Return the fields of a part; a part that is not a valid schema adds nothing."""
        key = id(part), depth
        if key not in self._done:
            self._done[key] = self._fields(part, depth)
        return self._done[key]

    def _fields(self, part: JSON, depth: int) -> _Fields:
        own = part.get("properties")
        fields = _Fields(
            dict(own) if isinstance(own, Mapping) else {}, _strings(part.get("required"))
        )
        target = _target(part.get("$ref"), self._root)
        for key, branches in (("$ref", [target]), *((k, part.get(k)) for k in COMBINATORS)):
            listed = branches if isinstance(branches, list) and depth else []
            merged = [self.merged(b, depth - 1) for b in listed if isinstance(b, Mapping)]
            for name, definition in (pair for one in merged for pair in one.properties.items()):
                fields.properties.setdefault(name, definition)
            needs = [set(one.required) for one in merged] or [set()]
            of_all = set.intersection if key in ("anyOf", "oneOf") else set.union
            fields.required.extend(sorted(of_all(*needs).difference(fields.required)))
        return fields


def _target(reference: object, root: JSON) -> object:
    """Return the target of a reference into the same schema, or None."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    from urllib.parse import unquote  # noqa: PLC0415 - few schemas refer to parts of themselves

    return part_at(root, pointer_steps(unquote(reference)))


def _strings(value: object) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


_MAX_LISTED = 3
# Bytes around a definition's values: keys, quotes, `defer_loading`; about the same in each dialect.
_DEFINITION_KEYS = len('{"name":,"description":,"input_schema":,"defer_loading":true},')


@dataclass(frozen=True, eq=False)
class DeclaredSchema:
    """A tool's schema as it is declared, and the translation back.

    Attributes:
        schema: The schema as every provider takes it; read-only.
        json: The same as compact JSON.
        sound: The schema that arguments are checked by: under the tool's own keys, with the
            combinators that were next to an object schema at the top.
        wire: The same under the keys on the wire.
        changes: Renamed, repaired and left-out parts, in order.
        more_changes: The number of further changes.
        keys: Translates arguments; None if no key is renamed.
    """

    schema: JSON
    json: str
    sound: dict[str, Any]
    wire: dict[str, Any]
    changes: tuple[SchemaChange, ...] = ()
    more_changes: int = 0
    keys: ArgumentKeys | None = field(default=None, repr=False)

    @property
    def is_renamed(self) -> bool:
        """True if keys on the wire are not the tool's own."""
        return self.keys is not None

    @property
    def incomplete(self) -> str:
        """The parts that models are not shown and arguments are not checked by; empty: none."""
        listed = "; ".join(map(str, self.left_out[:_MAX_LISTED]))
        more = len(self.left_out) - _MAX_LISTED + self.more_changes
        return f"{listed}; and {more} more" if more > 0 and listed else listed

    @cached_property
    def left_out(self) -> tuple[SchemaChange, ...]:
        """The changes that left out a part, for an operator."""
        return tuple(change for change in self.changes if change.kind == "left_out")

    def canonical(self, arguments: Mapping[str, Any]) -> tuple[Mapping[str, Any], Twice]:
        """Return arguments under the tool's own keys, and which were given twice.

        Raises:
            TooComplexError: They take too much work.
        """
        return (arguments, ()) if self.keys is None else self.keys.canonical(arguments)

    def on_wire(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return arguments under the keys on the wire.

        Raises:
            TooComplexError: They take too much work.
        """
        return arguments if self.keys is None else self.keys.wire(arguments)


def declared_schema(tool: Tool) -> DeclaredSchema:
    """Return a tool's schema as it is declared; made once for each definition."""
    own = tool.__dict__
    if "_declare" not in own:
        own["_declare"] = declare(schema_of(tool), tool.parameters_json)
    declared: DeclaredSchema = own["_declare"]
    return declared


def schema_json(tool: Tool) -> str:
    """Return a tool's schema as every provider takes it, as compact JSON."""
    return declared_schema(tool).json


def text_bytes(catalog: ToolCatalog) -> int:
    """Return the UTF-8 bytes of the active tools' definitions as JSON, keys included."""
    heads = (compact_json([tool.name, tool.description]) for tool in catalog.active)
    texts = sum(len(head.encode("utf-8", "replace")) for head in heads)
    schemas = sum(len(schema_json(tool).encode()) for tool in catalog.active)
    return texts + schemas + _DEFINITION_KEYS * len(catalog.active)


def declare(schema: dict[str, Any], written: str) -> DeclaredSchema:
    """Return a schema as it is declared.

    Args:
        schema: As the definition has it; not changed.
        written: The same as compact JSON.
    """
    if is_sound(schema):
        return _declare(schema, schema, written, Changes(), None)
    changes = Changes()
    graph = repaired(schema, changes)
    sound = graph.root.schema
    keys = WireKeys(key for part in graph.parts for key in named_keys(part.schema))
    if not keys:
        return _declare(sound, sound, written if sound == schema else None, changes, None)
    arguments = ArgumentKeys(graph, keys)
    return _declare(sound, renamed(sound, keys, arguments, changes), None, changes, arguments)


def _declare(
    sound: dict[str, Any],
    wire: dict[str, Any],
    written: str | None,
    changes: Changes,
    keys: ArgumentKeys | None,
) -> DeclaredSchema:
    shown: JSON = wire if is_plain_object(wire) else object_schema(wire)
    if written is None or shown is not wire:
        written = compact_json(shown)
    if len(written) > MAX_SCHEMA_BYTES and len(written.encode()) > MAX_SCHEMA_BYTES:
        why = f"is left out: it takes more than {MAX_SCHEMA_BYTES:,} bytes with its references"
        changes.add("left_out", (), why)
        shown = object_schema({})
        written = compact_json(shown)
    return DeclaredSchema(shown, written, sound, wire, tuple(changes.listed), changes.more, keys)
