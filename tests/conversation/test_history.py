"""Histories of someone else's: read, and made valid for every provider."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.conversations import CLAUDE, OPENAI, Chat, toolbox
from tool_search import (
    ImagePart,
    Message,
    SearchMatch,
    SearchResult,
    SessionError,
    TextPart,
    ToolCall,
)
from tool_search.adapters.anthropic import history_from_wire as from_messages
from tool_search.adapters.openai_chat import history_from_wire as from_chat
from tool_search.adapters.openai_responses import history_from_wire as from_responses
from tool_search.core.conversation.history import (
    pair_results,
    search_results,
    unanswered_calls,
    visible_names,
)
from tool_search.core.messages import NativeReply
from tool_search.core.profiles import ProviderProfile
from tool_search.providers.profile_choice import profile_for

RESPONSES = profile_for("openai_responses", "gpt-5.4")

HELLO = Message(role="user", content="hello")
FOUND = SearchResult(
    query="q", matches=(SearchMatch(name="a"),), loaded=("b",), total_found=2, total_tools=9
)


def asks(*ids: str, text: str = "", name: str = "get") -> Message:
    """Return a reply with calls of these ids."""
    calls = tuple(ToolCall(id=call_id, name=name) for call_id in ids)
    return Message(role="assistant", content=text, tool_calls=calls)


def result(call_id: str | None, content: str = "ok", name: str | None = "get") -> Message:
    """Return a result for a call."""
    return Message(role="tool", tool_call_id=call_id, name=name, content=content)


def contents(history: tuple[Message, ...]) -> list[str]:
    """Return the texts of a history's results."""
    return [message.text for message in history if message.role == "tool"]


def test_a_valid_history_is_kept_as_it_is() -> None:
    history = (HELLO, asks("1", "2"), result("1"), result("2"), asks(text="done"), HELLO)
    assert pair_results(history, answer="none") == history


def test_results_without_a_call_are_left_out() -> None:
    history = [result("0"), HELLO, result("9"), asks("1"), result("1"), result(None)]
    assert pair_results(history, answer="none") == (HELLO, asks("1"), result("1"))


def test_a_call_without_a_result_gets_an_error() -> None:
    history = pair_results([asks("1", "2"), result("2", "two"), HELLO], answer="lost")
    assert contents(history) == ["lost", "two"]
    assert [message.is_error for message in history[1:3]] == [True, False]
    assert history[3] == HELLO


def test_a_second_result_of_a_call_is_left_out() -> None:
    assert contents(pair_results([asks("1"), result("1", "a"), result("1", "b")], answer="")) == [
        "a"
    ]


def test_a_late_result_moves_after_its_call() -> None:
    history = pair_results([asks("1"), HELLO, result("1", "late")], answer="lost")
    assert history == (asks("1"), result("1", "late"), HELLO)


def test_two_replies_with_both_results_after_them_keep_both() -> None:
    history = pair_results(
        [asks("1"), asks("2"), result("1", "one"), result("2", "two")], answer="lost"
    )
    assert history == (asks("1"), result("1", "one"), asks("2"), result("2", "two"))


def test_replies_in_a_row_with_one_id_take_its_results_in_order() -> None:
    given = [asks("c"), asks("c"), result("c", "one"), result("c", "two")]
    assert contents(pair_results(given, answer="lost")) == ["one", "two"]


def test_a_repeated_id_belongs_to_the_newest_open_call() -> None:
    """The older one was never answered."""
    given = [asks("c"), HELLO, asks("c"), result("c", "new")]
    assert contents(pair_results(given, answer="lost")) == ["lost", "new"]


def test_a_result_after_later_calls_finds_its_own() -> None:
    given = [asks("1"), HELLO, asks("2"), result("2", "two"), HELLO, result("1", "one")]
    history = pair_results(given, answer="lost")
    assert history[:2] == (asks("1"), result("1", "one"))
    assert contents(history) == ["one", "two"]


def test_a_result_before_its_call_is_its_result_if_the_id_is_unique() -> None:
    given = [HELLO, result("1", "early"), asks("1"), HELLO]
    assert contents(pair_results(given, answer="lost")) == ["early"]
    repeated = [result("c", "old"), asks("c"), result("c", "new"), asks("c")]
    assert contents(pair_results(repeated, answer="lost")) == ["new", "lost"]


