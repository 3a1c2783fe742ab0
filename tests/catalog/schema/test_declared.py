"""Properties of declared schemas, for schemas and arguments of any kind."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.schema.hostile import KEYS, VALUES, hostile_schemas
from tool_search import Tool
from tool_search.adapters.anthropic import wire as anthropic_wire
from tool_search.adapters.openai_chat import wire as openai_chat_wire
from tool_search.adapters.openai_responses import wire as openai_responses_wire
from tool_search.catalog.schema.declared import declare, declared_schema
from tool_search.catalog.schema.vocabulary import is_wire_key, wire_key
from tool_search.core.catalog.schemas import TooComplexError
from tool_search.core.messages import DeclaredTool, ToolList
from tool_search.providers.profile_choice import profile_for
from tool_search.testing.services.schemas import schema_faults
from tool_search.testing.strict_schema import function_schema_problem

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
many = settings(max_examples=5_000 if IS_LONG else 60)
REFUSED_AT_TOP = {"anyOf", "oneOf", "allOf", "enum", "not", "$ref"}


def wire_schemas(tool: Tool) -> Iterator[dict[str, Any]]:
    """The schema in each dialect's request, as it is parsed from its bytes."""
    tools = ToolList([DeclaredTool(tool)])
    claude = profile_for("anthropic", "claude-sonnet-4-6")
    chat = profile_for("openai_chat", "gpt-5.4")
    responses = profile_for("openai_responses", "gpt-5.4")
    yield json.loads(anthropic_wire.encode_tools(tools, claude))[0]["input_schema"]
    yield json.loads(openai_chat_wire.encode_tools(tools, chat))[0]["function"]["parameters"]
    yield json.loads(openai_responses_wire.encode_tools(tools, responses))[0]["parameters"]


@many
@given(hostile_schemas())
def test_every_dialect_declares_a_valid_schema_whatever_was_given(schema: dict[str, Any]) -> None:
    """One schema that a service refuses would end every request of the bot."""
    before = json.dumps(schema)
    tool = Tool(name="t", parameters=schema)
    for shown in wire_schemas(tool):
        jsonschema_rs.meta.validate(shown)
        jsonschema_rs.Draft202012Validator(shown, offline=True)
        assert schema_faults(shown).keys is None
        assert function_schema_problem(shown) is None
        assert shown["type"] == "object"
        assert not REFUSED_AT_TOP & shown.keys()
    assert json.dumps(schema) == before


@many
@given(hostile_schemas())
def test_what_is_declared_is_stable_and_needs_no_repair(schema: dict[str, Any]) -> None:
    """Prompt caches are prefixes: the same definition gives the same bytes."""
    tool = Tool(name="t", parameters=schema)
    found = declared_schema(tool)
    assert declare(dict(tool.parameters), tool.parameters_json).json == found.json
    assert json.loads(found.json) == found.schema
    again = declare(json.loads(found.json), found.json)
    assert not again.changes
    assert all(is_wire_key(key) for key in found.schema["properties"])


@many
@given(hostile_schemas(), st.dictionaries(KEYS, VALUES, max_size=4))
def test_arguments_go_to_the_wire_and_back(schema: dict[str, Any], given_: dict[str, Any]) -> None:
    """Valid arguments are never refused on the wire, and those valid there fit the tool."""
    found = declared_schema(Tool(name="t", parameters=schema))
    own, twice = found.canonical(given_)
    if twice:
        return
    shown = found.on_wire(own)
    assert found.canonical(shown) == (own, ())
    assert found.on_wire(found.canonical(shown)[0]) == shown
    fits = jsonschema_rs.Draft202012Validator(found.sound).is_valid(own)
    fits_shown = jsonschema_rs.Draft202012Validator(found.wire).is_valid(shown)
    assert fits_shown or not fits
    assert fits or not fits_shown or found.left_out


