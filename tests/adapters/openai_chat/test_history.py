"""OpenAI Chat histories, read into the neutral form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage

from tests.adapters.recorded.traffic import WRITERS
from tests.conversations import CLAUDE, OPENAI, Chat, toolbox
from tool_search.adapters.openai_chat import history_from_wire
from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import ImagePart, Message, NativeReply, TextPart, ToolCall
from tool_search.core.profiles import ProviderProfile
from tool_search.i18n import Language
from tool_search.providers.profile_choice import profile_for
from tool_search.runner.session.session import ToolSearchSession
from tool_search.testing import check_request

USER = {"role": "user", "content": "Hi."}
DEEPSEEK = profile_for("openai_chat", "deepseek-chat", base_url="https://api.deepseek.com")
KIMI = profile_for("openai_chat", "kimi-k3", base_url="https://api.moonshot.ai/v1")


def call(call_id: Any, name: Any = "get_weather", arguments: Any = "{}") -> dict[str, Any]:
    """Return a call."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asks(*calls: dict[str, Any], content: Any = None, **more: Any) -> dict[str, Any]:
    """Return a reply with calls."""
    return {"role": "assistant", "content": content, "tool_calls": list(calls), **more}


def result(call_id: Any, content: Any = "ok", **more: Any) -> dict[str, Any]:
    """Return a call's result."""
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def shape(history: Sequence[Message]) -> list[tuple[str, Any]]:
    """Return each message's role, and what it calls, answers or says."""
    return [(m.role, [c.id for c in m.tool_calls] or m.tool_call_id or m.text) for m in history]


def found(message: Message) -> list[str]:
    """Return the names in a search's result."""
    return [match["name"] for match in json.loads(message.text)["matches"]]


def written(history: Sequence[Message], profile: ProviderProfile = OPENAI) -> list[Any]:
    """Return the messages of a request that goes on from a history, which breaks no rule."""
    config = ToolSearchConfig(tool_schema_mode="tool_search")
    session = ToolSearchSession(ToolCatalog([Tool(name="get_weather")]), config=config)
    session.adopt_history(history)
    session.begin_turn("And now?", profile=profile)
    body = WRITERS[profile.dialect].to_wire(session.plan(profile), profile)
    assert check_request(profile.dialect, body) is None
    sent: list[Any] = body["messages"]
    return [message for message in sent if message["role"] != "system"]


def test_roles_are_read() -> None:
    history = history_from_wire(
        [
            {"role": "system", "content": "You are a bot."},
            {"role": "developer", "content": "Be brief."},
            {"role": "assistant", "content": "Welcome!"},
            USER,
            {"role": "system", "content": "It is noon."},
            asks(call("c1", arguments='{"city":"Paris"}'), content="Let me look."),
            result("c1", "21 °C"),
            {"role": "assistant", "content": "Warm."},
        ]
    )
    assert shape(history) == [
        ("assistant", "Welcome!"),
        ("user", "Hi."),
        ("user", "It is noon."),
        ("assistant", ["c1"]),
        ("tool", "c1"),
        ("assistant", "Warm."),
    ]
    asked = ToolCall(id="c1", name="get_weather", arguments='{"city":"Paris"}')
    assert history[3] == Message(role="assistant", content="Let me look.", tool_calls=(asked,))
    assert (history[4].name, history[4].text) == ("get_weather", "21 °C")


def test_neighbours_of_one_role_are_one_message() -> None:
    history = history_from_wire(
        [
            USER,
            {**USER, "content": "Again."},
            asks(call("c1"), content="One."),
            {"role": "assistant", "content": "Two."},
            asks(call("c2")),
            result("c2", "second"),
            result("c1", "first"),
        ]
    )
    assert shape(history) == [
        ("user", "Hi.\nAgain."),
        ("assistant", ["c1", "c2"]),
        ("tool", "c1"),
        ("tool", "c2"),
    ]
    assert history[1].text == "One.\n\nTwo."
    assert [m.text for m in history[2:]] == ["first", "second"]


