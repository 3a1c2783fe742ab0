"""Arguments against a tool's schema."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tool_search import Tool
from tool_search.validation import complaints_about

SCHEMA = {
    "type": "object",
    "properties": {
        "items": {"type": "array", "items": {"type": "object", "properties": {
            "count": {"type": "integer"}}}},
        "unit": {"enum": ["C", "F"]},
    },
    "required": ["unit"],
    "additionalProperties": False,
}  # fmt: skip


def complaints(schema: dict[str, Any], arguments: dict[str, Any]) -> tuple[str, ...]:
    """What is wrong with arguments under a schema."""
    return complaints_about(Tool(name="t", parameters=schema), arguments)


def test_arguments_that_fit_have_no_complaints() -> None:
    """Nothing is said."""
    assert complaints(SCHEMA, {"unit": "C", "items": [{"count": 1}]}) == ()


def test_a_complaint_names_the_place() -> None:
    """The model knows what to correct."""
    (said,) = complaints(SCHEMA, {"unit": "C", "items": [{}, {"count": "x"}]})
    assert said == 'items/1/count: "x" is not of type "integer"'


def test_everything_wrong_is_said_at_once_up_to_five() -> None:
    """A model needs one more try, not five; nor fifty sentences."""
    said = complaints(SCHEMA, {"extra": 1, "items": 5})
    assert len(said) == 3
    many: dict[str, Any] = {"properties": {f"p{n}": {"type": "integer"} for n in range(50)}}
    assert len(complaints(many, {f"p{n}": "x" for n in range(50)})) == 5


def test_a_complaint_about_a_huge_value_is_cut() -> None:
    """The value is the model's own, and in the history already."""
    (said,) = complaints({"properties": {"a": {"type": "integer"}}}, {"a": "x" * 10_000})
    assert len(said) < 300


def test_a_tool_without_schema_takes_anything() -> None:
    """Some servers do not say what they want."""
    assert complaints({}, {"whatever": 1}) == ()


def test_references_and_formats_of_the_schema_itself_are_followed() -> None:
    """As 2020-12 has them."""
    schema = {"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}
    assert complaints(schema, {"a": 1}) == ()
    assert complaints(schema, {"a": "x"})


def test_the_draft_that_a_schema_names_is_its_own() -> None:
    """In draft 4, `exclusiveMinimum` is a boolean."""
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#", "type": "object",
        "properties": {"a": {"minimum": 1, "exclusiveMinimum": True}},
    }  # fmt: skip
    assert complaints(schema, {"a": 1})
    assert complaints(schema, {"a": 2}) == ()


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "object", "properties": {"a": {"type": "strin"}}},
        {"type": "object", "properties": {"a": {"$ref": "https://example.com/schema"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}},
        {"type": "object", "properties": {"a": {"pattern": "("}}},
        {"type": "object", "$schema": "http://example.com/none"},
        {"type": "object", "required": True},
    ],
)
def test_a_broken_schema_leaves_the_judgement_to_the_tool(
    broken: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """A server's mistake makes no tool uncallable, and nothing is fetched; it is logged."""
    with caplog.at_level(logging.WARNING):
        assert complaints(broken, {"a": 1}) == ()
    assert "schema is broken" in caplog.text
