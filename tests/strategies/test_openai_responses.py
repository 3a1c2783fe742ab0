"""The Responses strategy: a list that no discovery touches, definitions where they are found."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conversations import OPENAI, Chat, tool, toolbox
from tool_search.adapters.openai_responses.wire import encode_tools
from tool_search.core.messages import Message, ReferencePart, RequestPlan
from tool_search.core.profiles import ProviderProfile
from tool_search.providers.profile_choice import profile_for

RESPONSES = profile_for("openai_responses", "gpt-5.4")
DEFERRED = profile_for("openai_responses", "gpt-5.4", search_form="deferred")
HOSTED = profile_for("openai_responses", "gpt-5.4", search_form="hosted")
ADDITIONAL = profile_for("openai_responses", "gpt-5")


@pytest.fixture
def chat() -> Chat:
    """Return a conversation with two core tools and many to find."""
    return Chat(toolbox(9, core=2))


def brought(plan: RequestPlan) -> list[tuple[str, ...]]:
    """Return the names in each message with definitions, in order."""
    return [
        tuple(tool.name for tool in part.tools)
        for message in plan.messages
        for part in (() if isinstance(message.content, str) else message.content)
        if isinstance(part, ReferencePart)
    ]


def listed(plan: RequestPlan) -> list[tuple[str, bool, bool]]:
    """Name, deferral and kind of every entry."""
    return [(entry.tool.name, entry.deferred, entry.is_search) for entry in plan.tools]


def test_search_tool_and_core_are_declared(chat: Chat) -> None:
    assert listed(chat.begin(RESPONSES)) == [
        ("tool_search", False, True), ("core_000", False, False), ("core_001", False, False),
    ]  # fmt: skip


@pytest.mark.parametrize("profile", [DEFERRED, HOSTED])
def test_rest_is_declared_deferred_where_the_form_says_so(
    chat: Chat, profile: ProviderProfile
) -> None:
    entries = listed(chat.begin(profile))
    assert entries[0] == ("tool_search", False, True)
    assert entries[3] == ("tool_000", True, False)
    assert len(entries) == 12


def test_hosted_search_is_left_out_where_nothing_is_deferred() -> None:
    chat = Chat([tool("a"), tool("core", always_load=True)])
    chat.turn(HOSTED)
    plan = chat.begin(HOSTED, tools=[tool("core", always_load=True)])
    assert listed(plan) == [("core", False, False)]


def test_search_is_a_function_for_models_without_tool_search(chat: Chat) -> None:
    assert listed(chat.begin(ADDITIONAL))[-1] == ("tool_search", False, False)


def test_full_mode_declares_everything_plainly() -> None:
    chat = Chat(toolbox(3), {"tool_schema_mode": "full"})
    assert listed(chat.begin(RESPONSES)) == [(f"tool_00{n}", False, False) for n in range(3)]


@pytest.mark.parametrize("profile", [RESPONSES, DEFERRED, HOSTED, ADDITIONAL])
def test_discoveries_leave_the_list_as_it_is(chat: Chat, profile: ProviderProfile) -> None:
    before = chat.begin(profile).tools
    chat.find("tool_003", "tool_005")
    chat.call("tool_004", {"count": 1})
    assert chat.session.plan(profile).tools is before


def test_search_result_brings_the_definitions_it_found(chat: Chat) -> None:
    """Whole, in the order of the result, and nothing else in it."""
    chat.begin(RESPONSES)
    chat.find("tool_003")
    plan = chat.session.plan(RESPONSES)
    assert brought(plan) == [("tool_003",)]
    assert plan.messages[-1].content == (ReferencePart(("tool_003",), (tool("tool_003"),)),)


def test_result_of_a_function_keeps_its_text(chat: Chat) -> None:
    chat = Chat([*toolbox(3), tool("files.read")])
    chat.begin(ADDITIONAL)
    chat.find("files.read")
    plan = chat.session.plan(ADDITIONAL)
    result = json.loads(plan.messages[-1].text)
    assert [match["name"] for match in result["matches"]] == ["files_read_601e4eb6"]
    assert brought(plan) == [("files.read",)]


def test_definition_is_not_repeated_unless_a_result_had_nothing_else(chat: Chat) -> None:
    """An empty result would say that nothing was found."""
    chat.begin(RESPONSES)
    chat.search("tool_003", limit=1)
    chat.search(["tool_003", "tool_004"], limit=1)
    chat.search("tool_003", limit=1)
    first, second, third = brought(chat.session.plan(RESPONSES))
    assert first == third == ("tool_003",)
    assert "tool_003" not in second
    assert "tool_004" in second


def test_tool_called_without_a_search_is_shown_before_the_call(chat: Chat) -> None:
    chat.begin(RESPONSES)
    chat.calls(("tool_003", {"count": 1}), ("core_000", {"count": 1}), ("no_such", {}))
    chat.call("tool_003", {"count": 2})
    plan = chat.session.plan(RESPONSES)
    assert brought(plan) == [("tool_003",)]
    assert isinstance(plan.messages[1].content[0], ReferencePart)


def test_tool_called_through_call_tool_is_shown_too(chat: Chat) -> None:
    """Another provider's list had no room for it."""
    chat.begin(OPENAI)
    chat.call("call_tool", {"name": "tool_003", "arguments": {"count": 1}})
    assert brought(chat.session.plan(RESPONSES)) == [("tool_003",)]


