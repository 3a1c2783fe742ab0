"""The vocabulary of JSON Schema 2020-12, and the clear meaning of other spellings.

Sources: JSON Schema 2020-12, "Validation" and its meta-schema; draft 4, 6 and 7 for earlier
keywords; JSON Schema, "Migrating from older drafts" (tuple `items`, `dependencies`); OpenAPI
3.0, "Data types" (`nullable`).
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import count
from types import MappingProxyType
from typing import Any

from tool_search.core.values.packages import has_package

__all__ = [
    "LEFT_OUT",
    "MANY_SCHEMAS",
    "MAX_VALUES",
    "NAMED_SCHEMAS",
    "ONE_SCHEMA",
    "SIMPLE_KEYWORDS",
    "WireKeys",
    "is_pattern",
    "is_wire_key",
    "mended_value",
    "modern",
    "wire_key",
]

# Property keys as every provider takes them: a function of the key.
#
# Anthropic refuses a whole request for one key outside `[a-zA-Z0-9_.-]{1,64}`. The same
# names are used in every dialect: a conversation that changes its provider then calls a
# tool by the arguments that it has seen, and a search result needs no copy per dialect.
#
# Source: Anthropic, error text `Property keys should match pattern
# '^[a-zA-Z0-9_.-]{1,64}$'`.


_MAX_KEY_CHARS = 64
_DIGEST_CHARS = 8
_UNFIT = re.compile(r"[^a-zA-Z0-9_.-]+")
_NO_LETTERS = "key"


is_wire_key = re.compile(rf"[a-zA-Z0-9_.-]{{1,{_MAX_KEY_CHARS}}}").fullmatch
"""True of a key that every provider takes as it is."""


@lru_cache(maxsize=16_384)
def wire_key(key: str, attempt: int = 0) -> str:
    """Return the key as providers take it.

    Accents are dropped and other characters become `_`; eight hexadecimal digits of the
    key's SHA-256 are appended where anything was lost.

    Args:
        key: Any text.
        attempt: Gives another name for each number, if one is taken already.

    >>> wire_key("city"), wire_key("$filter"), wire_key("año")
    ('city', 'filter_0c097d40', 'ano_f5b8fbdc')
    """
    if is_wire_key(key) and not attempt:
        return key
    letters = unicodedata.normalize("NFKD", key[: 4 * _MAX_KEY_CHARS])
    plain = "".join(char for char in letters if not unicodedata.combining(char))
    head = _UNFIT.sub("_", plain).strip("_.-")[: _MAX_KEY_CHARS - _DIGEST_CHARS - 1]
    told_apart = f"{key}\0{attempt}" if attempt else key
    digest = hashlib.sha256(told_apart.encode("utf-8", "replace")).hexdigest()
    return f"{head or _NO_LETTERS}_{digest[:_DIGEST_CHARS]}"


class WireKeys:
    """One schema's keys under names that providers take, one to one.

    A key that fits keeps its name; another key that would get the same one gets the
    next. So the names depend on the set of keys alone, not on their order.

    Args:
        keys: All property keys of one schema.

    Attributes:
        wire: The wire name of each key that has another one.
        original: The key of each such wire name.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        known = set(keys)
        taken = {key for key in known if is_wire_key(key)}
        wire: dict[str, str] = {}
        for key in sorted(known - taken):
            names = (wire_key(key, attempt) for attempt in count())
            wire[key] = next(name for name in names if name not in taken)
            taken.add(wire[key])
        self.wire: Mapping[str, str] = MappingProxyType(wire)
        self.original: Mapping[str, str] = MappingProxyType({v: k for k, v in wire.items()})

    def __bool__(self) -> bool:
        return bool(self.wire)

    def __getitem__(self, key: str) -> str:
        return self.wire.get(key, key)


_HAS_VALIDATOR = has_package("jsonschema_rs")
if _HAS_VALIDATOR:  # not every platform has a wheel
    import jsonschema_rs


