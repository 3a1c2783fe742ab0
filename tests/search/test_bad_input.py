"""Hostile queries and definitions get a result or a clear error, in bounded time.

The sizes are such that a search of quadratic time would take minutes, in the long profile hours.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.search.registry import (
    BY_WORDS,
    EVERY_ENGINE,
    PRESETS_WITH_INDEX,
    WITHOUT_VECTORS,
)
from tool_search.catalog.schema.declared import object_schema
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.values.json import compact_json
from tool_search.errors import InvalidToolError, ToolSearchError
from tool_search.search import SearchSettings, ToolSearchIndex, build_index
from tool_search.search.build import EMBEDDING_ENGINES
from tool_search.search.discovery.search_tool import ToolSearchTool

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
SIZE = 100_000 if IS_LONG else 20_000
# One of the engines with vectors is enough: they read definitions alike.
READERS = (*WITHOUT_VECTORS, "semantic", "oh-my-pi")

TOOLBOX = (
    Tool(name="get_weather", description="Weather forecast for a city.", kind="mcp", server="sky"),
    Tool(name="send_email", description="Send an e-mail message to a person."),
    Tool(name="查询天气", description="查询城市的天气预报"),
    Tool(name="погода", description="Показывает погоду в городе."),
    *(Tool(name=f"tool_{n}", description=f"Number {n} of many, w{n}x.") for n in range(60)),
)

_MARKS = random.Random(1).choices("\u0301\u0323\u0327\u0316", k=SIZE)
QUERIES = {
    "one word": "weather " * (SIZE // 8),
    "different words": " ".join(f"w{n}x" for n in range(14_000)),
    "one letter": "a" * SIZE,
    "digits": "1" * SIZE,
    "camelCase": "aB" * (SIZE // 2),
    "snake_case": "a_" * (SIZE // 2),
    "hyphens": "a-" * (SIZE // 2),
    "lines": "a\n" * (SIZE // 2),
    "punctuation": "?!,.;:" * (SIZE // 6),
    "emoji": "👍🏽🎉" * (SIZE // 3),
    "joined emoji": "👨\u200d👩\u200d👧" * (SIZE // 5),
    "control characters": "\x00\x07\x1b\x9f" * (SIZE // 4),
    "NUL": "\x00" * SIZE,
    "words and NUL": "weather\x00" * (SIZE // 8),
    "lone surrogates": "\ud800\udfff" * (SIZE // 2),
    "words and surrogates": "weather\ud800" * (SIZE // 8),
    "direction marks": "\u202e\u200bа" * (SIZE // 3),
    "marks on one letter": "a" + "".join(_MARKS),
    "ligatures of many letters": "\ufdfa" * (SIZE // 5),
    "one Chinese word": "天气" * (SIZE // 2),
    "spaced Chinese": "天 " * (SIZE // 2),
    "different Chinese": "".join(chr(0x4E00 + n % 20_000) for n in range(SIZE)),
    "Korean letters": "\u1100\u1161" * (SIZE // 2),
    "opening brackets": "(" * 10_000,
    "nested brackets": "(" * 10_000 + "weather" + ")" * 10_000,
    "brackets and words": "(weather " * 10_000,
    "operators": "AND OR NOT " * (SIZE // 11),
    "operators and words": "weather AND mail OR NOT " * (SIZE // 24),
    "plus": "+weather " * (SIZE // 9),
    "prefixes": "w* " * (SIZE // 3),
    "asterisks": "*" * SIZE,
    "quotation marks": '"' * SIZE,
    "open quotation": '"' + "weather " * (SIZE // 8),
    "curved quotation": "“" * SIZE,
    "apostrophes": "it's " * (SIZE // 5),
    "fields": "name:" * (SIZE // 5),
    "fields without a word": "name: " * (SIZE // 6),
    "selected nothing": "select:" + "," * SIZE,
    "selected many": "select:" + ",".join(f"t{n}" for n in range(20_000)),
    "JSON": '{"a":' * (SIZE // 5),
}
DEBRIS = (
    "(weather",
    "weather)",
    '"weather',
    'weather"',
    "weather AND",
    "OR weather",
    "NOT",
    "NOT NOT weather",
    "weather -",
    "+ weather",
    "name: weather",
    'name:" weather',
    "tag: server: weather",
    "weather ()",
    "weather **",
    "(" * 900 + "weather" + ")" * 900,
    " AND ".join(["weather"] * 90),
    "weather " + ".-" * 900,
)


class _Letters:
    """An embedder without weights: the count of each code point, modulo 16."""

    identity = "letters-1"
    dimensions = 16

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a row for each text, never all zeros."""
        return [
            [1.0 + sum(ord(char) % 16 == place for char in text) for place in range(16)]
            for text in texts
        ]


