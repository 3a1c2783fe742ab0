"""OpenAI Responses' rules: a valid request with one fault is rejected, in the known words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tool_search.testing import Endpoint, check_openai_responses

Change = Callable[[dict[str, Any]], object]


def function(name: str, **fields: Any) -> dict[str, Any]:
    """Return a function's definition."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    return {"type": "function", "name": name, "parameters": schema, **fields}


def call(call_id: str, name: str, **fields: Any) -> dict[str, Any]:
    """Return a call of a function."""
    made = {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}"}
    return {**made, **fields}


def output(call_id: str) -> dict[str, Any]:
    """Return the output of a function."""
    return {"type": "function_call_output", "call_id": call_id, "output": "sunny"}


@pytest.fixture
def conversation() -> dict[str, Any]:
    """Return a conversation with a plain call, a search, and a call of what it found."""
    return {
        "model": "gpt-5.4",
        "tools": [
            {
                "type": "tool_search",
                "execution": "client",
                "description": "Finds tools.",
                "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
            },
            function("get_weather"),
            {"type": "namespace", "name": "crm", "description": "CRM.", "tools": [function("get")]},
        ],
        "input": [
            {"role": "user", "content": "Weather in Paris, and the time?"},
            call("call_1", "get_weather", id="fc_1"),
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
            {
                "type": "tool_search_call",
                "execution": "client",
                "call_id": "call_2",
                "arguments": {"query": "time"},
            },
            output("call_1"),
            {
                "type": "tool_search_output",
                "execution": "client",
                "call_id": "call_2",
                "status": "completed",
                "tools": [function("get_time", defer_loading=True)],
            },
            call("call_3", "get_time", namespace="get_time"),
            output("call_3"),
            call("call_4", "get", namespace="crm"),
            output("call_4"),
            {"role": "assistant", "content": [{"type": "output_text", "text": "Noon."}]},
        ],
    }


def items(body: dict[str, Any], *indexes: int) -> Any:
    """Leaves these items out."""
    body["input"] = [item for index, item in enumerate(body["input"]) if index not in indexes]


def tool(body: dict[str, Any], index: int = 1, **fields: Any) -> None:
    """Changes a tool."""
    body["tools"][index].update(fields)


def item(body: dict[str, Any], index: int, **fields: Any) -> None:
    """Changes an item."""
    body["input"][index].update(fields)


def answered_search(body: dict[str, Any], *outputs: str, **named: str | None) -> None:
    """Return a request with a hosted search, then function outputs with these call ids."""
    search = {
        "type": "tool_search_call",
        "execution": "server",
        "status": "completed",
        "arguments": {"paths": ["crm"]},
        **named,
    }
    body["input"] += [search, *map(output, outputs)]


def hosted(body: dict[str, Any], *more: dict[str, Any]) -> None:
    """Make the search of a request hosted, and add tools."""
    body["tools"] = [{"type": "tool_search"}, *body["tools"][1:], *more]


