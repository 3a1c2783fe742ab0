"""Anthropic histories in the neutral form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from anthropic.types.beta import BetaMessage

from tests.adapters.recorded.traffic import WRITERS
from tests.conversations import CLAUDE, OPENAI
from tool_search.adapters.anthropic import wire as anthropic_wire
from tool_search.adapters.anthropic.history import history_from_wire
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import ImagePart, Message, TextPart, ToolCall
from tool_search.core.profiles import ProviderProfile
from tool_search.i18n import Language
from tool_search.providers.profile_choice import profile_for
from tool_search.runner.session.session import ToolSearchSession
from tool_search.stores.record import ConversationRecord
from tool_search.testing import check_request

USER = {"role": "user", "content": "Weather?"}


def reference(name: str) -> dict[str, str]:
    """Return a block that names a tool."""
    return {"type": "tool_reference", "tool_name": name}


def server_call(call_id: str, **given: Any) -> dict[str, Any]:
    """Return a server-side search."""
    name = "tool_search_tool_regex" if "pattern" in given else "tool_search_tool_bm25"
    return {"type": "server_tool_use", "id": call_id, "name": name, "input": given}


def server_result(call_id: str, *names: str) -> dict[str, Any]:
    """Return the result of a server-side search."""
    content = {
        "type": "tool_search_tool_search_result",
        "tool_references": [reference(name) for name in names],
    }
    return {"type": "tool_search_tool_result", "tool_use_id": call_id, "content": content}


def call(call_id: str, name: str, **given: Any) -> dict[str, Any]:
    """Return an ordinary call."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def result(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
    """Return an ordinary result."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def text(value: str) -> dict[str, str]:
    """Return a text block."""
    return {"type": "text", "text": value}


def found(message: Message) -> list[str]:
    """Return the names in a search result."""
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
    """The result comes first in the next reply; the client's call comes after the search."""
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
    """Neither is dropped: the model gets an answer to its call."""
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
    blocks = [server_call("srvtoolu_1", query="a"), server_result("srvtoolu_1")]
    history = history_from_wire([USER, {"role": "assistant", "content": blocks}])
    assert found(history[2]) == []
    assert not history[2].is_error


def test_client_search_is_known_by_its_references() -> None:
    history = history_from_wire(
        [
            USER,
            {"role": "assistant", "content": [call("t1", "search_tools", queries=["a", "b"])]},
            {"role": "user", "content": [result("t1", [reference("x__y")])]},
        ],
        search_tool_name="find",
        canonical=lambda name: name.replace("__", "."),
    )
    assert history[1].tool_calls == (
        ToolCall(id="t1", name="find", arguments='{"queries":["a","b"]}'),
    )
    assert history[2].name == "find"
    assert found(history[2]) == ["x.y"]


