"""OpenAI Responses requests, written: what each part of a plan becomes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.adapters.contract import QUESTION, WEATHER, plan_of
from tool_search.adapters.openai_responses.reply import from_wire
from tool_search.adapters.openai_responses.wire import encode, to_wire
from tool_search.catalog.schema.declared import declared_schema
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import (
    DeclaredTool,
    ImagePart,
    Message,
    NativeReply,
    ReferencePart,
    RequestPlan,
    TextPart,
    ToolCall,
    ToolList,
)
from tool_search.providers.profile_choice import profile_for
from tool_search.testing import check_request

CLIENT = profile_for("openai_responses", "gpt-5.4")
DEFERRED = profile_for("openai_responses", "gpt-5.4", search_form="deferred")
HOSTED = profile_for("openai_responses", "gpt-5.4", search_form="hosted")
ADDITIONAL = profile_for("openai_responses", "gpt-5")
KEEPING = profile_for("openai_responses", "gpt-5.4", keeps_replies=True)

SEARCH = Tool(
    name="tool_search",
    description="Finds tools.",
    parameters={"type": "object", "properties": {"query": {"type": "string"}}},
)
MAIL = Tool(name="send_mail", server="mail")
INBOX = Tool(name="read.inbox", server="mail")
CALL = ToolCall(id="call_1", name="get_weather", arguments='{"city": "Paris"}')
RESULT = Message(role="tool", tool_call_id="call_1", name="get_weather", content="21 °C")
FIND = ToolCall(id="call_2", name="tool_search", arguments='{"query": "weather"}')


def searching(*messages: Message, deferred: tuple[Tool, ...] = (), **more: Any) -> RequestPlan:
    """Return a plan with the service's own search tool."""
    entries = (DeclaredTool(SEARCH, is_search=True), *(DeclaredTool(t, True) for t in deferred))
    return RequestPlan(
        strategy="openai_responses",
        tools=ToolList(entries),
        messages=messages or (QUESTION,),
        **more,
    )


def found(*tools: Tool, call: ToolCall = FIND) -> tuple[Message, Message]:
    """Return a search, and its result."""
    part = ReferencePart(tuple(tool.name for tool in tools), tools)
    result = Message(role="tool", tool_call_id=call.id, name=call.name, content=(part,))
    return Message(role="assistant", tool_calls=(call,)), result


def items(plan: RequestPlan, profile: Any = CLIENT, **more: Any) -> list[Any]:
    """Return the input of a plan's request."""
    written: list[Any] = to_wire(plan, profile, **more)["input"]
    return written


def test_request_has_its_system_text_as_instructions_and_keeps_nothing_there() -> None:
    """Stateless: everything is sent each time, reasoning asked for in encrypted form."""
    body = to_wire(plan_of(), CLIENT)
    assert body["instructions"] == "You are helpful."
    assert body["store"] is False
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["stream"] is True
    assert body["input"] == [{"role": "user", "content": "What is the weather in Paris?"}]


def test_model_without_reasoning_is_not_asked_for_it() -> None:
    assert "include" not in to_wire(plan_of(), profile_for("openai_responses", "gpt-4.1"))


def test_function_is_declared_flat_and_never_strict_by_default() -> None:
    (tool,) = to_wire(plan_of(), CLIENT)["tools"]
    assert tool["type"] == "function"
    assert tool["name"] == "get_weather"
    assert tool["strict"] is False
    assert "function" not in tool


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"properties": {}, "required": []}, True),
        ({"properties": {}}, False),
        ({"properties": {"a": {"type": "string"}}, "required": ["a"]}, True),
        ({"properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]}, True),
        ({"properties": {"a": {"enum": ["x"], "type": "string"}}, "required": ["a"]}, True),
        ({"properties": {"a": {"type": "string"}}, "required": []}, False),
        ({"properties": {"a": {}}, "required": ["a"]}, False),
        ({"properties": {"a": {"type": "string", "pattern": "x"}}, "required": ["a"]}, False),
        ({"properties": {"a": {"type": "array"}}, "required": ["a"]}, False),
        ({"properties": {"a": {"type": "object"}}, "required": ["a"]}, False),
        ({"properties": {"a": {"$ref": "#/$defs/b"}}, "required": ["a"]}, False),
        ({"properties": {"a": True}, "required": ["a"]}, False),
    ],
)
def test_strict_mode_is_on_where_the_schema_is_as_it_wants(schema: Any, strict: bool) -> None:
    """Never by changing a schema."""
    whole = {"type": "object", "additionalProperties": False, **schema}
    given = Tool(name="t", parameters=whole)
    (tool,) = to_wire(plan_of(tools=(given,)), CLIENT)["tools"]
    assert tool["strict"] is strict
    assert tool["parameters"] == declared_schema(given).schema


