"""The rule checker of all dialects: recorded errors, and bodies of any shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search.testing import UnknownDialectError, Violation, check_request

RECORDED = Path(__file__).parents[3] / "shared" / "recorded" / "vercel-ai-newer"
REASON = "the recorded errors are not there: ../shared/recorded beside the checkout"

USER = {"role": "user", "content": "Hi."}
CALL: dict[str, Any] = {"type": "tool_use", "id": "call_1", "name": "search", "input": {}}
RESULT: dict[str, Any] = {"type": "tool_result", "tool_use_id": "call_1", "content": "ok"}
CLAUDE: dict[str, Any] = {
    "model": "claude-sonnet-5-5",
    "max_tokens": 10,
    "tools": [{"name": "search", "input_schema": {"type": "object", "properties": {}}}],
    "messages": [
        USER,
        {"role": "assistant", "content": [CALL]},
        {"role": "user", "content": [RESULT]},
    ],
}
GPT_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
GPT: dict[str, Any] = {
    "model": "gpt-5.4",
    "tool_choice": "auto",
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "messages": [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [GPT_CALL]},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "ok"}]},
    ],
}
FOUND = {
    "type": "function",
    "name": "f",
    "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
    "strict": True,
    "defer_loading": True,
}
RESPONSES: dict[str, Any] = {
    "model": "gpt-5.4",
    "tool_choice": "auto",
    "tools": [
        {"type": "tool_search", "execution": "client", "description": "d", "parameters": {}},
        {"type": "namespace", "name": "n", "description": "d", "tools": [{**FOUND, "name": "g"}]},
        FOUND,
    ],
    "input": [
        {"role": "user", "content": "Hi."},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {
            "type": "tool_search_call",
            "execution": "client",
            "call_id": "call_1",
            "id": "tsc_1",
            "arguments": {"query": "f"},
        },
        {
            "type": "tool_search_output",
            "execution": "client",
            "call_id": "call_1",
            "tools": [FOUND],
        },
        {
            "type": "function_call",
            "call_id": "call_2",
            "id": "fc_1",
            "name": "f",
            "namespace": "f",
            "arguments": "{}",
        },
        {
            "type": "function_call_output",
            "call_id": "call_2",
            "output": [{"type": "input_text", "text": "ok"}],
        },
        {"type": "additional_tools", "role": "developer", "tools": [{**FOUND, "name": "h"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
    ],
}

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "name", "content", "id"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value inside a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, inner in items:
        found.append((*path, key))
        if isinstance(inner, dict | list):
            found += places(inner, (*path, key))
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return a copy of a JSON value with one place changed."""
    copy = json.loads(json.dumps(value))
    target = copy
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = new
    return copy


@given(st.sampled_from(places(CLAUDE)), JSON_VALUES)
def test_any_value_anywhere_in_a_claude_request_gets_a_verdict(path: Any, value: Any) -> None:
    assert isinstance(check_request("anthropic", replaced(CLAUDE, path, value)), Violation | None)


@given(st.sampled_from(places(GPT)), JSON_VALUES)
def test_any_value_anywhere_in_a_gpt_request_gets_a_verdict(path: Any, value: Any) -> None:
    assert isinstance(check_request("openai_chat", replaced(GPT, path, value)), Violation | None)


@given(st.sampled_from(places(RESPONSES)), JSON_VALUES)
def test_any_value_anywhere_in_a_responses_request_gets_a_verdict(path: Any, value: Any) -> None:
    verdict = check_request("openai_responses", replaced(RESPONSES, path, value))
    assert isinstance(verdict, Violation | None)


def recorded_message(name: str) -> str:
    """Return the message of a recorded error."""
    return str(recorded_error(f"{name}.error.json")["message"])


def recorded_error(name: str) -> Any:
    """Return a recorded error."""
    return json.loads((RECORDED / name).read_text(encoding="utf-8"))["error"]


@pytest.mark.skipif(not RECORDED.is_dir(), reason=REASON)
def test_missing_result_is_refused_as_recorded() -> None:
    """The service's own words, for the same mistake."""
    call = {**CALL, "id": "toolu_issue8112_custom"}
    body = {**CLAUDE, "messages": [USER, {"role": "assistant", "content": [call]}, USER]}
    violation = check_request("anthropic", body)
    assert violation is not None
    assert violation.message == recorded_message("anthropic-parallel-provider-client-tools")


@pytest.mark.skipif(not RECORDED.is_dir(), reason=REASON)
def test_reference_to_a_tool_that_was_left_out_is_refused_as_recorded() -> None:
    found = [{"type": "tool_reference", "tool_name": "lookup_documents"}]
    messages = [
        *CLAUDE["messages"][:2],
        {"role": "user", "content": [{**RESULT, "content": found}]},
    ]
    body = {**CLAUDE, "messages": messages, "tool_choice": {"type": "none"}}
    violation = check_request("anthropic", body)
    assert violation is not None
    assert violation.message == recorded_message("anthropic-tool-choice-none-tool-search-history")


@pytest.mark.skipif(not RECORDED.is_dir(), reason=REASON)
def test_call_without_its_namespace_is_refused_as_recorded() -> None:
    """A loaded tool is in a namespace of its own, and its calls say so when they go back."""
    found = {**FOUND, "name": "create_widget"}
    call = {"type": "function_call", "call_id": "c", "name": "create_widget", "arguments": "{}"}
    items = RESPONSES["input"]
    body = {**RESPONSES, "input": [items[0], *items[2:3], {**items[3], "tools": [found]}, call]}
    body["input"].append({"type": "function_call_output", "call_id": "c", "output": "ok"})
    violation = check_request("openai_responses", body)
    error = recorded_error("openai-missing-function-call-namespace-error.1.json")
    assert violation is not None
    assert (violation.message, violation.param) == (error["message"], error["param"])


@pytest.mark.skipif(not RECORDED.is_dir(), reason=REASON)
def test_item_that_comes_twice_is_refused_as_recorded() -> None:
    error = recorded_error("openai-tool-search-duplicate-item-error.1.json")
    twice = error["message"].removeprefix("Duplicate item found with id ").partition(".")[0]
    items = RESPONSES["input"]
    pair = [{**items[2], "id": twice}, items[3]]
    violation = check_request("openai_responses", {**RESPONSES, "input": [items[0], *pair, *pair]})
    assert violation is not None
    assert (violation.message, violation.param) == (error["message"], error["param"])


@pytest.mark.skipif(not RECORDED.is_dir(), reason=REASON)
def test_choice_of_a_tool_that_is_not_there_is_refused_as_recorded() -> None:
    error = recorded_error("openai-allowed-tools-web-search-error.1.json")
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]}
    violation = check_request("openai_responses", {**RESPONSES, "tool_choice": choice})
    assert violation is not None
    assert (violation.message, violation.param) == (error["message"], error["param"])


def test_valid_requests_are_accepted() -> None:
    assert check_request("anthropic", CLAUDE) is None
    assert check_request("openai_chat", GPT) is None
    assert check_request("openai_responses", RESPONSES) is None


def test_unknown_dialect_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(UnknownDialectError, match="anthropic, openai_chat, openai_responses"):
        check_request("gopher", {})
