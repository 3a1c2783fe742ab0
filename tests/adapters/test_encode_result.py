"""One search result as each dialect's wire, in requests that a host writes itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conversations import CLAUDE, COMPATIBLE, OPENAI, tool, toolbox
from tool_search import SearchResult, ToolSearch, ToolSearchConfig, ToolView, profile_for
from tool_search.adapters import anthropic, openai_chat, openai_responses
from tool_search.core.services import SearchMatch
from tool_search.testing.anthropic.rules import check_anthropic
from tool_search.testing.openai_chat.rules import check_openai_chat
from tool_search.testing.openai_responses.rules import check_openai_responses

NATIVE = profile_for("openai_responses", "gpt-5.4")
ADDITIONAL = profile_for("openai_responses", "gpt-5.1")
ODD_NAME = "files.read"
TOOLS = [*toolbox(30), tool(ODD_NAME, description="Read a file.", kind="mcp", server="files")]


def a_view() -> ToolView:
    """Return a view of 31 deferred tools, one of them of a server and under an odd name."""
    return ToolSearch(TOOLS, ToolSearchConfig(tool_schema_mode="tool_search")).view()


@pytest.mark.parametrize("query", ["tool_007", "read a file", "unheard of xyzzy", ""])
def test_claude_gets_references_and_other_models_json(query: str) -> None:
    view = a_view()
    result = view.search({"queries": [query]})
    for profile in (CLAUDE, COMPATIBLE):
        content = anthropic.encode_result(result, profile)
        body: dict[str, Any] = {
            "model": profile.model,
            "max_tokens": 100,
            "tools": json.loads(anthropic.encode_tools(view.tools(profile), profile)),
            "messages": [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "content": [
                        {
                            "type": "tool_use",
                            "id": "t1",
                            "name": "tool_search",
                            "input": {"queries": [query]},
                        }
                    ],
                },
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "t1", "content": content}],
                },
            ],
        }
        assert check_anthropic(body) is None
        is_references = profile is CLAUDE and bool(result.names)
        assert isinstance(content, list) == is_references


@pytest.mark.parametrize("query", ["tool_007", "read a file", "unheard of xyzzy", ""])
def test_chat_completions_get_json_under_the_names_of_the_wire(query: str) -> None:
    view = a_view()
    result = view.search({"queries": [query]})
    content = openai_chat.encode_result(result, OPENAI)
    function = {"name": "tool_search", "arguments": json.dumps({"queries": [query]})}
    body = {
        "model": OPENAI.model,
        "tools": json.loads(openai_chat.encode_tools(view.tools(OPENAI), OPENAI)),
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "tool_calls": [{"id": "c1", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": content},
        ],
    }
    assert check_openai_chat(body) is None
    declared = {each["function"]["name"] for each in body["tools"]}
    read = SearchResult.from_json(content)
    assert read is not None
    assert set(read.names) <= declared
    assert (read.error is None) == (result.error is None)


@pytest.mark.parametrize("query", ["tool_007", "read a file", "unheard of xyzzy"])
def test_responses_get_an_item_with_definitions_or_json(query: str) -> None:
    view = a_view()
    result = view.search({"queries": [query]})
    declared = view.tools(NATIVE)
    item = openai_responses.encode_result(result, NATIVE, catalog=view.catalog, tools=declared)
    assert isinstance(item, dict)
    call = {
        "type": "tool_search_call",
        "execution": "client",
        "call_id": "c1",
        "status": "completed",
        "arguments": {"queries": [query]},
    }
    body = {
        "model": NATIVE.model,
        "store": False,
        "tools": json.loads(openai_responses.encode_tools(declared, NATIVE)),
        "input": [{"role": "user", "content": "hi"}, call, {**item, "call_id": "c1"}],
    }
    assert check_openai_responses(body) is None
    assert len(item["tools"]) == len(result.names)
    text = openai_responses.encode_result(result, ADDITIONAL)
    assert isinstance(text, str)
    read = SearchResult.from_json(text)
    assert read is not None
    assert len(read.names) == len(result.names)


def test_a_found_tool_without_a_definition_is_left_out_of_responses() -> None:
    own = SearchMatch(name="own", parameters={"type": "object", "properties": {}})
    result = SearchResult(query="q", matches=(own, SearchMatch(name="unknown")))
    item = openai_responses.encode_result(result, NATIVE)
    assert isinstance(item, dict)
    assert [each["name"] for each in item["tools"]] == ["own"]


@given(st.lists(st.sampled_from([each.name for each in TOOLS]), max_size=5, unique=True))
def test_what_json_shows_is_read_back_unchanged(names: list[str]) -> None:
    matches = tuple(SearchMatch(name=name, description="Does.") for name in names)
    result = SearchResult(query="q", matches=matches, total_found=len(names), total_tools=31)
    plain = names.count(ODD_NAME) == 0
    assert (SearchResult.from_json(openai_chat.encode_result(result, OPENAI)) == result) == plain
