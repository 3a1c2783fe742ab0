"""Faults that services reject in the schema of a tool's arguments.

Sources: Anthropic's error texts, quoted in twilio-labs/mcp 49, composio 3500, claude-code
79418 (property keys) and claude-code 586, Dokploy/mcp 74, vscode-as-mcp-server 6 (draft
2020-12); OpenAI's, quoted in streamnative-mcp-server 26 and aichat 1049 (`items`) and
OpenManus 1162 (the meta-schema). It is assumed that Anthropic applies its pattern to the
keys of inner objects too.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import jsonschema_rs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["SchemaFaults", "schema_faults"]

_is_key = re.compile(r"[a-zA-Z0-9_.-]{1,64}").fullmatch
_ONE = ("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
        "unevaluatedItems", "unevaluatedProperties")  # fmt: skip
_MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SchemaFaults:
    """The faults of a schema.

    Attributes:
        keys: The place of properties whose keys no service accepts, or None.
        invalid: The fault by JSON Schema 2020-12, in the words of a validator, or None.
        array: The place of an array without `items`, or None.
    """

    keys: Path | None = None
    invalid: str | None = None
    array: Path | None = None


def schema_faults(schema: Mapping[str, Any]) -> SchemaFaults:
    """Return the faults of a schema, computed once for each schema."""
    return _faults(json.dumps(schema))


@lru_cache(maxsize=65_536)
def _faults(text: str) -> SchemaFaults:
    schema = json.loads(text)
    parts = list(_parts(schema, ()))
    keys = (
        path for path, part in parts
        if isinstance(part.get("properties"), dict) and not all(map(_is_key, part["properties"]))
    )  # fmt: skip
    arrays = (path for path, part in parts if _is_array(part) and "items" not in part)
    return SchemaFaults(next(keys, None), _problem(schema), next(arrays, None))


def _is_array(part: Mapping[str, Any]) -> bool:
    kind = part.get("type")
    return kind == "array" or (isinstance(kind, list) and "array" in kind)


def _problem(schema: dict[str, Any]) -> str | None:
    plain = {key: value for key, value in schema.items() if key != "$schema"}
    try:
        jsonschema_rs.meta.validate(plain)
    except jsonschema_rs.ValidationError as exc:
        return f"{exc.instance!r} is not valid under any of the given schemas"
    try:
        jsonschema_rs.Draft202012Validator(plain, offline=True)
    except jsonschema_rs.ValidationError as exc:
        return f"{exc.instance!r} is not valid"
    except jsonschema_rs.ReferencingError:
        return "a reference leads to a component which was not found in the schema"
    return None


def _parts(schema: Any, path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    if not isinstance(schema, dict):
        return
    yield path, schema
    for keyword, value in schema.items():
        if keyword in _ONE:
            yield from _parts(value, (*path, keyword))
        elif keyword in _MANY and isinstance(value, list):
            for index, inner in enumerate(value):
                yield from _parts(inner, (*path, keyword, str(index)))
        elif keyword in _NAMED and isinstance(value, dict):
            for name, inner in value.items():
                yield from _parts(inner, (*path, keyword, name))