@pytest.mark.parametrize("count", [100, 101])
def test_strict_mode_is_off_for_a_schema_beyond_its_bounds(count: int) -> None:
    names = [f"p{n}" for n in range(count)]
    wide = {
        "type": "object", "additionalProperties": False, "required": names,
        "properties": {name: {"type": "string"} for name in names},
    }  # fmt: skip
    (tool,) = to_wire(plan_of(tools=(Tool(name="t", parameters=wide),)), CLIENT)["tools"]
    assert tool["strict"] is (count <= 100)
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(count // 20):
        deep = {"type": "array", "items": deep}
    nested = {**wide, "required": ["p0"], "properties": {"p0": deep}}
    (tool,) = to_wire(plan_of(tools=(Tool(name="t", parameters=nested),)), CLIENT)["tools"]
    assert tool["strict"] is False


def test_client_search_is_declared_without_the_catalog() -> None:
    (tool,) = to_wire(searching(), CLIENT)["tools"]
    assert tool["type"] == "tool_search"
    assert tool["execution"] == "client"
    assert tool["description"] == "Finds tools."
    assert tool["parameters"]["properties"] == {"query": {"type": "string"}}


def test_deferred_tools_of_a_server_share_a_namespace() -> None:
    """Its description lists them: a model reads nothing else of it."""
    plan = searching(deferred=(MAIL, WEATHER, INBOX))
    _, mail, weather = to_wire(plan, DEFERRED)["tools"]
    assert (mail["type"], mail["name"]) == ("namespace", "mail")
    names = [function["name"] for function in mail["tools"]]
    assert names[0] == "send_mail"
    assert mail["description"] == ", ".join(names)
    assert all(function["defer_loading"] for function in mail["tools"])
    assert "defer_loading" not in mail
    assert (weather["name"], weather["defer_loading"]) == ("get_weather", True)


def test_long_namespace_description_is_cut_at_a_name() -> None:
    tools = tuple(Tool(name=f"tool_number_{n:03}", server="many") for n in range(50))
    (_, namespace) = to_wire(searching(deferred=tools), DEFERRED)["tools"]
    listed = namespace["description"]
    assert len(listed) <= 300
    assert listed.startswith("tool_number_000, ")
    assert listed.removesuffix("…").split(", ")[-1] in {tool.name for tool in tools}


def test_hosted_search_is_declared_by_its_type_alone() -> None:
    plan = searching(deferred=(WEATHER,))
    assert to_wire(plan, HOSTED)["tools"][0] == {"type": "tool_search"}


def test_search_and_its_result_are_items_of_their_own() -> None:
    call, output = items(searching(QUESTION, *found(WEATHER)))[1:]
    assert call == {
        "type": "tool_search_call",
        "execution": "client",
        "call_id": "call_2",
        "status": "completed",
        "arguments": {"query": "weather"},
    }
    (definition,) = output.pop("tools")
    assert output == {
        "type": "tool_search_output",
        "execution": "client",
        "call_id": "call_2",
        "status": "completed",
    }
    assert definition["name"] == "get_weather"
    assert definition["parameters"] == WEATHER.parameters
    assert definition["defer_loading"] is True


@pytest.mark.parametrize("content", ["no tool matches", (TextPart("{}"),)])
def test_search_that_found_nothing_brings_an_empty_list(content: Any) -> None:
    """An output has no place for text."""
    call, result = found()
    output = items(searching(QUESTION, call, replace(result, content=content)))[-1]
    assert output["tools"] == []


def test_found_tools_of_a_server_come_in_its_namespace_where_they_are_declared_so() -> None:
    history = (QUESTION, *found(MAIL, INBOX))
    plain = items(searching(*history))[-1]["tools"]
    assert [tool["type"] for tool in plain] == ["function", "function"]
    (namespace,) = items(searching(*history, deferred=(MAIL, INBOX)), DEFERRED)[-1]["tools"]
    assert (namespace["name"], len(namespace["tools"])) == ("mail", 2)


@pytest.mark.parametrize(
    ("profile", "deferred", "namespace"),
    [(CLIENT, (), "send_mail"), (DEFERRED, (MAIL,), "mail"), (HOSTED, (MAIL,), "mail")],
)
def test_call_names_the_namespace_its_tool_came_in(
    profile: Any, deferred: tuple[Tool, ...], namespace: str
) -> None:
    call = ToolCall(id="call_3", name="send_mail", arguments="{}")
    made = Message(role="assistant", tool_calls=(call,))
    plan = searching(QUESTION, *found(MAIL), made, deferred=deferred)
    assert items(plan, profile)[-1]["namespace"] == namespace


def test_call_of_a_plainly_declared_tool_names_no_namespace() -> None:
    """Nor does one of a tool that nobody knows."""
    calls = (CALL, replace(CALL, id="call_9", name="no_such_tool"))
    written = items(plan_of(QUESTION, Message(role="assistant", tool_calls=calls)))
    assert all("namespace" not in item for item in written)
    assert [item["name"] for item in written[1:]] == ["get_weather", "no_such_tool"]


def test_call_and_result_are_paired_by_an_id_that_the_service_takes() -> None:
    odd = replace(CALL, id="functions.get_weather:0" * 4)
    result = replace(RESULT, tool_call_id=odd.id)
    history = (QUESTION, Message(role="assistant", content="Hm.", tool_calls=(odd,)), result)
    said, call, output = items(plan_of(*history))[1:]
    assert said == {"role": "assistant", "content": "Hm."}
    assert call["call_id"] == output["call_id"]
    assert len(call["call_id"]) <= 64
    assert output["output"] == "21 °C"


def test_pictures_of_the_user_are_parts() -> None:
    content = (TextPart("Look"), ImagePart("https://a/b.png"))
    (item,) = items(plan_of(Message(role="user", content=content)))
    assert item["content"] == [
        {"type": "input_text", "text": "Look"},
        {"type": "input_image", "image_url": "https://a/b.png", "detail": "auto"},
    ]


def test_search_that_is_a_function_brings_its_tools_behind_all_results() -> None:
    """Models without tool search: nothing comes between the results of one reply."""
    part = ReferencePart(("get_weather",), (WEATHER,))
    calls = Message(role="assistant", tool_calls=(FIND, CALL))
    result = Message(
        role="tool", tool_call_id="call_2", name="tool_search", content=(TextPart("{}"), part)
    )
    plan = plan_of(QUESTION, calls, result, RESULT, tools=(SEARCH,))
    kinds = [item.get("type") for item in items(plan, ADDITIONAL)]
    assert kinds == [
        None, "function_call", "function_call",
        "function_call_output", "function_call_output", "additional_tools",
    ]  # fmt: skip
    (definition,) = items(plan, ADDITIONAL)[-1]["tools"]
    assert "defer_loading" not in definition
    assert items(plan, ADDITIONAL)[-1]["role"] == "developer"


def test_tools_that_a_reply_needs_stand_before_it() -> None:
    called = Message(
        role="assistant", content=(ReferencePart(("send_mail",), (MAIL,)),), tool_calls=(CALL,)
    )
    kinds = [item.get("type") for item in items(searching(QUESTION, called, RESULT))]
    assert kinds == [None, "additional_tools", "function_call", "function_call_output"]


REASONED = NativeReply(
    CLIENT.origin,
    (
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "secret"},
        {"type": "message", "role": "assistant", "phase": "commentary", "content": "Hm."},
        {"type": "function_call", "call_id": "call_1", "name": "get_weather",
         "arguments": "{}", "namespace": "get_weather"},
    ),
)  # fmt: skip
REPLY = Message(role="assistant", content="Hm.", tool_calls=(CALL,), native=REASONED)


