"""JSON Schema of tool arguments: what a definition may carry, and its plain forms.

Providers agree on an object schema at the top and on nothing else there:
Anthropic refuses `oneOf`, `anyOf` and `allOf` at the top level of an
`input_schema`, OpenAI those and `enum` and `not`. Validation always uses the
schema as it was given; only what a model is shown passes `object_schema`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tool_search.errors import InvalidToolError

__all__ = ["JSON", "compact_json", "normalized_parameters", "object_schema"]

JSON = Mapping[str, Any]

_COMBINATORS = ("allOf", "anyOf", "oneOf")
_REFUSED_AT_TOP = (*_COMBINATORS, "enum", "not", "if", "then", "else")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def compact_json(value: object) -> str:
    """The value as JSON without spaces, in key order as given, not ASCII-escaped.

    Raises:
        ValueError: The value refers to itself, or holds NaN or an infinity.
        TypeError: The value is not made of JSON types.
        RecursionError: The value is nested deeper than the interpreter's stack.
    """
    return _encode(value)


def normalized_parameters(name: str, parameters: object) -> tuple[dict[str, Any], str]:
    """A private copy of a tool's schema, and the same as compact JSON.

    Args:
        name: The tool's name, for the error.
        parameters: `{}` or None for "no arguments", else an object schema.

    Raises:
        InvalidToolError: It is neither, or it is not JSON.
    """
    if parameters is None:
        return {}, "{}"
    if not isinstance(parameters, Mapping):
        raise InvalidToolError(
            f"tool {name!r}: parameters must be an object schema, {{}} or null, "
            f"not {type(parameters).__name__} {_shown(parameters)}"
        )
    try:
        text = compact_json(dict(parameters))
        # A lone surrogate is legal in a Python string and in no UTF-8 request.
        copy = json.loads(text.encode("utf-8", "replace"))
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidToolError(
            f"tool {name!r}: parameters cannot be written as JSON ({exc}); "
            "use plain dictionaries, lists, strings, numbers and booleans"
        ) from exc
    if copy and not _is_object_schema(copy):
        raise InvalidToolError(
            f'tool {name!r}: parameters must be an object schema ("type": "object") '
            f"or {{}}, not {_shown(copy)}"
        )
    return copy, compact_json(copy)


def _is_object_schema(schema: JSON) -> bool:
    kind = schema.get("type")
    if kind is None:
        return any(key in schema for key in ("properties", "$ref", *_COMBINATORS))
    properties = schema.get("properties")
    allowed = kind == "object" or (isinstance(kind, list) and "object" in kind)
    return allowed and (properties is None or isinstance(properties, Mapping))


def object_schema(schema: JSON) -> dict[str, Any]:
    """The schema as every provider takes it: `type: object`, no combinator at the top.

    Branches of a top-level combinator are merged into one list of properties;
    what is required is what every way of filling the schema requires. A schema
    that is already plain is returned with its keys in their order.
    """
    plain = {key: value for key, value in schema.items() if key not in _REFUSED_AT_TOP}
    if schema.get("type") != "object":
        plain = {"type": "object", **{k: v for k, v in plain.items() if k != "type"}}
    if "$ref" in plain:
        plain = _resolved_top(plain)
    branches = [key for key in _COMBINATORS if isinstance(schema.get(key), list)]
    if branches:
        _merge_branches(plain, schema, branches)
    if not isinstance(plain.get("properties"), Mapping):
        plain["properties"] = {}
    return plain


def _resolved_top(schema: dict[str, Any]) -> dict[str, Any]:
    reference = schema.pop("$ref")
    target: Any = schema
    if isinstance(reference, str) and reference.startswith("#/"):
        for step in reference[2:].split("/"):
            target = target.get(step, {}) if isinstance(target, Mapping) else {}
    if not isinstance(target, Mapping) or target is schema:
        return schema
    return {**schema, **{k: v for k, v in target.items() if k not in _REFUSED_AT_TOP}}


def _merge_branches(plain: dict[str, Any], schema: JSON, keys: list[str]) -> None:
    properties = dict(plain.get("properties") or {})
    required = list(plain.get("required") or ())
    for key in keys:
        branches = [part for part in schema[key] if isinstance(part, Mapping)]
        needs = [set(part.get("required") or ()) for part in branches]
        for part in branches:
            for name, definition in (part.get("properties") or {}).items():
                properties.setdefault(name, definition)
        if needs:
            common = set.union(*needs) if key == "allOf" else set.intersection(*needs)
            required.extend(sorted(common.difference(required)))
    plain["properties"] = properties
    if required:
        plain["required"] = required


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
