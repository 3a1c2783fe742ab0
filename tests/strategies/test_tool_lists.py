"""The tools of a list, their order and their limit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conversations import BOUND_GENERIC, CLAUDE, OPENAI, UNLIMITED, Chat, tool, toolbox
from tool_search import ToolsAssembler
from tool_search.core.profiles import ProviderProfile


def found(count: int, *, core: int = 0, profile: ProviderProfile = OPENAI, **session: Any) -> Chat:
    """Return a conversation that has found so many tools."""
    chat = Chat(toolbox(160, core=core), **session)
    chat.begin(profile)
    chat.find(*(f"tool_{n:03}" for n in range(count)))
    return chat


@pytest.mark.parametrize("discovered", [125, 126, 127, 128, 150])
def test_a_list_never_exceeds_the_limit_and_ends_in_call_tool(discovered: int) -> None:
    """Tools without a place are called through the last one."""
    chat = found(discovered)
    names = chat.session.plan(OPENAI).tools.names
    listed = ["tool_search", *(f"tool_{n:03}" for n in range(discovered))]
    expected = listed if len(listed) <= 127 else [*listed[:127], "call_tool"]
    assert list(names) == expected


def test_a_list_grows_only_at_its_end_up_to_its_limit_and_then_stays() -> None:
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
    chat = found(3, core=140, max_tools=128)
    names = chat.session.plan(OPENAI).tools.names
    assert len(names) == 112 + 1 + 3
    assert names[-1] == "tool_002"


@pytest.mark.parametrize("is_known", [True, False], ids=["known before", "met later"])
@pytest.mark.parametrize(
    ("most", "kept"), [(4, 2), (5, 3), (10, 5), (21, 11), (31, 16), (32, 16), (33, 17), (128, 112)]
)
def test_core_tools_keep_half_of_a_short_list_and_all_but_16_places_of_a_long_one(
    most: int, kept: int, *, is_known: bool
) -> None:
    chat = Chat(toolbox(0, core=140), max_tools=most if is_known else None)
    names = chat.begin(replace(OPENAI, max_tools=most)).tools.names
    assert names == (*(f"core_{n:03}" for n in range(kept)), "tool_search")
    chat.find(*(f"core_{n:03}" for n in range(kept, kept + 2)))
    wanted = {"name": f"core_{kept + 1:03}", "arguments": {"count": 1}}
    assert chat.call("call_tool", wanted).text == "ok"


def test_a_core_tool_that_was_found_before_it_was_core_stays_in_a_list_that_becomes_short() -> None:
    chat = Chat(toolbox(9))
    chat.begin(UNLIMITED)
    chat.find("tool_008")
    chat.answer()
    marked = [replace(item, always_load=True) for item in toolbox(9)]
    assert len(chat.turn(UNLIMITED, tools=marked).tools) == 10
    names = chat.begin(replace(OPENAI, max_tools=6)).tools.names
    assert names == ("tool_search", "tool_008", "tool_000", "tool_001", "tool_002")


@pytest.mark.parametrize("strategy", ["generic", "bridge"])
@pytest.mark.parametrize(
    ("most", "kept"), [(2, []), (3, ["core_000"]), (4, ["core_000", "core_001"])]
)
def test_the_shortest_lists_have_both_of_our_tools_before_any_core_tool(
    most: int, kept: list[str], strategy: Any
) -> None:
    profile = replace(OPENAI, max_tools=most, strategy=strategy)
    chat = Chat(toolbox(3, core=5))
    chat.begin(profile)
    chat.find("tool_000", "tool_001")
    assert list(chat.session.plan(profile).tools.names) == [*kept, "tool_search", "call_tool"]


@pytest.mark.parametrize("mode", ["full", "skills_like"])
def test_a_whole_list_that_cannot_be_searched_is_cut_for_call_tool_beyond_the_limit(
    mode: str,
) -> None:
    chat = Chat([*toolbox(9), tool("tool_search")], {"tool_schema_mode": mode})
    whole = chat.turn(UNLIMITED).tools.names
    assert len(whole) == 10
    assert chat.turn(replace(OPENAI, max_tools=10)).tools.names == whole
    assert chat.begin(replace(OPENAI, max_tools=9)).tools.names == (*whole[:8], "call_tool")
    wanted = {"name": whole[9], "arguments": {"count": 1}}
    assert chat.call("call_tool", wanted).text == "ok"


@pytest.mark.parametrize("mode", ["full", "skills_like"])
def test_a_whole_list_of_exactly_the_limit_is_sent_whole(mode: str) -> None:
    chat = Chat(toolbox(9), {"tool_schema_mode": mode})
    names = chat.begin(replace(OPENAI, max_tools=9)).tools.names
    assert names == tuple(f"tool_{n:03}" for n in range(9))


def test_a_provider_without_a_limit_gets_every_discovery() -> None:
    chat = found(150, profile=UNLIMITED)
    names = chat.session.plan(UNLIMITED).tools.names
    assert len(names) == 151
    assert "call_tool" not in names


@pytest.mark.parametrize("count", [0, 3])
def test_a_bound_model_has_call_tool_from_the_start(count: int) -> None:
    chat = found(count, core=1, profile=BOUND_GENERIC)
    assert chat.session.plan(BOUND_GENERIC).tools.names == ("core_000", "tool_search", "call_tool")
    chat.answer()
    later = chat.begin(BOUND_GENERIC).tools.names
    assert later[3:] == tuple(f"tool_{n:03}" for n in range(count))


@pytest.mark.parametrize("most", [4, 20, 21, 22, 23])
def test_a_bound_model_with_a_limit_keeps_both_of_our_tools(most: int) -> None:
    chat = found(6, core=20, profile=BOUND_GENERIC)
    chat.answer()
    names = chat.begin(replace(BOUND_GENERIC, max_tools=most)).tools.names
    assert len(names) == most
    assert {"tool_search", "call_tool"} < set(names)


def test_equal_lists_are_one_object_and_their_bytes_are_made_once() -> None:
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


@settings(max_examples=25)
@given(
    core=st.integers(0, 40),
    limits=st.lists(st.integers(4, 48), unique=True, min_size=1, max_size=3),
    finds=st.lists(st.lists(st.integers(0, 59), unique=True, max_size=6), max_size=4),
)
def test_every_list_that_fits_declares_the_core_and_then_discoveries_in_their_order(
    core: int, limits: list[int], finds: list[list[int]]
) -> None:
    """Tools that a shorter list leaves out can be called, for every strategy and limit."""
    chat = Chat(toolbox(60, core=core))
    for most in limits:
        profile = replace(OPENAI, max_tools=most)
        chat.begin(profile)
        for numbers in finds:
            chat.find(*(f"tool_{n:03}" for n in numbers))
        discovered = chat.session.discoveries.names
        for asked in (profile, replace(profile, strategy="bridge")):
            names = chat.session.plan(asked).tools.names
            place = names.index("tool_search")
            assert len(names) == len(set(names)) <= most
            assert names[:place] == tuple(f"core_{n:03}" for n in range(place))
            later = [name for name in names[place + 1 :] if name != "call_tool"]
            assert later == list(discovered[: len(later)])
            assert "call_tool" in names or later == list(discovered)
        chat.answer()
        shortest = min(limits[: limits.index(most) + 1])
        assert place <= shortest - 2
        assert place == core or shortest - place <= min(16, shortest // 2)
