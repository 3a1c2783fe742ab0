"""The schema of a tool as models and providers read it.

Made once for each definition: valid JSON Schema 2020-12, an object at the top, with keys
that every provider takes, and bounded in what it may cost whoever follows it. The schema
that the tool's author gave stays what calls are made by; between the two, arguments are
translated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tool_search.catalog.schema.arguments import ArgumentKeys, Twice, named_keys
from tool_search.catalog.schema.keys import WireKeys
from tool_search.catalog.schema.plain import MAX_SCHEMA_BYTES, is_plain_object, object_schema
from tool_search.catalog.schema.renaming import renamed
from tool_search.catalog.schema.repair import Changes, SchemaChange, repaired
from tool_search.catalog.schema.soundness import is_sound
from tool_search.values.json import JSON, compact_json

__all__ = ["DeclaredSchema", "declare"]


_MAX_LISTED = 3


@dataclass(frozen=True)
class DeclaredSchema:
    """A tool's schema as it is declared, and the way back.

    Attributes:
        schema: As every provider takes it; read-only.
        json: The same as compact JSON.
        sound: What arguments are checked by: under the tool's own keys, with what stands
            beside an object schema at the top.
        wire: The same under the keys on the wire.
        changes: What was renamed, repaired or left out, in order.
        more_changes: How many more there are.
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
    def incomplete(self) -> str:
        """What models are not shown and arguments are not held to; empty: nothing."""
        listed = "; ".join(map(str, self.left_out[:_MAX_LISTED]))
        more = len(self.left_out) - _MAX_LISTED + self.more_changes
        return f"{listed}; and {more} more" if more > 0 and listed else listed

    @cached_property
    def left_out(self) -> tuple[SchemaChange, ...]:
        """What an operator should know: parts that models are not shown."""
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


def declare(schema: dict[str, Any], written: str) -> DeclaredSchema:
    """Return a definition's schema as it is declared.

    Args:
        schema: As the definition has it; not changed.
        written: The same as compact JSON.
    """
    if is_sound(schema):
        return _declared(schema, schema, written, Changes(), None)
    changes = Changes()
    graph = repaired(schema, changes)
    sound = graph.root.schema
    keys = WireKeys(key for part in graph.parts for key in named_keys(part.schema))
    if not keys:
        return _declared(sound, sound, written if sound == schema else None, changes, None)
    arguments = ArgumentKeys(graph, keys)
    return _declared(sound, renamed(sound, keys, arguments, changes), None, changes, arguments)


def _declared(
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
