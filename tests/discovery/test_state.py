"""The discoveries of a conversation: ordered, and only growing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.conversations import tool
from tool_search import Discovery, DiscoveryState

NAMES = st.lists(st.sampled_from("abcdef"), max_size=8)


@given(st.lists(NAMES, max_size=5))
def test_discoveries_are_the_first_mentions_in_order(commits: list[list[str]]) -> None:
    """Never removed, never reordered, never twice."""
    state = DiscoveryState()
    before: tuple[str, ...] = ()
    for names in commits:
        new = state.commit(map(tool, names), via="search")
        assert state.names == before + new
        before = state.names
    assert list(before) == list(dict.fromkeys(name for names in commits for name in names))


def test_the_first_way_and_definition_of_a_discovery_stay() -> None:
    state = DiscoveryState()
    state.commit([tool("a")], via="call")
    assert state.commit([tool("a", description="New.")], via="search") == ()
    assert state["a"] == Discovery(tool=tool("a"), via="call")


def test_a_newer_definition_is_kept_in_the_old_place() -> None:
    """For when the tool's server goes away."""
    state = DiscoveryState([Discovery(tool=tool(name)) for name in "ab"])
    state.refresh(tool("a", description="New."))
    state.refresh(tool("c"))
    assert state.names == ("a", "b")
    assert state["a"].tool.description == "New."


def test_stored_discoveries_are_taken_up() -> None:
    entries = [Discovery(tool=tool("a"), via="call"), Discovery(tool=tool("a"))]
    state = DiscoveryState(entries)
    assert state.entries == (entries[0],)
    assert ("a" in state, "b" in state, len(state), list(state)) == (True, False, 1, entries[:1])
