"""Behaviour of argument schemas: what is taken, and what a model is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search import InvalidToolError
from tool_search.catalog.schema.declared import object_schema
from tool_search.core.catalog.tool import normalized_parameters
from tool_search.core.values.json import compact_json

REFUSED_AT_TOP = {"anyOf", "oneOf", "allOf", "enum", "not", "$ref"}
X, Y, K = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
TEXT = st.text(max_size=5)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
BROKEN_OR_NOT = st.fixed_dictionaries(
    {},
    optional={
        "type": st.just("object") | JSON_VALUES,
        "properties": st.dictionaries(TEXT, JSON_VALUES, max_size=3) | JSON_VALUES,
        "required": st.lists(TEXT, max_size=3) | JSON_VALUES,
        "$ref": st.sampled_from(["#/$defs/a", "#/no", "#", "https://x"]) | JSON_VALUES,
        "$defs": st.fixed_dictionaries({"a": JSON_VALUES}) | JSON_VALUES,
        "title": TEXT,
    },
)
SCHEMAS = st.recursive(
    BROKEN_OR_NOT,
    lambda part: st.builds(
        lambda base, key, parts: {**base, key: parts},
        BROKEN_OR_NOT,
        st.sampled_from(["anyOf", "oneOf", "allOf"]),
        st.lists(part, max_size=3) | JSON_VALUES,
    ),
    max_leaves=5,
)


@pytest.mark.parametrize("nothing", [None, {}])
def test_no_parameters_mean_no_arguments(nothing: object) -> None:
    assert normalized_parameters("t", nothing) == ({}, "{}")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": ["object", "null"], "properties": {}},
        {"properties": {"a": {}}},
        {"anyOf": [{"type": "object"}]},
        {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}},
    ],
)
def test_an_object_schema_is_taken_as_it_stands(schema: dict[str, Any]) -> None:
    assert normalized_parameters("t", schema)[0] == schema


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "string"}, {"type": ["string", "null"]}, {"description": "x"}, [], "{}", 5, True,
        {"type": "object", "properties": []}, {"type": "object", "default": float("nan")},
        {"type": "object", "properties": {"a": object()}}, {"type": "object", "x": {1, 2}},
    ],
)  # fmt: skip
def test_anything_else_is_an_error_that_names_the_tool(wrong: object) -> None:
    with pytest.raises(InvalidToolError, match="'get_time'"):
        normalized_parameters("get_time", wrong)


def test_a_schema_that_holds_itself_is_an_error() -> None:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = schema
    with pytest.raises(InvalidToolError, match="cannot be written as JSON"):
        normalized_parameters("t", schema)


def test_a_schema_deeper_than_the_stack_is_an_error() -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(100_000):
        schema = {"type": "object", "properties": schema}
    with pytest.raises(InvalidToolError, match="cannot be written as JSON"):
        normalized_parameters("t", schema)


@pytest.mark.parametrize("levels", [401, 600])
def test_a_schema_of_more_than_400_levels_is_an_error(levels: int) -> None:
    schema: dict[str, Any] = {}
    for _ in range(levels - 1):
        schema = {"properties": schema}
    with pytest.raises(InvalidToolError, match="nested deeper than 400 levels"):
        normalized_parameters("deep", schema)


def test_lone_surrogates_are_replaced() -> None:
    schema = {"type": "object", "description": "a\ud800b"}
    assert normalized_parameters("t", schema)[0]["description"] == "a?b"


def test_json_is_compact_unescaped_and_in_the_given_order() -> None:
    assert compact_json({"b": [1, "天气"], "a": None}) == '{"b":[1,"天气"],"a":null}'


@pytest.mark.parametrize(
    ("schema", "properties", "required"),
    [
        pytest.param({}, {}, None, id="empty"),
        pytest.param({"type": ["object", "null"], "properties": {"x": X}}, {"x": X}, None, id="or"),
        pytest.param(
            {"anyOf": [{"properties": {"x": X, "k": K}, "required": ["x", "k"]},
                       {"properties": {"y": Y}, "required": ["k"]}]},
            {"x": X, "k": K, "y": Y}, ["k"], id="any of two",
        ),
        pytest.param(
            {"properties": {"x": X}, "required": ["x"], "allOf": [{"required": ["b"]},
             {"required": ["a"], "properties": {"x": Y}}]},
            {"x": X}, ["x", "a", "b"], id="all of two",
        ),
        pytest.param(
            {"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"x": X}, "required": ["x"]}}},
            {"x": X}, ["x"], id="a reference",
        ),
        pytest.param(
            {"$ref": "#/$defs/A/allOf/0", "$defs": {"A": {"allOf": [{"properties": {"x": X}}]}}},
            {"x": X}, None, id="a reference through a list",
        ),
        pytest.param(
            {"oneOf": [{"$ref": "#/$defs/a~1b"}, {"$ref": "#/$defs/B"}],
             "$defs": {"a/b": {"properties": {"x": X}},
                       "B": {"allOf": [{"properties": {"y": Y}}]}}},
            {"x": X, "y": Y}, None, id="references in branches",
        ),
        pytest.param(
            {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, {}, None, id="a circle"
        ),
    ],
)  # fmt: skip
def test_branches_and_references_become_one_list_of_properties(
    schema: dict[str, Any], properties: dict[str, Any], required: list[str] | None
) -> None:
    """A model still sees every argument, and what it must give in any case."""
    shown = object_schema(schema)
    assert shown["type"] == "object"
    assert shown["properties"] == properties
    assert shown.get("required") == required


@pytest.mark.parametrize(
    "plain",
    [
        {"type": "object", "properties": {}},
        {"required": ["a"], "properties": {"a": X}, "type": "object", "$defs": {}},
        {"type": "object", "required": [], "properties": {"a": X}, "additionalProperties": False},
    ],
)
def test_a_plain_schema_is_shown_byte_for_byte(plain: dict[str, Any]) -> None:
    """Most schemas are plain: their bytes are their author's."""
    assert compact_json(object_schema(plain)) == compact_json(plain)


def test_references_that_meet_again_are_followed_once_each() -> None:
    """A few hundred of them would else be billions of ways."""
    again = [{"$ref": "#/$defs/a"}, {"$ref": "#"}] * 300
    own = {"properties": {"x": {"type": "integer"}}, "required": ["x"]}
    schema = {"anyOf": again, "$defs": {"a": {**own, "anyOf": again}}}
    assert object_schema(schema)["properties"] == own["properties"]


@given(SCHEMAS)
def test_whatever_a_server_calls_a_schema_is_shown_as_an_object_schema(
    schema: dict[str, Any],
) -> None:
    """No schema of a stranger's raises, and none reaches a provider that would refuse it."""
    before = json.dumps(schema)
    shown = object_schema(schema)
    assert shown["type"] == "object"
    assert isinstance(shown["properties"], dict)
    assert not REFUSED_AT_TOP & shown.keys()
    assert compact_json(object_schema(shown)) == compact_json(shown)
    assert json.dumps(schema) == before
