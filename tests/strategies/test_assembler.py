"""Which tools a list holds, in which order, and within which limit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conversations import BOUND_GENERIC, CLAUDE, OPENAI, UNLIMITED, Chat, toolbox
from tool_search import ToolsAssembler
from tool_search.profiles import ProviderProfile


def found(count: int, *, core: int = 0, profile: ProviderProfile = OPENAI, **session: Any) -> Chat:
    """A conversation that has found so many tools."""
    chat = Chat(toolbox(160, core=core), **session)
    chat.begin(profile)
    chat.find(*(f"tool_{n:03}" for n in range(count)))
    return chat


@pytest.mark.parametrize("discovered", [125, 126, 127, 128, 150])
def test_a_list_never_exceeds_the_limit_and_ends_in_call_tool(discovered: int) -> None:
    """The last place is for what has none."""
    chat = found(discovered)
    names = chat.session.plan(OPENAI).tools.names
    listed = ["tool_search", *(f"tool_{n:03}" for n in range(discovered))]
    expected = listed if len(listed) <= 127 else [*listed[:127], "call_tool"]
    assert list(names) == expected


def test_a_list_grows_only_at_its_end_up_to_its_limit_and_then_stays() -> None:
    """No entry that was sent is ever lost."""
    chat = found(123)
    before = chat.session.plan(OPENAI).tools.names
    for n in range(123, 135):
        chat.find(f"tool_{n:03}")
        names = chat.session.plan(OPENAI).tools.names
        assert names[: len(before)] == before
        assert len(names) <= 128
        before = names
    assert before[-2:] == ("tool_125", "call_tool")


@pytest.mark.parametrize("core", [125, 126])
def test_a_full_core_leaves_the_search_tool_and_call_tool_their_places(core: int) -> None:
    """Every discovery is callable, though none has a place."""
    chat = found(3, core=core)
    names = chat.session.plan(OPENAI).tools.names
    assert len(names) == 128
    assert names[-1] == "call_tool"
    assert "tool_search" in names
    assert chat.call("call_tool", {"name": "tool_001", "arguments": {"count": 1}}).text == "ok"


@pytest.mark.parametrize("core", [127, 128, 140])
def test_a_core_that_a_list_has_no_room_for_is_deferred_when_that_shows(core: int) -> None:
    """The search tool, the discoveries and as much of the core as leaves room for more."""
    names = found(3, core=core).session.plan(OPENAI).tools.names
    assert len(names) == 112 + 1 + 3
    assert names[-1] == "tool_002"


def test_core_tools_leave_room_where_the_limit_is_known() -> None:
    """What is core beyond it is deferred."""
    chat = found(3, core=140, max_tools=128)
    names = chat.session.plan(OPENAI).tools.names
    assert len(names) == 112 + 1 + 3
    assert names[-1] == "tool_002"


def test_a_provider_without_a_limit_gets_every_discovery() -> None:
    """And no `call_tool`."""
    chat = found(150, profile=UNLIMITED)
    names = chat.session.plan(UNLIMITED).tools.names
    assert len(names) == 151
    assert "call_tool" not in names


@pytest.mark.parametrize("count", [0, 3])
def test_a_bound_model_has_call_tool_from_the_start(count: int) -> None:
    """What its turn finds can be called before the list may grow."""
    chat = found(count, core=1, profile=BOUND_GENERIC)
    assert chat.session.plan(BOUND_GENERIC).tools.names == ("core_000", "tool_search", "call_tool")
    chat.answer()
    later = chat.begin(BOUND_GENERIC).tools.names
    assert later[3:] == tuple(f"tool_{n:03}" for n in range(count))


@pytest.mark.parametrize("most", [4, 20, 21, 22, 23])
def test_a_bound_model_with_a_limit_keeps_both_of_our_tools(most: int) -> None:
    """A limit may be learned from an error."""
    chat = found(6, core=20, profile=BOUND_GENERIC)
    chat.answer()
    names = chat.begin(replace(BOUND_GENERIC, max_tools=most)).tools.names
    assert len(names) == most
    assert {"tool_search", "call_tool"} < set(names)


def test_equal_lists_are_one_object_and_their_bytes_are_made_once() -> None:
    """Conversations of one bot share what they send."""
    assembler = ToolsAssembler()
    one, other = (Chat(toolbox(30), assembler=assembler) for _ in range(2))
    lists = [chat.turn(profile).tools for chat in (one, other) for profile in (CLAUDE, OPENAI)]
    assert lists[0] is lists[2]
    assert lists[1] is lists[3]
    assert lists[0] is not lists[1]
    made: list[str] = []
    for _ in range(2):
        lists[0].encoded("d", lambda entry: made.append(entry.tool.name) or "{}")  # type: ignore[func-returns-value]
    assert len(made) == 31


def test_lists_that_are_no_longer_kept_are_made_again_equal() -> None:
    """A small capacity costs work, never bytes."""
    chat = Chat(toolbox(30), assembler=ToolsAssembler(capacity=1))
    before = chat.turn(CLAUDE).tools
    chat.turn(OPENAI)
    after = chat.turn(CLAUDE).tools
    assert after is not before
    assert list(after) == list(before)


@settings(max_examples=25)
@given(
    core=st.integers(0, 12), most=st.integers(4, 14), finds=st.lists(st.integers(0, 19), max_size=9)
)
def test_whatever_the_limit_lists_stay_within_it_and_every_discovery_is_callable(
    core: int, most: int, finds: list[int]
) -> None:
    """Directly, or through `call_tool`; nothing that was sent moves."""
    profile = replace(OPENAI, max_tools=most)
    chat = Chat(toolbox(20, core=core))
    before = chat.begin(profile).tools.names
    for n in finds:
        chat.find(f"tool_{n:03}")
        names = chat.session.plan(profile).tools.names
        assert names[: len(before)] == before
        assert len(names) == len(set(names)) <= most
        assert "tool_search" in names
        assert "call_tool" in names or set(chat.session.discoveries.names) <= set(names)
        before = names