def test_parts_are_read() -> None:
    """Text and pictures; what else there is, by a line."""
    parts = [
        {"type": "text", "text": "Look"},
        "at this",
        {"type": "image_url", "image_url": {"url": "https://a/b.png", "detail": "low"}},
        {"type": "image_url", "image_url": "data:image/png;base64,AAAA"},
        {"type": "image_url", "image_url": {}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "file", "file": {"filename": "report.pdf", "file_data": "data:..."}},
        {"type": "file", "file": {"file_id": "file_1"}},
        {"type": "video_url", "video_url": {"url": "https://a/b.mp4"}},
        {"type": "text", "text": " "},
        {"type": "unknown"},
        5,
    ]
    history = history_from_wire(
        [
            {"role": "user", "content": parts},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        ]
    )
    lines = ["[picture]", "[audio]", "[file: report.pdf]", "[file: file_1]",
             "[file: https://a/b.mp4]"]  # fmt: skip
    assert history[0].content == (
        TextPart("Look"),
        TextPart("at this"),
        ImagePart("https://a/b.png"),
        ImagePart("data:image/png;base64,AAAA"),
        *map(TextPart, lines),
    )
    assert history[1].text == "No."


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ({"content": None, "refusal": "I cannot."}, "I cannot."),
        ({"content": "Yes.", "refusal": ""}, "Yes."),
        ({"content": None, "audio": {"id": "a", "transcript": "Hello."}}, "Hello."),
        ({"content": None, "audio": {"id": "a"}}, "[audio]"),
    ],
)
def test_reply_says_what_it_has(reply: Any, says: str) -> None:
    (message,) = history_from_wire([{"role": "assistant", **reply}])
    assert message.text == says


@pytest.mark.parametrize(("language", "line"), [("zh-CN", "[音频]"), ("ru-RU", "[аудио]")])
def test_line_in_place_of_a_sound_is_in_the_language_asked_for(
    language: Language, line: str
) -> None:
    part = {"type": "input_audio", "input_audio": {}}
    (message,) = history_from_wire([{"role": "user", "content": [part]}], language=language)
    assert message.text == line


def test_older_form_of_one_call_is_read() -> None:
    """It has no id; its result is known by its name, which has the role `function`."""
    older = {"name": "get_weather", "arguments": '{"city":"Paris"}'}
    history = history_from_wire(
        [
            USER,
            {"role": "assistant", "content": None, "function_call": older},
            {"role": "function", "name": "get_weather", "content": "21 °C"},
            {"role": "assistant", "content": None, "function_call": {**older, "name": "clock"}},
            {"role": "function", "name": "clock", "content": "noon"},
        ]
    )
    assert [m.text for m in history if m.role == "tool"] == ["21 °C", "noon"]
    assert [m.name for m in history if m.role == "tool"] == ["get_weather", "clock"]
    first, second = (m.tool_calls[0] for m in history if m.tool_calls)
    assert (first.name, first.parsed_arguments()) == ("get_weather", {"city": "Paris"})
    assert first.id != second.id
    assert [m["tool_call_id"] for m in written(history) if m["role"] == "tool"] == [
        first.id,
        second.id,
    ]


def test_both_forms_of_one_call_are_one_call() -> None:
    both = asks(call("c1"), function_call={"name": "get_weather", "arguments": "{}"})
    assert shape(history_from_wire([USER, both, result("c1")]))[1] == ("assistant", ["c1"])