def test_reply_goes_back_with_its_reasoning_phase_and_namespace() -> None:
    history = (QUESTION, *found(WEATHER), REPLY, RESULT)
    reasoning, said, call = items(searching(*history))[3:6]
    assert reasoning["encrypted_content"] == "secret"
    assert said["phase"] == "commentary"
    assert call["namespace"] == "get_weather"


def test_reply_loses_a_namespace_that_the_request_does_not_have() -> None:
    plain = plan_of(QUESTION, REPLY, RESULT)
    assert "namespace" not in items(plain)[3]
    assert items(plain)[1]["type"] == "reasoning"


@pytest.mark.parametrize(
    ("given", "profile", "namespace"),
    [("mail", CLIENT, "send_mail"), ("send_mail", DEFERRED, "mail")],
)
def test_reply_calls_by_the_namespace_that_this_request_has(
    given: str, profile: Any, namespace: str
) -> None:
    block = {"type": "function_call", "call_id": "call_1", "name": "send_mail", "arguments": "{}"}
    native = NativeReply(CLIENT.origin, ({**block, "namespace": given},))
    called = Message(role="assistant", tool_calls=(replace(CALL, name="send_mail"),), native=native)
    written = items(searching(QUESTION, *found(MAIL), called, RESULT), profile)
    assert [i["namespace"] for i in written if i.get("type") == "function_call"] == [namespace]


