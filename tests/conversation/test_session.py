"""One conversation: turns, replies, results, swaps, and its record."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conversations import (
    BOUND,
    BOUND_GENERIC,
    CLAUDE,
    COMPATIBLE,
    OPENAI,
    PROFILES,
    UNLIMITED,
    Chat,
    tool,
    toolbox,
)
from tool_search import (
    CallResult,
    ConversationRecord,
    Discovery,
    ImagePart,
    Message,
    TextPart,
    ToolCall,
    ToolCatalog,
    ToolSearchSession,
)
from tool_search.core.messages import ContentPart, NativeReply
from tool_search.core.profiles import ProviderProfile
from tool_search.i18n import text


def roles(chat: Chat) -> list[str]:
    """Return the roles of a request's messages, in order."""
    return [message.role for message in chat.session.history]


def test_a_turn_begins_with_the_users_message() -> None:
    chat = Chat(toolbox(3))
    parts: list[ContentPart] = [TextPart("What is this?"), ImagePart("https://x/y.png")]
    chat.session.begin_turn(parts, profile=OPENAI)
    assert chat.session.history == (Message(role="user", content=tuple(parts)),)


@pytest.mark.parametrize("content", ["a\ud800b", [TextPart("a\ud800b")]])
def test_what_a_user_says_can_be_sent(content: Any) -> None:
    chat = Chat(toolbox(3))
    chat.session.begin_turn(content, profile=OPENAI)
    assert chat.session.history[0].text == "a?b"


def test_the_owners_prompt_comes_first_and_the_instructions_once() -> None:
    settings = {"search_tool_name": "find", "listing": "none"}
    chat = Chat(toolbox(3), settings, system_prompt="Be brief.\n")
    instructions = text("system.instructions", "en-US", search_tool="find")
    assert chat.begin().system == f"Be brief.\n\n{instructions}"
    again = Chat(toolbox(3), settings, system_prompt=chat.begin().system)
    assert again.begin().system.count(instructions) == 1


def test_a_bot_without_a_prompt_gets_the_instructions_alone() -> None:
    assert Chat(toolbox(3), system_prompt=" \n").begin().system.startswith("Most of your tools")


def test_the_system_text_stays_through_swaps_and_restarts() -> None:
    chat = Chat(toolbox(3), system_prompt="Be brief.")
    systems = {chat.turn(profile).system for profile in PROFILES.values()}
    systems.add(chat.restarted(system_prompt="Be brief.").turn().system)
    assert len(systems) == 1


def test_an_answer_is_kept_and_has_no_calls() -> None:
    chat = Chat(toolbox(3))
    chat.begin()
    assert chat.session.accept(Message(role="assistant", content="Hi.")) == ()
    assert roles(chat) == ["user", "assistant"]


@pytest.mark.parametrize("content", ["", " \n"])
def test_an_empty_reply_is_not_kept(content: str) -> None:
    chat = Chat(toolbox(3))
    chat.begin()
    chat.session.accept(Message(role="assistant", content=content))
    assert roles(chat) == ["user"]


def test_calls_get_ids_of_their_own() -> None:
    chat = Chat(toolbox(3))
    chat.begin()
    reply = Message(
        role="assistant",
        tool_calls=tuple(ToolCall(id=i, name="tool_001") for i in ("call_0", "call_0", "")),
        native=NativeReply("o", ({"id": "call_0"},)),
    )
    first = [call.id for call in chat.session.accept(reply)]
    chat.session.close_open_calls()
    second = [call.id for call in chat.session.accept(reply)]
    assert len({*first, *second, ""}) == 7
    assert first[0] == "call_0"
    assert chat.session.history[1].native is None


def test_a_reply_with_good_ids_keeps_its_own_blocks() -> None:
    chat = Chat(toolbox(3))
    chat.begin()
    native = NativeReply("o", ({"type": "thinking"},))
    call = ToolCall(id="a", name="tool_001")
    reply = Message(role="assistant", content="x", tool_calls=(call,), native=native)
    chat.session.accept(reply)
    assert chat.session.history[-1] is reply


def test_parallel_calls_a_search_among_them_are_all_answered_in_order() -> None:
    chat = Chat(toolbox(9, core=1))
    chat.begin()
    messages = chat.calls(
        ("core_000", {"count": 1}), ("tool_search", {"query": "tool_003"}), ("unknown", {}),
        ("tool_004", {"count": 1}), ("tool_search", "{"),
    )  # fmt: skip
    assert [m.tool_call_id for m in messages] == ["c1", "c2", "c3", "c4", "c5"]
    assert [m.is_error for m in messages] == [False, False, True, False, True]
    assert {"tool_003", "tool_004"} <= set(chat.session.plan(OPENAI).tools.names)


