"""Anthropic histories in the neutral form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tool_search.adapters.anthropic_history import history_from_wire
from tool_search.messages import ImagePart, Message, TextPart, ToolCall

USER = {"role": "user", "content": "Weather?"}


def reference(name: str) -> dict[str, str]:
    """A block that names a tool."""
    return {"type": "tool_reference", "tool_name": name}


def server_call(call_id: str, **given: Any) -> dict[str, Any]:
    """A server-side search."""
    name = "tool_search_tool_regex" if "pattern" in given else "tool_search_tool_bm25"
    return {"type": "server_tool_use", "id": call_id, "name": name, "input": given}


def server_result(call_id: str, *names: str) -> dict[str, Any]:
    """What a server-side search found."""
    content = {
        "type": "tool_search_tool_search_result",
        "tool_references": [reference(name) for name in names],
    }
    return {"type": "tool_search_tool_result", "tool_use_id": call_id, "content": content}


def call(call_id: str, name: str, **given: Any) -> dict[str, Any]:
    """An ordinary call."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def result(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
    """An ordinary result."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def text(value: str) -> dict[str, str]:
    """A text block."""
    return {"type": "text", "text": value}


def found(message: Message) -> list[str]:
    """The names in a search result."""
    return [match["name"] for match in json.loads(message.text)["matches"]]


def test_server_search_becomes_a_call_a_result_and_what_followed() -> None:
    """One reply of the service is three neutral messages, in an order every provider takes."""
    reply = [
        text("I'll search."),
        server_call("srvtoolu_1", query="weather"),
        server_result("srvtoolu_1", "get_weather", "get_forecast"),
        text("Found it."),
        call("toolu_1", "get_weather", city="Paris"),
    ]
    answer = {"role": "user", "content": [result("toolu_1", "21 °C"), text("And Rome?")]}
    _, search, matches, calling, weather, more = history_from_wire(
        [USER, {"role": "assistant", "content": reply}, answer]
    )
    query = ToolCall(id="search_1", name="tool_search", arguments='{"query":"weather"}')
    assert search == Message(role="assistant", content="I'll search.", tool_calls=(query,))
    assert (matches.role, matches.tool_call_id, matches.name) == ("tool", "search_1", "tool_search")
    assert found(matches) == ["get_weather", "get_forecast"]
    assert calling.text == "Found it."
    assert [made.name for made in calling.tool_calls] == ["get_weather"]
    assert (weather.name, weather.text) == ("get_weather", "21 °C")
    assert more == Message(role="user", content="And Rome?")


def test_server_search_with_a_late_result_is_answered_in_its_place() -> None:
    """The result comes first in the next reply; the client's call waits behind the search."""
    history = history_from_wire(
        [
            USER,
            {
                "role": "assistant",
                "content": [call("toolu_1", "clock"), server_call("srvtoolu_1", pattern="wea.*")],
            },
            {"role": "user", "content": [result("toolu_1", "noon")]},
            {"role": "assistant", "content": [server_result("srvtoolu_1", "get_weather")]},
        ]
    )
    assert [message.role for message in history] == ["user", *["assistant", "tool"] * 2]
    assert history[1].tool_calls[0].arguments == '{"query":"wea.*"}'
    assert found(history[2]) == ["get_weather"]
    assert history[3].tool_calls[0].name == "clock"


def test_server_search_that_failed_or_has_no_result_is_an_error() -> None:
    """Neither is dropped: the model asked, and is told."""
    failed = {
        "type": "tool_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": {"type": "tool_search_tool_result_error", "error_code": "unavailable"},
    }
    searches = [server_call("srvtoolu_1", query="a"), failed, server_call("srvtoolu_2", query="b")]
    history = history_from_wire([USER, {"role": "assistant", "content": searches}])
    assert [m.is_error for m in history if m.role == "tool"] == [True, True]
    assert json.loads(history[2].text)["error"] == "search is unavailable: unavailable"
    assert "interrupted" in json.loads(history[4].text)["error"]


