"""Discoveries that a history no longer shows come back into it, once and in place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conversations import CLAUDE, OPENAI, PROFILES, Chat, tool, toolbox
from tool_search import Message, RequestPlan
from tool_search.core.conversation.history import visible_names
from tool_search.core.messages import ReferencePart


def said(text: str) -> Message:
    """A user's message."""
    return Message(role="user", content=text)


def synthetic_searches(history: tuple[Message, ...]) -> list[int]:
    """Return the places of synthetic searches."""
    return [
        place
        for place, message in enumerate(history)
        for call in message.tool_calls
        if call.id.startswith("restored_")
    ]


def referred(plan: RequestPlan) -> list[str]:
    """Every name that a request refers to."""
    parts = [part for message in plan.messages for part in message.content]
    return [name for part in parts if isinstance(part, ReferencePart) for name in part.names]


@pytest.fixture
def chat() -> Chat:
    """A conversation that found two tools in its first turn."""
    made = Chat(toolbox(9))
    made.begin(text="first")
    made.find("tool_003", "tool_001")
    made.answer()
    return made


def test_what_the_history_shows_is_not_shown_again(chat: Chat) -> None:
    """A swap alone needs nothing: the results are there."""
    chat.turn(CLAUDE)
    assert synthetic_searches(chat.session.history) == []


def test_after_a_compaction_discoveries_come_before_the_users_message(chat: Chat) -> None:
    chat.session.adopt_history([said("Summary of before."), Message(role="assistant", content="k")])
    plan = chat.begin(CLAUDE, "next")
    assert [message.role for message in chat.session.history] == [
        "user", "assistant", "assistant", "tool", "user",
    ]  # fmt: skip
    assert referred(plan) == ["tool_003", "tool_001"]
    assert chat.session.discoveries.names == ("tool_003", "tool_001")


def test_an_empty_history_is_opened_by_a_line_of_the_users(chat: Chat) -> None:
    chat.session.adopt_history([])
    chat.begin(text="next")
    roles = [message.role for message in chat.session.history]
    assert roles == ["user", "assistant", "tool", "user"]
    assert "found earlier" in chat.session.history[0].text


@pytest.mark.parametrize(("text", "word"), [("帮我查", "对话继续"), ("Привет", "Разговор")])
def test_the_opening_line_is_in_the_language_of_the_conversation(text: str, word: str) -> None:
    chat = Chat(toolbox(3))
    chat.begin(text=text)
    chat.find("tool_001")
    chat.session.adopt_history([])
    chat.begin(text="next")
    assert word in chat.session.history[0].text


def test_an_exchange_is_written_once_and_repeated_unchanged(chat: Chat) -> None:
    chat.session.adopt_history([said("Summary.")])
    before = chat.turn(CLAUDE, "two").messages
    after = chat.turn(CLAUDE, "three").messages
    assert after[: len(before)] == before
    assert len(synthetic_searches(chat.session.history)) == 1


def test_only_what_is_missing_is_shown(chat: Chat) -> None:
    kept = [m for m in chat.session.history if "tool_003" not in m.text]
    chat.session.adopt_history(kept)
    assert referred(chat.begin(CLAUDE)) == ["tool_001", "tool_003"]


def test_a_tool_that_is_gone_is_shown_when_it_is_back(chat: Chat) -> None:
    chat.session.adopt_history([said("Summary.")])
    chat.turn(CLAUDE, tools=[t for t in toolbox(9) if t.name != "tool_003"])
    assert visible_names(chat.session.history, "tool_search") == {"tool_001"}
    assert referred(chat.turn(CLAUDE, tools=toolbox(9))) == ["tool_001", "tool_003"]


def test_full_mode_writes_nothing() -> None:
    chat = Chat(toolbox(3), {"tool_schema_mode": "full"})
    chat.begin()
    chat.call("tool_001", {"count": 1})
    chat.session.adopt_history([])
    chat.begin()
    assert len(chat.session.history) == 1


def test_no_synthetic_search_is_between_a_call_and_its_result(chat: Chat) -> None:
    chat.begin(text="next")
    chat.session.accept(Message(role="assistant", tool_calls=chat.session.history[1].tool_calls))
    chat.session.adopt_history(chat.session.history[-1:])
    chat.begin(CLAUDE, "again")
    roles = [message.role for message in chat.session.history]
    assert roles == ["user", "assistant", "tool", "assistant", "tool", "user"]


