"""Catalogs as text: every format is detected, every fault is named with its place."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search.catalog.formats import json_values, parse_tools, tool_from_definition
from tool_search.core.catalog.tool import Tool
from tool_search.errors import CatalogError, DuplicateToolError, InvalidToolError

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
PLAIN = {"name": "get_weather", "description": "Weather of a city.", "parameters": SCHEMA}
ANTHROPIC = {"name": "get_weather", "description": "Weather of a city.", "input_schema": SCHEMA}
FORMATS = {
    "plain": PLAIN,
    "openai_chat": {"type": "function", "function": {**PLAIN, "strict": True}},
    "openai_responses": {"type": "function", "strict": True, **PLAIN},
    "anthropic": ANTHROPIC,
    "anthropic_custom": {"type": "custom", "defer_loading": True, **ANTHROPIC},
    "mcp": {"name": "get_weather", "description": "Weather of a city.", "inputSchema": SCHEMA},
}
EXPECTED = Tool(name="get_weather", description="Weather of a city.", parameters=SCHEMA)


def names(text: str) -> list[str]:
    """The names of the tools in a text."""
    return [tool.name for tool in parse_tools(text)]


@pytest.mark.parametrize("definition", FORMATS.values(), ids=FORMATS)
def test_definition_in_each_format_gives_the_same_tool(definition: dict[str, Any]) -> None:
    assert parse_tools(json.dumps(definition)) == (EXPECTED,)


def test_lines_of_mixed_formats_are_read_together() -> None:
    lines = [
        json.dumps(definition).replace("get_weather", f"tool_{index}")
        for index, definition in enumerate(FORMATS.values())
    ]
    assert names("\n".join(lines)) == [f"tool_{index}" for index in range(len(FORMATS))]


@pytest.mark.parametrize(
    "value",
    [
        [PLAIN],
        {"tools": [PLAIN]},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [PLAIN], "nextCursor": None}},
        {"model": "m", "messages": [], "tools": [PLAIN]},
    ],
    ids=["array", "listing", "json_rpc", "request_body"],
)
@pytest.mark.parametrize("indent", [None, 2], ids=["one_line", "many_lines"])
def test_wrapped_definitions_are_unwrapped(value: object, indent: int | None) -> None:
    assert parse_tools(json.dumps(value, indent=indent)) == (EXPECTED,)


def test_mcp_definition_keeps_title_output_and_hints() -> None:
    tool = tool_from_definition(
        {
            "name": "delete_file",
            "title": "Delete a file",
            "inputSchema": SCHEMA,
            "outputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": False, "destructiveHint": True, "title": "Other"},
        }
    )
    assert tool is not None
    assert tool.title == "Delete a file"
    assert tool.output_schema == {"type": "object"}
    assert tool.annotations == {"read_only": False, "destructive": True}


def test_annotated_title_replaces_a_missing_one() -> None:
    tool = tool_from_definition({"name": "a", "annotations": {"title": "A tool"}})
    assert tool is not None
    assert (tool.title, tool.annotations) == ("A tool", {})


@pytest.mark.parametrize(
    ("extra", "kind"),
    [
        ({}, "plugin"),
        ({"server": "files"}, "mcp"),
        ({"server": ""}, "plugin"),
        ({"server": None}, "plugin"),
        ({"server": "files", "kind": "builtin"}, "builtin"),
        ({"kind": "handoff"}, "handoff"),
    ],
)
def test_kind_follows_server_unless_it_is_given(extra: dict[str, Any], kind: str) -> None:
    (tool,) = parse_tools(json.dumps({"name": "a", **extra}))
    assert tool.kind == kind


def test_server_next_to_a_listing_holds_for_its_tools() -> None:
    (tool,) = parse_tools('{"server": "files", "tools": [{"name": "read"}]}')
    assert (tool.server, tool.kind) == ("files", "mcp")


def test_own_form_is_read_back() -> None:
    tool = Tool(
        name="a",
        kind="mcp",
        server="s",
        tags=["x"],
        aliases=["b"],
        roles=["admin"],
        examples=[{"city": "Bern"}],
        annotations={"read_only": True},
        output_schema={"type": "object"},
        active=False,
        always_load=True,
        parameters=SCHEMA,
    )
    assert parse_tools(json.dumps(tool.to_dict())) == (tool,)


@pytest.mark.parametrize(
    "text",
    [
        '\ufeff{"name": "a"}\n{"name": "b"}\n',
        '{"name": "a"}\r\n{"name": "b"}\r\n',
        '\n\n{"name": "a"}\n   \n{"name": "b"}',
        '\ufeff[{"name": "a"},\r\n{"name": "b"}]',
        '{\n "name": "a"\n}\n{\n "name": "b"\n}\n',
        '{"name": "a"} {"name": "b"}',
        '{"name": "a", "description": "x\u2028y\u0085z"}\n{"name": "b"}',
    ],
    ids=["bom", "crlf", "blank_lines", "bom_array", "pretty", "same_line", "line_separators"],
)
def test_layout_does_not_matter(text: str) -> None:
    assert names(text) == ["a", "b"]


@pytest.mark.parametrize("text", ["", "\ufeff", " \n\r\n ", "[]", '{"tools": []}'])
def test_text_without_tools_is_an_empty_catalog(text: str) -> None:
    assert parse_tools(text) == ()


@pytest.mark.parametrize(
    "kind", ["tool_search_tool_bm25_20251119", "tool_search_tool_regex", "tool_search"]
)
def test_search_tools_of_providers_are_passed_over(kind: str) -> None:
    listed = [{"type": kind, "name": "tool_search_tool_bm25"}, PLAIN]
    assert names(json.dumps(listed)) == ["get_weather"]


@pytest.mark.parametrize("empty", [{}, {"parameters": {}}, {"parameters": None}])
def test_missing_schema_means_no_arguments(empty: dict[str, Any]) -> None:
    (tool,) = parse_tools(json.dumps({"name": "a", **empty}))
    assert tool.parameters == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"name": "a"}\n{"name": "b";}', "cat, line 2, column 13: is not JSON"),
        ('{"name": "a"}\n\n{"name": ', "cat, line 3, column 10: is not JSON"),
        # Since 3.13 Python names the place of the comma.
        (
            '{"name": "a", }\n{"name": "b"}',
            f"cat, line 1, column {15 if sys.version_info < (3, 13) else 13}: is not JSON",
        ),
        ('{"name": "a",\n{"name": "b"}', "cat, line 1, column 14: is not JSON"),
        ('[\n {"name": "a"},\n {"name" "b"}\n]', "cat, line 3, column 10: is not JSON"),
        ("name,description\na,b", "cat, line 1, column 1: is not JSON"),
        ('{"name": "a"}\n' + "9" * 5000, "cat, line 2: cannot be read as JSON"),
        ("[" * 100_000, "cat, line 1: cannot be read as JSON"),
        ('{"jsonrpc": "2.0", "error": {"message": "no"}}', "cat, line 1: is a JSON-RPC error"),
    ],
)
def test_text_that_is_not_json_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(CatalogError) as caught:
        parse_tools(text, source="cat")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"name": "a"}\n{"title": "b"}', 'cat, line 2: {"title": "b"} has no name'),
        ('{"name": "a"}\n7', "cat, line 2: 7 is not an object"),
        ('[{"name": "a"}, {"name": 5}]', "cat, line 1, index 1: a tool's name must be a string"),
        ('[\n{"name": "a"},\n[]\n]', "cat, index 1: [] is not an object"),
        ('{"name": "a", "parameters": {"type": "array"}}', "cat, line 1: tool 'a': parameters"),
        ('{"name": "a", "inputSchema": "x"}', "tool 'a': parameters must be an object schema"),
        ('{"name": "a", "description": 5}', "tool 'a': description must be a string"),
        ('{"name": "a", "server": 5}', "tool 'a': server must be a string"),
        ('{"name": "a", "tags": "x"}', "tool 'a': tags must be a list"),
        ('{"name": "a", "examples": [NaN]}', "cat, line 1: tool 'a':"),
        ('{"name": "a", "annotations": 1}', "tool 'a': annotations must be"),
        ('{"name": "a", "active": "no"}', "tool 'a': active must be true or false"),
        ('{"name": "a", "kind": "mpc"}', "tool 'a': kind must be one of"),
        ('{"name": "a", "kind": ["mcp"]}', "tool 'a': kind must be one of"),
        ('{"name": "bash", "type": "bash_20250124"}', "tool 'bash': its type 'bash_20250124'"),
        ('{"tools": [{"name": ""}]}', "cat, line 1, tools[0]: tool ''"),
    ],
)
def test_wrong_definition_is_refused_with_its_place_and_name(text: str, message: str) -> None:
    with pytest.raises(InvalidToolError) as caught:
        parse_tools(text, source="cat")
    assert message in str(caught.value)


def test_every_wrong_definition_of_a_file_is_named_at_once() -> None:
    lines = [f'{{"name": "t{n}"}}' for n in range(1_000)]
    for place in (41, 699, 998):
        lines[place] = lines[place].replace("}", ', "parameters": {"type": "string"}}')
    with pytest.raises(InvalidToolError) as caught:
        parse_tools("\n".join(lines), source="cat")
    assert str(caught.value).startswith("cat, line 42: tool 't41': parameters must be")
    assert str(caught.value).endswith(
        "(and 2 other wrong definitions: cat, line 700; cat, line 999)"
    )
    with pytest.raises(InvalidToolError, match=r"99 other wrong .*; cat, line 9 and 91 more\)$"):
        parse_tools('{"name": 5}\n' * 100, source="cat")


def test_two_tools_of_one_name_name_both_lines() -> None:
    with pytest.raises(DuplicateToolError) as caught:
        parse_tools('{"name": "a"}\n{"name": "b"}\n\n{"name": "a"}', source="cat")
    assert "cat, line 4: tool 'a'" in str(caught.value)
    assert "(cat, line 1)" in str(caught.value)


def test_json_values_give_each_value_with_its_line() -> None:
    values = json_values('{"a":\n1}\n\n{"b": 2}', source="f")
    assert list(values) == [("f, line 1", {"a": 1}), ("f, line 4", {"b": 2})]


def refusal(text: str) -> str:
    """Return the error about a text; "catalog" if there is none."""
    try:
        parse_tools(text)
    except CatalogError as error:
        return str(error)
    return "catalog"


@pytest.mark.parametrize("gap", ["", " ", "\n \n"], ids=["none", "space", "lines"])
def test_many_values_after_one_another_are_read_with_their_lines(gap: str) -> None:
    """Lines are counted once, not from the beginning for each value."""
    places = [place for place, _ in json_values(f'{{"a":\n1}}{gap}' * 20_000, source="c")]
    assert places[-1] == f"c, line {1 + 19_999 * (1 + gap.count(chr(10)))}"


@pytest.mark.parametrize("levels", range(960, 1_000, 4))
def test_value_that_is_read_but_too_deep_to_be_shown_is_refused(levels: int) -> None:
    with pytest.raises(CatalogError):
        parse_tools("[" * levels + "]" * levels)


@given(st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "replace")))
def test_any_text_gives_tools_or_a_catalog_error(text: str) -> None:
    assert refusal(text).startswith("catalog")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(
    (
        "name",
        "description",
        "parameters",
        "input_schema",
        "inputSchema",
        "function",
        "type",
        "tools",
        "server",
        "kind",
        "title",
        "annotations",
        "outputSchema",
        "examples",
        "tags",
        "active",
        "result",
        "error",
        "jsonrpc",
    )
)


@given(st.dictionaries(KEYS, JSON_VALUES, max_size=6))
def test_any_object_gives_tools_or_a_catalog_error(value: dict[str, Any]) -> None:
    assert refusal(json.dumps(value)).startswith("catalog")


def test_a_definition_may_state_defer_loading_and_a_server_may_not() -> None:
    anthropic = {"name": "a", "input_schema": {"type": "object"}, "defer_loading": False}
    chat = {"type": "function", "function": {"name": "b", "defer_loading": True}}
    listed = parse_tools(json.dumps([anthropic, chat]))
    assert [tool.always_load for tool in listed] == [True, False]
    of_server = tool_from_definition(anthropic, server="s")
    assert of_server is not None
    assert not of_server.always_load
    with pytest.raises(InvalidToolError, match="defer_loading must be true or false"):
        parse_tools('{"name": "a", "defer_loading": 1}')
