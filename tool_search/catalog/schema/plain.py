"""JSON Schema of tool arguments: what a definition may carry, and its plain forms.

Providers agree on an object schema at the top and on nothing else there:
Anthropic refuses `oneOf`, `anyOf` and `allOf` at the top level of an
`input_schema`, OpenAI those and `enum` and `not`. Validation always uses the
schema as it was given; only what a model is shown passes `object_schema`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tool_search.catalog.schema.vocabulary import read_type
from tool_search.errors import InvalidToolError

__all__ = [
    "JSON",
    "MAX_SCHEMA_BYTES",
    "compact_json",
    "encodable",
    "is_plain_object",
    "normalized_parameters",
    "object_schema",
    "plain_copy",
    "read_json",
    "read_object",
    "shown",
]

JSON = Mapping[str, Any]

MAX_SCHEMA_BYTES = 1 << 20
"""The most UTF-8 bytes of a schema as JSON."""

_COMBINATORS = ("allOf", "anyOf", "oneOf")
_REFUSED_AT_TOP = (*_COMBINATORS, "enum", "not", "if", "then", "else", "$ref")
_NOT_PLAIN = frozenset(_REFUSED_AT_TOP)
# References may go round in a circle.
_DEEPEST = 8
# Of 1,000 calls that the interpreter's stack holds: who writes a request stands deep in it.
_DEEPEST_NESTING = 400
_TOO_DEEP = f"nested deeper than {_DEEPEST_NESTING} levels"
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_decode = json.JSONDecoder().decode


def compact_json(value: object) -> str:
    """The value as JSON without spaces, in key order as given, not ASCII-escaped.

    Raises:
        ValueError: The value refers to itself, or holds NaN or an infinity.
        TypeError: The value is not made of JSON types.
        RecursionError: The value is nested deeper than the interpreter's stack.
    """
    return _encode(value)


def read_json(text: str) -> Any:
    """The value in a JSON text that anybody may have written, lone surrogates replaced.

    Raises:
        ValueError: It is no JSON; NaN, infinities and numbers beyond a double are none.
        RecursionError: It is nested deeper than the interpreter's stack.
    """
    value = _decoded(text.strip(_JSON_SPACES))
    return json.loads(encodable(compact_json(value))) if "\\ud" in text.lower() else value


def read_object(text: str) -> dict[str, Any] | None:
    """The object in a JSON text, or None where there is none; empty text is `{}`."""
    try:
        value = read_json(text)
    except (ValueError, RecursionError):
        return None if text.strip() else {}
    return value if isinstance(value, dict) else None


def _no_number(written: str) -> float:
    raise ValueError(f"{written} is no JSON number")


def _finite(written: str) -> float:
    value = float(written)
    return value if math.isfinite(value) else _no_number(written)


_read_one = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite).raw_decode
_JSON_SPACES = " \t\n\r"


def _decoded(text: str) -> Any:
    """The one value of a text without spaces around it; no call waits for a regex here."""
    value, end = _read_one(text)
    if end != len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def encodable(text: str) -> str:
    """The text with lone surrogates replaced: no UTF-8 request can carry them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def plain_copy(value: object) -> Any:
    """A private copy of a JSON value, lone surrogates replaced.

    Raises:
        ValueError: It is nested deeper than 400 levels, refers to itself, or holds NaN
            or an infinity.
        TypeError: It is not made of JSON types.
    """
    return _copy_and_json(value)[0]


def _copy_and_json(value: object) -> tuple[Any, str]:
    """`plain_copy`, and its compact JSON."""
    try:
        text = encodable(compact_json(value))
        copy = _decode(text)
    except RecursionError as exc:
        raise ValueError(_TOO_DEEP) from exc
    if text.count("{") + text.count("[") > _DEEPEST_NESTING and _is_too_deep(copy):
        raise ValueError(_TOO_DEEP)
    # Keys that are no strings, or that are the same once mended, may be one key now.
    return copy, text if copy == value else compact_json(copy)