@pytest.mark.parametrize("profile", [RESPONSES, DEFERRED, HOSTED, ADDITIONAL])
def test_what_was_sent_is_a_prefix_of_what_is_sent(chat: Chat, profile: ProviderProfile) -> None:
    before = chat.begin(profile).messages
    deeds: list[Any] = [
        lambda: chat.search("tool"),
        lambda: chat.call("tool_007", {"count": 1}),
        lambda: chat.call("tool_008", {"count": "x"}),
        lambda: chat.call("tool_006", '{"count": '),
        lambda: chat.search("tool_006"),
        chat.answer,
        lambda: chat.begin(profile, "more"),
        lambda: chat.search("tool"),
    ]
    for deed in deeds:
        deed()
        after = chat.session.plan(profile).messages
        assert after[: len(before)] == before
        before = after


def test_gone_tool_keeps_its_last_definition_where_it_was_found(chat: Chat) -> None:
    """Its server is away: the history refers to it."""
    chat.begin(RESPONSES)
    chat.find("tool_003")
    chat.answer()
    before = chat.session.plan(RESPONSES)
    plan = chat.begin(RESPONSES, "again", tools=toolbox(2, core=2))
    assert brought(plan) == [("tool_003",)]
    assert plan.messages[: len(before.messages)] == before.messages


def test_discoveries_of_another_provider_are_shown_where_they_were_made(chat: Chat) -> None:
    chat.begin(OPENAI)
    chat.find("tool_003")
    chat.answer()
    assert brought(chat.begin(RESPONSES, "again")) == [("tool_003",)]


def test_compacted_discoveries_are_shown_anew(chat: Chat) -> None:
    chat.begin(RESPONSES)
    chat.find("tool_003")
    chat.answer()
    chat.session.adopt_history([Message(role="user", content="In short: nothing.")])
    assert brought(chat.begin(RESPONSES, "again")) == [("tool_003",)]


def test_refused_tool_is_declared_plainly(chat: Chat) -> None:
    chat.begin(RESPONSES)
    chat.find("tool_003")
    chat.session.drop_references(["tool_003"])
    plan = chat.session.plan(RESPONSES)
    assert plan.tools.names[-1] == "tool_003"
    assert brought(plan) == [()]


@pytest.mark.parametrize("profile", [RESPONSES, ADDITIONAL])
def test_catalog_that_changes_elsewhere_leaves_the_bytes_of_the_list(
    chat: Chat, profile: ProviderProfile
) -> None:
    """Servers come and go, a schema changes: the core is what it was."""
    before = encode_tools(chat.turn(profile).tools, profile)
    changed = [tool("tool_003", description="Another one."), *toolbox(0, core=2)]
    late = [tool(f"late_{n}") for n in range(30)]
    plan = chat.begin(profile, "again", tools=[*changed, *late])
    assert encode_tools(plan.tools, profile) == before


def test_late_core_tool_comes_at_the_end(chat: Chat) -> None:
    before = chat.turn(RESPONSES).tools.names
    late = [*toolbox(9, core=2), tool("a_late_one", always_load=True)]
    assert chat.begin(RESPONSES, "again", tools=late).tools.names == (*before, "a_late_one")


def test_catalog_without_core_declares_the_search_alone() -> None:
    chat = Chat(toolbox(40))
    assert chat.begin(RESPONSES).tools.names == ("tool_search",)
