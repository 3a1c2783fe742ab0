"""OpenAI Chat's rules: a valid request with one fault is rejected, in the known words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tool_search.testing import Endpoint, check_openai_chat

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def conversation() -> dict[str, Any]:
    """Return a conversation with a call, two results and an answer."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    return {
        "model": "gpt-5.4",
        "tool_choice": "auto",
        "tools": [
            {"type": "function", "function": {"name": name, "parameters": schema}}
            for name in ("get_weather", "get_time")
        ],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Weather in Paris?"}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": f"call_{name}",
                        "type": "function",
                        "function": {"name": name, "arguments": "{}"},
                    }
                    for name in ("get_weather", "get_time")
                ],
            },
            {"role": "tool", "tool_call_id": "call_get_time", "content": "noon"},
            {"role": "tool", "tool_call_id": "call_get_weather", "content": "sunny"},
            {"role": "assistant", "content": "It is sunny."},
            {"role": "user", "content": "Thanks."},
        ],
    }


def function(body: dict[str, Any], **fields: Any) -> None:
    """Changes the first tool's function."""
    body["tools"][0]["function"].update(fields)


def call(body: dict[str, Any]) -> Any:
    """Return the first call of the assistant."""
    return body["messages"][2]["tool_calls"][0]


def many(body: dict[str, Any], count: int) -> None:
    """As many tools as that."""
    body["tools"] = [
        {"type": "function", "function": {"name": f"get_{index}"}} for index in range(count)
    ]