def test_a_bot_that_reads_its_own_history_each_turn_gets_the_search_in_its_place() -> None:
    """Byte for byte, though its history never has it; through restarts too."""
    chat = Chat(toolbox(9))
    own: list[Message] = []
    chat.begin(text="hi")
    chat.find("tool_003")
    before: tuple[Message, ...] = ()
    for number in range(4):
        if number == 2:
            chat = chat.restarted()
        chat.session.adopt_history(own)
        plan = chat.begin(CLAUDE, "hi")
        assert plan.messages[: len(before)] == before
        assert referred(plan) == ["tool_003"]
        chat.answer(f"answer {number}")
        own += [said("hi"), Message(role="assistant", content=f"answer {number}")]
        before = chat.session.plan(CLAUDE).messages
    assert len(synthetic_searches(chat.session.history)) == 1


def test_a_bot_that_keeps_our_exchange_does_not_get_it_twice(chat: Chat) -> None:
    chat.session.adopt_history([said("Summary.")])
    for _ in range(3):
        chat.turn(CLAUDE)
        chat.session.adopt_history(chat.session.history)
    assert len(synthetic_searches(chat.session.history)) == 1


def test_an_exchange_whose_place_is_gone_is_written_anew(chat: Chat) -> None:
    chat.session.adopt_history([said("Summary.")])
    chat.turn(CLAUDE, "two")
    chat.session.adopt_history([said("Summary of all.")])
    assert referred(chat.turn(CLAUDE, "three")) == ["tool_003", "tool_001"]
    assert synthetic_searches(chat.session.history) == [1]


def test_an_imported_history_discovers_what_its_searches_found(chat: Chat) -> None:
    other = Chat([*toolbox(4, core=1)])
    other.session.adopt_history(chat.session.history)
    assert other.session.discoveries.names == ("tool_003", "tool_001")
    plan = other.begin()
    assert plan.tools.names == ("core_000", "tool_search", "tool_003", "tool_001")
    less = Chat(toolbox(2))
    less.session.adopt_history(chat.session.history)
    assert less.session.discoveries.names == ("tool_001",)


def test_an_imported_history_without_names_of_results_is_read_too(chat: Chat) -> None:
    bare: list[Message] = []
    for message in chat.session.history:
        fields: dict[str, Any] = {"content": message.content, "tool_call_id": message.tool_call_id}
        is_result = message.role == "tool"
        bare.append(Message(role="tool", **fields) if is_result else message)
    other = Chat(toolbox(9))
    other.session.adopt_history(bare)
    assert other.session.discoveries.names == ("tool_003", "tool_001")


_STEPS = st.lists(
    st.tuples(st.sampled_from(["find", "call", "compact", "restart", "turn"]), st.integers(0, 8)),
    max_size=12,
)


@settings(max_examples=40)
@given(_STEPS, st.sampled_from(sorted(PROFILES)))
def test_no_compaction_loses_a_discovery(steps: list[tuple[str, int]], name: str) -> None:
    profile = PROFILES[name]
    chat = Chat(toolbox(9))
    chat.begin(profile)
    found: tuple[str, ...] = ()
    for step, number in steps:
        if step == "find":
            chat.find(f"tool_{number:03}")
        elif step == "call":
            chat.call(f"tool_{number:03}", {"count": 1})
        else:
            chat.answer()
            if step == "restart":
                chat = chat.restarted()
            if step == "compact":
                chat.session.adopt_history(chat.session.history[number:])
            chat.begin(profile)
            assert set(found) <= visible_names(chat.session.history, "tool_search")
        now = chat.session.discoveries.names
        assert now[: len(found)] == found
        found = now


def test_a_synthetic_search_of_many_tools_has_a_stable_id() -> None:
    """The same discoveries at the same place give the same bytes in every process."""

    def written() -> tuple[Message, ...]:
        chat = Chat([tool(f"f.{n}") for n in range(20)])
        chat.begin()
        chat.find("f.7", "f.1")
        chat.session.adopt_history([])
        chat.begin(OPENAI)
        return chat.session.history

    assert written() == written()
