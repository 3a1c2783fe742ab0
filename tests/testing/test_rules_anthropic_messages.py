"""Anthropic's rules for messages: a valid request with one fault is rejected."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tool_search.testing import check_anthropic

Change = Callable[[dict[str, Any]], object]

SEARCH_ID = "srvtoolu_01abc"
REFERENCE = {"type": "tool_reference", "tool_name": "get_time"}
TEXT = {"type": "text", "text": "Found:"}


def content(body: dict[str, Any], message: int) -> Any:
    """Return the content of one message."""
    return body["messages"][message]["content"]


def changing_tools(name: str, kind: str = "tool_addition") -> dict[str, Any]:
    """Return a system message that adds or removes a tool."""
    change = {"type": kind, "tool": {"type": "tool_reference", "name": name}}
    return {"role": "system", "content": [change]}


def interrupted_search(body: dict[str, Any]) -> dict[str, Any]:
    """Return the service's own order: the search's result starts the next reply."""
    call, result, text = content(body, 3)
    body["messages"][3:] = [
        {
            "role": "assistant",
            "content": [
                call,
                {"type": "tool_use", "id": "toolu_3", "name": "get_weather", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_3", "content": "Sunny."}],
        },
        {"role": "assistant", "content": [result, text]},
        {"role": "user", "content": "Thanks."},
    ]
    return body


def split_calls(body: dict[str, Any]) -> dict[str, Any]:
    """Two replies in a row, a call in each, with both results after them."""
    call = content(body, 1).pop()
    body["messages"].insert(2, {"role": "assistant", "content": [call]})
    return body


def split_results(body: dict[str, Any], *between: dict[str, Any]) -> dict[str, Any]:
    """Return the results in a message each."""
    first = content(body, 2).pop(0)
    body["messages"][2:2] = [{"role": "user", "content": [first]}, *between]
    return body


def split_results_of_two(body: dict[str, Any]) -> dict[str, Any]:
    """After `split_calls`: the results in a message each."""
    body["messages"].insert(3, {"role": "user", "content": [content(body, 3).pop(0)]})
    return body


def split_server_search(body: dict[str, Any]) -> dict[str, Any]:
    """Return a server search and its result in a message each."""
    call = content(body, 3).pop(0)
    body["messages"].insert(3, {"role": "assistant", "content": [call]})
    return body


REFUSED = (
    pytest.param(
        lambda b: b.update(messages=[]), "at least one message is required", None, id="no message"
    ),
    pytest.param(
        lambda b: b["messages"].insert(0, {"role": "system", "content": "Hi."}),
        'first message must use the "user" role',
        None,
        id="system message first",
    ),
    pytest.param(
        lambda b: b["messages"].append({"role": "tool", "content": "x"}),
        "messages.5.role: Input should be 'user' or 'assistant'",
        None,
        id="tool role",
    ),
    pytest.param(
        lambda b: b["messages"][1].update(tool_calls=[]),
        "messages.1.tool_calls: Extra inputs are not permitted",
        None,
        id="openai message field",
    ),
    pytest.param(
        lambda b: b["messages"][0].update(content=""),
        "messages.0: all messages must have non-empty content",
        None,
        id="empty content",
    ),
    pytest.param(
        lambda b: b["messages"][0].pop("content"),
        "messages.0.content: Field required",
        None,
        id="no content",
    ),
    pytest.param(
        lambda b: content(b, 4)[0].update(text=""),
        "text content blocks must be non-empty",
        None,
        id="empty text block",
    ),
    pytest.param(
        lambda b: content(b, 4)[0].update(text=" \n"),
        "text content blocks must contain non-whitespace text",
        None,
        id="blank text block",
    ),
    pytest.param(
        lambda b: b["messages"][0].update(content=" "),
        "text content blocks must contain non-whitespace text",
        None,
        id="blank text",
    ),
    pytest.param(
        lambda b: content(b, 4)[0].update(type="input_text"),
        "messages.4.content.0: Input tag 'input_text' found using 'type' does not match any",
        None,
        id="unknown block",
    ),
    pytest.param(
        lambda b: content(b, 4)[0].update(annotations=[]),
        "messages.4.content.0.text.annotations: Extra inputs are not permitted",
        None,
        id="unknown block field",
    ),
    pytest.param(
        lambda b: b["messages"][4].update(content=[content(b, 1)[1]]),
        "`tool_use` blocks can only be in `assistant` messages",
        None,
        id="call by the user",
    ),
    pytest.param(
        lambda b: b["messages"][3].update(content=[content(b, 2)[0]]),
        "`tool_result` blocks can only be in `user` messages",
        None,
        id="result by the assistant",
    ),
    pytest.param(
        lambda b: content(b, 1)[1].update(id="call:1"),
        "messages.1.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        None,
        id="call id",
    ),
    pytest.param(
        lambda b: content(b, 1)[1].update(input="{}"),
        "be a valid dictionary",
        None,
        id="arguments as text",
    ),
    pytest.param(
        lambda b: content(b, 1)[1].update(name="a.b"),
        "messages.1.content.1.tool_use.name: String should match pattern",
        None,
        id="call name",
    ),
    pytest.param(
        lambda b: content(b, 1)[2].update(id="toolu_1"),
        "`tool_use` ids must be unique",
        None,
        id="repeated call id",
    ),
    pytest.param(
        lambda b: content(b, 2).pop(1),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: "
        "toolu_2. Each `tool_use` block must have a corresponding `tool_result` block in the next "
        "message.",
        None,
        id="result missing",
    ),
    pytest.param(
        lambda b: content(b, 2).insert(1, content(b, 2).pop()),
        "blocks immediately after: toolu_2",
        None,
        id="result after text",
    ),
    pytest.param(
        lambda b: b["messages"].insert(2, {"role": "user", "content": "Wait."}),
        "blocks immediately after: toolu_1, toolu_2",
        None,
        id="result after the next message",
    ),
    pytest.param(
        lambda b: split_results(b, {"role": "user", "content": [TEXT]}),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: "
        "toolu_2.",
        None,
        id="second result after another message's text",
    ),
    pytest.param(
        lambda b: (split_results(b), content(b, 3).insert(0, copy.deepcopy(content(b, 2)[0]))),
        "messages.3.content.0: each tool_use must have a single result.",
        None,
        id="two results in two messages",
    ),
    pytest.param(
        lambda b: (split_calls(b), content(b, 2)[0].update(id="toolu_1")),
        "messages.2.content.0: `tool_use` ids must be unique",
        None,
        id="repeated call id in two messages",
    ),
    pytest.param(
        lambda b: (split_calls(b), content(b, 3).pop(1)),
        "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: "
        "toolu_2.",
        None,
        id="result missing after two replies",
    ),
    pytest.param(
        lambda b: (split_calls(b), b["messages"].insert(2, {"role": "user", "content": "Wait."})),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: "
        "toolu_1.",
        None,
        id="user between two replies",
    ),
    pytest.param(
        lambda b: b.update(messages=b["messages"][:2]),
        "blocks immediately after: toolu_1, toolu_2",
        None,
        id="no message after the call",
    ),
    pytest.param(
        lambda b: content(b, 4).insert(
            0, {"type": "tool_result", "tool_use_id": "toolu_9", "content": "x"}
        ),
        "messages.4.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_9.",
        None,
        id="result of no call",
    ),
    pytest.param(
        lambda b: content(b, 4).insert(
            0, {"type": "tool_result", "tool_use_id": SEARCH_ID, "content": "x"}
        ),
        f"unexpected `tool_use_id` found in `tool_result` blocks: {SEARCH_ID}.",
        None,
        id="result of a server call",
    ),
    pytest.param(
        lambda b: content(b, 2).insert(1, copy.deepcopy(content(b, 2)[0])),
        "each tool_use must have a single result. Found multiple `tool_result` blocks with id: "
        "toolu_1",
        None,
        id="two results",
    ),
    pytest.param(
        lambda b: content(b, 2)[0].update(content=[]),
        "messages.2.content.0.tool_result.content: List should have at least 1 item",
        None,
        id="empty result list",
    ),
    pytest.param(
        lambda b: content(b, 2)[0].update(content=[{"type": "text", "text": ""}]),
        "text content blocks must be non-empty",
        None,
        id="empty text in a result",
    ),
    pytest.param(
        lambda b: content(b, 2)[0].update(content=[TEXT, REFERENCE]),
        "messages.2.content.0.tool_result.content: `tool_reference` blocks cannot be mixed",
        None,
        id="text beside a reference",
    ),
    pytest.param(
        lambda b: content(b, 2)[0].update(is_error=True),
        'all content must be type "text" if "is_error" is true',
        None,
        id="reference in an error",
    ),
    pytest.param(
        lambda b: content(b, 2)[0].update(content=[{"type": "json"}]),
        "Input tag 'json' found using 'type' does not match any of the expected tags",
        None,
        id="unknown block in a result",
    ),
    pytest.param(
        lambda b: content(b, 2)[0].update(content=[{"type": "tool_reference", "name": "get_time"}]),
        "tool_result.content.0.tool_reference.tool_name: Field required",
        None,
        id="reference by name",
    ),
    pytest.param(
        lambda b: content(b, 2)[0].update(
            content=[{"type": "tool_reference", "tool_name": "x" * 65}]
        ),
        "messages.2.content.0.tool_result.content.0.tool_reference.tool_name: String should have "
        "at most 64 characters",
        None,
        id="reference too long",
    ),
    pytest.param(
        lambda b: b["tools"].pop(2),
        "Tool reference 'get_weather' not found in available tools",
        None,
        id="reference to no tool",
    ),
    pytest.param(
        lambda b: b["tools"].pop(3),
        "Tool reference 'get_time' not found in available tools",
        None,
        id="server reference to no tool",
    ),
    pytest.param(
        lambda b: (b.pop("tools"), b.pop("tool_choice")),
        "Tool reference 'get_weather' not found in available tools",
        None,
        id="no tools but references",
    ),
    pytest.param(
        lambda b: content(b, 3).pop(1),
        f"messages.3: `tool_search_tool_bm25` tool use with id `{SEARCH_ID}` was found without a "
        "corresponding `tool_search_tool_bm25_tool_result` block",
        None,
        id="server search unanswered",
    ),
    pytest.param(
        lambda b: content(b, 3).pop(0),
        "unexpected `tool_use_id` found in `tool_search_tool_result` blocks",
        None,
        id="server result of no call",
    ),
    pytest.param(
        lambda b: content(b, 3)[0].update(id="toolu_7"),
        "server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'",
        None,
        id="server call id",
    ),
    pytest.param(
        lambda b: content(b, 3)[0].update(name="tool_search_tool_regex"),
        "server_tool_use.input.pattern: Field required",
        None,
        id="regex search by query",
    ),
    pytest.param(
        lambda b: content(b, 3)[0].update(input={"pattern": "time"}),
        "server_tool_use.input.query: Field required",
        None,
        id="bm25 search by pattern",
    ),
    pytest.param(
        lambda b: (b.update(model="claude-opus-4-8"), b["messages"].append(changing_tools("x"))),
        "tool_addition/tool_removal references unknown tool 'x'",
        "tool_reference_unresolved",
        id="tool addition of no tool",
    ),
    pytest.param(
        lambda b: b["messages"].append(changing_tools("get_time")),
        "'claude-sonnet-4-6' does not support `tool_addition` blocks",
        None,
        id="tool addition on a model without",
    ),
    pytest.param(
        lambda b: b["messages"].insert(4, {"role": "system", "content": "Be brief."}),
        "messages.4: a `system` message must follow a `user` message",
        None,
        id="system message after the assistant",
    ),
)

ACCEPTED = (
    pytest.param(lambda _: None, id="unchanged"),
    pytest.param(
        lambda b: b["messages"].insert(0, {"role": "assistant", "content": "Hi."}),
        id="assistant first",
    ),
    pytest.param(split_calls, id="two replies with both results after them"),
    pytest.param(split_results, id="results in two messages"),
    pytest.param(lambda b: (split_calls(b), split_results_of_two(b)), id="both at once"),
    pytest.param(split_server_search, id="server search and its result in two messages"),
    pytest.param(interrupted_search, id="interrupted search"),
    pytest.param(
        lambda b: (interrupted_search(b), b.update(messages=b["messages"][:5])),
        id="interrupted search, not yet answered",
    ),
    pytest.param(
        lambda b: b["tools"][2].update(defer_loading=False), id="reference to a visible tool"
    ),
    pytest.param(
        lambda b: content(b, 3)[1]["content"].update(tool_references=[]),
        id="no hit of a server search",
    ),
    pytest.param(
        lambda b: content(b, 3)[1].update(
            content={"type": "tool_search_tool_result_error", "error_code": "pattern_too_long"},
        ),
        id="failed server search",
    ),
    pytest.param(lambda b: content(b, 2)[1].pop("content"), id="result without content"),
    pytest.param(
        lambda b: content(b, 1)[1].update(name="auto_load"), id="call of a tool not in tools"
    ),
    pytest.param(
        lambda b: (
            b.update(model="claude-fable-5"),
            b["messages"].append(changing_tools("get_time")),
            b["messages"].append(changing_tools("get_time", "tool_removal")),
        ),
        id="tool addition and removal",
    ),
)


@pytest.mark.parametrize(("spoil", "says", "code"), REFUSED)
def test_spoilt_request_is_refused(
    conversation: dict[str, Any], spoil: Change, says: str, code: str | None
) -> None:
    spoil(conversation)
    violation = check_anthropic(conversation)
    assert violation is not None
    assert says in violation.message
    assert (violation.status, violation.error_type) == (400, "invalid_request_error")
    assert violation.code == code


@pytest.mark.parametrize("change", ACCEPTED)
def test_unusual_request_is_accepted(conversation: dict[str, Any], change: Change) -> None:
    change(conversation)
    assert check_anthropic(conversation) is None


def test_interrupted_search_with_its_result_out_of_place_is_refused(
    conversation: dict[str, Any],
) -> None:
    interrupted_search(conversation)
    content(conversation, 5).reverse()
    violation = check_anthropic(conversation)
    assert violation is not None
    assert f"tool use with id `{SEARCH_ID}` was found without" in violation.message
