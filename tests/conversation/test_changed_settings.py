"""A kept conversation whose configuration has changed: each change holds, once, with one notice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.conversations import BOUND, CLAUDE, OPENAI, PROFILES, UNLIMITED, Chat, tool, toolbox
from tool_search import (
    ConversationRecord,
    Message,
    SessionError,
    TextPart,
    Tool,
    ToolCatalog,
    ToolSearchConfig,
    ToolSearchSession,
)
from tool_search.core.messages import ReferencePart
from tool_search.i18n import text
from tool_search.providers.prompt_cache import first_divergence

MODES = ("full", "skills_like", "tool_search")


def kept(chat: Chat) -> ConversationRecord:
    """The conversation as a store gives it back."""
    return ConversationRecord.from_dict(json.loads(json.dumps(chat.session.record().to_dict())))


def resumed(chat: Chat, config: Mapping[str, Any], tools: list[Tool] | None = None) -> Chat:
    """The conversation in a new process with another configuration."""
    again = Chat((), config)
    catalog = chat.session.catalog if tools is None else ToolCatalog(tools)
    again.session = ToolSearchSession(catalog, config=again.config, record=kept(chat))
    again._calls = 100
    return again


def found(config: Mapping[str, Any] | None = None) -> Chat:
    """A conversation that has searched, and called what it found."""
    chat = Chat(toolbox(9, core=1), config, system_prompt="Hi.")
    chat.begin()
    chat.find("tool_003")
    chat.call("tool_003", {"count": 1})
    chat.answer()
    return chat


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("tool_schema_mode", "full", "tool_schema_mode from tool_search to full"),
        ("tool_schema_mode", "skills_like", "tool_schema_mode from tool_search to skills_like"),
        ("language", "ru-RU", "language from en-US to ru-RU"),
        ("search_tool_name", "find", "search_tool_name from tool_search to find"),
    ],
)
def test_change_holds_from_the_next_user_turn_with_one_notice(
    setting: str, value: str, said: str
) -> None:
    chat = found()
    before = chat.session.plan(OPENAI)
    again = resumed(chat, {setting: value})
    assert list(again.session.plan(OPENAI).tools) == list(before.tools)
    again.turn()
    (notice,) = again.session.take_notices()
    assert (notice.code, notice.message) == (
        "settings_changed",
        f"the configuration has changed: {said}",
    )
    now = {
        "tool_schema_mode": again.session.decision.mode,
        "language": again.session.language,
        "search_tool_name": again.session.record().search_tool.name,
    }
    assert now[setting] == value


def test_changes_of_all_settings_are_one_notice() -> None:
    again = resumed(
        found(), {"tool_schema_mode": "full", "language": "zh-CN", "search_tool_name": "find"}
    )
    again.begin()
    (notice,) = again.session.take_notices()
    assert notice.message.count(" from ") == 3


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize(
    "config",
    [{"tool_schema_mode": "full"}, {"language": "zh-CN"}, {"search_tool_name": "find"}],
    ids=lambda config: next(iter(config)),
)
def test_prefix_stays_after_the_change_and_no_restart_repeats_the_notice(
    profile: Any, config: Mapping[str, Any]
) -> None:
    again = resumed(found(), config)
    first = again.turn(profile)
    again.session.take_notices()
    second = again.turn(profile)
    assert first_divergence(first, second) is None
    third = resumed(again, config)
    plan = third.turn(profile)
    assert first_divergence(second, plan) is None
    assert plan.tools.fingerprint == second.tools.fingerprint
    assert third.codes == again.codes == []


def test_auto_keeps_what_was_decided() -> None:
    chat = found({"language": "ru-RU"})
    again = resumed(chat, {"tool_schema_mode": "auto", "language": "auto", "threshold": 1000})
    again.turn()
    assert (again.session.decision, again.session.language) == (chat.session.decision, "ru-RU")
    assert again.codes == []


def test_mode_that_auto_replaced_meanwhile_holds_when_it_is_named_again() -> None:
    chat = Chat(toolbox(30), {"tool_schema_mode": "full"})
    chat.turn()
    searching = resumed(chat, {"tool_schema_mode": "auto"})
    searching.turn()
    assert (searching.session.decision.mode, searching.codes) == ("tool_search", ["mode_changed"])
    again = resumed(searching, {"tool_schema_mode": "full"})
    again.turn()
    assert (again.session.decision.mode, again.codes) == ("full", ["settings_changed"])


def test_mode_that_a_limit_moved_is_not_moved_back_by_the_same_configuration() -> None:
    """The owner's `full` gave way to a provider of few tools; another takes more."""
    config = {"tool_schema_mode": "full"}
    chat = Chat(toolbox(30), config)
    chat.begin(UNLIMITED)
    chat.session.plan(replace(OPENAI, max_tools=20))
    chat.answer()
    assert chat.session.decision.reason == "above_provider_limit"
    chat.session.take_notices()
    for _ in range(2):
        chat = resumed(chat, config)
        chat.turn(UNLIMITED)
        assert (chat.session.decision.mode, chat.codes) == ("tool_search", [])


