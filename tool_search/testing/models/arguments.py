"""Arguments for a tool call, made from its schema and the user's text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import jsonschema_rs

__all__ = ["fill_arguments"]

JSON = Mapping[str, Any]

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?")
_QUOTED = re.compile(r"\"([^\"]+)\"|'([^']+)'|“([^”]+)”|«([^»]+)»|「([^」]+)」|`([^`]+)`")
_CAPITALS = re.compile(r"\b[A-Z]{2,}\b|(?<=[a-z,] )[A-Z][a-z]+(?: [A-Z][a-z]+)*")
_MAX_DEPTH = 6

# Values of JSON Schema's formats, for texts that have none.
_FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "email": "someone@example.com",
    "uri": "https://example.com",
    "url": "https://example.com",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "example.com",
}


def fill_arguments(schema: JSON, text: str) -> dict[str, Any]:
    """Arguments that fit a tool's schema, with the values that the text offers.

    Numbers go to number parameters in order; quoted strings, then names in
    capitals, to string parameters; a word that an enum lists to that enum, the one after a
    number first: "miles are 42 km" is of km, to miles.
    A required value that is not in the text is the schema's default, or the
    simplest value of its type.

    Args:
        schema: The tool's parameters; `{}` for none.
        text: The user's text.
    """
    for source in (text, ""):
        arguments = _Filler(schema, source).record(schema, 0)
        if _fits(schema, arguments):
            return arguments
    return _Filler(schema, text).record(schema, 0)


def _fits(schema: JSON, arguments: dict[str, Any]) -> bool:
    try:
        return bool(jsonschema_rs.is_valid(dict(schema), arguments))
    except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError):
        # A value that is not a schema does not restrict the arguments.
        return True


class _Filler:
    """The values of a text, each used once, in order."""

    def __init__(self, root: JSON, text: str) -> None:
        self.root = root
        self.text = text
        self.numbers = [float(found) for found in _NUMBER.findall(text)]
        quoted = ["".join(groups) for groups in _QUOTED.findall(text)]
        self.said: set[str] = set()
        self.strings: list[str] = quoted + _CAPITALS.findall(_QUOTED.sub(" ", text))

    def record(self, schema: JSON, depth: int) -> dict[str, Any]:
        """Return every required property, and the optional ones the text has a value for."""
        schema = self._resolve(schema)
        properties = schema.get("properties") or {}
        required = schema.get("required") or []
        filled: dict[str, Any] = {}
        for name, definition in properties.items():
            inner = self._resolve(definition)
            if name in required or self._has_value_for(inner):
                filled[name] = self.value(inner, depth + 1)
        for name in required:
            filled.setdefault(name, self.text or "value")
        return filled

    def value(self, schema: JSON, depth: int) -> Any:
        """Return one value that fits a resolved schema."""
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self._enum(schema["enum"])
        kind = _kind(schema)
        if kind in ("integer", "number"):
            return self._number(schema, whole=kind == "integer")
        if kind == "string":
            return self._make_string(schema)
        if "default" in schema:
            return schema["default"]
        if kind == "array":
            return self._array(schema, depth)
        if kind == "object":
            return self.record(schema, depth) if depth < _MAX_DEPTH else {}
        return None if kind == "null" else True

    def _resolve(self, schema: Any) -> JSON:
        """Return the schema with local references resolved and its first alternative chosen."""
        for _ in range(_MAX_DEPTH):
            if not isinstance(schema, Mapping):
                return {}
            options = [*(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())]
            options = [option for option in options if option.get("type") != "null"] or options
            reference = schema.get("$ref")
            if isinstance(reference, str):
                schema = self._follow_reference(reference)
            elif options:
                rest = {key: schema[key] for key in schema if key not in ("anyOf", "oneOf")}
                schema = {**rest, **options[0]}
            elif schema.get("allOf"):
                merged = {key: schema[key] for key in schema if key != "allOf"}
                for part in schema["allOf"]:
                    merged = {**self._resolve(part), **merged}
                schema = merged
            else:
                return schema
        return {}

    def _follow_reference(self, reference: str) -> Any:
        target: Any = self.root
        for step in reference.removeprefix("#").strip("/").split("/"):
            if step:
                target = target.get(step, {}) if isinstance(target, Mapping) else {}
        return target

    def _has_value_for(self, schema: JSON) -> bool:
        if schema.get("enum"):
            return any(self._says(option) for option in schema["enum"])
        kind = _kind(schema)
        if kind in ("integer", "number"):
            return bool(self.numbers)
        return kind == "string" and "format" not in schema and bool(self.strings)

    def _says(self, option: object) -> bool:
        return self._place(option) is not None

    def _place(self, option: object) -> tuple[bool, int, int] | None:
        """Return the place of an option in the text, least for one after a number; None: none."""
        if not isinstance(option, str) or not option:
            return None
        written = re.escape(option).replace("_", "[ _]")
        # Letters of other words around it, but for those of scripts without spaces, are not it.
        whole = rf"(\d\s*)?(?<![a-z]){written}(?:s|es)?(?![a-z])"
        found = [*re.finditer(whole, self.text, re.IGNORECASE)]
        return min(((not each[1], each.start(), -len(option)) for each in found), default=None)

    def _enum(self, options: list[Any]) -> Any:
        places = [(place, option) for option in options if (place := self._place(option))]
        unsaid = [each for each in places if each[1] not in self.said] or places
        if not unsaid:
            return options[0]
        chosen = min(unsaid)[1]
        self.said.add(chosen)
        return chosen

    def _number(self, schema: JSON, *, whole: bool) -> float:
        number = self.numbers.pop(0) if self.numbers else float(schema.get("default") or 1)
        step = schema.get("multipleOf")
        if isinstance(step, int | float) and step > 0:
            number = round(number / step) * step
        margin = 1 if whole else 0.5
        low, high = schema.get("minimum"), schema.get("maximum")
        if isinstance(schema.get("exclusiveMinimum"), int | float):
            low = schema["exclusiveMinimum"] + margin
        if isinstance(schema.get("exclusiveMaximum"), int | float):
            high = schema["exclusiveMaximum"] - margin
        if low is not None:
            number = max(number, low)
        if high is not None:
            number = min(number, high)
        return int(number) if whole or number == int(number) else number

    def _make_string(self, schema: JSON) -> str:
        if schema.get("format") in _FORMATS:
            return str(schema.get("default") or _FORMATS[schema["format"]])
        if self.strings:
            text = self.strings.pop(0)
        else:
            text = str(schema.get("default") or self.text or "value")
        longest, shortest = schema.get("maxLength"), schema.get("minLength")
        text = text if longest is None else text[: int(longest)]
        return text.ljust(int(shortest or 0), "x")

    def _array(self, schema: JSON, depth: int) -> list[Any]:
        items = self._resolve(schema.get("items") or {})
        wanted = schema.get("minItems") or 0
        if _kind(items) in ("integer", "number"):
            wanted = max(wanted, len(self.numbers), 1)
        elif _kind(items) == "string" and not items.get("enum"):
            wanted = max(wanted, len(self.strings), 1)
        most = schema.get("maxItems")
        count = wanted if most is None else min(wanted, most)
        return [self.value(items, depth + 1) for _ in range(count)]


def _kind(schema: JSON) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((option for option in kind if option != "null"), "null")
    if kind is None:
        return "object" if "properties" in schema else "string"
    return str(kind)