REFUSED = (
    pytest.param(
        lambda b: answered_search(b, "tsc_6", call_id=None, id="tsc_5"),
        "No tool call found for function call output with call_id tsc_6.",
        "input",
        id="output of another search than the service's own",
    ),
    pytest.param(
        lambda b: answered_search(b, "tsc_5", "tsc_5", call_id=None, id="tsc_5"),
        "Duplicate value for 'call_id' of 'tsc_5'.",
        "input[13].call_id",
        id="hosted search answered twice",
    ),
    pytest.param(
        lambda b: b.pop("model"), "Missing required parameter: 'model'.", "model", id="model"
    ),
    pytest.param(
        lambda b: b.pop("input"), 'One of "input" or "previous_response_id"', "input", id="input"
    ),
    pytest.param(
        lambda b: b.update(messages=[]),
        "Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to "
        "'input'.",
        None,
        id="chat parameter",
    ),
    pytest.param(
        lambda b: b.update(system="x"), "Unknown parameter: 'system'.", "system", id="unknown"
    ),
    pytest.param(
        lambda b: b.update(max_output_tokens=1),
        "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16",
        "max_output_tokens",
        id="too few tokens",
    ),
    pytest.param(
        lambda b: b.update(previous_response_id="resp_1", conversation="conv_1"),
        "Mutually exclusive parameters",
        None,
        id="two conversations",
    ),
    pytest.param(
        lambda b: b["tools"].append({"type": "function", "function": {"name": "f"}}),
        "Missing required parameter: 'tools[3].name'.",
        "tools[3].name",
        id="tool of the chat dialect",
    ),
    pytest.param(
        lambda b: tool(b, name="a.b"),
        "Invalid 'tools[1].name': string does not match pattern. Expected a string that matches "
        "the pattern '^[a-zA-Z0-9_-]+$'.",
        "tools[1].name",
        id="tool name",
    ),
    pytest.param(
        lambda b: tool(b, name="n" * 129),
        "Invalid 'tools[1].name': string too long. Expected a string with maximum length 128",
        "tools[1].name",
        id="long tool name",
    ),
    pytest.param(
        lambda b: tool(b, strict=True),
        "Invalid schema for function 'get_weather': In context=(), 'additionalProperties' is "
        "required to be supplied and to be false.",
        "tools[1].parameters",
        id="strict without a closed schema",
    ),
    pytest.param(
        lambda b: tool(
            b,
            strict=True,
            parameters={
                "type": "object",
                "properties": {"of": {"type": "object", "properties": {"a": {}}}},
                "required": ["of"],
                "additionalProperties": False,
            },
        ),
        "In context=('properties', 'of'), 'additionalProperties' is required",
        "tools[1].parameters",
        id="strict with an open inner schema",
    ),
    pytest.param(
        lambda b: tool(
            b,
            strict=True,
            parameters={"type": "object", "properties": {"a": {}}, "additionalProperties": False},
        ),
        "'required' is required to be supplied and to be an array including every key in "
        "properties. Missing 'a'.",
        "tools[1].parameters",
        id="strict with an optional argument",
    ),
    pytest.param(
        lambda b: tool(b, parameters={"type": "string"}),
        "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"string\"'.",
        "tools[1].parameters",
        id="schema of no object",
    ),
    pytest.param(
        lambda b: b["tools"].append(function("get_weather")),
        "names must be unique, and 'get_weather' is already taken.",
        "tools[3].name",
        id="name twice",
    ),
    pytest.param(
        lambda b: tool(b, 2, defer_loading=True),
        "Unknown parameter: 'tools[2].defer_loading'.",
        "tools[2].defer_loading",
        id="deferred namespace",
    ),
    pytest.param(
        lambda b: tool(b, 2, tools=[]),
        "Invalid 'tools[2].tools': empty array.",
        "tools[2].tools",
        id="empty namespace",
    ),
    pytest.param(
        lambda b: b["tools"][0].pop("description"),
        "Missing required parameter: 'tools[0].description'.",
        "tools[0].description",
        id="client search without a description",
    ),
    pytest.param(
        hosted,
        "Invalid Value: 'tools.tool_search'. tools.tool_search requires at least one deferred "
        "tool.",
        "tools",
        id="hosted search with nothing to find",
    ),
    pytest.param(
        lambda b: b.update(tools=[function("get_weather", defer_loading=True), b["tools"][2]]),
        "Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search.",
        "tools",
        id="deferred without a search",
    ),
    pytest.param(
        lambda b: b.update(model="gpt-5.4-nano", input="Hi."),
        "Tool 'tool_search' is not supported with gpt-5.4-nano.",
        "tools",
        id="model without search",
    ),
    pytest.param(
        lambda b: b.update(tool_choice={"type": "function", "name": "get_time"}),
        "Tool choice 'get_time' not found in 'tools' parameter.",
        "tool_choice",
        id="choice of a tool that was found",
    ),
    pytest.param(
        lambda b: item(b, 0, role="tool"),
        "Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', 'user'.",
        "input[0].role",
        id="role",
    ),
    pytest.param(
        lambda b: item(b, 10, content=[{"type": "input_text", "text": "x"}]),
        "Invalid value: 'input_text'. Supported values are: 'output_text', 'refusal'.",
        "input[10].content[0]",
        id="input text of the assistant",
    ),
    pytest.param(
        lambda b: item(b, 1, id="call_1"),
        "Invalid 'input[1].id': 'call_1'. Expected an ID that begins with 'fc'.",
        "input[1].id",
        id="id of another kind",
    ),
    pytest.param(
        lambda b: item(b, 1, call_id="c" * 65),
        "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64",
        "input[1].call_id",
        id="long call id",
    ),
    pytest.param(
        lambda b: item(b, 1, name="crm::get"),
        "Invalid 'input[1].name': string does not match pattern.",
        "input[1].name",
        id="name of a call",
    ),
    pytest.param(
        lambda b: b["input"][3].pop("arguments"),
        "Missing required parameter: 'input[3].arguments'.",
        "input[3].arguments",
        id="search without arguments",
    ),
    pytest.param(
        lambda b: item(b, 3, arguments='{"query": "time"}'),
        "Invalid type for 'input[3].arguments': expected an object, but got a string instead.",
        "input[3].arguments",
        id="search with arguments as text",
    ),
    pytest.param(
        lambda b: items(b, 4),
        "No tool output found for function call call_1.",
        "input",
        id="call without output",
    ),
    pytest.param(
        lambda b: items(b, 5, 6, 7),
        "No tool output found for tool search call call_2.",
        "input",
        id="search without output",
    ),
    pytest.param(
        lambda b: items(b, 1),
        "No tool call found for function call output with call_id call_1.",
        "input",
        id="output without call",
    ),
    pytest.param(
        lambda b: b["input"].append(output("call_1")),
        "Duplicate value for 'call_id' of 'call_1'.",
        "input[11].call_id",
        id="two outputs",
    ),
    pytest.param(
        lambda b: items(b, 3, 5, 6, 7),
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        "input",
        id="reasoning about nothing",
    ),
    pytest.param(
        lambda b: b["input"][6].pop("namespace"),
        "Missing namespace for function_call 'get_time'. It does not exist in the default "
        "namespace.",
        "input[6].namespace",
        id="call without namespace",
    ),
    pytest.param(
        lambda b: item(b, 1, namespace="get_weather"),
        "Unknown namespace 'get_weather' for function_call 'get_weather'",
        "input[1].namespace",
        id="namespace of a plain tool",
    ),
)


