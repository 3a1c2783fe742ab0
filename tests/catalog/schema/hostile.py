"""Schemas as strangers write them, and values to hold against them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

__all__ = ["BAD_KEYS", "KEYS", "SCHEMAS", "VALUES", "hostile_schemas"]

BAD_KEYS = ("$filter", "año", "名字", "user id", "", "a" * 70, "filter[x]", "a/b~c", "\u200b")
KEYS = st.sampled_from((*BAD_KEYS, "a", "b", "city", "$ref", "type", "filter_0c097d40"))
SCALARS = st.none() | st.booleans() | st.integers(-3, 300) | st.sampled_from(["x", "", "y z"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
_TYPES = st.sampled_from([
    "string", "object", "array", "integer", "number", "boolean", "null", "int", "str", "any",
    "Object", "interger", "gadget", "string | null", ["string", "null"], ["object", "int"],
    [], ["string", "string"], None, 5, {"type": "string"}, "date",
])  # fmt: skip
_REFERENCES = st.sampled_from([
    "#", "#/$defs/A", "#/definitions/A", "#/$defs/B", "#/$defs/none", "A", "#anchor",
    "#/properties/a", "#/properties/$filter", "https://example.com/x.json", "", 5, "#/items/0",
])  # fmt: skip
_NUMBERS = st.sampled_from([0, 1, 3, -1, 2.5, True, False, "3", "x", None, [1]])
_PATTERNS = st.sampled_from(["^x", "(", "[a-z]+$", ".", "^\\$", "(?=x)", 5, None])
_SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    "type": _TYPES,
    "$ref": _REFERENCES,
    "$schema": st.sampled_from(["http://json-schema.org/draft-07/schema#", 5]),
    "$id": st.sampled_from(["x.json", "#a", 5]),
    "$anchor": st.sampled_from(["anchor", 5]),
    "$dynamicRef": _REFERENCES,
    "description": st.sampled_from(["words", "", 5, None, ["a", "b"], {}]),
    "enum": st.lists(VALUES, max_size=3) | VALUES,
    "const": VALUES,
    "default": VALUES,
    "examples": VALUES,
    "required": st.lists(KEYS | SCALARS, max_size=3) | st.sampled_from([True, False, "a", 5]),
    "dependentRequired": st.dictionaries(KEYS, st.lists(KEYS, max_size=2) | SCALARS, max_size=2),
    "nullable": st.sampled_from([True, False, "x"]),
    "pattern": _PATTERNS,
    "format": st.sampled_from(["date", 5]),
    "uniqueItems": st.sampled_from([True, "true", 5]),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
         "maxLength", "minItems", "maxItems", "minProperties", "maxContains", "minContains"),
        _NUMBERS,
    ),
    "x-unknown": VALUES,
}  # fmt: skip


def _one(part: st.SearchStrategy[Any]) -> dict[str, st.SearchStrategy[Any]]:
    named = st.dictionaries(KEYS, part, max_size=3)
    listed = st.lists(part, max_size=3)
    return {
        "properties": named | SCALARS | listed,
        "$defs": st.fixed_dictionaries({}, optional={"A": part, "B": part}) | SCALARS,
        "definitions": st.fixed_dictionaries({}, optional={"A": part}) | SCALARS,
        "dependentSchemas": named,
        "dependencies": st.dictionaries(KEYS, part | st.lists(KEYS, max_size=2), max_size=2),
        "patternProperties": st.dictionaries(
            st.sampled_from(["^x", "(", ".", "^\\$", "f"]), part, max_size=2
        ),
        **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), listed | part | SCALARS),
        **dict.fromkeys(
            ("items", "additionalItems", "contains", "not", "if", "then", "else", "propertyNames",
             "additionalProperties", "unevaluatedProperties", "unevaluatedItems"),
            part | SCALARS,
        ),
        "items": part | listed | SCALARS,
    }  # fmt: skip


def _node(part: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keywords = {**_SIMPLE, **_one(part)}
    chosen = st.lists(st.sampled_from(sorted(keywords)), max_size=5, unique=True)
    return chosen.flatmap(
        lambda names: st.fixed_dictionaries({name: keywords[name] for name in names})
    )


SCHEMAS = st.recursive(
    _node(SCALARS | st.sampled_from(["string", [], {"type": "string"}])), _node, max_leaves=12
)


def hostile_schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Objects of arguments whose schema may be anything."""

    def whole(base: dict[str, Any], properties: dict[str, Any]) -> dict[str, Any]:
        return {**base, "type": "object", "properties": properties}

    return st.builds(whole, SCHEMAS, st.dictionaries(KEYS, SCHEMAS, max_size=4))
