"""Arguments against a tool's schema."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tool_search import Tool
from tool_search.catalog.schema.vocabulary import wire_key
from tool_search.catalog.validation import complaints_about

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
    """Return the errors in arguments under a schema."""
    return complaints_about(Tool(name="t", parameters=schema), arguments)


def test_arguments_that_fit_have_no_complaints() -> None:
    assert complaints(SCHEMA, {"unit": "C", "items": [{"count": 1}]}) == ()


def test_a_complaint_names_the_place() -> None:
    (said,) = complaints(SCHEMA, {"unit": "C", "items": [{}, {"count": "x"}]})
    assert said == 'items/1/count: "x" is not of type "integer"'


def test_everything_wrong_is_said_at_once_up_to_five() -> None:
    said = complaints(SCHEMA, {"extra": 1, "items": 5})
    assert len(said) == 3
    many: dict[str, Any] = {"properties": {f"p{n}": {"type": "integer"} for n in range(50)}}
    assert len(complaints(many, {f"p{n}": "x" for n in range(50)})) == 5


def test_a_complaint_about_a_huge_value_is_cut() -> None:
    (said,) = complaints({"properties": {"a": {"type": "integer"}}}, {"a": "x" * 10_000})
    assert len(said) < 300


def test_a_tool_without_schema_takes_anything() -> None:
    assert complaints({}, {"whatever": 1}) == ()


def test_references_and_formats_of_the_schema_itself_are_followed() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}
    assert complaints(schema, {"a": 1}) == ()
    assert complaints(schema, {"a": "x"})


def test_the_draft_that_a_schema_names_is_its_own() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#", "type": "object",
        "properties": {"a": {"minimum": 1, "exclusiveMinimum": True}},
    }  # fmt: skip
    assert complaints(schema, {"a": 1})
    assert complaints(schema, {"a": 2}) == ()


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "object", "properties": {"a": {"type": "gadget"}}},
        {"type": "object", "properties": {"a": {"$ref": "https://example.com/schema"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}},
        {"type": "object", "properties": {"a": {"pattern": "("}}},
        {"type": "object", "properties": {"a": [1]}},
    ],
)
def test_a_broken_schema_leaves_the_judgement_to_the_tool(
    broken: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """A server's mistake makes no tool uncallable, and nothing is fetched; it is logged."""
    with caplog.at_level(logging.WARNING):
        assert complaints(broken, {"a": 1}) == ()
    assert "schema is broken" in caplog.text


@pytest.mark.parametrize(
    "part",
    [
        {"type": "strin"}, {"type": "str", "nullable": False}, {"$ref": "#/definitions/a"},
        {"type": "array", "items": [{"type": "string"}]},
    ],
)  # fmt: skip
def test_what_a_schema_plainly_means_is_checked(part: dict[str, Any]) -> None:
    schema = {"properties": {"a": part}, "$defs": {"a": {"type": "string"}}}
    assert complaints(schema, {"a": "x"}) == () or part["type"] == "array"
    assert complaints(schema, {"a": ["x"]}) == () or part.get("type") != "array"
    assert complaints(schema, {"a": 1})


def test_a_complaint_names_keys_as_the_model_reads_them() -> None:
    """It has never seen the others."""
    schema = {
        "properties": {"$filter": {"properties": {"user id": {"type": "integer"}}}},
        "required": ["名字"],
        "additionalProperties": False,
    }
    said = complaints(schema, {"$filter": {"user id": "x"}, "$other": 1})
    name, key, user = (wire_key(each) for each in ("名字", "$filter", "user id"))
    assert f'{key}/{user}: "x" is not of type "integer"' in said
    assert any(f'"{name}" is a required property' in each for each in said)
    assert not any("$filter" in each or "名字" in each for each in said)


def doubling(keyword: str, levels: int) -> dict[str, Any]:
    """A schema of a kilobyte that asks for 2 to the power of its levels evaluations."""
    parts: dict[str, Any] = {
        f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)
    }
    parts[f"d{levels}"] = {"type": "string"}
    return {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": parts}


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
@pytest.mark.parametrize("levels", [9, 20, 200])
def test_a_schema_of_many_alternatives_is_checked_in_bounded_work(
    keyword: str, levels: int
) -> None:
    """Unbounded, twenty levels take a minute, and two hundred for ever."""
    said = complaints(doubling(keyword, levels), {"a": 1})
    assert len(said) <= 1


def test_a_wrong_call_that_is_costly_to_explain_gets_a_plain_complaint() -> None:
    """A yes or no is quick; a validator would collect the errors of each branch."""
    (said,) = complaints(doubling("anyOf", 8), {"a": 1})
    assert said.startswith("some value in them does not fit")


def test_the_first_error_of_large_arguments_is_named_if_that_is_quick() -> None:
    schema = {"properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
    assert complaints(schema, {"a": [*range(20_000), "x"]}) == (
        'a/20000: "x" is not of type "integer"',
    )


def test_arguments_too_large_to_check_are_refused_by_a_sentence() -> None:
    node = {
        "anyOf": [{"properties": {"c": {"$ref": "#/$defs/n"}}, "minProperties": n} for n in (0, 1)]
    }
    tree = {"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": node}}
    deep: dict[str, Any] = {}
    for _ in range(60):
        deep = {"c": deep}
    (said,) = complaints(tree, {"a": deep})
    assert "send less at once" in said
    assert complaints(tree, {"a": {"c": {"c": {}}}}) == ()


def test_a_pattern_that_backtracks_without_end_is_cut_off() -> None:
    schema = {"properties": {"a": {"pattern": "^(?=(a*)*b)(a|aa)+\\1$"}}}
    assert complaints(schema, {"a": "a" * 5_000})
