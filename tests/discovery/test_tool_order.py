"""The tool lists of a conversation under changing catalogs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conversations import (
    BOUND_GENERIC,
    CLAUDE,
    COMPATIBLE,
    OPENAI,
    PROFILES,
    UNLIMITED,
    Chat,
    deferred,
    tool,
    toolbox,
)
from tool_search import Tool
from tool_search.core.profiles import ProviderProfile

TOOLS = toolbox(6, core=2, server="lab")
ALL = ["core_000", "core_001", "tool_search", *(f"tool_{n:03}" for n in range(6))]
HEAD = ALL[:3]


def chat_with(*found: str, profile: ProviderProfile = OPENAI, **config: Any) -> Chat:
    """A conversation that found some tools in its first turn."""
    chat = Chat(TOOLS, config)
    chat.begin(profile)
    chat.find(*found)
    chat.answer()
    assert chat.codes == []
    return chat


def without(*names: str) -> list[Tool]:
    """The usual tools, some of them gone."""
    return [item for item in TOOLS if item.name not in names]


def changed(name: str, **fields: Any) -> list[Tool]:
    """The usual tools, one of them another."""
    return [tool(name, server=t.server, **fields) if t.name == name else t for t in TOOLS]


def test_lists_begin_with_the_core_by_name_and_the_search_tool() -> None:
    chat = Chat(reversed(TOOLS))
    assert chat.begin(OPENAI).tools.names == tuple(HEAD)
    plan = chat.session.plan(CLAUDE)
    assert (plan.tools.names, deferred(plan)) == (tuple(ALL), ALL[3:])


def test_discovered_tools_are_appended_in_the_order_of_discovery() -> None:
    chat = Chat(TOOLS)
    before = chat.begin(OPENAI), chat.session.plan(CLAUDE)
    chat.find("tool_004", "tool_001", "tool_004")
    assert chat.session.plan(OPENAI).tools.names == (*HEAD, "tool_004", "tool_001")
    assert chat.session.plan(CLAUDE).tools is before[1].tools


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_an_equal_relisting_changes_nothing(profile: ProviderProfile) -> None:
    chat = chat_with("tool_004", profile=profile)
    before = chat.turn(profile).tools
    again = [Tool.from_dict(item.to_dict()) for item in reversed(TOOLS)]
    assert chat.turn(profile, tools=again).tools is before
    assert chat.codes == []


def test_added_tools_come_after_earlier_ones() -> None:
    """Deferred ones wait, a core one is declared at once; Claude's new list is announced."""
    chat = chat_with("tool_004")
    late = [*TOOLS, tool("a_late"), tool("a_core", always_load=True)]
    assert chat.turn(tools=late).tools.names == (*HEAD, "tool_004", "a_core")
    assert chat.codes == ["catalog_changed"]
    plan = chat.turn(CLAUDE)
    assert plan.tools.names == (*ALL, "a_core", "a_late")
    assert deferred(plan)[-1:] == ["a_late"]


def test_late_core_tools_come_before_other_late_tools_and_each_group_by_name() -> None:
    chat = chat_with("tool_004")
    core = [tool(name, always_load=True) for name in ("z_core", "m_core")]
    late = [tool("b_late"), *core, tool("a_late"), *TOOLS]
    assert chat.turn(tools=late).tools.names == (*HEAD, "tool_004", "m_core", "z_core")
    plan = chat.turn(CLAUDE)
    assert plan.tools.names == (*ALL, "m_core", "z_core", "a_late", "b_late")
    assert deferred(plan)[-2:] == ["a_late", "b_late"]


def test_a_core_tool_that_comes_back_deferred_waits_until_it_is_found() -> None:
    chat = chat_with()
    chat.turn(tools=without("core_000"))
    assert chat.turn(tools=changed("core_000")).tools.names == ("core_001", "tool_search")
    plan = chat.turn(CLAUDE)
    assert plan.tools.names[-1] == "core_000"
    assert deferred(plan)[-1] == "core_000"


def test_a_core_tool_that_is_gone_leaves_the_lists_with_a_notice() -> None:
    chat = chat_with("tool_004")
    chat.session.begin_turn("x", profile=OPENAI, catalog=chat.session.catalog.updated(
        removed=["core_000"]))  # fmt: skip
    assert chat.session.plan(OPENAI).tools.names == ("core_001", "tool_search", "tool_004")
    notices = chat.session.take_notices()
    assert [notice.code for notice in notices] == ["core_tool_gone", "catalog_changed"]
    assert "'core_000'" in notices[0].message


