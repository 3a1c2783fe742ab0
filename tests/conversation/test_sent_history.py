"""Omissions of requests: limits, refusals, and turns that are taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conversations import BOUND, CLAUDE, COMPATIBLE, OPENAI, Chat, toolbox
from tool_search import (
    ConversationRecord,
    ImagePart,
    Message,
    TextPart,
    ToolSearchSession,
    profile_for,
)
from tool_search.config import HistorySettings
from tool_search.core.messages import NativeReply, Notice, ReferencePart, RequestPlan
from tool_search.core.profiles import ProviderProfile

RESPONSES = profile_for("openai_responses", "gpt-5.5")
PROFILES = {
    "claude": CLAUDE,
    "bound": BOUND,
    "compatible": COMPATIBLE,
    "chat": OPENAI,
    "responses": RESPONSES,
}
_PICTURE = ImagePart("data:image/png;base64,AAAA")
_LONG = "One line of a long report about nothing at all. " * 60


def long_chat(turns: int, **limits: Any) -> Chat:
    """A conversation of turns with a long result each, the first of which found a tool."""
    chat = Chat(toolbox(6, core=1), history=HistorySettings(**limits))
    for number in range(turns):
        chat.begin(text=f"Question {number}?")
        if number == 0:
            chat.search("select:tool_001")
        chat.call("core_000", {"count": number}, result=_LONG)
        chat.answer(f"Answer {number}.")
    return chat


def texts(plan: RequestPlan, role: str = "user") -> list[str]:
    """Return the texts of one role in a request."""
    return [message.text for message in plan.messages if message.role == role]


def codes(notices: Sequence[Notice]) -> list[str]:
    """The codes of notices."""
    return [notice.code for notice in notices]


def assert_sendable(plan: RequestPlan) -> None:
    """The request begins with the user, and each call has its result right after it."""
    waiting: set[str | None] = set()
    for message in plan.messages:
        if message.role == "tool":
            assert message.tool_call_id in waiting
            waiting.discard(message.tool_call_id)
        else:
            assert not waiting
            waiting = {call.id for call in message.tool_calls}
    assert not waiting
    assert plan.messages[0].role == "user"


def referred_to(plan: RequestPlan) -> set[str]:
    """The tools that a request declares, or that its messages load or have called."""
    parts = (
        part
        for message in plan.messages
        if not isinstance(message.content, str)
        for part in message.content
        if isinstance(part, ReferencePart)
    )
    loaded = {entry.tool.name for entry in plan.tools if not entry.deferred}
    called = {call.name for message in plan.messages for call in message.tool_calls}
    return loaded.union(called, *(part.names for part in parts))


def test_results_of_earlier_turns_are_shortened_before_turns_are_left_out() -> None:
    chat = long_chat(6)
    chat.begin(text="And now?")
    assert chat.session.sent.shorten(OPENAI, share=0.8)
    plan = chat.session.plan(OPENAI)
    (notice,) = chat.session.take_notices()
    assert notice.code == "results_shortened"
    assert all(len(said) < 1_100 for said in texts(plan, "tool"))
    assert "characters left out" in texts(plan, "tool")[1]
    assert texts(plan)[0] == "Question 0?"


def test_turns_are_left_out_if_shorter_results_are_not_enough() -> None:
    """A line says so, the tool that was found in them is shown again, the record is whole."""
    chat = long_chat(6)
    before = chat.session.history
    chat.begin(text="And now?")
    assert chat.session.sent.shorten(OPENAI, share=0.05)
    plan = chat.session.plan(OPENAI)
    assert codes(chat.session.take_notices()) == ["turns_left_out"]
    line, *asked = texts(plan)
    assert line.startswith("(Earlier messages")
    assert asked[-1] == "And now?"
    assert "Question 0?" not in asked
    assert '"name":"tool_001"' in texts(plan, "tool")[0]
    assert_sendable(plan)
    assert chat.session.history[: len(before)] == before


def test_results_of_the_present_turn_are_shortened_last() -> None:
    """One large result must not end a conversation, even if it is the only one."""
    chat = Chat(toolbox(3, core=1))
    chat.begin()
    chat.call("core_000", {"count": 1}, result=_LONG * 20)
    assert chat.session.sent.shorten(OPENAI, share=0.5)
    assert len(texts(chat.session.plan(OPENAI), "tool")[0]) < 1_100
    assert chat.session.history[-1].text == _LONG * 20
    assert not chat.session.sent.shorten(OPENAI, share=0.5)


def test_nothing_is_left_out_of_requests_to_others() -> None:
    chat = long_chat(6)
    chat.begin(text="And now?")
    whole = chat.session.plan(CLAUDE).messages
    chat.session.sent.shorten(OPENAI, share=0.05)
    assert chat.session.plan(CLAUDE).messages == whole


@pytest.mark.parametrize("limits", [{"max_tokens": 2_000}, {"keep_turns": 4}])
def test_limits_of_the_settings_cut_seldom_and_are_announced(limits: dict[str, int]) -> None:
    chat = Chat(toolbox(3, core=1), history=HistorySettings(**limits))
    cuts, sent = 0, tuple[Message, ...]()
    for number in range(40):
        chat.begin(text=f"Question {number}?")
        chat.call("core_000", {"count": number}, result="A line of it. " * 10)
        plan = chat.session.plan(OPENAI)
        is_cut = "turns_left_out" in codes(chat.session.take_notices())
        cuts += is_cut
        assert is_cut or plan.messages[: len(sent)] == sent
        sent = plan.messages
        chat.answer(f"Answer {number}.")
    assert 2 <= cuts <= 14
    assert f"Question {39 - 3}?" in texts(plan)
    assert len(chat.session.history) == 40 * 4


def test_most_tokens_hold_at_the_beginning_of_a_turn() -> None:
    chat = long_chat(30, max_tokens=4_000)
    plan = chat.begin(text="And now?")
    assert sum(len(message.text) for message in plan.messages) < 4 * 4_000


def test_limits_that_are_not_reached_change_nothing() -> None:
    chat, free = long_chat(6, max_tokens=1_000_000, keep_turns=50), long_chat(6)
    assert chat.begin().messages == free.begin().messages
    assert chat.session.record().omissions == ()


def test_restart_goes_on_with_what_was_left_out() -> None:
    chat = long_chat(6)
    chat.session.begin_turn([TextPart("See"), _PICTURE], profile=OPENAI)
    chat.session.sent.shorten(OPENAI, share=0.3)
    chat.session.sent.leave_out(OPENAI, "picture_refused")
    plan = chat.session.plan(OPENAI)
    record = ConversationRecord.from_dict(chat.session.record().to_dict())
    again = ToolSearchSession(chat.session.catalog, config=chat.config, record=record)
    assert again.plan(OPENAI).messages == plan.messages


@pytest.mark.parametrize(
    "broken",
    [
        {"turns_before": 99},
        {"turns_before": -1},
        {"turns_before": 1, "opening": []},
        {"results_before": 99},
        {"contents": [{"place": 99, "why": "picture_refused"}]},
        {"contents": [{"place": 0, "why": "because"}]},
        {"contents": [0]},
        {"turns_before": 2},
    ],
)
def test_record_that_leaves_out_missing_messages_is_refused(broken: dict[str, Any]) -> None:
    chat = long_chat(2)
    chat.begin()
    chat.session.sent.shorten(OPENAI, share=0.05)
    content = chat.session.record().to_dict()
    content["omissions"][0] |= broken
    with pytest.raises(Exception, match="omissions"):
        ConversationRecord.from_dict(content)


@pytest.mark.parametrize("name", PROFILES)
def test_refused_picture_is_a_line_of_text_from_then_on(name: str) -> None:
    """The newest that can be meant: a tool's, then the user's, then what is older."""
    profile, chat = PROFILES[name], Chat(toolbox(3, core=1))
    session = chat.session
    session.begin_turn([_PICTURE, TextPart("An old one.")], profile=profile)
    chat.answer()
    session.begin_turn([TextPart("A new one."), _PICTURE], profile=profile)
    assert session.sent.leave_out(profile, "picture_refused") == "message"
    line = "[picture left out: the provider could not read it]"
    old, new = (m for m in session.plan(profile).messages if m.role == "user")
    assert (old.text, new.text) == ("An old one.", f"A new one.\n{line}")
    assert session.sent.leave_out(profile, "picture_refused") == "older"
    assert session.sent.leave_out(profile, "picture_refused") is None
    shown = session.plan(profile).messages
    assert not any(_PICTURE in message.content for message in shown if message.role == "user")
    assert _PICTURE in session.history[0].content


def test_document_in_its_services_own_words_is_left_out_too() -> None:
    chat = Chat(toolbox(3))
    block = {"type": "document", "source": {"type": "base64", "data": "AA"}}
    message = Message(
        role="user", content="Read this.", native=NativeReply(CLAUDE.origin, (block,))
    )
    chat.session.adopt_history([message, Message(role="assistant", content="It is empty.")])
    chat.begin(CLAUDE, "And now?")
    assert chat.session.sent.leave_out(CLAUDE, "picture_refused") == "older"
    (shown, *_) = chat.session.plan(CLAUDE).messages
    assert shown.native is None
    assert shown.text == "Read this.\n[picture left out: the provider could not read it]"


def test_refused_result_is_left_out_before_the_users_message() -> None:
    chat = Chat(toolbox(3, core=1))
    chat.begin(text="Read the page.")
    chat.call("core_000", {"count": 1}, result="something that a filter minds")
    assert chat.session.sent.leave_out(OPENAI, "message_refused") == "result"
    plan = chat.session.plan(OPENAI)
    assert texts(plan, "tool") == ["[message left out: the provider refused its content]"]
    assert texts(plan) == ["Read the page."]
    assert chat.session.sent.leave_out(OPENAI, "message_refused") == "message"


def test_model_without_eyes_is_sent_no_picture_of_any_turn() -> None:
    blind = profile_for("openai_chat", "deepseek-v4-flash", base_url="https://api.deepseek.com")
    chat = Chat(toolbox(3))
    chat.session.begin_turn([TextPart("See"), _PICTURE], profile=blind)
    plan = chat.session.plan(blind)
    assert _PICTURE in plan.messages[0].content
    seen = chat.session.plan(replace(blind, takes_pictures=False))
    assert texts(seen) == ["See\n[picture left out: the model cannot see pictures]"]


def test_last_turn_can_be_taken_back() -> None:
    chat = long_chat(2)
    before = chat.session.plan(OPENAI).messages
    chat.begin(text="Oh no.")
    chat.search("select:tool_003")
    chat.call("tool_003", {"count": 1})
    taken = chat.session.drop_last_turn()
    assert [message.role for message in taken] == ["user", "assistant", "tool", "assistant", "tool"]
    assert chat.session.plan(OPENAI).messages == before
    plan = chat.begin(text="Rather this.")
    assert plan.messages[: len(before)] == before
    assert "tool_003" in referred_to(plan)
    assert_sendable(plan)


def test_turn_without_a_user_cannot_be_taken_back() -> None:
    chat = Chat(toolbox(2))
    assert chat.session.drop_last_turn() == ()
    chat.turn(text="One.")
    assert len(chat.session.drop_last_turn()) == 2
    assert chat.session.drop_last_turn() == ()
    assert chat.begin(text="Two.").messages[0].text == "Two."


@pytest.mark.parametrize("name", PROFILES)
def test_search_that_was_written_before_a_turn_goes_with_it(name: str) -> None:
    """The next turn has it again, byte for byte, so that the prefix stays."""
    profile, chat = PROFILES[name], Chat(toolbox(4))
    chat.begin(profile)
    chat.search("select:tool_001")
    chat.answer()
    chat.session.adopt_history([Message(role="user", content="A summary."),
                                Message(role="assistant", content="Yes.")])  # fmt: skip
    first = chat.begin(profile, "One?")
    chat.answer()
    taken = chat.session.drop_last_turn()
    assert [message.role for message in taken] == ["assistant", "tool", "user", "assistant"]
    second = chat.begin(profile, "Two?")
    assert second.messages[:-1] == first.messages[:-1]
    assert len(chat.session.record().insertion_points) == 1


def test_thinking_before_a_turn_that_was_taken_back_still_holds() -> None:
    chat = Chat(toolbox(3))
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    native = NativeReply(BOUND.origin, (thinking, {"type": "text", "text": "Well."}))
    chat.begin(BOUND, "One?")
    chat.session.accept(Message(role="assistant", content="Well.", native=native))
    chat.begin(BOUND, "Two?")
    chat.answer("No.")
    chat.session.drop_last_turn()
    plan = chat.begin(BOUND, "Three?")
    assert [message.native for message in plan.messages] == [None, native, None]


def test_turn_of_a_kept_conversation_can_be_taken_back() -> None:
    chat = long_chat(3)
    chat.begin(BOUND, text="Four?")
    record = ConversationRecord.from_dict(chat.session.record().to_dict())
    again = ToolSearchSession(chat.session.catalog, config=chat.config, record=record)
    assert [message.text for message in again.drop_last_turn()] == ["Four?"]
    again.begin_turn("Five?", profile=BOUND)
    assert_sendable(again.plan(BOUND))


def test_past_can_be_replaced_while_a_turn_goes_on() -> None:
    chat = long_chat(4)
    chat.begin(text="And now?")
    chat.call("core_000", {"count": 1}, result="some result")
    past = len(chat.session.past)
    chat.session.replace_past([Message(role="user", content="In short: nothing.")])
    plan = chat.session.plan(OPENAI)
    assert past == 4 * 4 + 2
    assert texts(plan) == ["In short: nothing.", "And now?"]
    assert texts(plan, "tool")[-1] == "some result"
    assert "tool_001" in referred_to(plan)
    assert_sendable(plan)


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["turn", "turn", "search", "call", "large", "answer", "shorten", "refused", "picture",
             "drop", "restart", "swap", "compact"]
        ),
        st.integers(0, 5),
    ),
    max_size=40,
)  # fmt: skip
_LIMITS = st.sampled_from([{}, {"max_tokens": 1_000}, {"keep_turns": 2}])
_CUTS = {"results_shortened", "turns_left_out", "content_left_out"}


class _Random:
    """A conversation that grows, is cut, refused, taken back and begun again."""

    def __init__(self, limits: dict[str, int]) -> None:
        self.limits = HistorySettings(**limits)
        self.chat = Chat(toolbox(6, core=1), history=self.limits)
        self.profile: ProviderProfile = OPENAI
        self.sent: dict[str, tuple[Message, ...]] = {}
        self.chat.session.begin_turn("hello", profile=OPENAI)

    def do(self, step: str, number: int) -> None:
        """One step."""
        chat, session = self.chat, self.chat.session
        steps: dict[str, Any] = {
            "turn": lambda: self.begin(f"and {number}?"),
            "search": lambda: chat.search(f"select:tool_{number:03}"),
            "call": lambda: chat.call(f"tool_{number:03}", {"count": 1}),
            "large": lambda: chat.call("core_000", {"count": 1}, result=_LONG),
            "answer": lambda: chat.answer(f"It is {number}."),
            "shorten": lambda: session.sent.shorten(self.profile, share=number / 6),
            "refused": lambda: session.sent.leave_out(self.profile, "message_refused"),
            "picture": lambda: self._picture(number),
            "drop": self._drop,
            "restart": self._restart,
            "swap": lambda: setattr(self, "profile", list(PROFILES.values())[number % 5]),
            "compact": lambda: self._compact(number),
        }
        steps[step]()

    def begin(self, content: Any) -> None:
        """A user turn."""
        self.chat.session.begin_turn(content, profile=self.profile)

    def _picture(self, number: int) -> None:
        self.begin([TextPart("see"), _PICTURE])
        if number % 2:
            self.chat.session.sent.leave_out(self.profile, "picture_refused")

    def _drop(self) -> None:
        self.chat.session.drop_last_turn()
        self.sent.clear()
        self.begin("instead")

    def _restart(self) -> None:
        record = ConversationRecord.from_dict(self.chat.session.record().to_dict())
        self.chat.session = ToolSearchSession(
            self.chat.session.catalog,
            config=self.chat.config,
            record=record,
            history=self.limits,
        )

    def _compact(self, number: int) -> None:
        history = self.chat.session.history
        users = [index for index, message in enumerate(history) if message.role == "user"]
        self.chat.session.adopt_history(history[users[number % len(users)] :] if users else ())
        self.sent.clear()
        self.begin("What is missing is shown again before the next message.")

    def check(self) -> None:
        """The next request is valid, goes on from the last one, and loads what was discovered."""
        session, name = self.chat.session, self.profile.origin
        if not session.history or session.history[-1].role == "assistant":
            self.begin("x")
        plan = session.plan(self.profile)
        assert_sendable(plan)
        if not _CUTS.isdisjoint(codes(session.take_notices())):
            self.sent.clear()
        before = self.sent.get(name, ())
        shown = [replace(message, native=None) for message in plan.messages[: len(before)]]
        assert shown == [replace(message, native=None) for message in before]
        self.sent[name] = plan.messages
        assert set(session.discoveries.names) <= referred_to(plan)


@settings(deadline=None, max_examples=60)
@given(_STEPS, _LIMITS)
def test_whatever_is_left_out_requests_are_valid_and_tools_callable(
    steps: list[tuple[str, int]], limits: dict[str, int]
) -> None:
    run = _Random(limits)
    for step, number in steps:
        run.do(step, number)
        run.check()