def test_record_of_an_earlier_version_has_the_mode_that_its_reason_names() -> None:
    written = kept(found()).to_dict()
    for key in ("configured", "former_search_names"):
        del written[key]
    record = ConversationRecord.from_dict(written)
    assert (record.configured, record.former_search_names) == ("tool_search", ())
    session = ToolSearchSession(
        ToolCatalog(toolbox(9, core=1)),
        config=ToolSearchConfig(tool_schema_mode="full"),
        record=record,
    )
    session.begin_turn("next", profile=OPENAI)
    assert session.decision.mode == "full"
    del written["reason"]
    written["reason"] = "above_threshold"
    assert ConversationRecord.from_dict(written).configured is None


def test_searches_under_the_old_name_are_still_searches() -> None:
    """References for Claude, nothing introduced twice, the tool called without a search."""
    again = resumed(found(), {"search_tool_name": "find"})
    plan = again.begin(CLAUDE)
    results = [m for m in plan.messages if m.role == "tool" and m.name == "find"]
    assert [m.content for m in results] == [
        (ReferencePart(("tool_003",)), TextPart(text("search.loaded", "en-US")))
    ]
    calls = [call.name for m in plan.messages for call in m.tool_calls]
    assert calls == ["find", "tool_003"]
    assert again.session.plan(OPENAI).tools.names == ("core_000", "find", "tool_003")
    assert "tool_search" not in json.dumps(
        [again.session.record().to_dict()["roster"], plan.system]
    )
    again.config = ToolSearchConfig(tool_schema_mode="tool_search", search_tool_name="find")
    assert again.search("tool_004")["matches"][0]["name"] == "tool_004"


def test_search_through_call_tool_keeps_that_call() -> None:
    chat = Chat(toolbox(9))
    chat.begin()
    chat.call("call_tool", {"name": "tool_search", "arguments": {"query": "tool_003"}})
    again = resumed(chat, {"search_tool_name": "find"})
    again.begin()
    (asked,) = (call.name for m in again.session.history for call in m.tool_calls)
    assert (asked, again.session.history[2].name) == ("call_tool", "find")


def test_searches_in_the_hosts_own_history_count_under_every_former_name() -> None:
    chat = found({"search_tool_name": "first"})
    saved = chat.session.history
    for name in ("second", "third"):
        chat = resumed(chat, {"search_tool_name": name})
        chat.turn()
    again = Chat((), {"search_tool_name": "third"})
    again.session = ToolSearchSession(chat.session.catalog, config=again.config, record=kept(chat))
    again.session.adopt_history(saved)
    plan = again.begin(CLAUDE)
    assert [m.name for m in plan.messages if m.role == "tool"] == ["third", "tool_003"]
    assert kept(chat).former_search_names == ("first", "second")


def test_tool_that_takes_the_old_name_is_not_taken_for_a_search() -> None:
    chat = found()
    taken = [*toolbox(9, core=1), tool("tool_search")]
    again = resumed(chat, {"search_tool_name": "find"}, taken)
    again.turn()
    forged = chat.session.history[2].text
    again.begin()
    assert again.call("tool_search", {"count": 1}, result=forged).name == "tool_search"
    again.answer()
    again.session.adopt_history(again.session.history)
    assert again.session.history[-2].name == "tool_search"
    assert "tool_search" in again.session.discoveries