def test_a_result_without_an_id_answers_by_name_then_by_order() -> None:
    """Some clients keep no ids; what has one is never taken for it."""
    two = (ToolCall(id="1", name="get"), ToolCall(id="2", name="put"))
    reply = Message(role="assistant", tool_calls=two)
    named = [reply, result(None, "put", name="put"), result("", "get", name=None)]
    assert contents(pair_results(named, answer="lost")) == ["get", "put"]
    assert contents(pair_results([reply, HELLO, asks("3"), result(None, "x")], answer="lost")) == [
        "lost", "lost", "x",
    ]  # fmt: skip


def test_a_result_with_a_foreign_id_answers_a_call_without_one() -> None:
    """Some proxies drop the ids of calls; an id that another call has is never foreign."""
    given = [asks("", ""), result("x", "one"), result("y", "two")]
    assert contents(pair_results(given, answer="lost")) == ["one", "two"]
    given = [asks("x"), result("x", "x"), asks(""), result("x", "again"), result("y", "y")]
    assert contents(pair_results(given, answer="lost")) == ["x", "y"]


def test_a_result_without_an_id_leaves_a_call_to_the_result_of_its_id() -> None:
    given = [asks("b", ""), result("", "first"), result("b", "b")]
    assert contents(pair_results(given, answer="lost")) == ["b", "first"]
    early = [asks("b"), result("x", "no call"), result("", "spare"), HELLO, result("b", "b")]
    assert contents(pair_results(early, answer="lost")) == ["b"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"role": "user", "content": "hi"}, "it is {'role': 'user', 'content': 'hi'}, not a Mess"),
        (None, "it is None, not a Message"),
        (Message(role="system"), "role must be one of user, assistant, tool, not 'system'"),  # type: ignore[arg-type]
        (Message(role=5), "role must be one of user, assistant, tool, not 5"),  # type: ignore[arg-type]
        (Message(role="user", content=7), "content must be text or parts, not 7"),  # type: ignore[arg-type]
        (Message(role="user", content=({"text": "x"},)), "a part of its content is {'text': 'x'}"),  # type: ignore[arg-type]
        (Message(role="user", content=(TextPart(5),)), "a part of its content is TextPart(text=5)"),  # type: ignore[arg-type]
        (result(5), "tool_call_id must be text or None, not 5"),  # type: ignore[arg-type]
        (result("1", name=["x"]), "name must be text or None, not ['x']"),  # type: ignore[arg-type]
        (asks(5), "id of a call must be text, not 5"),  # type: ignore[arg-type]
        (asks("1", name=None), "name of a call must be text, not None"),  # type: ignore[arg-type]
        (Message(role="assistant", tool_calls=None), "tool_calls must be a tuple of calls, not "),  # type: ignore[arg-type]
        (Message(role="assistant", tool_calls=("x",)), "id of a call must be text, not None"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_a_value_that_is_not_a_message_is_refused_by_name(wrong: Any, says: str) -> None:
    chat = Chat(toolbox(2))
    chat.turn(OPENAI)
    before = chat.session.history
    with pytest.raises(SessionError, match=re.escape(f"message 1 of the history: {says}")):
        chat.session.adopt_history([HELLO, wrong])
    assert chat.session.history == before


_HI = {"role": "user", "content": "hi"}
_IMPORTED = {
    "anthropic": from_messages([_HI, {
        "role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"},
                                         {"type": "text", "text": "ok"}],
    }], origin=CLAUDE.origin),
    "openai_chat": from_chat([_HI, {
        "role": "assistant", "content": "ok", "reasoning_content": "t",
    }], origin=CLAUDE.origin),
    "openai_responses": from_responses([_HI,
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {"type": "message", "role": "assistant", "content": "ok"},
    ], origin=CLAUDE.origin),
}  # fmt: skip