def test_ids_that_repeat_keep_each_result_with_its_call() -> None:
    """Recorded from several services: each reply begins with the same id."""
    history = history_from_wire(
        [USER, asks(call("call_0", "a")), result("call_0", "one"),
         asks(call("call_0", "b"), call("call_0", "c")), result("call_0", "two"),
         result("call_0", "three")]
    )  # fmt: skip
    assert [(m.name, m.text) for m in history if m.role == "tool"] == [
        ("a", "one"),
        ("b", "two"),
        ("c", "three"),
    ]
    sent = written(history)
    assert [m["content"] for m in sent if m["role"] == "tool"] == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        pytest.param([None, None], [None, None], id="no ids"),
        pytest.param(["", ""], [None, ""], id="empty ids"),
        pytest.param([None, None], ["x", "y"], id="ids of results alone"),
        pytest.param(["x", "y"], [None, None], id="ids of calls alone"),
        pytest.param([1, 2], ["1", "2"], id="numbers"),
        pytest.param([1, 2], [1, 2], id="numbers in both"),
    ],
)
def test_calls_and_results_find_each_other(asked: list[Any], answered: list[Any]) -> None:
    calls = [call(call_id, name) for call_id, name in zip(asked, ("a", "b"), strict=True)]
    results = [result(i, text) for i, text in zip(answered, ("one", "two"), strict=True)]
    history = history_from_wire([USER, asks(*calls), *results])
    assert [(m.name, m.text) for m in history[2:]] == [("a", "one"), ("b", "two")]
    sent = written(history)
    assert [m["content"] for m in sent if m["role"] == "tool"] == ["one", "two"]


def test_result_names_its_call_where_ids_are_missing() -> None:
    calls = asks(call(None, "a"), call(None, "b"))
    answers = [result(None, "for b", name="b"), result(None, "for a", name="a")]
    history = history_from_wire([USER, calls, *answers])
    assert [m.text for m in history[2:]] == ["for a", "for b"]


def test_custom_tool_is_a_tool() -> None:
    custom = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "+ x"}}
    history = history_from_wire([USER, asks(custom), result("c1")])
    assert history[1].tool_calls == (ToolCall(id="c1", name="patch", arguments='{"input":"+ x"}'),)


@pytest.mark.parametrize(
    "field",
    [
        {"reasoning_content": "Hm."},
        {"reasoning": "Hm."},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]},
    ],
    ids=lambda field: next(iter(field)),
)
def test_reasoning_goes_back_to_its_origin_alone(field: dict[str, Any]) -> None:
    given = [USER, asks(call("c1"), **field), result("c1")]
    history = history_from_wire(given, origin=DEEPSEEK.origin)
    assert history[1].native == NativeReply(DEEPSEEK.origin, (field,))
    reply = written(history, DEEPSEEK)[1]
    assert {name: reply[name] for name in field} == field
    for profile, entries in ((OPENAI, history), (DEEPSEEK, history_from_wire(given))):
        assert not set(field) & {*written(entries, profile)[1]} - {"reasoning_content"}
        assert "Hm." not in json.dumps(written(entries, profile))


def test_reasoning_and_signatures_of_neighbours_are_one_replys() -> None:
    signed = {**call("c2"), "extra_content": {"google": {"thought_signature": "s"}}}
    history = history_from_wire(
        [
            USER,
            asks(call("c1"), reasoning_content="One."),
            asks(signed, reasoning_content="Two."),
            result("c1"),
            result("c2"),
        ],
        origin=OPENAI.origin,
    )
    reply = written(history)[1]
    assert reply["reasoning_content"] == "One.\n\nTwo."
    first, second = reply["tool_calls"]
    assert "extra_content" not in first
    assert second["extra_content"] == signed["extra_content"]


def test_tools_in_a_system_message_are_a_search_for_them() -> None:
    function = {"name": "get_weather", "description": "Weather."}
    brings = {"role": "system", "tools": [{"type": "function", "function": function}]}
    history = history_from_wire([USER, brings, asks(call("c1")), result("c1")])
    assert shape(history)[1:3] == [("assistant", ["added_1"]), ("tool", "added_1")]
    assert history[1].tool_calls[0].parsed_arguments() == {"query": "select:get_weather"}
    assert found(history[2]) == ["get_weather"]
    matches = json.dumps({"query": "w", "matches": [{"name": "get_weather"}]})
    searched = [USER, asks(call("s1", "tool_search")), result("s1", matches), brings]
    assert shape(history_from_wire(searched))[1:] == [("assistant", ["s1"]), ("tool", "s1")]