@pytest.mark.parametrize("is_given", [True, False], ids=["with the turn", "from the start"])
def test_tool_comes_back_once_the_search_leaves_it_its_name(is_given: bool) -> None:
    tools = [*toolbox(9, core=1), tool("tool_search")]
    again = resumed(found(), {"search_tool_name": "find"}, tools)
    assert "tool_search" not in again.session.catalog
    again.begin(tools=tools if is_given else None)
    assert "tool_search" in again.session.catalog
    assert again.session.plan(CLAUDE).tools.names == (
        "core_000", "find", *(f"tool_{n:03}" for n in range(9)), "tool_search",
    )  # fmt: skip


def test_name_that_a_tool_has_is_not_taken_over() -> None:
    tools = [*toolbox(9, core=1), tool("find")]
    again = resumed(found(), {"search_tool_name": "find"}, tools)
    for _ in range(2):
        again.turn()
    (notice,) = (n for n in again.session.take_notices() if n.code != "catalog_changed")
    assert notice.code == "catalog_refused"
    assert "search_tool_name 'find' is the name of a tool" in notice.message
    assert again.session.plan(OPENAI).tools.names[:2] == ("core_000", "tool_search")


def test_catalog_that_is_refused_leaves_everything_as_it_was() -> None:
    again = resumed(found(), {"language": "ru-RU", "search_tool_name": "find"})
    before = again.session.record()
    with pytest.raises(SessionError, match="call_tool"):
        again.begin(tools=[*toolbox(9, core=1), tool("call_tool")])
    assert again.session.record() == before
    again.turn()
    assert again.codes == ["settings_changed"]


def test_search_that_cannot_start_is_tried_again() -> None:
    tools = [*toolbox(30), tool("tool_search")]
    chat = Chat(tools, {"tool_schema_mode": "full"})
    chat.turn()
    again = resumed(chat, {"tool_schema_mode": "tool_search"}, tools)
    again.turn()
    assert (again.session.decision.mode, again.codes) == ("full", ["search_unavailable"])
    again.turn(tools=toolbox(30))
    assert again.session.decision.mode == "tool_search"
    assert "settings_changed" in again.codes


@pytest.mark.parametrize(("count", "mode"), [(40, "tool_search"), (9, "full")])
@pytest.mark.parametrize("before", ["full", "skills_like"])
def test_auto_takes_effect_in_a_kept_conversation(before: str, count: int, mode: str) -> None:
    chat = Chat(toolbox(count, core=1), {"tool_schema_mode": before})
    chat.begin()
    chat.answer()
    again = resumed(chat, {"tool_schema_mode": "auto"})
    again.turn()
    assert again.session.decision.mode == mode
    again.session.plan(OPENAI)


def test_skills_like_is_not_offered_to_bound_thinking_by_a_change_either() -> None:
    chat = Chat(toolbox(9), {"tool_schema_mode": "full"})
    chat.turn(BOUND)
    again = resumed(chat, {"tool_schema_mode": "skills_like"})
    again.turn(BOUND)
    assert again.session.decision.mode == "tool_search"
    assert again.codes == ["mode_changed", "settings_changed"]


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize("before", MODES)
@pytest.mark.parametrize("after", MODES)
def test_discoveries_live_through_every_change_of_mode(
    before: str, after: str, profile: Any
) -> None:
    chat = Chat(toolbox(9, core=1), {"tool_schema_mode": before})
    chat.begin(profile)
    if before == "tool_search":
        chat.find("tool_003")
    chat.call("tool_003", {"count": 1})
    chat.answer()
    again = resumed(chat, {"tool_schema_mode": after})
    plan = again.begin(profile)
    declared = plan.tools.names
    assert "tool_003" in declared
    assert ("tool_search" in declared) == (again.session.decision.mode == "tool_search")
    assert len(set(declared)) == len(declared)
    again.call("tool_003", {"count": 1})
    assert again.session.history[-1].text == "ok"
    answered = [m.tool_call_id for m in plan.messages if m.role == "tool"]
    assert answered == [c.id for m in plan.messages for c in m.tool_calls]
    assert isinstance(again.session.history[0], Message)