@pytest.mark.parametrize("profile", [CLAUDE, OPENAI, RESPONSES])
@pytest.mark.parametrize("dialect", _IMPORTED)
def test_replies_of_another_dialect_than_their_origin_are_refused(
    dialect: str, profile: ProviderProfile
) -> None:
    history = [
        replace(m, native=m.native and replace(m.native, origin=profile.origin))
        for m in _IMPORTED[dialect]
    ]
    assert history[-1].native is not None
    chat = Chat(toolbox(2))
    if profile.dialect == dialect:
        chat.session.adopt_history(history)
        assert chat.begin(profile).messages[1].native == history[-1].native
        return
    says = re.escape(f"message 1 of the history: its origin is {profile.origin!r}, but {{")
    with pytest.raises(SessionError, match=says):
        chat.session.adopt_history(history)
    assert chat.session.history == ()


@pytest.mark.parametrize(
    ("native", "says"),
    [
        ({"type": "text"}, "native must be a NativeReply with an origin or None, not {'type'"),
        (NativeReply(5, ()), "native must be a NativeReply with an origin or None, not NativeR"),  # type: ignore[arg-type]
        (NativeReply("o", ("x",)), "the blocks of its native reply must be JSON objects, not ('x"),  # type: ignore[arg-type]
        (NativeReply("o", None), "the blocks of its native reply must be JSON objects, not None"),  # type: ignore[arg-type]
    ],
)
def test_a_native_reply_of_another_shape_is_refused(native: Any, says: str) -> None:
    history = [HELLO, Message(role="assistant", content="ok", native=native)]
    with pytest.raises(SessionError, match=re.escape(f"message 1 of the history: {says}")):
        Chat(toolbox(2)).session.adopt_history(history)


def test_ids_that_come_twice_are_numbered() -> None:
    history = pair_results(
        [asks("c"), result("c", "one"), asks("c"), result("c", "two"), HELLO], answer="lost"
    )
    assert contents(history) == ["one", "two"]
    assert [call.id for m in history for call in m.tool_calls] == ["c", "c_2"]
    assert [m.tool_call_id for m in history if m.role == "tool"] == ["c", "c_2"]


@given(st.lists(st.sampled_from(["call_0", "call_0_2", "", "x"]), max_size=12))
def test_own_ids_are_unique_and_keep_the_first(ids: list[str]) -> None:
    history = pair_results([asks(call_id) for call_id in ids], answer="lost")
    taken: list[str] = []
    for call_id, message in zip(ids, history[::2], strict=True):
        made = message.tool_calls[0].id
        assert made
        assert made not in taken
        assert made == call_id or not call_id or call_id in taken
        taken.append(made)


def test_an_id_that_comes_5_000_times_takes_no_more_than_as_many_ids() -> None:
    """Each is numbered on from the last; a search from the first would take minutes."""
    given = [message for _ in range(5_000) for message in (asks("c"), result("c"))]
    history = pair_results(given, answer="lost")
    assert history[-1].tool_call_id == "c_5000"
    assert contents(history) == ["ok"] * 5_000


def test_one_id_twice_in_one_reply_takes_its_results_in_order() -> None:
    history = pair_results([asks("c", "c"), result("c", "one"), result("c", "two")], answer="lost")
    assert contents(history) == ["one", "two"]
    assert [call.id for call in history[0].tool_calls] == ["c", "c_2"]


def test_a_renumbered_reply_loses_the_blocks_that_have_the_old_ids() -> None:
    """A provider's own blocks must agree with the results."""
    native = NativeReply("o", ({"type": "tool_use", "id": "c"},))
    twice = Message(role="assistant", tool_calls=(ToolCall(id="c", name="get"),), native=native)
    history = pair_results([twice, result("c"), twice, result("c")], answer="")
    assert [m.native for m in history if m.role == "assistant"] == [native, None]


def test_a_result_bears_the_name_of_its_call() -> None:
    history = pair_results([asks("1", name="tool_search"), result("1", "x", name=None)], answer="")
    assert history[1].name == "tool_search"


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("content", ["", "  \n", (), (TextPart(" "),)])
def test_messages_without_content_are_left_out(role: str, content: object) -> None:
    empty = Message(role=role, content=content)  # type: ignore[arg-type]
    assert pair_results([HELLO, empty], answer="") == (HELLO,)


def test_a_picture_is_content() -> None:
    picture = Message(role="user", content=(ImagePart("https://x/y.png"),))
    assert pair_results([picture], answer="") == (picture,)


