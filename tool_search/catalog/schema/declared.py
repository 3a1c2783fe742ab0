"""The schema of a tool as models and providers read it.

Made once for each definition: valid JSON Schema 2020-12, an object at the top, with keys
that every provider takes, and bounded in the work that it may cause. Calls are made by the
schema that the tool's author gave; arguments are translated between the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tool_search.catalog.schema.keys import WireKeys
from tool_search.catalog.schema.plain import is_plain_object, object_schema
from tool_search.catalog.schema.renaming import ArgumentKeys, Twice, named_keys, renamed
from tool_search.catalog.schema.repair import Changes, SchemaChange, repaired
from tool_search.catalog.schema.soundness import is_sound
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import MAX_SCHEMA_BYTES, Tool, schema_of
from tool_search.core.values.json import JSON, compact_json

__all__ = ["DeclaredSchema", "declare", "declared_schema", "schema_json", "text_bytes"]

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
