"""Schemas that are not JSON Schema 2020-12, and what is declared of them."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from tool_search import InvalidToolError, Tool
from tool_search.catalog.schema.declared import DeclaredSchema, declared_schema, schema_json


def declared(schema: dict[str, Any]) -> DeclaredSchema:
    return declared_schema(Tool(name="t", parameters=schema))


def of_property(part: Any, **more: Any) -> tuple[Any, list[tuple[str, str]]]:
    """Return the declared form of a property, and the kinds and places of its changes."""
    found = declared({"type": "object", "properties": {"p": part}, **more})
    jsonschema_rs.meta.validate(dict(found.schema))
    return found.schema["properties"]["p"], [(each.kind, each.place) for each in found.changes]


STRING = {"type": "string"}
ARRAY = {"type": "array", "items": {}}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"type": "int"}, {"type": "integer"}),
        ({"type": "String"}, STRING),
        ({"type": "interger"}, {"type": "integer"}),
        ({"type": "dict"}, {"type": "object"}),
        ({"type": "list"}, ARRAY),
        ({"type": "any", "description": "x"}, {"description": "x"}),
        ({"type": "string | null"}, {"type": ["string", "null"]}),
        ({"type": ["string", None, "string"]}, {"type": ["string", "null"]}),
        ({"type": "datetime"}, {"type": "string", "format": "date-time"}),
        ({"type": ["number", "number[]"]},
         {"type": ["number", "array"], "items": {"type": "number"}}),
        ({"type": "array", "items": [STRING, {}], "additionalItems": False},
         {"type": "array", "prefixItems": [STRING, {}], "items": False}),
        ({"type": "array", "items": [STRING]}, {**ARRAY, "prefixItems": [STRING]}),
        ({"type": "array", "items": "string"}, {"type": "array", "items": STRING}),
        ({"type": "array"}, ARRAY),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "enum": ["a"], "nullable": True},
         {"type": ["string", "null"], "enum": ["a", None]}),
        ({"anyOf": [STRING], "nullable": True}, {"anyOf": [STRING, {"type": "null"}]}),
        ({"minLength": "3", "maxLength": 9}, {"minLength": 3, "maxLength": 9}),
        ({"additionalProperties": "false"}, {"additionalProperties": False}),
        ({"properties": [{"name": "a", "type": "str"}]}, {"properties": {"a": STRING}}),
        ({"properties": {"a": {"type": "string", "required": True}}},
         {"properties": {"a": STRING}, "required": ["a"]}),
        ({"type": "object", "required": ["a"]},
         {"type": "object", "required": ["a"], "properties": {}}),
        ({"required": "a", "properties": {"a": {}}}, {"required": ["a"], "properties": {"a": {}}}),
        ({"required": ["a", "a"]}, {"required": ["a"]}),
        ({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
         {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}}),
        ({"anyOf": STRING}, {"anyOf": [STRING]}),
        ("integer", {"type": "integer"}),
        (True, {}),
        (False, {"not": {}}),
        ({"description": ["a", "b"]}, {"description": "a\nb"}),
    ],
)  # fmt: skip
def test_what_is_plainly_meant_is_declared_so(given: Any, meant: Any) -> None:
    found, changes = of_property(given)
    assert found == meant
    assert changes
    assert {kind for kind, _ in changes} == {"repaired"}


@pytest.mark.parametrize(
    ("given", "left", "place"),
    [
        ({"type": "gadget", "description": "x"}, {"description": "x"}, "/properties/p/type"),
        ({"type": {"a": 1}}, {}, "/properties/p/type"),
        ({"$ref": "#/$defs/none", "title": "x"}, {"title": "x"}, "/properties/p/$ref"),
        ({"$ref": "https://example.com/s.json"}, {}, "/properties/p/$ref"),
        ({"$ref": 5}, {}, "/properties/p/$ref"),
        ({"pattern": "("}, {}, "/properties/p/pattern"),
        ({"minLength": -1}, {}, "/properties/p/minLength"),
        ({"enum": []}, {}, "/properties/p/enum"),
        ({"required": ["a", 5]}, {"required": ["a"]}, "/properties/p/required/1"),
        ({"properties": {"a/b": 7}}, {"properties": {"a_b_c14cddc0": {"description": "a/b"}}},
         "/properties/p/properties/a~1b"),
        ([1], {}, "/properties/p"),
        ({"allOf": []}, {}, "/properties/p/allOf"),
    ],
)  # fmt: skip
def test_what_is_not_plain_is_left_out_by_its_place(given: Any, left: Any, place: str) -> None:
    found, changes = of_property(given)
    assert found == left
    assert ("left_out", place) in changes


@pytest.mark.parametrize(
    "part",
    [
        {"not": {"$ref": "#/none"}},
        {"if": {"type": "gadget"}, "then": False},
        {"oneOf": [{"pattern": "("}, {"minLength": 1}]},
        {"contains": {"type": 5}, "maxContains": 0},
        {"properties": 5, "additionalProperties": False},
        {"allOf": [{"properties": {"a": {}}, "$ref": "#/none"}], "unevaluatedProperties": False},
        {"patternProperties": {"(": {}}, "additionalProperties": False},
    ],
)
def test_leaving_something_out_never_refuses_more(part: Any) -> None:
    """If a schema decides by what it refuses, demanding less would accept less."""
    check = jsonschema_rs.Draft202012Validator(of_property(part)[0])
    for value in ("x", ["x"], {"a": 1}, {"b": 1}):
        assert check.is_valid(value)


@pytest.mark.parametrize(
    ("reference", "more"),
    [
        ("#/definitions/A", {"definitions": {"A": STRING}}),
        ("#/$defs/A", {"definitions": {"A": STRING}}),
        ("A", {"$defs": {"A": STRING}}),
        ("#/$defs/A%5BB%5D", {"$defs": {"A[B]": STRING}}),
        ("#a", {"$defs": {"x": {**STRING, "$anchor": "a"}}}),
        ("x.json#/$defs/A", {"$id": "https://example.com/x.json", "$defs": {"A": STRING}}),
        ("#/properties/q", {}),
        ("#/$defs/l/anyOf/0", {"$defs": {"l": {"anyOf": [STRING]}}}),
    ],
)
def test_a_reference_leads_to_a_definition_however_it_is_written(
    reference: str, more: dict[str, Any]
) -> None:
    schema = {"type": "object", "properties": {"p": {"$ref": reference}, "q": STRING}, **more}
    found = declared(schema).schema
    (name,) = found["$defs"]
    assert found["properties"]["p"] == {"$ref": f"#/$defs/{name}"}
    assert found["$defs"][name] == STRING


def test_a_part_with_an_id_is_the_base_of_its_own_references() -> None:
    inner = {
        "$id": "inner.json",
        "$defs": {"A": STRING},
        "properties": {"x": {"$ref": "#/$defs/A"}},
    }
    found = declared({"type": "object", "properties": {"p": inner}}).schema
    assert found["$defs"] == {"A": STRING}


def test_a_schema_that_refers_to_itself_stays_as_it_is() -> None:
    tree = {
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#"}}},
    }
    assert declared(tree).schema == tree
    assert not declared(tree).changes


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_alternatives_without_number_are_left_out(keyword: str) -> None:
    """Followed one by one, these would be 2 to the power of 200."""
    definitions: dict[str, Any] = {
        f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(200)
    }
    definitions["d200"] = STRING
    _, changes = of_property({"$ref": "#/$defs/d0"}, **{"$defs": definitions})
    assert 0 < sum(kind == "left_out" for kind, _ in changes) < 50


def test_a_reference_without_end_is_left_out() -> None:
    circle = {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}
    _, changes = of_property({"$ref": "#/$defs/a"}, **{"$defs": circle})
    assert [place for kind, place in changes if kind == "left_out"] == ["/$defs/b/allOf/0"]


def test_nesting_number_and_patterns_are_bounded() -> None:
    deep: Any = STRING
    for _ in range(60):
        deep = {"type": "object", "properties": {"p": deep}}
    wide = {"properties": {f"p{n}": {"type": "string", "title": "x"} for n in range(3_000)}}
    slow = {"properties": {f"p{n}": {"pattern": rf"^(\w{{50}}){{20}}{n}$"} for n in range(40)}}
    for part, limit in ((deep, "32 levels"), (wide, "1,000 parts"), (slow, "16 patterns")):
        found = declared({"type": "object", "properties": {"p": part}})
        assert limit in found.left_out[0].detail


def test_lists_are_bounded() -> None:
    names = [f"${n}" for n in range(6_000)]
    for schema, place in (
        ({"required": names, "properties": {}}, "/required"),
        ({"properties": {"p": {"dependentRequired": {"a": names}}}},
         "/properties/p/dependentRequired/a"),
        ({"properties": {"p": {"enum": names}}}, "/properties/p/enum"),
    ):  # fmt: skip
        found = declared(schema)
        assert [each.place for each in found.left_out] == [place]
        assert len(found.json) < 1_000


def test_what_is_left_out_is_named_however_much_is_repaired() -> None:
    parts = {f"p{n}": {"type": "str"} for n in range(99)}
    found = declared({"properties": {**parts, "odd": {"$ref": "#/none"}}})
    assert [each.place for each in found.left_out] == ["/properties/odd/$ref"]


def test_definitions_keep_their_place_and_order() -> None:
    """Only what a reference leads to, so that no bytes are sent for nothing."""
    schema = {
        "$defs": {"B": STRING, "unused": STRING, "A": {"$ref": "#/$defs/B"}},
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/properties/a"}},
    }
    found = declared(schema).schema
    assert list(found) == ["$defs", "type", "properties"]
    assert list(found["$defs"]) == ["B", "A", "a"]


def test_a_long_list_of_changes_is_cut_and_counted() -> None:
    found = declared({"properties": {f"p{n}": {"type": "gadget"} for n in range(99)}})
    assert (len(found.changes), found.more_changes) == (50, 49)
    assert found.incomplete.endswith("; and 96 more")


def test_a_schema_of_two_megabytes_is_refused_by_its_tool() -> None:
    large = {"type": "object", "properties": {"p": {"description": "x" * 2_000_000}}}
    with pytest.raises(InvalidToolError, match=r"'big'.* take 2,000,0\d\d bytes as JSON"):
        Tool(name="big", parameters=large)


def test_what_references_repeat_is_bounded_too() -> None:
    part: Any = {"description": "x" * 200_000}
    path = "#/properties/p"
    references = {}
    for n in range(20):
        part = {"properties": {"p": part}}
        path += "/properties/p"
        references[f"r{n}"] = {"$ref": path.removesuffix("/properties/p")}
    found = declared({"type": "object", "properties": {"p": part, **references}})
    assert len(found.json) < 1_048_576
    assert "bytes with its references" in found.changes[-1].detail


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "array", "items": STRING}}},
        {"required": ["a"], "properties": {"a": {"anyOf": [STRING, {"type": "null"}]}},
         "type": "object", "additionalProperties": False},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": STRING}},
    ],
)  # fmt: skip
def test_a_valid_schema_is_declared_byte_for_byte(schema: dict[str, Any]) -> None:
    tool = Tool(name="t", parameters=schema)
    assert schema_json(tool) == tool.parameters_json
    assert not declared_schema(tool).changes