class _Forgetful:
    """A vector cache that stays empty."""

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        return {}

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Discard the entries."""


def built(engine: str, tools: Sequence[Tool]) -> ToolSearchIndex:
    """An index of an engine or, by its name, of a preset."""
    chosen = {"preset": engine} if engine in PRESETS_WITH_INDEX else {"engine": engine}
    how = SearchSettings.model_validate(chosen)
    if engine in EMBEDDING_ENGINES:
        return build_index(tools, how, embedder=_Letters(), vector_cache=_Forgetful())
    return build_index(tools, how)


def names(index: ToolSearchIndex, query: str) -> list[str]:
    """The names that a search finds."""
    return [match.name for match in index.search(query, limit=5).matches]


def nested(levels: int) -> dict[str, Any]:
    """An object schema with this many levels."""
    schema: dict[str, Any] = {"type": "object", "properties": {"leaf": {"type": "string"}}}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"deeper": schema}}
    return schema


@pytest.fixture(scope="module", params=(*EVERY_ENGINE, *PRESETS_WITH_INDEX))
def index(request: pytest.FixtureRequest) -> ToolSearchIndex:
    """The toolbox in every engine and preset, in turn."""
    return built(request.param, TOOLBOX)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_any_query_has_an_answer_that_a_request_can_carry(
    index: ToolSearchIndex, query: str
) -> None:
    """At most 5 matches, a bounded number of unmatched words, and text in UTF-8."""
    tool = ToolSearchTool(index, ToolCatalog(TOOLBOX))
    answer = tool.run({"query": query})
    content = json.loads(answer.to_json().encode())
    assert len(content.get("matches", ())) <= 5
    assert len(content.get("unmatched", ())) <= 12
    assert all(0 < match.score <= 1 for match in answer.matches)
    if not any(map(str.isalnum, query)):
        assert "error" in content


@pytest.mark.parametrize("query", DEBRIS, ids=lambda query: query[:12])
@pytest.mark.parametrize("engine", BY_WORDS)
def test_broken_operators_are_no_obstacle(engine: str, query: str) -> None:
    expected = [] if query == "NOT" else ["get_weather"]
    assert names(built(engine, TOOLBOX), query)[:1] == expected


_LENGTH = 1_000_000 if IS_LONG else 200_000
DESCRIPTIONS = {
    "words": "word " * (_LENGTH // 5),
    "one letter": "a" * _LENGTH,
    "different words": " ".join(f"w{n}x" for n in range(_LENGTH // 8)),
    "Chinese": "天气" * (_LENGTH // 2),
    "camelCase": "aB" * (_LENGTH // 2),
    "marks on one letter": "a" + "".join(_MARKS) * (_LENGTH // SIZE),
    "NUL": "a\x00" * (_LENGTH // 2),
    "lone surrogates": "\ud800" * _LENGTH,
}


@pytest.mark.parametrize("description", DESCRIPTIONS.values(), ids=DESCRIPTIONS)
@pytest.mark.parametrize("engine", READERS)
def test_long_description_hides_no_other_tool(engine: str, description: str) -> None:
    tools = [Tool(name="huge", description=description), *TOOLBOX[:2]]
    assert "send_email" in names(built(engine, tools), "send_email")


SCHEMAS: dict[str, Any] = {
    "refers to itself": {"$ref": "#"},
    "property of itself": {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}},
    "circle": {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
    },
    "refers elsewhere": {"type": "object", "properties": {"a": {"$ref": "http://x.invalid/y"}}},
    "references that meet again": {
        "anyOf": [{"$ref": "#/$defs/a"}] * 300,
        "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#"}] * 300}},
    },
    "properties that are no schemas": {
        "type": "object",
        "properties": {"a": 5, "b": None, "c": [1], "d": True, "e": "x"},
        "required": "a",
    },
    "branches that are no list": {"type": "object", "anyOf": 5, "items": [1], "allOf": [None]},
    "5,000 properties": {
        "type": "object",
        "properties": {f"p{n}": {"description": "x " * 50} for n in range(5_000)},
    },
    "deep, and yet to be written": nested(190),
}
NO_SCHEMAS: dict[str, Any] = {
    "nested 1,000 deep": nested(1_000),
    "nested 1,000 deep by branches": {"type": "object", "allOf": json.loads("[" * 900 + "]" * 900)},
    "a list": [1, 2],
    "a text": "object",
    "of an array": {"type": "array"},
    "properties in a list": {"type": "object", "properties": [1]},
    "no number": {"type": "object", "x": float("nan")},
    "no JSON": {"type": "object", "x": b"1"},
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize("engine", READERS)
def test_odd_schema_makes_no_tool_unfindable(engine: str, schema: Any) -> None:
    tools = [Tool(name="odd", parameters=schema), *TOOLBOX[:2]]
    assert names(built(engine, tools), "odd")[:1] == ["odd"]


@pytest.mark.parametrize("schema", NO_SCHEMAS.values(), ids=NO_SCHEMAS)
def test_what_is_no_schema_is_refused_by_name(schema: Any) -> None:
    with pytest.raises(InvalidToolError, match="tool 'odd': parameters") as caught:
        Tool(name="odd", parameters=schema)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_odd_schema_can_be_shown_to_every_provider(schema: Any) -> None:
    def written_from(depth: int) -> str:
        return written_from(depth - 1) if depth else compact_json(object_schema(parameters))

    parameters = Tool(name="odd", parameters=schema).parameters
    assert json.loads(written_from(300))["type"] == "object"


@pytest.mark.parametrize("size", [2_000, pytest.param(50_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("engine", WITHOUT_VECTORS)
def test_tools_of_one_name_pattern_are_told_apart(engine: str, size: int) -> None:
    tools = [
        Tool(name=f"get_user_item_{n:05}", description="Gets the user item.") for n in range(size)
    ]
    index = built(engine, tools)
    found = index.search("get_user_item_00777", limit=5)
    assert found.matches[0].name == "get_user_item_00777"
    all_of_them = index.search("user" if engine == "lexical" else "get user item", limit=5)
    assert [match.name for match in all_of_them.matches] == [
        f"get_user_item_0000{n}" for n in range(5)
    ]
    assert all_of_them.total_found == size


_ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)
_FRAGMENTS = st.sampled_from(
    [
        "weather", "AND", "OR", "NOT", "(", ")", '"', "+", "-", "*", "name:", "tag:", "server:",
        "select:", ",", "天气", "погода", "get_", "\x00", "\ud800", "\n", "\\", "[", "{9}", "«",
        "’s",
    ]
)  # fmt: skip
_QUERIES = st.one_of(
    _ANY_TEXT,
    st.lists(_FRAGMENTS, max_size=30).map(" ".join),
    st.lists(_FRAGMENTS, max_size=30).map("".join),
)


@settings(max_examples=5_000 if IS_LONG else 40)
@given(query=_QUERIES)
def test_any_text_is_a_query(index: ToolSearchIndex, query: str) -> None:
    result = index.search([query, query], limit=3)
    assert len(result.matches) <= 3
    assert len(result.matches) <= result.total_found <= len(TOOLBOX)
    answer = ToolSearchTool(index, ToolCatalog(TOOLBOX)).run({"query": query})
    assert json.loads(answer.to_json().encode())["query"] == answer.query


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _ANY_TEXT,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "items", "anyOf", "allOf", "$ref", "$defs", "enum", "title"]
            )
            | _ANY_TEXT,
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
_SCHEMA_LIKE = st.fixed_dictionaries({"type": st.just("object")}, optional={
    "properties": st.dictionaries(_ANY_TEXT, _JSON, max_size=4),
    "anyOf": st.lists(_JSON, max_size=3),
    "$ref": st.sampled_from(["#", "#/properties/a", "#/%zz", "#/~2", "x:y"]),
})  # fmt: skip
_DEFINITIONS = st.fixed_dictionaries(
    {"name": _ANY_TEXT},
    optional={
        "description": _ANY_TEXT | _JSON,
        "parameters": _SCHEMA_LIKE | _JSON,
        "server": _ANY_TEXT | _JSON,
        "tags": st.lists(_ANY_TEXT, max_size=2) | _JSON,
        "examples": _JSON,
        "annotations": _JSON,
    },
)


@settings(max_examples=3_000 if IS_LONG else 40)
@given(definition=_DEFINITIONS)
@pytest.mark.parametrize("engine", WITHOUT_VECTORS)
def test_any_definition_is_indexed_or_refused(engine: str, definition: dict[str, Any]) -> None:
    try:
        tool = Tool.from_dict(definition)
    except ToolSearchError:
        return
    index = built(engine, TOOLBOX[:4]).updated(added=[tool], removed=[])
    assert names(index, tool.name)[:1] == [tool.name]
    object_schema(tool.parameters)