_MESSAGES = st.lists(
    st.one_of(
        st.just(HELLO),
        st.builds(asks, *[st.sampled_from(["", "a", "b", "c"])] * 2, text=st.just("t")),
        st.builds(asks, st.sampled_from(["", "a", "b"])),
        st.builds(asks, text=st.sampled_from(["", "t"])),
        st.builds(result, st.sampled_from([None, "", "a", "b", "c"]),
                  name=st.sampled_from([None, "get"])),
    ),
    max_size=12,
)  # fmt: skip


@given(_MESSAGES)
def test_any_history_becomes_one_in_which_each_call_has_one_result_after_it(
    history: list[Message],
) -> None:
    valid = pair_results(history, answer="lost")
    open_ids: list[str | None] = []
    for message in valid:
        if message.role == "tool":
            assert message.tool_call_id == open_ids.pop(0)
        else:
            assert not open_ids
            open_ids = [call.id for call in message.tool_calls]
    asked = Counter(call.id for message in valid for call in message.tool_calls)
    assert not open_ids
    assert all(count == 1 for count in asked.values())
    assert pair_results(valid, answer="other") == valid


@given(_MESSAGES)
@example([asks("b", "", text="t"), result("", name="get"), result("b")])
def test_no_result_of_a_call_is_ever_lost(history: list[Message]) -> None:
    """A call is without a result only if no result is left that could be its own."""
    given = [m if m.role != "tool" else replace(m, content=f"r{n}") for n, m in enumerate(history)]
    kept = contents(pair_results(given, answer="lost"))
    asked = Counter(call.id for message in given for call in message.tool_calls)
    early = Counter[str | None]()
    answered = Counter[str | None]()
    for message in given:
        early.update(call.id for call in message.tool_calls)
        if message.role == "tool" and early[message.tool_call_id] > answered[message.tool_call_id]:
            answered[message.tool_call_id] += 1
    least = sum(answered[call_id] for call_id in asked)
    assert len([content for content in kept if content != "lost"]) >= least
    assert len(set(kept) - {"lost"}) == len([content for content in kept if content != "lost"])


@settings(max_examples=40)
@given(_MESSAGES)
def test_an_adopted_history_goes_on_whatever_it_was(history: list[Message]) -> None:
    chat = Chat(toolbox(4))
    chat.session.adopt_history(history)
    chat.begin(CLAUDE)
    chat.find("tool_001")
    for profile in (CLAUDE, OPENAI):
        messages = chat.session.plan(profile).messages
        answered = Counter(m.tool_call_id for m in messages if m.role == "tool")
        assert answered == Counter(c.id for m in messages for c in m.tool_calls)


def test_open_calls_are_those_of_the_last_reply_without_result() -> None:
    history = [asks("0"), result("0"), asks("1", "2", "3"), result("2")]
    assert [call.id for call in unanswered_calls(history)] == ["1", "3"]
    assert unanswered_calls([asks("0"), result("0")]) == ()
    assert unanswered_calls([HELLO]) == ()
    assert unanswered_calls([]) == ()


def test_a_search_result_introduces_its_matches_and_what_was_loaded() -> None:
    history = [result("1", FOUND.to_json(), name="tool_search")]
    assert visible_names(history, "tool_search") == {"a", "b"}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ok", "tool_search"), ("{}", "tool_search"), ("[1]", "tool_search"), ("", "tool_search"),
        ('{"query":5,"matches":[]}', "tool_search"), ('{"query":"q","matches":5}', "tool_search"),
        (FOUND.to_json(), "other"), ("[" * 100_000, "tool_search"),
    ],
)  # fmt: skip
def test_a_text_that_is_not_a_search_result_introduces_nothing(text: str, name: str) -> None:
    assert visible_names([result("1", text, name=name)], "tool_search") == frozenset()


def test_a_search_result_is_read_through_what_a_bot_appended() -> None:
    history = [result("1", f" {FOUND.to_json()}\n\n[Notice: ...]", name="tool_search")]
    assert search_results(history, "tool_search") == [FOUND]


@pytest.mark.parametrize(
    "matches", ['[{"name":5}]', "[null]", '["a"]', '[{"description":"x"}]', "[]"]
)
def test_matches_that_have_no_name_are_passed_over(matches: str) -> None:
    (read,) = search_results(
        [result("1", f'{{"query":"q","matches":{matches}}}', name="tool_search")], "tool_search"
    )
    assert read.names == ()