@pytest.mark.parametrize("content", ["", " ", "\n\t"])
def test_a_result_without_text_says_so(content: str) -> None:
    chat = Chat(toolbox(3, core=1))
    chat.begin()
    assert chat.call("core_000", {"count": 1}, result=content).text == "(no output)"


def test_a_result_with_a_lone_surrogate_can_be_sent() -> None:
    """One bad byte of a tool's must not end the conversation."""
    chat = Chat(toolbox(3, core=1))
    chat.begin()
    assert chat.call("core_000", {"count": 1}, result="a\ud800").text == "a?"


def test_calls_that_were_cancelled_are_answered_before_the_next_turn() -> None:
    chat = Chat(toolbox(3, core=1))
    chat.begin()
    calls = tuple(ToolCall(id=i, name="core_000", arguments='{"count": 1}') for i in "ab")
    first, _ = chat.session.accept(Message(role="assistant", tool_calls=calls))
    done = chat.session.decide(first)
    chat.session.commit([CallResult(decision=done, content="ok")])
    chat.begin()
    assert roles(chat) == ["user", "assistant", "tool", "tool", "user"]
    assert [m.text for m in chat.session.history if m.role == "tool"] == [
        "ok", "The call of core_000 was cancelled.",
    ]  # fmt: skip


def test_a_turn_may_begin_again_after_everything_failed() -> None:
    chat = Chat(toolbox(3))
    chat.begin(text="one")
    chat.begin(text="two")
    assert [m.text for m in chat.session.plan(OPENAI).messages] == ["one", "two"]


def test_commit_gives_the_new_discoveries_in_order() -> None:
    chat = Chat(toolbox(9))
    chat.begin()
    call = ToolCall(id="1", name="tool_search", arguments='{"query": ["tool_004", "tool_002"]}')
    (accepted,) = chat.session.accept(Message(role="assistant", tool_calls=(call,)))
    decision: Any = chat.session.decide(accepted)
    result = CallResult(decision=decision, content=decision.content)
    new = [entry.name for entry in chat.session.commit([result])]
    assert tuple(new) == chat.session.discoveries.names
    assert set(new) >= {"tool_002", "tool_004"}


def test_a_core_tool_is_never_discovered() -> None:
    chat = Chat(toolbox(3, core=1))
    chat.begin()
    chat.call("core_000", {"count": 1})
    chat.call("core_000", {"count": "x"})
    assert chat.session.discoveries.names == ()


def test_discoveries_of_another_process_are_declared_too() -> None:
    chat = Chat(toolbox(9))
    chat.begin()
    chat.find("tool_003")
    elsewhere = [Discovery(tool=tool("tool_003")), Discovery(tool=tool("tool_005"), via="call")]
    chat.session.adopt_discoveries(elsewhere)
    assert chat.session.plan(OPENAI).tools.names == ("tool_search", "tool_003", "tool_005")


def test_discoveries_that_only_the_store_had_are_declared_after_a_restart() -> None:
    chat = Chat(toolbox(9))
    chat.turn()
    record = chat.session.record()
    entries = (Discovery(tool=tool("gone")), Discovery(tool=tool("tool_005")))
    content = {**record.to_dict(), "discoveries": [
        {"tool": entry.tool.to_dict(), "via": "search"} for entry in entries]}  # fmt: skip
    again = ToolSearchSession(
        ToolCatalog(toolbox(9)), config=chat.config, record=ConversationRecord.from_dict(content)
    )
    again.begin_turn("next", profile=OPENAI)
    assert again.plan(OPENAI).tools.names == ("tool_search", "gone", "tool_005")
    assert "gone" in again.plan(CLAUDE).tools.names


def test_a_record_gives_the_conversation_back_through_json() -> None:
    chat = Chat([*toolbox(9, core=1), tool("f.1", server="s", kind="mcp")], system_prompt="Hi.")
    chat.turn(CLAUDE, "帮我查")
    chat.begin(BOUND)
    chat.find("tool_003", "f.1")
    chat.session.adopt_history(chat.session.history[-1:])
    chat.begin(BOUND)
    record = chat.session.record()
    again = ConversationRecord.from_dict(json.loads(json.dumps(record.to_dict())))
    assert again == record
    assert ToolSearchSession(chat.session.catalog, config=chat.config, record=again).record() == (
        record
    )


def test_a_restarted_conversation_plans_the_very_same_requests() -> None:
    chat = Chat(toolbox(9, core=1), system_prompt="Hi.")
    chat.begin(CLAUDE)
    chat.find("tool_003")
    chat.answer()
    again = chat.restarted(system_prompt="Hi.")
    for profile in PROFILES.values():
        one, other = (c.begin(profile) for c in (chat, again))
        assert list(one.tools) == list(other.tools)
        assert (one.messages, one.system) == (other.messages, other.system)


