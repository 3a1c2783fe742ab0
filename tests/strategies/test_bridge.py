"""The bridge: one list for a whole conversation, and every call through `call_tool`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.conversations import CLAUDE, COMPATIBLE, OPENAI, Chat, tool, toolbox
from tool_search import RequestPlan
from tool_search.core.profiles import ProviderProfile
from tool_search.core.services import SearchMatch, SearchResult
from tool_search.core.strategies import BridgeToolSearchStrategy

BRIDGE = replace(OPENAI, strategy="bridge")


def shown(plan: RequestPlan) -> list[dict[str, Any]]:
    """Return the results of tools as a request shows them."""
    return [json.loads(message.text) for message in plan.messages if message.role == "tool"]


@pytest.mark.parametrize("base", [OPENAI, COMPATIBLE, CLAUDE])
def test_the_list_is_the_same_whatever_is_found(base: ProviderProfile) -> None:
    """The core, the search tool and `call_tool`, one object from the first request on."""
    profile = replace(base, strategy="bridge")
    chat = Chat(toolbox(30, core=2))
    first = chat.begin(profile)
    assert first.strategy == "bridge"
    assert first.tools.names == ("core_000", "core_001", "tool_search", "call_tool")
    chat.find("tool_003", "tool_007")
    assert chat.session.plan(profile).tools is first.tools


def test_a_search_result_carries_every_schema_and_never_changes() -> None:
    """Nothing else in the request has them."""
    chat = Chat(toolbox(9))
    chat.begin(BRIDGE)
    chat.find("tool_003")
    before = shown(chat.session.plan(BRIDGE))
    assert before[0]["matches"][0]["parameters"]["required"] == ["count"]
    chat.find("tool_004")
    assert shown(chat.session.plan(BRIDGE))[0] == before[0]


def test_a_search_for_what_is_found_brings_its_schema_again() -> None:
    chat = Chat(toolbox(9))
    chat.begin(BRIDGE)
    chat.find("tool_003")
    chat.search("tool_003", limit=1)
    again = shown(chat.session.plan(BRIDGE))[1]
    assert [match["name"] for match in again["matches"]] == ["tool_003"]
    assert "parameters" in again["matches"][0]
    assert "hint" not in again
    assert not again.get("loaded")


def test_a_call_through_the_bridge_is_held_against_the_real_schema() -> None:
    chat = Chat(toolbox(9))
    chat.begin(BRIDGE)
    chat.find("tool_003")
    wrong = chat.call("call_tool", {"name": "tool_003", "arguments": {"count": "x"}})
    assert wrong.is_error
    assert '"integer"' in wrong.text
    right = chat.call("call_tool", {"name": "tool_003", "arguments": {"count": 3}})
    assert (right.is_error, right.text) == (False, "ok")


def test_a_late_core_tool_comes_at_the_end() -> None:
    chat = Chat(toolbox(9, core=1))
    before = chat.turn(BRIDGE).tools.names
    late = [*toolbox(9, core=1), tool("a_late_one", always_load=True)]
    assert chat.turn(BRIDGE, tools=late).tools.names == (*before, "a_late_one")


def test_our_two_tools_have_their_places_in_a_short_list() -> None:
    chat = Chat(toolbox(9, core=9), max_tools=6)
    names = chat.begin(replace(BRIDGE, max_tools=6)).tools.names
    assert len(names) <= 6
    assert names[-2:] == ("tool_search", "call_tool")


def test_full_mode_declares_everything() -> None:
    chat = Chat(toolbox(9), {"tool_schema_mode": "full"})
    assert len(chat.begin(BRIDGE).tools) == 9


def test_a_swap_from_and_to_the_bridge_needs_no_search() -> None:
    chat = Chat(toolbox(9))
    first = chat.begin(BRIDGE)
    chat.find("tool_003")
    chat.answer()
    assert "tool_003" in chat.turn(OPENAI).tools.names
    back = chat.turn(BRIDGE)
    assert back.tools is first.tools
    assert shown(back)[0]["matches"][0]["name"] == "tool_003"


def test_what_the_history_lost_is_shown_again_with_its_schema() -> None:
    chat = Chat(toolbox(9))
    chat.begin(BRIDGE)
    chat.find("tool_003")
    chat.session.adopt_history(())
    assert "parameters" in shown(chat.turn(BRIDGE))[0]["matches"][0]


def test_format_result_gives_the_json() -> None:
    result = SearchResult(query="q", matches=(SearchMatch(name="a"),), total_found=1)
    assert BridgeToolSearchStrategy().format_result(result).text == result.to_json()  # type: ignore[union-attr]
