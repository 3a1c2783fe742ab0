"""A tool and a catalog cannot be changed after they were made."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jsonschema_rs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tool_search import CatalogError, Tool, ToolCatalog
from tool_search.catalog.schema.declared import schema_json
from tool_search.core.catalog.catalog import CorePolicy
from tool_search.core.values.json import FrozenDict, FrozenList, frozen

SCHEMA = {
    "type": "object",
    "properties": {"labels": {"type": "array", "items": {"enum": ["a", "b"]}}},
    "required": ["labels"],
}
CHANGES: list[Callable[[Any], object]] = [
    lambda it: it.clear(),
    lambda it: it.pop("type"),
    lambda it: it.popitem(),
    lambda it: it.setdefault("x", 1),
    lambda it: it.update(x=1),
    lambda it: it.__setitem__("x", 1),
    lambda it: it.__delitem__("type"),
    lambda it: it.__ior__({"x": 1}),
    lambda it: it["properties"].clear(),
    lambda it: it["properties"]["labels"]["items"]["enum"].append("c"),
    lambda it: it["required"].clear(),
    lambda it: it["required"].extend(["x"]),
    lambda it: it["required"].insert(0, "x"),
    lambda it: it["required"].pop(),
    lambda it: it["required"].remove("labels"),
    lambda it: it["required"].reverse(),
    lambda it: it["required"].sort(),
    lambda it: it["required"].__setitem__(0, "x"),
    lambda it: it["required"].__delitem__(0),
    lambda it: it["required"].__iadd__(["x"]),
    lambda it: it["required"].__imul__(2),
]


def made() -> Tool:
    return Tool(
        name="t", parameters=SCHEMA, output_schema=SCHEMA, annotations=SCHEMA, examples=[SCHEMA]
    )


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("place", ["parameters", "output_schema", "annotations", "examples"])
def test_no_part_of_a_tool_can_be_changed(change: Callable[[Any], object], place: str) -> None:
    tool = made()
    value: Any = getattr(tool, place)
    value = value[0] if place == "examples" else value
    with pytest.raises(CatalogError, match=r"dataclasses\.replace"):
        change(value)
    with pytest.raises(TypeError):
        change(value)
    assert value == SCHEMA
    assert tool.fingerprint == made().fingerprint


def test_a_schema_that_was_given_belongs_to_its_owner() -> None:
    given_ = copy.deepcopy(SCHEMA)
    tool = Tool(name="t", parameters=given_, annotations=(facts := {}))
    given_.clear()
    facts["read_only"] = True
    assert tool.parameters == SCHEMA
    assert tool.annotations == {}


def test_a_schema_is_made_once() -> None:
    tool = made()
    assert tool.parameters is tool.parameters
    assert replace(tool, name="u").parameters == tool.parameters


@pytest.mark.parametrize("form", [copy.deepcopy, copy.copy, dict])
def test_a_copy_of_a_schema_can_be_changed(form: Callable[[Any], dict[str, Any]]) -> None:
    copied = form(made().parameters)
    copied["title"] = "x"
    assert "title" not in made().parameters
    if form is copy.deepcopy:
        copied["required"].append("x")
        copied["properties"]["labels"]["items"]["enum"].append("c")


def test_what_a_tool_gives_is_plain_json() -> None:
    tool = made()
    content = tool.to_dict()
    assert yaml.safe_load(yaml.safe_dump(content)) == content
    assert jsonschema_rs.validator_for(content["parameters"]).is_valid({"labels": ["a"]})
    content["parameters"].clear()
    content["annotations"].clear()
    assert tool == made()
    assert Tool.from_dict(tool.to_dict()) == tool


@pytest.mark.parametrize(
    "form",
    [
        lambda tool: pickle.loads(pickle.dumps(tool)),  # noqa: S301  # our own bytes
        copy.deepcopy,
        copy.copy,
        lambda tool: Tool(**{**tool.to_dict(), "kind": tool.kind}),
        replace,
    ],
)
def test_a_copied_tool_is_the_same_and_cannot_be_changed(form: Callable[[Tool], Tool]) -> None:
    tool = made()
    assert tool.parameters
    copied = form(tool)
    assert copied == tool
    assert copied.parameters == SCHEMA
    assert schema_json(copied) == schema_json(tool)
    parameters: Any = copied.parameters
    with pytest.raises(TypeError):
        parameters["properties"]["labels"].clear()


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON_VALUES)
def test_a_frozen_value_is_equal_and_frozen_throughout(value: Any) -> None:
    written = json.dumps(value)
    result = frozen(value)
    assert result == value
    assert json.dumps(result) == json.dumps(value) == written
    assert copy.deepcopy(result) == value
    assert pickle.loads(pickle.dumps(result)) == value  # noqa: S301  # our own bytes
    waiting = [result]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            assert type(part) is FrozenDict
            waiting.extend(part.values())
        elif isinstance(part, list):
            assert type(part) is FrozenList
            waiting.extend(part)


@pytest.mark.parametrize("name", ["policy", "book", "reserved", "repeated"])
def test_an_attribute_of_a_catalog_cannot_be_set(name: str) -> None:
    catalog = ToolCatalog([Tool(name="a"), Tool(name="b", always_load=True)])
    before = catalog.fingerprint
    with pytest.raises(AttributeError):
        setattr(catalog, name, CorePolicy(always_loaded_tools=("a",)))
    assert catalog.with_policy(CorePolicy(always_loaded_tools=("a",))).core != catalog.core
    assert catalog.fingerprint == before