def test_server_search_without_a_hit_is_no_error() -> None:
    """An empty list of references is a result."""
    blocks = [server_call("srvtoolu_1", query="a"), server_result("srvtoolu_1")]
    history = history_from_wire([USER, {"role": "assistant", "content": blocks}])
    assert found(history[2]) == []
    assert not history[2].is_error


def test_client_search_is_known_by_its_references() -> None:
    """Under whatever name the tool went, and whatever its query was called."""
    history = history_from_wire(
        [
            USER,
            {"role": "assistant", "content": [call("t1", "search_tools", queries=["a", "b"])]},
            {"role": "user", "content": [result("t1", [reference("x__y")])]},
        ],
        search_tool_name="find",
        canonical=lambda name: name.replace("__", "."),
    )
    assert history[1].tool_calls[0] == ToolCall(id="t1", name="find", arguments='{"query":"a | b"}')
    assert history[2].name == "find"
    assert found(history[2]) == ["x.y"]


@pytest.mark.parametrize("line", ["Tools loaded.", "工具已加载。", "Tool loaded."])
def test_line_behind_references_is_nothing_that_a_user_said(line: str) -> None:
    """What is written for the model's sake is not read as a message; what the user adds is."""
    references = result("t1", [reference("get_weather")])
    said = [references, text(line), text("And the time?")]
    history = history_from_wire(
        [
            USER,
            {"role": "assistant", "content": [call("t1", "tool_search", query="weather")]},
            {"role": "user", "content": said},
        ]
    )
    assert [message.role for message in history] == ["user", "assistant", "tool", "user"]
    assert history[-1].text == "And the time?"


def test_user_may_say_the_same_where_nothing_was_found() -> None:
    """The line is known by the references before it."""
    (message,) = history_from_wire([{"role": "user", "content": [text("Tools loaded.")]}])
    assert message.text == "Tools loaded."


def test_repeated_id_is_read_by_its_neighbours() -> None:
    """Recorded from Gemini: two calls of one history with one id."""
    history = history_from_wire(
        [
            USER,
            {"role": "assistant", "content": [call("same", "load", id="x")]},
            {"role": "user", "content": [result("same", "loaded")]},
            {"role": "assistant", "content": [call("same", "search", query="y")]},
            {"role": "user", "content": [result("same", [reference("z")])]},
        ]
    )
    assert [(m.name, m.tool_calls and m.tool_calls[0].name) for m in history[1:]] == [
        (None, "load"),
        ("load", ()),
        (None, "tool_search"),
        ("tool_search", ()),
    ]


def test_tools_added_in_mid_conversation_become_a_search_for_them() -> None:
    """By reference or by definition; text of the system's is kept as the user's."""
    added = [
        text("New tools."),
        {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "a"}},
        {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {"name": "b"}}},
    ]
    history = history_from_wire([USER, {"role": "system", "content": added}])
    assert history[1] == Message(role="user", content="New tools.")
    assert history[2].tool_calls[0].arguments == '{"query":"select:a,b"}'
    assert found(history[3]) == ["a", "b"]


def test_content_of_every_kind_is_read_or_left_out() -> None:
    """Pictures and errors are kept; thinking, documents and empty replies are not."""
    picture = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    history = history_from_wire(
        [
            {
                "role": "user",
                "content": [
                    text("Look:"),
                    {"type": "image", "source": picture},
                    {"type": "image", "source": {"type": "url", "url": "https://a/b.png"}},
                    {"type": "document", "source": {}},
                    text(" "),
                ],
            },
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]},
            {"role": "assistant", "content": [call("t", "x")]},
            {"role": "user", "content": [result("t", [text("no")], is_error=True), "odd"]},
        ]
    )
    parts = (TextPart("Look:"), ImagePart("data:image/png;base64,AAAA"))
    assert history[0].content == (*parts, ImagePart("https://a/b.png"))
    assert [message.role for message in history] == ["user", "assistant", "tool"]
    assert history[2].is_error
    assert history[2].content == "no"