REFUSED = (
    pytest.param(
        lambda b: b.pop("model"), "you must provide a model parameter", None, None, id="model"
    ),
    pytest.param(
        lambda b: b.pop("messages"),
        "Missing required parameter: 'messages'.",
        "messages",
        "missing_required_parameter",
        id="messages",
    ),
    pytest.param(
        lambda b: b.update(thinking={}),
        "Unrecognized request argument supplied: thinking",
        None,
        None,
        id="unknown parameter",
    ),
    pytest.param(
        lambda b: b.update(system="x"),
        "Unrecognized request argument supplied: system",
        None,
        None,
        id="claude parameter",
    ),
    pytest.param(
        lambda b: b.update(input=[]),
        "Unrecognized request argument supplied: input",
        None,
        None,
        id="responses parameter",
    ),
    pytest.param(
        lambda b: many(b, 129),
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an "
        "array with length 129 instead.",
        "tools",
        "array_above_max_length",
        id="129 tools",
    ),
    pytest.param(
        lambda b: b.update(tools=[]),
        "Invalid 'tools': empty array. Expected an array with minimum length 1",
        "tools",
        "empty_array",
        id="no tools",
    ),
    pytest.param(
        lambda b: b.pop("tools"),
        "'tool_choice' is only allowed when 'tools' are specified.",
        "tool_choice",
        None,
        id="tool choice without tools",
    ),
    pytest.param(
        lambda b: b.update(tool_choice="any"),
        "Invalid value: 'any'. Supported values are: 'none', 'auto', and 'required'.",
        "tool_choice",
        "invalid_value",
        id="tool choice of claude",
    ),
    pytest.param(
        lambda b: b.update(tool_choice={"type": "function", "function": {"name": "x"}}),
        "Tool choice 'x' not found in 'tools' parameter.",
        "tool_choice",
        None,
        id="tool choice of no tool",
    ),
    pytest.param(
        lambda b: function(b, name="a.b"),
        "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that "
        "matches the pattern '^[a-zA-Z0-9_-]+$'.",
        "tools[0].function.name",
        "invalid_value",
        id="name",
    ),
    pytest.param(
        lambda b: function(b, name="x" * 65),
        "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length "
        "64, but got a string with length 65 instead.",
        "tools[0].function.name",
        "string_above_max_length",
        id="name too long",
    ),
    pytest.param(
        lambda b: function(b, name="get_time"),
        "function names must be unique",
        "tools[1].function.name",
        "invalid_value",
        id="name twice",
    ),
    pytest.param(
        lambda b: function(b, parameters={}),
        "Invalid schema for function 'get_weather': schema must be a JSON Schema of 'type: "
        '"object"\', got \'type: "None"\'.',
        "tools[0].function.parameters",
        "invalid_function_parameters",
        id="empty schema",
    ),
    pytest.param(
        lambda b: function(b, parameters={"type": "object", "oneOf": []}),
        "schema must have type 'object' and not have 'oneOf'",
        "tools[0].function.parameters",
        "invalid_function_parameters",
        id="combined schema",
    ),
    pytest.param(
        lambda b: function(b, defer_loading=True),
        "Unknown parameter: 'tools[0].function.defer_loading'.",
        "tools[0].function.defer_loading",
        "unknown_parameter",
        id="deferred function",
    ),
    pytest.param(
        lambda b: b["tools"][0].update(defer_loading=True),
        "Unknown parameter: 'tools[0].defer_loading'.",
        "tools[0].defer_loading",
        "unknown_parameter",
        id="deferred tool",
    ),
    pytest.param(
        lambda b: b["tools"].append({"type": "tool_search"}),
        "Invalid value: 'tool_search'. Supported values are: 'function' and 'custom'.",
        "tools[2].type",
        "invalid_value",
        id="responses tool",
    ),
    pytest.param(
        lambda b: b["tools"].append({"name": "x", "input_schema": {}}),
        "Invalid value: 'None'. Supported values are: 'function' and 'custom'.",
        "tools[2].type",
        "invalid_value",
        id="claude tool",
    ),
    pytest.param(
        lambda b: b["messages"].pop(3),
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: "
        "call_get_time",
        "messages.[4].role",
        None,
        id="result missing",
    ),
    pytest.param(
        lambda b: b.update(messages=b["messages"][:3]),
        "did not have response messages: call_get_weather, call_get_time",
        "messages.[3].role",
        None,
        id="no message after the call",
    ),
    pytest.param(
        lambda b: b["messages"].insert(3, {"role": "user", "content": "Wait."}),
        "did not have response messages: call_get_weather, call_get_time",
        "messages.[3].role",
        None,
        id="message before the results",
    ),
    pytest.param(
        lambda b: b["messages"].append(b["messages"][3]),
        "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        "messages.[7].role",
        None,
        id="result of no call",
    ),
    pytest.param(
        lambda b: b["messages"].insert(4, dict(b["messages"][3])),
        "Duplicate value for 'tool_call_id' of 'call_get_time'",
        "messages.[4]",
        None,
        id="two results",
    ),
    pytest.param(
        lambda b: call(b).update(id="call_get_time"),
        "the ids must be unique",
        "messages[2].tool_calls",
        "invalid_value",
        id="repeated call id",
    ),
    pytest.param(
        lambda b: call(b).update(id="x" * 41),
        "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum "
        "length 40, but got a string with length 41 instead.",
        "messages[2].tool_calls[0].id",
        "string_above_max_length",
        id="call id too long",
    ),
    pytest.param(
        lambda b: b["messages"][3].update(tool_call_id="x" * 41),
        "Invalid 'messages[3].tool_call_id': string too long.",
        "messages[3].tool_call_id",
        "string_above_max_length",
        id="result id too long",
    ),
    pytest.param(
        lambda b: call(b)["function"].update(arguments={}),
        "Invalid type for 'messages[2].tool_calls[0].function.arguments': expected a string, but "
        "got an object instead.",
        "messages[2].tool_calls[0].function.arguments",
        "invalid_type",
        id="arguments as object",
    ),
    pytest.param(
        lambda b: call(b)["function"].update(name=""),
        "Invalid 'messages[2].tool_calls[0].function.name': empty string.",
        "messages[2].tool_calls[0].function.name",
        "empty_string",
        id="call of no name",
    ),
    pytest.param(
        lambda b: b["messages"][5].update(tool_calls=[]),
        "Invalid 'messages[5].tool_calls': empty array.",
        "messages[5].tool_calls",
        "empty_array",
        id="no calls",
    ),
    pytest.param(
        lambda b: b["messages"][6].update(content=None),
        "Invalid value for 'content': expected a string, got null.",
        "messages[6].content",
        None,
        id="no content",
    ),
    pytest.param(
        lambda b: b["messages"][6].update(content=[]),
        "Invalid 'messages[6].content': empty array.",
        "messages[6].content",
        "empty_array",
        id="empty content",
    ),
    pytest.param(
        lambda b: b["messages"][4].update(
            content=[{"type": "tool_reference", "tool_name": "get_time"}]
        ),
        "Invalid value: 'tool_reference'. Supported values are: 'text'.",
        "messages[4].content[0].type",
        "invalid_value",
        id="reference in a result",
    ),
    pytest.param(
        lambda b: b["messages"][6].update(role="model"),
        "Invalid value: 'model'. Supported values are: 'system', 'developer',",
        "messages[6].role",
        "invalid_value",
        id="role",
    ),
    pytest.param(
        lambda b: b["messages"][6].update(cache_control={}),
        "Unknown parameter: 'messages[6].cache_control'.",
        "messages[6].cache_control",
        "unknown_parameter",
        id="claude message field",
    ),
    pytest.param(
        lambda b: b.update(messages=[]),
        "Invalid 'messages': empty array.",
        "messages",
        "empty_array",
        id="no message",
    ),
)


