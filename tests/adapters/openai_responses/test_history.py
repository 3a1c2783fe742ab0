"""OpenAI Responses histories, read into the neutral form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.responses import ResponseFunctionToolCall

from tests.adapters.contract import WEATHER
from tests.adapters.openai_responses.test_wire import CLIENT, found, items, searching
from tests.adapters.recorded.traffic import WRITERS
from tests.conversations import OPENAI
from tool_search.adapters.openai_responses.history import history_from_wire
from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import ImagePart, Message, TextPart, ToolCall
from tool_search.core.profiles import ProviderProfile
from tool_search.providers.profile_choice import profile_for
from tool_search.runner.session.session import ToolSearchSession
from tool_search.testing import check_request

OTHER = profile_for("openai_responses", "gpt-5.5")

USER = {"role": "user", "content": "Hi."}
CALL = {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "21 °C"}
TOOLS = [
    {"type": "function", "name": "send_mail"},
    {"type": "namespace", "name": "crm", "tools": [{"type": "function", "name": "list_orders"}]},
]


def shape(history: tuple[Message, ...]) -> list[tuple[str, Any]]:
    """Return each message's role, and what it calls, answers or says."""
    return [
        (m.role, [call.name for call in m.tool_calls] or m.tool_call_id or m.text) for m in history
    ]


def matches(message: Message) -> list[str]:
    """Return the names in a search's result."""
    return [match["name"] for match in json.loads(message.text)["matches"]]


def test_text_alone_is_what_the_user_said() -> None:
    assert history_from_wire("Hi.") == (Message(role="user", content="Hi."),)


def test_items_of_one_reply_are_one_message() -> None:
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
    search = {
        "type": "tool_search_call", "execution": "client", "call_id": "c1",
        "arguments": {"queries": ["mail", "orders"]},
    }  # fmt: skip
    output = {"type": "tool_search_output", "execution": "client", "call_id": "c1", "tools": TOOLS}
    _, call, result = history_from_wire([USER, search, output], search_tool_name="find")
    assert call.tool_calls == (
        ToolCall(id="c1", name="find", arguments='{"queries":["mail","orders"]}'),
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
    parts = [
        {"type": "input_text", "text": "Look"},
        {"type": "input_image", "image_url": "https://a/b.png"},
        {"type": "input_image", "file_id": "p"},
        {"type": "input_file", "file_id": "f"},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    ]
    history = history_from_wire(
        [{"role": "user", "content": parts}, {"role": "developer", "content": "Be brief."}]
    )
    lines = (TextPart("[picture]"), TextPart("[file: f]"), TextPart("[audio]"))
    assert history[0].content == (TextPart("Look"), ImagePart("https://a/b.png"), *lines)
    assert history[1] == Message(role="user", content="Be brief.")


def test_what_we_write_is_read_back() -> None:
    plan = searching(Message(role="user", content="Hi."), *found(WEATHER))
    history = history_from_wire(items(plan, CLIENT))
    assert [m.role for m in history] == [m.role for m in plan.messages]
    assert history[1].tool_calls[0].parsed_arguments() == {"query": "weather"}
    assert matches(history[2]) == ["get_weather"]


def written(history: tuple[Message, ...], profile: ProviderProfile = CLIENT) -> list[Any]:
    """Return the input of a request that goes on from a history, which breaks no rule."""
    config = ToolSearchConfig(tool_schema_mode="tool_search")
    session = ToolSearchSession(ToolCatalog([Tool(name="get_weather")]), config=config)
    session.adopt_history(history)
    session.begin_turn("And now?", profile=profile)
    body = WRITERS[profile.dialect].to_wire(session.plan(profile), profile)
    assert check_request(profile.dialect, body) is None
    sent: list[Any] = body.get("input") or body["messages"]
    return sent


def test_messages_of_one_role_are_one_message() -> None:
    """The model's, and the user's; a developer is somebody else."""
    said = {"role": "assistant", "content": "One."}
    more = {"role": "assistant", "content": [{"type": "output_text", "text": "Two."}]}
    told = {"role": "developer", "content": "Be brief."}
    history = history_from_wire(
        [USER, {**USER, "content": "Again."}, told, said, more, CALL, OUTPUT]
    )
    assert shape(history) == [
        ("user", "Hi.\nAgain."),
        ("user", "Be brief."),
        ("assistant", ["get_weather"]),
        ("tool", "c1"),
    ]
    assert history[2].text == "One.\n\nTwo."


def test_first_message_may_be_the_assistants() -> None:
    history = history_from_wire([{"role": "assistant", "content": "Welcome!"}, USER])
    assert shape(history) == [("assistant", "Welcome!"), ("user", "Hi.")]


@pytest.mark.parametrize(
    "order",
    [
        pytest.param([OUTPUT, CALL], id="before its call"),
        pytest.param([CALL, USER, OUTPUT], id="after a user's message"),
        pytest.param(
            [CALL, {**CALL, "call_id": "c2"}, {**OUTPUT, "call_id": "c2"}, USER, OUTPUT],
            id="after another's output",
        ),
    ],
)
def test_output_in_an_odd_place_is_its_calls(order: list[Any]) -> None:
    history = history_from_wire([USER, *order])
    (place,) = [n for n, m in enumerate(history) if m.tool_call_id == "c1"]
    assert (history[place].name, history[place].text) == ("get_weather", "21 °C")
    assert "c1" in [call.id for call in history[1].tool_calls]
    outputs = [item for item in written(history) if item.get("type") == "function_call_output"]
    assert len(outputs) == len([m for m in history if m.role == "tool"])
    assert "21 °C" in json.dumps(outputs, ensure_ascii=False)
    assert "cancelled" not in json.dumps(outputs)


@pytest.mark.parametrize(
    "named", [{"call_id": "call_9", "id": "tsc_9"}, {"call_id": None, "id": "call_9"}]
)
def test_search_of_the_service_may_be_answered_as_a_function(named: Any) -> None:
    """Recorded (gpt-5.6): the result is that search's, before what followed."""
    search = {
        "type": "tool_search_call", "execution": "server", "arguments": {"paths": ["crm"]}, **named,
    }  # fmt: skip
    found = {"type": "function_call_output", "call_id": "call_9", "output": "crm is there"}
    history = history_from_wire([USER, search, found, CALL, OUTPUT])
    assert shape(history)[1:] == [
        ("assistant", ["tool_search"]),
        ("tool", "call_9"),
        ("assistant", ["get_weather"]),
        ("tool", "c1"),
    ]
    assert (history[2].name, history[2].text) == ("tool_search", "crm is there")


def test_custom_tool_is_a_tool() -> None:
    call = {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "+ x"}
    history = history_from_wire([USER, call, {**OUTPUT, "type": "custom_tool_call_output"}])
    assert history[1].tool_calls[0].parsed_arguments() == {"input": "+ x"}
    assert (history[2].name, history[2].text) == ("patch", "21 °C")


def test_ids_names_and_outputs_that_are_no_text_are_read() -> None:
    call = {**CALL, "call_id": 7, "name": 8}
    history = history_from_wire([USER, call, {**OUTPUT, "call_id": 7, "output": {"t": 21}}])
    assert history[1].tool_calls == (ToolCall(id="7", name="8"),)
    assert (history[2].tool_call_id, history[2].text) == ("7", '{"t":21}')
    assert written(history)[2]["call_id"] == "7"


PHASE = {
    "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
    "phase": "commentary", "content": [{"type": "output_text", "text": "Let me look."}],
}  # fmt: skip
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}


