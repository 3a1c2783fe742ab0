"""The strategy that serves every provider: a filtered list, results as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.conversations import BOUND_GENERIC, CLAUDE, COMPATIBLE, OPENAI, Chat, tool, toolbox
from tool_search import (
    GenericToolSearchStrategy,
    RequestPlan,
    SearchMatch,
    SearchResult,
    TextPart,
)


def shown(plan: RequestPlan, place: int = -1) -> dict[str, Any]:
    """Return a search result as a request shows it."""
    message = [item for item in plan.messages if item.role == "tool"][place]
    content: dict[str, Any] = json.loads(message.text)
    return content


@pytest.mark.parametrize("profile", [OPENAI, COMPATIBLE], ids=["openai", "anthropic dialect"])
def test_it_serves_any_dialect(profile: Any) -> None:
    chat = Chat(toolbox(9, core=1))
    plan = chat.begin(profile)
    assert plan.strategy == "generic"
    assert plan.tools.names == ("core_000", "tool_search")
    assert not any(entry.deferred or entry.cache_breakpoint for entry in plan.tools)


def test_a_result_is_the_json_that_the_search_tool_gave() -> None:
    chat = Chat(toolbox(9))
    chat.begin()
    message = chat.call("tool_search", {"query": "tool_003"})
    assert chat.session.plan(OPENAI).messages[-1] is message
    assert "parameters" not in message.text


def test_a_tool_that_has_no_place_comes_with_its_schema() -> None:
    """Nothing else in the request says how to call it."""
    small = replace(OPENAI, max_tools=4)
    chat = Chat(toolbox(9))
    chat.begin(small)
    chat.find("tool_000", "tool_001", "tool_002", "tool_003")
    plan = chat.session.plan(small)
    assert plan.tools.names[-1] == "call_tool"
    assert "parameters" not in shown(plan, 0)["matches"][0]
    assert shown(plan)["matches"][0]["parameters"] == tool("x").parameters
    assert "parameters" not in chat.session.history[-1].text


def test_an_earlier_result_reads_the_same_whatever_is_found_later() -> None:
    small = replace(OPENAI, max_tools=5)
    chat = Chat(toolbox(9))
    before = chat.begin(small).messages
    for n in range(9):
        chat.find(f"tool_{n:03}")
        after = chat.session.plan(small).messages
        assert after[: len(before)] == before
        before = after


def test_a_bound_model_gets_every_schema_and_keeps_it() -> None:
    """The list lags by a turn, and a message must not change when it catches up."""
    chat = Chat(toolbox(9))
    chat.begin(BOUND_GENERIC)
    chat.find("tool_003")
    before = chat.session.plan(BOUND_GENERIC)
    assert shown(before)["matches"][0]["parameters"] == tool("x").parameters
    chat.answer()
    after = chat.begin(BOUND_GENERIC)
    assert "tool_003" in after.tools.names
    assert after.messages[: len(before.messages)] == before.messages


def test_a_result_without_match_is_shown_as_it_is() -> None:
    """Its hint is for the model."""
    chat = Chat(toolbox(9))
    chat.begin()
    chat.search("qwzx")
    assert shown(chat.session.plan(OPENAI))["hint"].startswith("no tool matches")


def test_format_result_gives_the_json() -> None:
    """For bots that drive a strategy themselves."""
    result = SearchResult(query="q", matches=(SearchMatch(name="a"),), total_found=1, total_tools=2)
    assert GenericToolSearchStrategy().format_result(result) == TextPart(result.to_json())


def test_a_final_request_declares_the_same_tools_and_allows_none() -> None:
    chat = Chat(toolbox(9, core=1))
    before = chat.begin()
    plan = chat.session.plan(OPENAI, phase="final")
    assert plan.tools is before.tools
    assert (plan.tool_use, before.tool_use) == ("none", "auto")


def test_a_final_request_without_tools_forbids_nothing() -> None:
    chat = Chat([])
    chat.begin()
    assert chat.session.plan(OPENAI, phase="final").tool_use == "auto"


@pytest.mark.parametrize("profile", [OPENAI, CLAUDE], ids=["generic", "claude"])
def test_a_plan_is_a_function_of_the_conversation(profile: Any) -> None:
    chat = Chat(toolbox(9), system_prompt="Be brief.")
    chat.begin(profile)
    chat.find("tool_003")
    assert chat.session.plan(profile) == chat.session.plan(profile)
    assert chat.restarted(system_prompt="Be brief.").session.plan(profile).messages == (
        chat.session.plan(profile).messages
    )


def test_the_cache_may_end_behind_the_users_message_and_the_last_one() -> None:
    """With the list and the system text: at most four places."""
    chat = Chat(toolbox(9))
    chat.turn()
    chat.begin()
    chat.find("tool_003")
    plan = chat.session.plan(CLAUDE)
    assert [plan.messages[n].role for n in plan.cached_messages] == ["user", "tool"]
    marked = sum(entry.cache_breakpoint for entry in plan.tools)
    assert len(plan.cached_messages) + marked + plan.cache_system == 4