@many
@given(hostile_schemas(), st.dictionaries(KEYS, VALUES, max_size=4))
def test_repair_refuses_nothing_that_a_valid_schema_takes(
    schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    tool = Tool(name="t", parameters=schema)
    try:
        given_ = jsonschema_rs.validator_for(dict(tool.parameters), offline=True)
    except ValueError:  # it is not a valid schema
        return
    if given_.is_valid(arguments) and "nullable" not in json.dumps(schema):
        assert jsonschema_rs.Draft202012Validator(declared_schema(tool).sound).is_valid(arguments)


ODATA = Tool(
    name="list_files",
    parameters={
        "type": "object",
        "properties": {
            "$filter": {"type": "string", "description": "An OData filter."},
            "名字": {"type": "string"},
            "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "mode": {"enum": [{"user id": 1}, "x"]},
        },
        "required": ["$filter"],
        "dependentRequired": {"名字": ["$filter"]},
        "$defs": {
            "row": {
                "anyOf": [
                    {"properties": {"user id": {"type": "integer"}}, "required": ["user id"]},
                    {"properties": {"next": {"$ref": "#/$defs/row"}}, "required": ["next"]},
                ]
            }
        },
    },
)
FILTER, NAME, USER = wire_key("$filter"), wire_key("名字"), wire_key("user id")


def test_keys_are_renamed_at_every_level_and_wherever_they_are_named() -> None:
    shown = declared_schema(ODATA).schema
    assert list(shown["properties"]) == [FILTER, NAME, "rows", "labels", "mode"]
    assert shown["properties"][FILTER]["description"] == "$filter: An OData filter."
    assert shown["properties"][NAME]["description"] == "名字"
    assert shown["required"] == [FILTER]
    assert shown["dependentRequired"] == {NAME: [FILTER]}
    assert shown["properties"]["mode"]["enum"] == [{"user id": 1}, "x"]
    row = shown["$defs"]["row"]["anyOf"]
    assert (list(row[0]["properties"]), row[0]["required"]) == ([USER], [USER])


def test_only_arguments_that_the_schema_names_are_renamed() -> None:
    shown = {
        FILTER: "x",
        "rows": [{USER: 1}, {"next": {USER: 2}}],
        "labels": {"$filter": "a", USER: "b"},
    }
    own, twice = declared_schema(ODATA).canonical(shown)
    assert own == {
        "$filter": "x",
        "rows": [{"user id": 1}, {"next": {"user id": 2}}],
        "labels": {"$filter": "a", USER: "b"},
    }
    assert not twice
    assert declared_schema(ODATA).canonical(own) == (own, ())
    assert declared_schema(ODATA).on_wire(own) == shown


def test_a_key_under_both_its_names_is_kept_under_both() -> None:
    both = {"$filter": "a", FILTER: "b"}
    assert declared_schema(ODATA).canonical(both) == (both, ((FILTER, "$filter"),))
    assert declared_schema(ODATA).on_wire(both) == both


def test_values_within_a_schema_are_declared_under_the_same_keys() -> None:
    part = {"type": "object", "properties": {"$x": {}}}
    parts = {"p": {**part, "default": {"$x": 1}, "examples": [{"$x": 2}], "const": {"$x": 3}}}
    shown = declared_schema(Tool(name="t", parameters={"properties": parts})).schema
    name = wire_key("$x")
    p = shown["properties"]["p"]
    assert (p["default"], p["examples"], p["const"]) == ({name: 1}, [{name: 2}], {name: 3})


def test_a_key_that_collides_with_anothers_wire_name_gets_the_next() -> None:
    schema = {"properties": {"$filter": {}, FILTER: {"type": "integer"}}, "required": ["$filter"]}
    found = declared_schema(Tool(name="t", parameters=schema))
    renamed = wire_key("$filter", 1)
    assert list(found.schema["properties"]) == [renamed, FILTER]
    assert found.canonical({renamed: "a", FILTER: 1})[0] == {"$filter": "a", FILTER: 1}


def test_rules_for_the_spelling_of_keys_do_not_hold_for_renamed_ones() -> None:
    schema = {
        "properties": {"$filter": {"type": "string"}},
        "propertyNames": {"pattern": "^\\$"},
        "patternProperties": {"^f": {"type": "integer"}, "^x-": {"type": "integer"}},
    }
    found = declared_schema(Tool(name="t", parameters=schema))
    assert "propertyNames" not in found.schema
    assert found.schema["patternProperties"] == {"^f": {}, "^x-": {"type": "integer"}}
    assert [each.place for each in found.left_out] == ["/propertyNames", "/patternProperties/^f"]


def test_translating_arguments_takes_bounded_work() -> None:
    tree = {"properties": {"$c": {"$ref": "#"}}}
    found = declared_schema(Tool(name="t", parameters=tree))
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"$c": deep}
    wide = {"$c": {f"k{n}": n for n in range(100_000)}}
    for arguments in (deep, wide):
        with pytest.raises(TooComplexError, match="cannot be translated"):
            found.canonical(arguments)