def test_phase_and_reasoning_go_back_to_their_origin_alone() -> None:
    given: list[Any] = [USER, THOUGHT, PHASE, CALL, OUTPUT]
    history = history_from_wire(given, origin=CLIENT.origin)
    thought, message, call = written(history)[1:4]
    assert thought == THOUGHT
    assert (message["phase"], message["content"]) == ("commentary", "Let me look.")
    assert call["call_id"] == "c1"
    for profile, entries in ((OTHER, history), (CLIENT, history_from_wire(given))):
        sent = json.dumps(written(entries, profile))
        assert "Let me look." in sent
        assert "phase" not in sent
        assert "rs_1" not in sent
    assert "Let me look." in [message["content"] for message in written(history, OPENAI)]


def test_reasoning_before_a_search_of_the_services_is_left_out() -> None:
    """That search does not go back, and reasoning without what it led to is refused."""
    search = {"type": "tool_search_call", "execution": "server", "call_id": None,
              "arguments": {"paths": ["crm"]}}  # fmt: skip
    output = {"type": "tool_search_output", "execution": "server", "call_id": None, "tools": TOOLS}
    later = {**THOUGHT, "id": "rs_2"}
    history = history_from_wire(
        [USER, PHASE, THOUGHT, search, output, later, CALL, OUTPUT], origin=CLIENT.origin
    )
    assert shape(history)[1:] == [
        ("assistant", ["tool_search"]),
        ("tool", "search_5"),
        ("assistant", ["get_weather"]),
        ("tool", "c1"),
    ]
    sent = json.dumps(written(history))
    assert "rs_1" not in sent
    assert "rs_2" in sent
    assert "commentary" in sent


def test_calls_before_a_search_of_the_services_wait_till_after_it() -> None:
    search: dict[str, Any] = {
        "type": "tool_search_call", "execution": "server", "call_id": None, "arguments": {},
    }  # fmt: skip
    output = {"type": "tool_search_output", "execution": "server", "call_id": None, "tools": TOOLS}
    given: list[Any] = [USER, THOUGHT, CALL, PHASE, search, output, OUTPUT]
    history = history_from_wire(given, origin=CLIENT.origin)
    assert shape(history)[1:] == [
        ("assistant", ["tool_search"]),
        ("tool", "search_6"),
        ("assistant", ["get_weather"]),
        ("tool", "c1"),
    ]
    assert history[1].text == "Let me look."
    assert [item.get("type") for item in written(history)[-4:-1]] == [
        "reasoning",
        "function_call",
        "function_call_output",
    ]


def test_replies_of_the_sdk_are_read_as_they_are() -> None:
    item: Any = ResponseFunctionToolCall.model_validate(CALL)
    history = history_from_wire([USER, item, OUTPUT])
    assert history == history_from_wire([USER, CALL, OUTPUT])


def test_odd_items_are_passed_over() -> None:
    odd: list[Any] = [
        None, {}, {"type": "message"}, {"type": "function_call"}, {"type": "web_search_call"},
        {"type": "tool_search_output", "tools": None}, {"type": "additional_tools"}, USER,
    ]  # fmt: skip
    assert history_from_wire(odd)[-1].text == "Hi."
