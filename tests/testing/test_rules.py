"""The rule checker of all dialects: recorded refusals, and bodies of any shape."""

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

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "name", "content", "id"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, inner in items:
        found.append((*path, key))
        if isinstance(inner, dict | list):
            found += places(inner, (*path, key))
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy of a JSON value with one place changed."""
    copy = json.loads(json.dumps(value))
    target = copy
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = new
    return copy


@given(st.sampled_from(places(CLAUDE)), JSON_VALUES)
def test_any_value_anywhere_in_a_claude_request_gets_a_verdict(path: Any, value: Any) -> None:
    """The checker never fails on a body, however wrong."""
    assert isinstance(check_request("anthropic", replaced(CLAUDE, path, value)), Violation | None)


@given(st.sampled_from(places(GPT)), JSON_VALUES)
def test_any_value_anywhere_in_a_gpt_request_gets_a_verdict(path: Any, value: Any) -> None:
    """The checker never fails on a body, however wrong."""
    assert isinstance(check_request("openai_chat", replaced(GPT, path, value)), Violation | None)


def recorded_message(name: str) -> str:
    """The message of a recorded error."""
    error = json.loads((RECORDED / f"{name}.error.json").read_text(encoding="utf-8"))
    return str(error["error"]["message"])


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
    """`tool_choice` none is no licence to leave referenced tools out of `tools`."""
    found = [{"type": "tool_reference", "tool_name": "lookup_documents"}]
    messages = [
        *CLAUDE["messages"][:2],
        {"role": "user", "content": [{**RESULT, "content": found}]},
    ]
    body = {**CLAUDE, "messages": messages, "tool_choice": {"type": "none"}}
    violation = check_request("anthropic", body)
    assert violation is not None
    assert violation.message == recorded_message("anthropic-tool-choice-none-tool-search-history")


def test_valid_requests_are_accepted() -> None:
    """The bodies that the tests above spoil are valid."""
    assert check_request("anthropic", CLAUDE) is None
    assert check_request("openai_chat", GPT) is None


def test_unknown_dialect_is_an_error_that_lists_the_known() -> None:
    """A name that no dialect has is the caller's mistake."""
    with pytest.raises(UnknownDialectError, match="anthropic, openai_chat"):
        check_request("gopher", {})