def test_reply_with_an_invented_name_goes_back_under_one_that_requests_take() -> None:
    blocks = (REASONED.blocks[0], {**REASONED.blocks[2], "name": "no such tool!"})
    called = replace(REPLY, native=NativeReply(CLIENT.origin, blocks))
    body = to_wire(searching(QUESTION, called, RESULT), CLIENT)
    assert check_request("openai_responses", body) is None
    assert body["input"][1]["type"] == "reasoning"


@pytest.mark.parametrize(
    "profile",
    [
        profile_for("openai_responses", "gpt-5.5"),
        profile_for("openai_responses", "gpt-5.4", base_url="https://proxy.example/v1"),
    ],
)
def test_reasoning_is_for_the_model_that_thought_it(profile: Any) -> None:
    assert "secret" not in json.dumps(to_wire(plan_of(QUESTION, REPLY, RESULT), profile))


def test_reply_with_a_search_becomes_plain_where_searches_are_functions() -> None:
    native = NativeReply(
        CLIENT.origin,
        (
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "secret"},
            {"type": "tool_search_call", "execution": "client", "call_id": "call_2",
             "status": "completed", "arguments": {}},
        ),
    )  # fmt: skip
    call, result = found(WEATHER)
    history = (QUESTION, replace(call, native=native), result)
    assert items(searching(*history))[1]["type"] == "reasoning"
    kinds = [item.get("type") for item in items(plan_of(*history))]
    assert kinds[:3] == [None, "function_call", "function_call_output"]


def test_search_that_was_a_function_becomes_one_of_the_service() -> None:
    """The mode moved to `tool_search` since: call and output are of one kind."""
    block = {"type": "function_call", "call_id": "call_2", "name": "tool_search", "arguments": "{}"}
    native = NativeReply(CLIENT.origin, (*REASONED.blocks[:1], block))
    call, result = found(WEATHER)
    kinds = [item.get("type") for item in items(searching(replace(call, native=native), result))]
    assert kinds == ["tool_search_call", "tool_search_output"]


def kept(plan: RequestPlan, name: str = "resp_1", text: str = "Sunny.") -> Message:
    """Return a reply to a plan that the service keeps."""
    output = [{"type": "message", "role": "assistant", "content": [{"text": text}]}]
    return from_wire({"id": name, "output": output}, plan, KEEPING).message


def test_kept_reply_is_gone_on_from() -> None:
    first = searching(QUESTION)
    more = Message(role="user", content="And tomorrow?")
    second = searching(QUESTION, kept(first), more)
    body = to_wire(second, KEEPING)
    assert body["store"] is True
    assert body["previous_response_id"] == "resp_1"
    assert body["input"] == [{"role": "user", "content": "And tomorrow?"}]
    last = searching(*second.messages, kept(second, "resp_2"), QUESTION)
    body = to_wire(last, KEEPING)
    assert (body["previous_response_id"], len(body["input"])) == ("resp_2", 1)


@pytest.mark.parametrize(
    "before",
    [
        Message(role="user", content="Something else."),
        Message(role="user", content=(TextPart("What"), ImagePart("https://a/b.png"))),
    ],
)
def test_kept_reply_to_another_history_is_sent_whole(before: Message) -> None:
    changed = searching(before, kept(searching(QUESTION)), QUESTION)
    body = to_wire(changed, KEEPING)
    assert "previous_response_id" not in body
    assert len(body["input"]) == 3


def test_kept_reply_is_sent_whole_once_what_it_called_is_in_a_namespace() -> None:
    """A tool that nobody knew when it was called, and that came since with its server."""
    output = [{"type": "function_call", "call_id": "c", "name": "send_mail", "arguments": "{}"}]
    first = searching(QUESTION)
    reply = from_wire({"id": "resp_1", "output": output}, first, KEEPING).message
    answer = Message(role="tool", tool_call_id="c", name="send_mail", content="No such tool.")
    body = to_wire(searching(QUESTION, reply, answer, *found(MAIL)), KEEPING)
    assert "previous_response_id" not in body
    assert body["input"][1]["namespace"] == "send_mail"


def test_kept_reply_is_sent_whole_where_replies_are_not_kept() -> None:
    body = to_wire(searching(QUESTION, kept(searching(QUESTION)), QUESTION), CLIENT)
    assert "previous_response_id" not in body
    assert [item.get("type") for item in body["input"]] == [None, "message", None]


def test_final_request_keeps_its_tools_and_forbids_calls() -> None:
    assert to_wire(searching(tool_use="none"), CLIENT)["tool_choice"] == "none"


def test_bytes_of_the_tools_are_made_once_for_each_form() -> None:
    plan = searching(deferred=(MAIL, INBOX, WEATHER))
    for profile in (CLIENT, DEFERRED, HOSTED):
        anew = replace(plan, tools=ToolList(plan.tools))
        assert json.loads(encode(plan, profile)) == to_wire(anew, profile)