def _is_too_deep(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(_DEEPEST_NESTING):
        inner = (part.values() if isinstance(part, dict) else part for part in level)
        level = [v for values in inner for v in values if isinstance(v, dict | list)]
    return bool(level)


def normalized_parameters(name: str, parameters: object) -> tuple[dict[str, Any], str]:
    """A private copy of a tool's schema, and the same as compact JSON.

    Args:
        name: The tool's name, for the error.
        parameters: `{}` or None for "no arguments", else an object schema.

    Raises:
        InvalidToolError: It is neither, it is not JSON, or it is too large.
    """
    if parameters is None:
        return {}, "{}"
    if not isinstance(parameters, Mapping):
        raise InvalidToolError(
            f"tool {name!r}: parameters must be an object schema, {{}} or null, "
            f"not {type(parameters).__name__} {shown(parameters)}"
        )
    try:
        copy, text = _copy_and_json(dict(parameters))
    except (TypeError, ValueError) as exc:
        raise InvalidToolError(
            f"tool {name!r}: parameters cannot be written as JSON ({exc}); "
            "use plain dictionaries, lists, strings, numbers and booleans"
        ) from exc
    if len(text) > MAX_SCHEMA_BYTES // 4 and (size := len(text.encode())) > MAX_SCHEMA_BYTES:
        raise InvalidToolError(
            f"tool {name!r}: parameters take {size:,} bytes as JSON, and a schema may take "
            f"{MAX_SCHEMA_BYTES:,}; shorten it, or split the tool"
        )
    if copy and not _is_object_schema(copy):
        raise InvalidToolError(
            f'tool {name!r}: parameters must be an object schema ("type": "object") '
            f"or {{}}, not {shown(copy)}"
        )
    return copy, text


def _is_object_schema(schema: JSON) -> bool:
    kind = schema.get("type")
    if kind is None:
        return any(key in schema for key in ("properties", "$ref", *_COMBINATORS))
    properties = schema.get("properties")
    # `dict` and `Object` mean it plainly; what is declared says `object`.
    typed = read_type(kind)
    allowed = typed is not None and "object" in typed.get("type", "object")
    return allowed and (properties is None or isinstance(properties, Mapping))


def object_schema(schema: JSON) -> dict[str, Any]:
    """The schema as every provider takes it: `type: object`, no combinator at the top.

    Branches of a top-level combinator, and what a top-level `$ref` refers to, are
    merged into one list of properties; what is required is what every way of filling
    the schema requires. A schema that is already plain is returned with its keys in
    their order.
    """
    if is_plain_object(schema):
        return {**schema, "properties": dict(schema["properties"])}
    merged = _Merger(schema).merged(schema, _DEEPEST)
    plain = {key: value for key, value in schema.items() if key not in _REFUSED_AT_TOP}
    if plain.get("type") != "object":
        plain = {"type": "object", **{k: v for k, v in plain.items() if k != "type"}}
    if merged.properties or not isinstance(plain.get("properties"), Mapping):
        plain["properties"] = merged.properties
    if merged.required or not isinstance(plain.get("required", []), list):
        plain["required"] = merged.required
    return plain


def is_plain_object(schema: JSON) -> bool:
    """Whether `object_schema` would give an equal schema back; quick to tell."""
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
        root: What references refer into.
    """

    def __init__(self, root: JSON) -> None:
        self._root = root
        self._done: dict[tuple[int, int], _Fields] = {}

    def merged(self, part: JSON, depth: int) -> _Fields:
        """The fields of a part; what is no valid schema there counts for nothing."""
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
        for key, branches in (("$ref", [target]), *((k, part.get(k)) for k in _COMBINATORS)):
            listed = branches if isinstance(branches, list) and depth else []
            merged = [self.merged(b, depth - 1) for b in listed if isinstance(b, Mapping)]
            for name, definition in (pair for one in merged for pair in one.properties.items()):
                fields.properties.setdefault(name, definition)
            needs = [set(one.required) for one in merged] or [set()]
            of_all = set.intersection if key in ("anyOf", "oneOf") else set.union
            fields.required.extend(sorted(of_all(*needs).difference(fields.required)))
        return fields


def _target(reference: object, root: JSON) -> object:
    """What a reference into the same schema refers to, or None."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    from urllib.parse import unquote  # noqa: PLC0415 - few schemas refer to parts of themselves

    target: Any = root
    for step in unquote(reference[2:]).split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        target = target.get(key) if isinstance(target, Mapping) else None
    return target


def _strings(value: object) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def shown(value: object) -> str:
    """The value for an error message, at most 80 characters of it."""
    try:
        text = repr(value)
    except RecursionError:
        text = f"{type(value).__name__} {_TOO_DEEP}"
    return text if len(text) <= 80 else f"{text[:77]}..."
