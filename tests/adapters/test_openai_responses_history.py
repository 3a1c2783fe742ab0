"""OpenAI Responses histories, read into the neutral form."""

from __future__ import annotations

import json
from typing import Any

from tests.adapters.contract import WEATHER
from tests.adapters.test_openai_responses_wire import CLIENT, found, items, searching
from tool_search.adapters.openai_responses_history import history_from_wire
from tool_search.messages import ImagePart, Message, TextPart, ToolCall

USER = {"role": "user", "content": "Hi."}
CALL = {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "21 °C"}
TOOLS = [
    {"type": "function", "name": "send_mail"},
    {"type": "namespace", "name": "crm", "tools": [{"type": "function", "name": "list_orders"}]},
]


def shape(history: tuple[Message, ...]) -> list[tuple[str, Any]]:
    """Each message's role, and what it calls, answers or says."""
    return [
        (m.role, [call.name for call in m.tool_calls] or m.tool_call_id or m.text) for m in history
    ]


def matches(message: Message) -> list[str]:
    """The names in a search's result."""
    return [match["name"] for match in json.loads(message.text)["matches"]]


def test_text_alone_is_what_the_user_said() -> None:
    """`input` may be a string."""
    assert history_from_wire("Hi.") == (Message(role="user", content="Hi."),)


def test_items_of_one_reply_are_one_message() -> None:
    """Results follow; what comes behind them begins another."""
    said = {"role": "assistant", "content": [{"type": "output_text", "text": "Hm."}]}
    second = {**CALL, "call_id": "c2"}
    history = history_from_wire(
        [USER, {"type": "reasoning", "id": "rs_1"}, said, CALL, second, OUTPUT,
         {**OUTPUT, "call_id": "c2"}, said]
    )  # fmt: skip
    assert shape(history) == [
        ("user", "Hi."),
        ("assistant", ["get_weather", "get_weather"]),
        ("tool", "c1"),
        ("tool", "c2"),
        ("assistant", "Hm."),
    ]
    assert history[1].text == "Hm."
    assert history[2].name == "get_weather"


def test_client_search_is_a_call_of_the_search_tool() -> None:
    """Its query has one name, its result the tools of namespaces too."""
    search = {
        "type": "tool_search_call", "execution": "client", "call_id": "c1",
        "arguments": {"queries": ["mail", "orders"]},
    }  # fmt: skip
    output = {"type": "tool_search_output", "execution": "client", "call_id": "c1", "tools": TOOLS}
    _, call, result = history_from_wire([USER, search, output], search_tool_name="find")
    assert call.tool_calls == (
        ToolCall(id="c1", name="find", arguments='{"query":"mail | orders"}'),
    )
    assert matches(result) == ["send_mail", "list_orders"]
    assert result.name == "find"


def test_search_of_the_service_comes_before_what_followed_it() -> None:
    """It gets an id of its own: it has none."""
    search = {
        "type": "tool_search_call", "execution": "server", "call_id": None,
        "arguments": {"paths": ["crm"]},
    }  # fmt: skip
    output = {"type": "tool_search_output", "execution": "server", "call_id": None, "tools": TOOLS}
    history = history_from_wire([USER, search, output, CALL, OUTPUT])
    assert shape(history)[1:] == [
        ("assistant", ["tool_search"]),
        ("tool", "search_3"),
        ("assistant", ["get_weather"]),
        ("tool", "c1"),
    ]
    assert matches(history[2]) == ["send_mail", "list_orders"]


def test_additional_tools_are_a_search_for_them_behind_the_results() -> None:
    """Never between a call and its result."""
    added = {"type": "additional_tools", "role": "developer", "tools": TOOLS}
    second = {**CALL, "call_id": "c2"}
    history = history_from_wire(
        [USER, CALL, second, OUTPUT, added, {**OUTPUT, "call_id": "c2"}, USER]
    )
    assert [role for role, _ in shape(history)] == [
        "user", "assistant", "tool", "tool", "assistant", "tool", "user",
    ]  # fmt: skip
    assert history[4].tool_calls[0].parsed_arguments() == {"query": "select:send_mail,list_orders"}


def test_pictures_and_instructions_in_between_are_the_users() -> None:
    """As every reader does with text of the system's in mid-conversation."""
    parts = [
        {"type": "input_text", "text": "Look"},
        {"type": "input_image", "image_url": "https://a/b.png"},
        {"type": "input_file", "file_id": "f"},
    ]
    history = history_from_wire(
        [{"role": "user", "content": parts}, {"role": "developer", "content": "Be brief."}]
    )
    assert history[0].content == (TextPart("Look"), ImagePart("https://a/b.png"))
    assert history[1] == Message(role="user", content="Be brief.")


def test_what_we_write_is_read_back() -> None:
    """Names, calls and results."""
    plan = searching(Message(role="user", content="Hi."), *found(WEATHER))
    history = history_from_wire(items(plan, CLIENT))
    assert [m.role for m in history] == [m.role for m in plan.messages]
    assert history[1].tool_calls[0].parsed_arguments() == {"query": "weather"}
    assert matches(history[2]) == ["get_weather"]


def test_odd_items_are_passed_over() -> None:
    """Nothing in a history raises."""
    odd: list[Any] = [
        None, {}, {"type": "message"}, {"type": "function_call"}, {"type": "web_search_call"},
        {"type": "tool_search_output", "tools": None}, {"type": "additional_tools"}, USER,
    ]  # fmt: skip
    assert history_from_wire(odd)[-1].text == "Hi."