@pytest.mark.parametrize(("spoil", "message", "param"), REFUSED)
def test_spoilt_request_is_refused(
    conversation: dict[str, Any], spoil: Change, message: str, param: str | None
) -> None:
    spoil(conversation)
    violation = check_openai_responses(conversation)
    assert violation is not None
    assert message in violation.message
    assert (violation.status, violation.param) == (400, param)


ACCEPTED = (
    pytest.param(lambda _: None, id="as it is"),
    pytest.param(lambda b: b.update(input="Hi."), id="text as input"),
    pytest.param(lambda b: b.update(input="Hi.", tools=None, tool_choice="auto"), id="no tools"),
    pytest.param(lambda b: b["tools"].append(function("get_time")), id="found and plain as well"),
    pytest.param(lambda b: tool(b, 1, type="function", strict=False), id="not strict"),
    pytest.param(
        lambda b: (b["tools"].append(function("get_time")), b["input"][6].pop("namespace")),
        id="plain tool called without namespace though a search found it too",
    ),
    pytest.param(lambda b: item(b, 1, name="gone_since"), id="call of a tool that is not there"),
    pytest.param(
        lambda b: b.update(previous_response_id="resp_1", input=[output("call_9")]),
        id="output of a call that lies with the service",
    ),
    pytest.param(
        lambda b: hosted(b, function("ask", defer_loading=True)),
        id="hosted search beside client exchanges",
    ),
    pytest.param(
        lambda b: answered_search(b, "call_5", call_id="call_5", id="tsc_5"),
        id="hosted search answered as a function by its call id",
    ),
    pytest.param(
        lambda b: answered_search(b, "tsc_5", call_id=None, id="tsc_5"),
        id="hosted search answered as a function by its id",
    ),
    pytest.param(
        lambda b: b.update(
            model="gpt-5",
            tools=[function("ask")],
            input=[
                {"role": "user", "content": "Hi."},
                {"type": "additional_tools", "role": "developer", "tools": [function("get_time")]},
            ],
        ),
        id="additional tools on an older model",
    ),
)


@pytest.mark.parametrize("change", ACCEPTED)
def test_valid_request_is_accepted(conversation: dict[str, Any], change: Change) -> None:
    change(conversation)
    assert check_openai_responses(conversation) is None


@pytest.mark.parametrize(
    ("model", "knows"),
    [
        ("gpt-5.4", True),
        ("gpt-5.4-mini", True),
        ("gpt-5.4-2026-03-05", True),
        ("gpt-5.6-sol", True),
        ("gpt-6", True),
        ("gpt-10", True),
        ("my-own-model", True),
        ("gpt-5.4-nano", False),
        ("gpt-5", False),
        ("gpt-5-mini", False),
        ("gpt-5.2-codex", False),
        ("gpt-4.1", False),
        ("o3", False),
        ("gpt-oss-120b", False),
    ],
)
def test_tool_search_needs_a_model_that_has_it(
    conversation: dict[str, Any], model: str, knows: bool
) -> None:
    conversation.update(model=model, input="Hi.")
    assert (check_openai_responses(conversation) is None) is knows


def test_replayed_search_is_refused_by_a_model_without_it(conversation: dict[str, Any]) -> None:
    """The items of a search are for models that search."""
    conversation.update(model="gpt-5", tools=[function("get_weather")])
    violation = check_openai_responses(conversation)
    assert violation is not None
    assert violation.message == "Tool 'tool_search' is not supported with gpt-5."


@pytest.mark.parametrize(
    ("change", "param"),
    [
        pytest.param(lambda _: None, "tools[0].type", id="tool"),
        pytest.param(
            lambda b: b.update(tools=[function("a", defer_loading=True)]),
            "tools[0].defer_loading",
            id="deferral",
        ),
        pytest.param(lambda b: b.update(tools=[]), "input[3].type", id="items"),
    ],
)
def test_compatible_endpoint_that_has_never_heard_of_search_refuses_it(
    conversation: dict[str, Any], change: Change, param: str
) -> None:
    change(conversation)
    violation = check_openai_responses(conversation, endpoint=Endpoint(supports_tool_search=False))
    assert violation is not None
    assert violation.param == param