def test_a_record_keeps_the_settled_search_tool_until_the_next_turn() -> None:
    chat = Chat(toolbox(9), {"search_tool_name": "find"})
    before = chat.turn().tools
    again = ToolSearchSession(chat.session.catalog, record=chat.session.record())
    assert list(again.plan(OPENAI).tools) == list(before)
    again.begin_turn("next", profile=OPENAI)
    assert again.plan(OPENAI).tools.names == ("tool_search",)


def test_no_conversation_sees_anothers_discoveries() -> None:
    one, other = Chat(toolbox(9)), Chat(toolbox(9))
    one.begin()
    other.begin()
    one.find("tool_003")
    assert other.session.discoveries.names == ()
    assert other.session.plan(OPENAI).tools.names == ("tool_search",)
    assert other.search("tool_003")["matches"][0]["name"] == "tool_003"


_PROFILE = st.sampled_from(sorted(PROFILES))


@settings(max_examples=30)
@given(st.lists(st.tuples(_PROFILE, st.integers(0, 8)), min_size=1, max_size=8))
def test_a_provider_may_be_swapped_between_any_two_requests(
    steps: list[tuple[str, int]],
) -> None:
    """Every discovery is callable at once, every reference declared, no list loses an entry."""
    chat = Chat(toolbox(9, core=1))
    chat.begin(PROFILES[steps[0][0]])
    sent: dict[str, tuple[str, ...]] = {}
    for name, number in steps:
        plan = chat.session.plan(PROFILES[name])
        names = plan.tools.names
        before = sent.get(name, ())
        assert names[: len(before)] == before
        assert plan.strategy != "claude" or not before or names == before
        found = set(chat.session.discoveries.names)
        assert found <= set(names) or "call_tool" in names
        sent[name] = names
        chat.find(f"tool_{number:03}")


def test_a_swap_keeps_what_was_found_callable_without_another_search() -> None:
    chat = Chat(toolbox(9))
    chat.begin(CLAUDE)
    chat.find("tool_003")
    assert chat.session.plan(COMPATIBLE).tools.names == ("tool_search", "tool_003")
    chat.find("tool_004")
    plan = chat.session.plan(CLAUDE)
    referred = [m.content[0].names for m in plan.messages if m.role == "tool"]  # type: ignore[union-attr]
    assert referred == [("tool_003",), ("tool_004",)]


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.sampled_from(["search", "call", "wrong", "unknown", "broken", "turn"]),
                  st.integers(0, 4), _PROFILE),
        max_size=10,
    )
)  # fmt: skip
def test_every_request_pairs_each_call_with_one_result(steps: list[tuple[str, int, str]]) -> None:
    chat = Chat(toolbox(5, core=1))
    chat.begin()
    sent: dict[str, tuple[Message, ...]] = {}
    for step, number, name in steps:
        one = f"tool_{number:03}"
        if step == "turn":
            chat.answer()
            chat.begin(PROFILES[name])
        else:
            arguments: dict[str, Any] = {
                "search": ("tool_search", {"query": one}), "call": (one, {"count": 1}),
                "wrong": (one, {}), "unknown": ("nothing", {}), "broken": (one, "{"),
            }  # fmt: skip
            chat.calls(arguments[step], ("core_000", {"count": number}))
        messages = chat.session.plan(PROFILES[name]).messages
        asked = [call.id for m in messages for call in m.tool_calls]
        assert Counter(asked) == Counter(m.tool_call_id for m in messages if m.role == "tool")
        assert messages[: len(sent.get(name, ()))] == sent.get(name, ())
        sent[name] = messages


@pytest.mark.parametrize("profile", [CLAUDE, OPENAI, BOUND_GENERIC])
def test_claude_lists_are_identical_and_filtered_lists_grow(profile: ProviderProfile) -> None:
    chat = Chat(toolbox(20))
    before = chat.turn(profile).tools
    for number in range(0, 20, 2):
        chat.begin(profile)
        chat.find(f"tool_{number:03}")
        chat.answer()
        after = chat.turn(profile).tools
        assert after is before if profile is CLAUDE else after[: len(before)] == before[:]
        before = after


def test_what_full_mode_discovered_is_shown_when_a_swap_moves_the_mode() -> None:
    """No list has room for it within the turn, so its schema comes before the question."""
    chat = Chat(toolbox(9), {"tool_schema_mode": "full"})
    chat.begin(UNLIMITED)
    chat.call("tool_005", {"count": 1})
    short = replace(OPENAI, strategy="bridge", max_tools=4)
    plan = chat.session.plan(short)
    assert chat.codes == ["mode_changed"]
    assert [message.role for message in plan.messages[:4]] == ["user", "assistant", "tool", "user"]
    assert '"name":"tool_005"' in plan.messages[2].text
    assert '"parameters"' in plan.messages[2].text
    assert chat.session.plan(short).messages == plan.messages