def test_a_core_tool_that_comes_back_is_appended() -> None:
    chat = chat_with("tool_004")
    chat.turn(tools=without("core_000"))
    assert chat.turn(tools=TOOLS).tools.names == (
        "core_001", "tool_search", "tool_004", "core_000",
    )  # fmt: skip


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_a_discovered_tool_that_is_gone_stays_declared(profile: ProviderProfile) -> None:
    """With its last definition, at its place, without a word: no byte has changed."""
    chat = chat_with("tool_004", profile=profile)
    before = chat.turn(profile)
    after = chat.turn(profile, tools=without("tool_004"))
    assert list(after.tools) == list(before.tools)
    assert chat.codes == []


def test_a_tool_that_is_gone_is_not_found_and_answers_calls_with_an_error() -> None:
    chat = chat_with("tool_004")
    chat.begin(tools=without("tool_004"))
    assert "tool_004" not in str(chat.search("tool_004")["matches"])
    result = chat.call("tool_004", {"count": 1})
    assert result.is_error
    assert "lab" in result.text
    chat.begin(tools=TOOLS)
    assert chat.call("tool_004", {"count": 1}).text == "ok"


def test_a_tool_of_an_unknown_server_that_is_gone_is_said_to_be_gone() -> None:
    chat = Chat([tool("a"), tool("b")])
    chat.begin()
    chat.find("a")
    chat.begin(tools=[tool("b")])
    assert chat.call("a", {"count": 1}).text.startswith("a is not available")


def test_an_undiscovered_tool_that_is_gone_changes_claudes_list_only() -> None:
    """The generic list never had it."""
    chat = chat_with("tool_004")
    assert chat.turn(tools=without("tool_001")).tools.names == (*HEAD, "tool_004")
    assert chat.codes == ["catalog_changed"]
    assert "tool_001" not in chat.turn(CLAUDE).tools.names


def test_a_changed_schema_of_a_declared_tool_is_announced_in_its_place() -> None:
    chat = chat_with("tool_004")
    plan = chat.turn(tools=changed("tool_004", description="New."))
    assert plan.tools.names == (*HEAD, "tool_004")
    assert plan.tools[-1].tool.description == "New."
    assert chat.codes == ["schema_changed", "catalog_changed"]


def test_a_changed_schema_of_a_waiting_tool_concerns_claude_only() -> None:
    chat = chat_with("tool_004")
    before = chat.turn().tools
    assert list(chat.turn(tools=changed("tool_001", description="New.")).tools) == list(before)
    assert chat.codes == ["catalog_changed"]


def test_a_tool_that_comes_back_changed_is_announced() -> None:
    chat = chat_with("tool_004")
    chat.turn(tools=without("tool_004"))
    chat.turn(tools=changed("tool_004", description="New."))
    assert "schema_changed" in chat.codes
    assert chat.session.discoveries["tool_004"].tool.description == "New."


def test_a_deferred_tool_that_became_core_keeps_its_place_for_claude() -> None:
    chat = chat_with("tool_004")
    marked = changed("tool_001", always_load=True)
    assert chat.turn(tools=marked).tools.names == (*HEAD, "tool_004", "tool_001")
    plan = chat.turn(CLAUDE)
    assert plan.tools.names == tuple(ALL)
    assert "tool_001" not in deferred(plan)
    assert "catalog_changed" in chat.codes


def test_a_discovered_tool_that_became_core_is_declared_once() -> None:
    chat = chat_with("tool_004", "tool_001")
    plan = chat.turn(tools=changed("tool_004", always_load=True))
    assert plan.tools.names == (*HEAD, "tool_004", "tool_001")


def test_a_core_tool_that_became_deferred_stays_core_in_this_conversation() -> None:
    chat = chat_with()
    plan = chat.turn(tools=changed("core_000"))
    assert plan.tools.names == tuple(HEAD)
    assert "core_000" not in deferred(chat.turn(CLAUDE))


def test_an_inactive_tool_is_in_no_list_and_no_search() -> None:
    chat = Chat([*TOOLS, tool("sleeper", active=False), tool("core_off", kind="handoff",
                                                             active=False)])  # fmt: skip
    assert chat.begin().tools.names == tuple(HEAD)
    assert chat.session.plan(CLAUDE).tools.names == tuple(ALL)
    assert chat.search("sleeper")["matches"] == []
    assert chat.call("sleeper", {"count": 1}).text.startswith("There is no tool named sleeper")


def test_a_discovered_tool_that_was_switched_off_stays_declared_and_answers() -> None:
    chat = chat_with("tool_004")
    before = chat.turn().tools
    chat.begin(tools=changed("tool_004", active=False))
    assert list(chat.session.plan(OPENAI).tools) == list(before)
    assert chat.call("tool_004", {"count": 1}).is_error
    chat.begin(tools=TOOLS)
    assert chat.call("tool_004", {"count": 1}).text == "ok"


def test_a_catalog_without_any_tool_is_taken_in() -> None:
    chat = chat_with("tool_004")
    assert chat.begin(tools=[]).tools.names == ("tool_search", "tool_004")
    assert chat.search("anything")["hint"] == "there is nothing to search"
    assert chat.call("tool_001", {"count": 1}).is_error