@pytest.mark.parametrize(("spoil", "says", "param", "code"), REFUSED)
def test_spoilt_request_is_refused(
    conversation: dict[str, Any], spoil: Change, says: str, param: str | None, code: str | None
) -> None:
    spoil(conversation)
    violation = check_openai_chat(conversation)
    assert violation is not None
    assert says in violation.message
    assert (violation.status, violation.error_type) == (400, "invalid_request_error")
    assert (violation.param, violation.code) == (param, code)


LATE = {"type": "function", "function": {"name": "send_mail", "parameters": {"type": "object"}}}


@pytest.mark.parametrize(
    ("model", "message", "says"),
    [
        ("kimi-k3", {}, None),
        ("moonshotai/kimi-k3", {}, None),
        ("kimi-k2.6", {}, "tokenization failed"),
        ("gpt-5.4", {}, "Unknown parameter: 'messages[7].tools'."),
        ("kimi-k3", {"content": None}, "Unknown parameter: 'messages[7].content'."),
        ("kimi-k3", {"role": "user"}, "Invalid value: 'user'."),
        ("kimi-k3", {"tools": []}, "Invalid 'messages[7].tools': empty array."),
        ("kimi-k3", {"tools": {}}, "Invalid type for 'messages[7].tools'"),
        ("kimi-k3", {"tools": [{"type": "function"}]}, "Missing required parameter"),
    ],
)
def test_kimi_k3_takes_tools_in_a_system_message_with_nothing_else(
    conversation: dict[str, Any], model: str, message: dict[str, Any], says: str | None
) -> None:
    late = {"role": "system", "tools": [LATE], **message}
    conversation["messages"][2]["reasoning_content"] = ""
    body = {**conversation, "model": model, "messages": [*conversation["messages"], late]}
    violation = check_openai_chat(body)
    assert (violation is None) is (says is None)
    assert violation is None or (says is not None and says in violation.message)