@pytest.mark.parametrize(
    "content",
    [
        '{"query":"w","matches":[{"name":"x__y"}],"loaded":["z"]}',
        '{"discovered_tools":[{"name":"x__y"},{"name":"z","description":"Z."}]}',
        '["x__y","z"]',
        '{"tool_names":["x__y","z"]}',
        '{"count":2,"results":[{"name":"x__y"},{"name":"z"}]}',
        {"tools": [{"name": "x__y"}, {"name": "z"}]},
    ],
)
def test_search_result_of_any_form_is_read(content: Any) -> None:
    """Under canonical names, so that the session knows what was found."""
    asked = asks(call("s1", "find", '{"queries":["a","b"]}'))
    history = history_from_wire(
        [USER, asked, result("s1", content)],
        search_tool_name="find",
        canonical=lambda name: name.replace("__", "."),
    )
    read = json.loads(history[2].text)
    assert [match["name"] for match in read["matches"]] + read.get("loaded", []) == ["x.y", "z"]
    assert history[1].tool_calls[0].parsed_arguments() == {"queries": ["a", "b"]}
    assert history[2].name == "find"


@pytest.mark.parametrize(
    "content",
    ["nothing found", '{"errors":["no such tool"]}', "[]", '{"tools":[5]}', "[" * 2000, '{"a":1}'],
)
def test_search_result_that_names_no_tool_stays_as_it_is(content: str) -> None:
    history = history_from_wire([USER, asks(call("s1", "tool_search")), result("s1", content)])
    assert history[2].text == content


def test_what_we_write_is_read_back() -> None:
    """A whole conversation: names, calls, results, and what was found."""
    chat = Chat(toolbox(30))
    chat.begin(OPENAI)
    chat.find("tool_001")
    chat.call("tool_001", {"count": 1}, result="done")
    chat.answer()
    body = WRITERS["openai_chat"].to_wire(chat.session.plan(OPENAI), OPENAI)
    assert history_from_wire(body["messages"]) == chat.session.history
    fresh = Chat(toolbox(30))
    fresh.session.adopt_history(history_from_wire(body["messages"]))
    fresh.begin(CLAUDE)
    assert fresh.session.discoveries.names == ("tool_001",)


def test_tools_that_kimi_was_sent_are_read_back() -> None:
    chat = Chat(toolbox(30))
    chat.begin(KIMI)
    chat.find("tool_001")
    chat.call("tool_001", {"count": 1}, result="done")
    chat.answer()
    body = WRITERS["openai_chat"].to_wire(chat.session.plan(KIMI), KIMI)
    assert any("tools" in message for message in body["messages"])
    assert shape(history_from_wire(body["messages"])) == shape(chat.session.history)


def test_replies_of_the_sdk_are_read_as_they_are() -> None:
    reply: Any = ChatCompletionMessage.model_validate(asks(call("c1")))
    assert history_from_wire([USER, reply, result("c1")]) == history_from_wire(
        [USER, asks(call("c1")), result("c1")]
    )


def test_odd_messages_are_passed_over() -> None:
    odd: list[Any] = [
        None, 5, "x", {}, {"role": 5, "content": 5}, {"role": "assistant", "tool_calls": 5},
        {"role": "assistant", "tool_calls": [None, {}, {"function": 5}]}, result({}, None),
        {"role": "user", "content": None}, USER,
    ]  # fmt: skip
    history = history_from_wire(odd)
    assert history[-1].text == "Hi."
    assert written(history)[-1]["content"] == "Hi.\n\nAnd now?"