def test_a_restart_with_the_same_catalog_changes_nothing() -> None:
    """Lists are what they were, for every provider."""
    chat = chat_with("tool_004", "tool_001")
    chat.turn(tools=without("tool_004"))
    again = chat.restarted()
    for profile in (OPENAI, CLAUDE, COMPATIBLE):
        assert list(again.turn(profile).tools) == list(chat.turn(profile).tools)
    assert again.codes == []


def test_a_restart_with_another_catalog_names_what_changed() -> None:
    again = chat_with("tool_004").restarted(changed("tool_004", description="New."))
    plan = again.turn()
    assert plan.tools.names == (*HEAD, "tool_004")
    assert {"schema_changed", "catalog_changed"} <= set(again.codes)


_CHANGES = st.lists(
    st.lists(st.integers(0, 9), unique=True, max_size=10).map(sorted), min_size=1, max_size=6
)


@settings(max_examples=40)
@given(listings=_CHANGES, found=st.lists(st.integers(0, 9), max_size=6))
def test_filtered_lists_only_grow_while_no_core_tool_goes(
    listings: list[list[int]], found: list[int]
) -> None:
    everything = toolbox(10)
    core = tool("core", always_load=True)
    chat = Chat([core, *everything])
    before = chat.turn().tools.names
    wanted = iter(found)
    for listing in listings:
        chat.begin(tools=[core, *(everything[n] for n in listing)])
        chat.find(*(everything[n].name for n in [next(wanted, 0)]))
        names = chat.session.plan(OPENAI).tools.names
        assert names[: len(before)] == before
        assert set(chat.session.discoveries.names) <= set(names)
        assert set(chat.session.discoveries.names) <= set(chat.session.plan(CLAUDE).tools.names)
        before = names


@settings(max_examples=30)
@given(listings=_CHANGES)
def test_bound_models_see_one_list_a_turn(listings: list[list[int]]) -> None:
    everything = toolbox(10)
    chat = Chat(everything)
    for listing in listings:
        before = chat.begin(BOUND_GENERIC, tools=[everything[n] for n in listing]).tools
        chat.find(*(everything[n].name for n in listing))
        assert chat.session.plan(BOUND_GENERIC).tools is before
        chat.answer()


def test_the_last_thousand_tools_that_went_keep_their_names_after_a_restart() -> None:
    chat = Chat(toolbox(1_002, server="old"), {"tool_schema_mode": "full"})
    chat.turn(UNLIMITED)
    chat.turn(UNLIMITED, tools=[])
    again = chat.restarted(toolbox(1_002, server="new"))
    names = set(again.turn(UNLIMITED).tools.names)
    assert {"tool_000", "tool_001", "new__tool_002", "new__tool_1001"} <= names
    assert names.isdisjoint({"tool_002", "tool_1001"})


_LATE = st.lists(
    st.dictionaries(st.sampled_from("abcdefghij"), st.booleans(), max_size=6), max_size=4
)


@settings(max_examples=40)
@given(batches=_LATE, found=st.lists(st.integers(0, 5), unique=True, max_size=3))
def test_late_tools_are_appended_by_batch_and_in_each_core_by_name_before_the_rest(
    batches: list[dict[str, bool]], found: list[int]
) -> None:
    chat = chat_with(*(f"tool_{n:03}" for n in found))
    seen = {item.name for item in TOOLS}
    tools = list(TOOLS)
    whole, filtered = ALL, [*HEAD, *(f"tool_{n:03}" for n in found)]
    for batch in batches:
        new = {name: is_core for name, is_core in batch.items() if name not in seen}
        seen.update(new)
        tools = [*(tool(name, always_load=is_core) for name, is_core in new.items()), *tools]
        core = sorted(name for name, is_core in new.items() if is_core)
        whole = [*whole, *core, *sorted(new.keys() - set(core))]
        filtered = [*filtered, *core]
        assert list(chat.turn(tools=tools).tools.names) == filtered
        plan = chat.turn(CLAUDE)
        assert list(plan.tools.names) == whole
        shown = set(plan.tools.names).difference(deferred(plan))
        assert shown == set(filtered).difference(f"tool_{n:03}" for n in found)


@settings(max_examples=30)
@given(order=st.permutations(range(10)), sizes=st.lists(st.integers(1, 5), max_size=5))
def test_a_search_appends_what_it_found_in_the_order_of_its_answer(
    order: list[int], sizes: list[int]
) -> None:
    chat = Chat(toolbox(10))
    declared = list(chat.begin().tools.names)
    rest = [f"tool_{n:03}" for n in order]
    for size in sizes:
        wanted, rest = rest[:size], rest[size:]
        chat.search(f"select:{','.join(wanted)}", limit=5)
        declared += wanted
        assert list(chat.session.plan(OPENAI).tools.names) == declared