@pytest.mark.parametrize("line", ["Tools loaded.", "工具已加载。", "Tool loaded."])
def test_line_behind_references_is_nothing_that_a_user_said(line: str) -> None:
    """A client's line after references is not a message; the user's own text is."""
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
    """Pictures and errors are kept, a document as a line; thinking alone is not a reply."""
    picture = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    history = history_from_wire(
        [
            {
                "role": "user",
                "content": [
                    text("Look:"),
                    {"type": "image", "source": picture},
                    {"type": "image", "source": {"type": "url", "url": "https://a/b.png"}},
                    {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
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
    lines = (TextPart("[picture]"), TextPart("[file]"))
    assert history[0].content == (*parts, ImagePart("https://a/b.png"), *lines)
    assert [message.role for message in history] == ["user", "assistant", "tool"]
    assert history[2].is_error
    assert history[2].content == "no"


ORIGIN = CLAUDE.origin
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
COMPACTION = {
    "type": "compaction",
    "content": "They said hello.",
    "signature": "c2ln",
    "tool_changes": [],
}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    """Return a reply."""
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": list(blocks)}


def shape(history: Sequence[Message]) -> list[Any]:
    """Return each message as its role, and what it calls, answers or says."""
    return [(m.role, [c.id for c in m.tool_calls] or m.tool_call_id or m.text) for m in history]


def written(history: Sequence[Message], profile: ProviderProfile = CLAUDE) -> list[Any]:
    """Return the messages of a request that goes on from a history, which breaks no rule."""
    session = ToolSearchSession(ToolCatalog([Tool(name="a")]))
    session.adopt_history(history)
    session.begin_turn("And now?", profile=profile)
    body = WRITERS[profile.dialect].to_wire(session.plan(profile), profile)
    assert check_request(profile.dialect, body) is None
    messages: list[Any] = body["messages"]
    return messages


def test_neighbours_of_one_role_are_one_message() -> None:
    """Recorded, and accepted by the service: both results after two replies in a row."""
    history = history_from_wire(
        [
            USER,
            assistant(text("One."), call("t1", "a")),
            assistant(text("Two."), call("t2", "b")),
            user(result("t2", "second")),
            user(result("t1", "first"), text("Go on.")),
            user(text("Please.")),
        ]
    )
    assert shape(history) == [
        ("user", "Weather?"),
        ("assistant", ["t1", "t2"]),
        ("tool", "t1"),
        ("tool", "t2"),
        ("user", "Go on.\nPlease."),
    ]
    assert history[1].text == "One.\n\nTwo."
    assert [(m.name, m.text) for m in history[2:4]] == [("a", "first"), ("b", "second")]


def test_assistant_may_speak_first() -> None:
    history = history_from_wire([assistant(text("Welcome!")), user(text("Hi."))])
    assert shape(history) == [("assistant", "Welcome!"), ("user", "Hi.")]
    assert [message["role"] for message in written(history)] == ["user", "assistant", "user"]


def test_client_search_is_known_across_messages() -> None:
    history = history_from_wire(
        [
            USER,
            assistant(call("t1", "find", query="a")),
            assistant(call("t2", "clock")),
            user(result("t2", "noon")),
            user(result("t1", [reference("get_weather")]), text("Tool loaded.")),
        ]
    )
    assert [call.name for call in history[1].tool_calls] == ["tool_search", "clock"]
    assert found(history[2]) == ["get_weather"]
    assert len(history) == 4


def test_result_that_comes_later_than_the_next_turn_is_in_its_place() -> None:
    history = history_from_wire(
        [USER, assistant(call("t1", "a")), user(text("Wait.")), assistant(text("Ok.")),
         user(result("t1", "late"))]
    )  # fmt: skip
    assert shape(history)[1:3] == [("assistant", ["t1"]), ("tool", "t1")]
    assert (history[2].name, history[2].text) == ("a", "late")


def test_ids_and_names_that_are_numbers_are_read_as_text() -> None:
    history = history_from_wire(
        [
            USER,
            {"role": "assistant", "content": [{**call("", "a"), "id": 7, "name": 8}]},
            user({**result("", "ok"), "tool_use_id": 7}),
            {"role": "assistant", "content": [{**call("", "a"), "id": None, "name": ["x"]}]},
            user({**result("", "none"), "tool_use_id": {}}),
            {"role": 5, "content": 6},
            None,  # type: ignore[list-item]
        ]
    )
    assert history[1].tool_calls == (ToolCall(id="7", name="8"),)
    assert [(m.tool_call_id, m.text) for m in history if m.role == "tool"] == [
        ("7", "ok"),
        ("", "none"),
    ]
    assert [m["role"] for m in written(history)] == [
        "user", "assistant", "user", "assistant", "user",
    ]  # fmt: skip


def test_compaction_is_text_for_others_and_itself_for_its_origin() -> None:
    messages = [USER, assistant(COMPACTION, text("Hello!"))]
    history = history_from_wire(messages, origin=ORIGIN)
    assert history[1].text == "They said hello.\n\nHello!"
    own, other = written(history), written(history, OPENAI)
    assert own[1]["content"][:2] == [COMPACTION, text("Hello!")]
    assert other[1]["content"] == "They said hello.\n\nHello!"
    unbound = history_from_wire(messages)
    assert unbound[1].native is None
    assert unbound[1].text == history[1].text


def test_thinking_goes_back_to_its_origin_alone() -> None:
    signed = {"type": "redacted_thinking", "data": "x"}
    messages = [
        USER,
        assistant(
            THOUGHT,
            text("Searching."),
            server_call("srvtoolu_1", query="a"),
            server_result("srvtoolu_1", "a"),
            signed,
            call("t1", "a", city="x"),
        ),
        user(result("t1", "ok")),
    ]
    history = history_from_wire(messages, origin=ORIGIN)
    blocks = [message["content"] for message in written(history) if message["role"] == "assistant"]
    assert [[block["type"] for block in content] for content in blocks] == [
        ["thinking", "text", "tool_use"],
        ["redacted_thinking", "tool_use"],
    ]
    assert blocks[0][2]["input"] == {"query": "a"}
    assert blocks[1][1] == call("t1", "a", city="x")
    other = replace(CLAUDE, model="claude-opus-4-6", origin="anthropic:api.anthropic.com/other")
    assert "thinking" not in json.dumps(written(history, other))


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (
            {"source": {"type": "text", "media_type": "text/plain", "data": "Rain."},
             "title": "Forecast", "context": "For Paris."},
            "Forecast\nFor Paris.\nRain.",
        ),
        ({"source": {"type": "content", "content": "Rain."}}, "Rain."),
        ({"source": {"type": "content", "content": [text("Rain."), text("Sun.")]}}, "Rain.\nSun."),
        (
            {"source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
             "title": "report.pdf"},
            "[file: report.pdf]",
        ),
        ({"source": {"type": "url", "url": "https://a/b.pdf"}}, "[file: https://a/b.pdf]"),
        ({"source": {"type": "file", "file_id": 7}, "context": "Old."}, "[file: 7]\nOld."),
    ],
)  # fmt: skip
def test_document_is_text_for_others_and_itself_for_its_origin(document: Any, says: str) -> None:
    """A line names one that has no text; its cache mark was for one request."""
    block = {"type": "document", **document}
    marked = {**block, "cache_control": {"type": "ephemeral"}}
    messages = [user(text("Look:"), marked), assistant(text("Ok."))]
    history = history_from_wire(messages, origin=ORIGIN)
    assert history[0].text == f"Look:\n{says}"
    assert written(history)[0]["content"] == [text("Look:"), block]
    assert written(history, OPENAI)[0]["content"] == f"Look:\n{says}"
    assert history_from_wire(messages)[0].native is None


def test_search_results_and_documents_in_a_result_are_kept() -> None:
    """Text for others; references and errors are as they were."""
    block = {
        "type": "search_result", "title": "Docs", "source": "https://a",
        "content": [text("Say hi.")],
    }  # fmt: skip
    messages = [USER, assistant(call("t1", "a")), user(result("t1", [text("Found:"), block]))]
    history = history_from_wire(messages, origin=ORIGIN)
    assert history[2].text == "Found:\nDocs\nhttps://a\nSay hi."
    assert written(history)[2]["content"][0]["content"] == [text("Found:"), block]
    assert written(history, OPENAI)[2]["content"] == history[2].text


@pytest.mark.parametrize(
    ("language", "line"), [("zh-CN", "[文件: a.pdf]"), ("ru-RU", "[файл: a.pdf]")]
)
def test_line_in_place_of_a_document_is_in_the_language_asked_for(
    language: Language, line: str
) -> None:
    document = {"type": "document", "source": {"type": "base64"}, "title": "a.pdf"}
    (message,) = history_from_wire([user(document)], language=language)
    assert message.text == line


def test_replies_of_the_sdk_are_read_as_they_are() -> None:
    reply = BetaMessage.model_validate(
        {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude",
            "content": [text("Hm."), call("t1", "a", city="x")],
            "stop_reason": "tool_use", "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    )  # fmt: skip
    whole: Any = [USER, reply, user(result("t1", "ok"))]
    parts: Any = [USER, {"role": "assistant", "content": reply.content}, user(result("t1", "ok"))]
    history = history_from_wire(whole)
    assert history == history_from_wire(parts)
    assert history[1].tool_calls == (ToolCall(id="t1", name="a", arguments='{"city":"x"}'),)
    assert history[2].name == "a"


def test_documents_outlive_a_moved_prefix_and_a_refused_reply() -> None:
    block = {"type": "document", "source": {"type": "url", "url": "https://a/b.pdf"}}
    messages = [user(block), assistant(THOUGHT, text("Ok."))]
    bound = profile_for("anthropic", "claude-opus-5-5")
    session = ToolSearchSession(ToolCatalog([Tool(name="a")]))
    session.adopt_history(history_from_wire(messages, origin=bound.origin))
    session.begin_turn("And now?", profile=bound)
    session.plan(bound)
    session.begin_turn("And then?", profile=bound, catalog=ToolCatalog([Tool(name="b")]))
    moved = anthropic_wire.to_wire(session.plan(bound), bound)["messages"]
    session.drop_native_blocks(bound.origin)
    refused = anthropic_wire.to_wire(session.plan(bound), bound)["messages"]
    for content in (moved, refused):
        assert content[0]["content"] == [block]
        assert "thinking" not in json.dumps(content)


def test_documents_outlive_a_restart() -> None:
    block = {"type": "document", "source": {"type": "url", "url": "https://a/b.pdf"}}
    messages = [user(block), assistant(call("t1", "a")), user(result("t1", [block]))]
    session = ToolSearchSession(ToolCatalog([Tool(name="a")]))
    session.adopt_history(history_from_wire(messages, origin=ORIGIN))
    session.begin_turn("And now?", profile=CLAUDE)
    kept = json.loads(json.dumps(session.record().to_dict()))
    again = ToolSearchSession(
        ToolCatalog([Tool(name="a")]), record=ConversationRecord.from_dict(kept)
    )
    sent = anthropic_wire.to_wire(again.plan(CLAUDE), CLAUDE)["messages"]
    assert sent[0]["content"] == [block]
    assert sent[2]["content"][0]["content"] == [block]