def nine(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body, its calls under ids as Mistral's own have."""
    for number, name in enumerate(("get_weather", "get_time")):
        body["messages"][2]["tool_calls"][number]["id"] = f"{name[4:8]}12345"
    body["messages"][3]["tool_call_id"] = "time12345"
    body["messages"][4]["tool_call_id"] = "weat12345"
    return body


@pytest.mark.parametrize(
    ("model", "change", "says"),
    [
        ("mistral-large-2512", nine, None),
        ("mistralai/devstral-2512", lambda _: None, "Tool call id was call_get_weather but must"),
        (
            "mistral-large-2512",
            lambda b: nine(b)["messages"].pop(5),
            "Unexpected role 'user' after role 'tool'",
        ),
        (
            "mistral-large-2512",
            lambda b: nine(b)["messages"][2].update(content="I look."),
            "either content or tool_calls, but not both",
        ),
        (
            "mistral-large-2512",
            lambda b: nine(b).update(stream=True, stream_options={"include_usage": True}),
            "'loc': ['body', 'stream_options', 'include_usage']",
        ),
        (
            "mistral-large-2512",
            lambda b: nine(b)["messages"][5].update(reasoning_content="Hm."),
            "'loc': ['body', 'messages', 5, 'assistant', 'reasoning_content']",
        ),
        ("glm-5", lambda _: None, None),
        ("z-ai/glm-5", lambda b: b.update(tool_choice="none"), "Tool choice must be auto"),
        ("grok-4.5", lambda b: many(b, 200), None),
        ("grok-4.5", lambda b: many(b, 219), "Maximum tools limit reached. 219 tools have been"),
        ("qwen3.5-plus", lambda b: b.update(tool_choice="none"), None),
        ("qwen3.5-plus", lambda b: b.update(tool_choice="required"), "required or object in think"),
        (
            "qwen3.5-plus",
            lambda b: b.update(tool_choice="required", enable_thinking=False),
            "Unrecognized request argument supplied: enable_thinking",
        ),
    ],
)
def test_rule_of_another_vendor_holds_for_its_models(
    conversation: dict[str, Any], model: str, change: Change, says: str | None
) -> None:
    change(conversation)
    violation = check_openai_chat({**conversation, "model": model})
    assert (violation is None) is (says is None)
    assert violation is None or (says is not None and says in violation.message)


def test_deepseek_that_thinks_is_not_told_to_call(conversation: dict[str, Any]) -> None:
    conversation["messages"][2]["reasoning_content"] = ""
    body = {**conversation, "model": "deepseek-v4-pro", "tool_choice": "required"}
    violation = check_openai_chat(body)
    assert violation is not None
    assert violation.message == "Thinking mode does not support this tool_choice"
    endpoint = Endpoint(extra_parameters=frozenset({"thinking"}))
    assert check_openai_chat({**body, "thinking": {"type": "disabled"}}, endpoint=endpoint) is None


ACCEPTED = (
    pytest.param(lambda _: None, id="unchanged"),
    pytest.param(lambda b: many(b, 128), id="128 tools"),
    pytest.param(lambda b: b["tools"][0]["function"].pop("parameters"), id="no schema"),
    pytest.param(lambda b: b["messages"][5].update(reasoning_content="Hm."), id="reasoning"),
    pytest.param(lambda b: b["messages"][0].update(role="developer"), id="developer"),
    pytest.param(lambda b: (b.pop("tools"), b.pop("tool_choice")), id="no tools"),
    pytest.param(lambda b: b.update(tool_choice="none"), id="tool choice none"),
    pytest.param(
        lambda b: b.update(
            tool_choice={
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "auto",
                    "tools": [{"type": "function", "function": {"name": "get_time"}}],
                },
            }
        ),
        id="allowed tools",
    ),
)


@pytest.mark.parametrize("change", ACCEPTED)
def test_unusual_request_is_accepted(conversation: dict[str, Any], change: Change) -> None:
    change(conversation)
    assert check_openai_chat(conversation) is None


def test_endpoint_without_a_limit_takes_any_number_of_tools(
    conversation: dict[str, Any],
) -> None:
    """Ollama, for one, has no limit; another may have a lower one."""
    many(conversation, 300)
    assert check_openai_chat(conversation, endpoint=Endpoint(max_tools=None)) is None
    violation = check_openai_chat(conversation, endpoint=Endpoint(max_tools=20))
    assert violation is not None
    assert "maximum length 20" in violation.message
