"""Schemas as a service takes them: never refused, and never stricter than the tool's own."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.services.rules import TREE, leads_back, levels
from tool_search import Tool
from tool_search.adapters.wire.schemas import moonshot_schema, sent_schema, sent_schema_json
from tool_search.providers.profile_choice import profile_for
from tool_search.testing.services.moonshot import moonshot_complaint

NAMES = st.sampled_from(["a", "b", "c/d", "required"])
TYPES = st.sampled_from(["string", "integer", "number", "object", "array", "null", "boolean"])
REFERENCES = st.sampled_from(
    ["#", "#/$defs/a", "#/definitions/c~1d", "#/properties/a", "#/properties/a/items", "#/nowhere"]
)
LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.booleans(),
    st.just({}),
    st.builds(lambda kind: {"type": kind}, TYPES),
    st.builds(lambda kinds: {"type": kinds}, st.lists(TYPES, min_size=1, max_size=3, unique=True)),
    st.builds(lambda target: {"$ref": target}, REFERENCES),
    st.just({"enum": ["x", 1]}),
    st.just({"type": "string", "minLength": 2}),
    st.just({"required": ["a"]}),
)


def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(NAMES, inner, max_size=2)
    several = st.lists(inner, min_size=1, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES,
            "properties": named,
            "required": st.lists(NAMES, max_size=2, unique=True),
            "items": inner,
            "anyOf": several,
            "oneOf": several,
            "additionalProperties": inner,
            "$ref": REFERENCES,
            "title": st.just("T"),
            "default": st.none(),
        },
    )


SCHEMAS = st.recursive(LEAVES, larger, max_leaves=6)
ROOTS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(NAMES, SCHEMAS, max_size=3)},
    optional={
        "$defs": st.fixed_dictionaries({"a": SCHEMAS}),
        "definitions": st.fixed_dictionaries({"c/d": SCHEMAS}),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "additionalProperties": SCHEMAS,
    },
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["x", "", "long"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)


@given(ROOTS)
def test_any_schema_is_written_so_that_moonshot_takes_it(schema: dict[str, Any]) -> None:
    assert moonshot_complaint(moonshot_schema(schema)) is None


@given(ROOTS, st.dictionaries(NAMES, VALUES, max_size=3))
def test_arguments_that_fit_still_fit(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    try:
        own = jsonschema_rs.validator_for(schema)
        fits = own.is_valid(arguments)
    except (ValueError, jsonschema_rs.ReferencingError):
        return
    written = jsonschema_rs.validator_for(moonshot_schema(schema))
    assert written.is_valid(arguments) or not fits


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        (
            {"type": "string", "anyOf": [{"minLength": 1}, {"const": "x"}]},
            {"anyOf": [{"type": "string", "minLength": 1}, {"type": "string", "const": "x"}]},
        ),
        (
            {"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}]},
            {"type": "object", "properties": {"a": {}}},
        ),
        (
            {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "N"},
            {"default": None, "title": "N", "anyOf": [{"type": "integer"}, {"type": "null"}]},
        ),
        (True, {}),
        ({"type": "array", "items": False}, {"type": "array"}),
        ({"$ref": "#/$defs/n", "type": "string"}, {"$ref": "#/$defs/n"}),
        ({"$ref": "https://example.com/s.json", "type": "string"}, {"type": "string"}),
        ({"type": "object", "required": ["gone"]}, {"type": "object"}),
    ],
    ids=str,
)
def test_property_is_written(schema: Any, written: dict[str, Any]) -> None:
    root = {"type": "object", "properties": {"p": schema}, "$defs": {"n": {"type": "string"}}}
    assert moonshot_schema(root)["properties"]["p"] == written


def test_definitions_of_older_drafts_are_found_at_the_top() -> None:
    schema = {
        "type": "object",
        "properties": {
            "one": {"$ref": "#/definitions/part"},
            "two": {"type": "object", "$defs": {"part": {"type": "integer"}}},
            "three": {"$ref": "#/properties/two/$defs/part"},
        },
        "definitions": {"part": {"type": "string"}},
    }
    assert moonshot_schema(schema) == {
        "type": "object",
        "properties": {
            "one": {"$ref": "#/$defs/part"},
            "two": {"type": "object"},
            "three": {"$ref": "#/$defs/part1"},
        },
        "$defs": {"part": {"type": "string"}, "part1": {"type": "integer"}},
    }


def test_list_of_its_own_kind_is_not_required() -> None:
    """Moonshot takes it for a recursion without an end."""
    tree = {"type": "array", "items": {"$ref": "#"}}
    name = {"type": "string"}
    schema = {
        "type": "object",
        "properties": {"name": name, "children": tree},
        "required": ["name", "children"],
    }
    assert moonshot_schema(schema)["required"] == ["name"]


def test_schema_beyond_the_limits_is_any_object() -> None:
    wide = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(9_000)}}
    assert moonshot_schema(wide) == {"type": "object"}
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(390):
        deep = {"type": "object", "properties": {"p": deep}}
    assert json.dumps(moonshot_schema(deep)).count("properties") < 30


def limited(schema: dict[str, Any], **rules: Any) -> dict[str, Any]:
    """Return a schema as a service with these rules is sent it."""
    profile = replace(profile_for("openai_chat", "house-model"), **rules)
    tool = Tool(name="prune", description="Prunes.", parameters=schema)
    sent = sent_schema(tool, profile)
    assert json.loads(sent_schema_json(tool, profile)) == sent
    return sent


def test_only_the_reference_that_closes_a_circle_is_left_out() -> None:
    sent = limited(TREE, schema_rules="acyclic")
    node = sent["$defs"]["Node"]["properties"]
    assert node["children"] == {"type": "array", "items": {}}
    assert node["place"] == {"$ref": "#/$defs/Place"} == sent["properties"]["at"]
    assert limited(TREE) == {**TREE}


def test_circle_under_a_negation_takes_the_negation_with_it() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"not": {"properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"]}}},
    }
    assert limited(schema, schema_rules="acyclic")["$defs"]["A"] == {}


def test_members_below_the_last_level_are_left_out_and_the_rest_stays() -> None:
    deep: dict[str, Any] = {"type": "array", "items": {"type": "string"}, "description": "end"}
    for _ in range(3):
        deep = {"type": "object", "properties": {"in": deep, "at": {"$ref": "#/$defs/P"}}}
    schema = {**deep, "$defs": {"P": {"type": "object", "properties": {"x": {"type": "integer"}}}}}
    sent = limited(schema, max_schema_levels=4)
    at = {"$ref": "#/$defs/P"}
    first = sent["properties"]
    assert first["at"] == first["in"]["properties"]["at"] == at
    assert first["in"]["properties"]["in"]["properties"]["in"] == {"description": "end"}
    assert sent["$defs"] == {"P": {"type": "object"}}


@given(ROOTS, st.dictionaries(NAMES, VALUES, max_size=3))
def test_limits_hold_for_any_schema_and_refuse_no_argument(
    schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    whole = limited(schema)
    sent = limited(schema, schema_rules="acyclic", max_schema_levels=4)
    assert not leads_back(sent, sent, ())
    assert levels(sent) <= 4
    if jsonschema_rs.is_valid(whole, arguments):
        assert jsonschema_rs.is_valid(sent, arguments)