ONE_SCHEMA = frozenset((
    "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
    "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
))  # fmt: skip
"""Keywords whose value is one schema."""
MANY_SCHEMAS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
"""Keywords whose value is a list of schemas, at least one."""
NAMED_SCHEMAS = frozenset(
    ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
)
"""Keywords whose value is an object of schemas."""

MAX_VALUES = 2_000
"""The most values of an `enum`; OpenAI's strict mode documents 1,000 for a whole schema."""

LEFT_OUT = object()
"""In place of a value that has no plain meaning."""

_BOOLEANS = {"true": True, "false": False}
# Measured: a pattern within the limit compiles in at most 1.5 ms, and so does a refused one.
_MAX_PATTERN_BYTES = 1 << 18
Note = Callable[[str, str], None]
"""Takes a keyword and what became of it."""

_OLD = frozenset(("additionalItems", "dependencies", "nullable", "$recursiveRef", "$dynamicRef"))
_EXCLUSIVE = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_NULL = {"type": "null"}


def _number(value: object) -> Any:
    if isinstance(value, str):
        try:
            value = float(value) if re.search(r"[.eE]", value) else int(value[:32])
        except ValueError:
            return LEFT_OUT
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and math.isfinite(value) else LEFT_OUT  # type: ignore[arg-type]


def _factor(value: object) -> Any:
    number = _number(value)
    return number if number is not LEFT_OUT and number > 0 else LEFT_OUT


def _count(value: object) -> Any:
    number = _number(value)
    return number if number is not LEFT_OUT and number >= 0 and number == int(number) else LEFT_OUT


def _string(value: object) -> Any:
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "\n".join(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else LEFT_OUT


def _word(value: object) -> Any:
    return value if isinstance(value, str) else LEFT_OUT


def _boolean(value: object) -> Any:
    if isinstance(value, str):
        return _BOOLEANS.get(value.strip().lower(), LEFT_OUT)
    return value if isinstance(value, bool) else LEFT_OUT


def _values(value: object) -> Any:
    return value if isinstance(value, list) and 0 < len(value) <= MAX_VALUES else LEFT_OUT


def _examples(value: object) -> Any:
    if isinstance(value, list) and len(value) > MAX_VALUES:
        return LEFT_OUT
    return value if isinstance(value, list) else [value]


def _pattern(value: object) -> Any:
    return value if isinstance(value, str) and is_pattern(value) else LEFT_OUT


@lru_cache(maxsize=4096)
def is_pattern(pattern: str) -> bool:
    """True if a validator can read the pattern; it takes bounded memory."""
    if not _HAS_VALIDATOR:
        return False
    options = jsonschema_rs.FancyRegexOptions(size_limit=_MAX_PATTERN_BYTES)
    try:
        jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=options, offline=True)
    except ValueError:
        return False
    return True


SIMPLE_KEYWORDS: Mapping[str, Callable[[object], Any]] = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _number),
    "multipleOf": _factor,
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties",
                     "maxProperties", "minContains", "maxContains"), _count),
    **dict.fromkeys(("title", "description", "$comment"), _string),
    **dict.fromkeys(("format", "contentEncoding", "contentMediaType"), _word),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), _boolean),
    "enum": _values,
    "examples": _examples,
    "pattern": _pattern,
}  # fmt: skip
"""What makes a keyword's value a valid one, or `LEFT_OUT`."""


def mended_value(keyword: str, value: object) -> Any:
    """Return the value of a simple keyword as 2020-12 has it, or `LEFT_OUT`."""
    return SIMPLE_KEYWORDS[keyword](value)


def modern(schema: Mapping[str, Any], note: Note) -> tuple[dict[str, Any], dict[str, str]]:
    """Return one schema under keywords of 2020-12, and the earlier names of its new keywords.

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
    """Return the schema with `prefixItems` in the place of `items`."""
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
    """Replace a boolean that makes the bound next to it exclusive."""
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
    """Return the schema with null allowed, in whatever way it has its type."""
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
