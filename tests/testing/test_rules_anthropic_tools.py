"""Anthropic's rules for parameters and tools: a valid request with one fault is rejected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tool_search.testing import Endpoint, check_anthropic

Change = Callable[[dict[str, Any]], object]


def content(body: dict[str, Any], message: int) -> Any:
    """Return the content of one message."""
    return body["messages"][message]["content"]


def marked(body: dict[str, Any]) -> dict[str, Any]:
    """Put five cache breakpoints into the body."""
    mark = {"type": "ephemeral"}
    body["cache_control"] = mark
    body["system"][0]["cache_control"] = mark
    body["tools"][1].update(cache_control=mark)
    content(body, 2)[1].update(cache_control=mark)
    content(body, 4)[0].update(cache_control=mark)
    return body


def every_tool_deferred(body: dict[str, Any]) -> None:
    """Leaves no tool the model can see."""
    for item in body["tools"]:
        item["defer_loading"] = True


def many(body: dict[str, Any], count: int, description: str = "") -> None:
    """Add deferred tools."""
    body["tools"] += [
        {
            "name": f"tool_{index}",
            "description": description,
            "input_schema": {"type": "object"},
            "defer_loading": True,
        }
        for index in range(count)
    ]


def thinking(body: dict[str, Any], model: str, choice: dict[str, str]) -> None:
    """Ask a model for a forced tool."""
    body.update(model=model, tool_choice=choice)


REFUSED = (
    pytest.param(
        lambda b: b.pop("max_tokens"), "max_tokens: Field required", None, id="max_tokens missing"
    ),
    pytest.param(lambda b: b.pop("model"), "model: Field required", None, id="model missing"),
    pytest.param(
        lambda b: b.pop("messages"), "messages: Field required", None, id="messages missing"
    ),
    pytest.param(
        lambda b: b.update(max_tokens=0), "greater than or equal to 1", None, id="max_tokens zero"
    ),
    pytest.param(
        lambda b: b.update(max_tokens="1"), "should be a valid integer", None, id="max_tokens text"
    ),
    pytest.param(
        lambda b: b.update(n=1), "n: Extra inputs are not permitted", None, id="unknown parameter"
    ),
    pytest.param(
        lambda b: b.update(stream_options={}), "Extra inputs", None, id="openai parameter"
    ),
    pytest.param(
        lambda b: b.update(tools={}),
        "tools: Input should be a valid list",
        None,
        id="tools no list",
    ),
    pytest.param(
        lambda b: b.update(system=[{"type": "image"}]),
        "Input should be 'text'",
        None,
        id="system no text",
    ),
    pytest.param(
        lambda b: b.update(system=[{"type": "text", "text": ""}]),
        "system: text content blocks must be non-empty",
        None,
        id="system empty block",
    ),
    pytest.param(
        lambda b: b["tools"][1].update(name="a.b"),
        "tools.1.custom.name: String should match",
        None,
        id="tool name",
    ),
    pytest.param(
        lambda b: b["tools"][1].update(name="x" * 129),
        "at most 128 characters",
        None,
        id="tool name too long",
    ),
    pytest.param(
        lambda b: b["tools"][1].pop("name"), "name: Field required", None, id="tool name missing"
    ),
    pytest.param(
        lambda b: b["tools"][1].update(name="get_time"),
        "tools: Tool names must be unique.",
        None,
        id="tool twice",
    ),
    pytest.param(
        lambda b: b["tools"][1].pop("input_schema"),
        "tools.1.custom.input_schema: Field required",
        None,
        id="schema missing",
    ),
    pytest.param(
        lambda b: b["tools"][1].update(input_schema={}),
        "tools.1.custom.input_schema.type: Field required",
        None,
        id="schema without type",
    ),
    pytest.param(
        lambda b: b["tools"][1].update(input_schema={"type": "array"}),
        "tools.1.custom.input_schema.type: Input should be 'object'",
        None,
        id="schema of an array",
    ),
    pytest.param(
        lambda b: b["tools"][1].update(input_schema={"type": "object", "anyOf": []}),
        "input_schema does not support oneOf, allOf, or anyOf at the top level",
        None,
        id="schema combined",
    ),
    pytest.param(
        lambda b: b["tools"].append({"type": "function", "function": {"name": "x"}}),
        "tools.4: Input tag 'function' found using 'type' does not match any of the expected tags",
        None,
        id="openai tool",
    ),
    pytest.param(
        lambda b: b["tools"][1].update(parameters={}),
        "tools.1.custom.parameters: Extra inputs are not permitted",
        None,
        id="openai field",
    ),
    pytest.param(
        lambda b: b["tools"][0].update(name="search"),
        "tools.0.tool_search_tool_bm25_20251119.name: Input should be 'tool_search_tool_bm25'",
        None,
        id="search tool name",
    ),
    pytest.param(
        every_tool_deferred,
        "At least one tool must have defer_loading=false. All tools cannot be deferred.",
        None,
        id="all deferred",
    ),
    pytest.param(
        lambda b: b["tools"][2].update(cache_control={"type": "ephemeral"}),
        "Tool 'get_weather' cannot have both defer_loading=true and cache_control set. Tools with "
        "defer_loading cannot use prompt caching.",
        None,
        id="deferred and cached",
    ),
    pytest.param(
        marked,
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        None,
        id="five breakpoints",
    ),
    pytest.param(
        lambda b: many(b, 9_999),
        "10001 tools have defer_loading=true",
        "available_tools_limit_exceeded",
        id="too many deferred",
    ),
    pytest.param(
        lambda b: many(b, 45, "天" * 32_000),
        "at most 4194304 are allowed",
        "available_tools_limit_exceeded",
        id="too much text",
    ),
    pytest.param(
        lambda b: b.update(model="claude-opus-4-1-20250805"),
        "does not support tool types: tool_search_tool_bm25_20251119",
        None,
        id="old model, search tool",
    ),
    pytest.param(
        lambda b: (b.update(model="claude-3-5-haiku-latest"), b["tools"].pop(0)),
        "'claude-3-5-haiku-latest' does not support tools with defer_loading=true",
        None,
        id="old model, deferred",
    ),
    pytest.param(
        lambda b: b.update(tools=[], messages=b["messages"][:1]),
        "tool_choice may only be specified while providing tools",
        None,
        id="tool choice without tools",
    ),
    pytest.param(
        lambda b: b.update(tool_choice="auto"),
        "be a valid dictionary",
        None,
        id="tool choice as text",
    ),
    pytest.param(
        lambda b: b.update(tool_choice={"type": "function"}),
        "tool_choice: Input tag 'function' found using 'type' does not match any",
        None,
        id="tool choice of openai",
    ),
    pytest.param(
        lambda b: b.update(tool_choice={"type": "tool", "name": "x"}),
        "Tool 'x' not found in provided tools",
        None,
        id="tool choice of no tool",
    ),
    pytest.param(
        lambda b: b.update(tool_choice={"type": "tool", "name": "get_time"}),
        "Tool 'get_time' has defer_loading=true",
        None,
        id="tool choice of a deferred tool",
    ),
    pytest.param(
        lambda b: thinking(b, "claude-opus-5-5", {"type": "any"}),
        "'any' is not supported on claude-opus-5-5",
        None,
        id="forced tool on a prefix-bound model",
    ),
    pytest.param(
        lambda b: b.update(
            tool_choice={"type": "any"}, thinking={"type": "enabled", "budget_tokens": 1024}
        ),
        "Thinking may not be enabled when tool_choice forces tool use.",
        None,
        id="forced tool with thinking",
    ),
)

ACCEPTED = (
    pytest.param(lambda b: b.update(model="some-vendor/model"), id="unknown model"),
    pytest.param(
        lambda b: b.update(tool_choice={"type": "any"}, thinking={"type": "adaptive"}),
        id="forced tool with adaptive thinking",
    ),
    pytest.param(
        lambda b: b.update(
            tool_choice={"type": "tool", "name": "tool_search"}, thinking={"type": "adaptive"}
        ),
        id="named tool with adaptive thinking",
    ),
    pytest.param(lambda b: (marked(b), b.pop("cache_control")), id="four breakpoints"),
    pytest.param(lambda b: b.update(tool_choice={"type": "none"}), id="no tool choice for none"),
    pytest.param(lambda b: many(b, 9_998), id="10,000 deferred"),
)

UNSUPPORTED = (
    pytest.param(
        lambda b: b["tools"].pop(0), "defer_loading: Extra inputs are not permitted", id="deferred"
    ),
    pytest.param(
        lambda b: [item.pop("defer_loading", None) for item in b["tools"]],
        "tools.0: Input tag 'tool_search_tool_bm25_20251119' found using 'type' does not match",
        id="search tool",
    ),
    pytest.param(
        lambda b: b.update(tools=b["tools"][1:2]),
        "messages.2.content.0.tool_result.content.0: Input tag 'tool_reference' found using 'type' "
        "does not match any of the expected tags: 'document', 'image', 'search_result', 'text'",
        id="reference",
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


@pytest.mark.parametrize(("change", "says"), UNSUPPORTED)
def test_endpoint_without_tool_search_refuses_its_fields(
    conversation: dict[str, Any], change: Change, says: str
) -> None:
    change(conversation)
    violation = check_anthropic(conversation, endpoint=Endpoint(supports_tool_search=False))
    assert violation is not None
    assert says in violation.message


def test_vendor_parameter_is_accepted_where_the_endpoint_has_it(
    conversation: dict[str, Any],
) -> None:
    conversation["enable_thinking"] = False
    assert check_anthropic(conversation) is not None
    endpoint = Endpoint(extra_parameters=frozenset({"enable_thinking"}))
    assert check_anthropic(conversation, endpoint=endpoint) is None


def test_counted_request_goes_without_the_limit(conversation: dict[str, Any]) -> None:
    """A message requires it, and a token count rejects it."""
    refused = check_anthropic(conversation, counting=True)
    assert refused is not None
    assert refused.message == "max_tokens: Extra inputs are not permitted"
    del conversation["max_tokens"]
    assert check_anthropic(conversation, counting=True) is None
    asked = check_anthropic(conversation)
    assert asked is not None
    assert asked.message == "max_tokens: Field required"
