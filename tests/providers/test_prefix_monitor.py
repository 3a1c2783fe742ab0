"""The prefix of requests stays, and the monitor reports where it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conversations import CLAUDE, OPENAI, Chat, tool, toolbox
from tool_search import Message, RequestPlan, TextPart, profile_for
from tool_search.core.messages import NativeReply, NoticeCode, ToolList
from tool_search.core.profiles import ProviderProfile
from tool_search.providers.prompt_cache import PrefixMonitor, first_divergence

RESPONSES = profile_for("openai_responses", "gpt-5.4")


@pytest.fixture
def chat() -> Chat:
    """Return a conversation in which a tool was found."""
    chat = Chat(toolbox(30, core=2))
    chat.begin(CLAUDE)
    chat.find("tool_004")
    return chat


def without_tool(plan: RequestPlan, index: int) -> RequestPlan:
    """Return a plan without one tool."""
    return replace(plan, tools=ToolList([*plan.tools[:index], *plan.tools[index + 1 :]]))


def with_message(plan: RequestPlan, index: int, **fields: object) -> RequestPlan:
    """Return a plan with one message changed."""
    messages = list(plan.messages)
    messages[index] = replace(messages[index], **fields)  # type: ignore[arg-type]
    return replace(plan, messages=tuple(messages))


@pytest.mark.parametrize("profile", [CLAUDE, OPENAI, RESPONSES], ids=lambda p: p.strategy)
def test_plan_of_a_longer_history_has_not_moved(chat: Chat, profile: ProviderProfile) -> None:
    before = chat.session.plan(profile)
    chat.find("tool_007")
    chat.call("tool_004", {"count": 1})
    chat.answer()
    assert first_divergence(before, chat.begin(profile)) is None


def test_first_tool_that_differs_is_named(chat: Chat) -> None:
    plan = chat.session.plan(OPENAI)
    other = without_tool(replace(plan, system="other"), 1)
    assert first_divergence(plan, other) == "tools[1] (core_001)"


def test_longer_list_has_moved_where_search_is_native(chat: Chat) -> None:
    plan = chat.session.plan(CLAUDE)
    last = len(plan.tools) - 1
    assert first_divergence(without_tool(plan, last), plan) == f"tools[{last}] (tool_029)"
    filtered = chat.session.plan(OPENAI)
    assert first_divergence(without_tool(filtered, len(filtered.tools) - 1), filtered) is None


def test_changed_definition_and_system_text_are_named(chat: Chat) -> None:
    plan = chat.session.plan(OPENAI)
    entries = [replace(plan.tools[0], tool=tool("core_000", description="Other."))]
    changed = replace(plan, tools=ToolList([*entries, *plan.tools[1:]]))
    assert first_divergence(plan, changed) == "tools[0] (core_000)"
    assert first_divergence(plan, replace(plan, system="other")) == "system"


def test_first_message_that_differs_is_named(chat: Chat) -> None:
    """By its place and who speaks; own blocks of a reply are no text of the prompt's."""
    plan = chat.session.plan(CLAUDE)
    said = (TextPart("x"),)
    assert first_divergence(plan, with_message(plan, 2, content=said)) == "messages[2] (tool)"
    assert (
        first_divergence(plan, replace(plan, messages=plan.messages[:1]))
        == "messages[1] (assistant)"
    )
    native = NativeReply(origin="anthropic:api.anthropic.com", blocks=())
    assert first_divergence(plan, with_message(plan, 1, native=native)) is None


@pytest.fixture
def monitor() -> PrefixMonitor:
    """A monitor that has seen nothing."""
    return PrefixMonitor()


def look(
    monitor: PrefixMonitor,
    chat: Chat,
    plan: RequestPlan,
    *announced: NoticeCode,
    provider: str = "a",
) -> str | None:
    """Return the monitor's report on a plan of this conversation."""
    history = chat.session.history
    return monitor.check(provider, OPENAI, plan, history=history, announced=announced)


def test_unannounced_move_is_told_once(monitor: PrefixMonitor, chat: Chat) -> None:
    plan = chat.session.plan(OPENAI)
    moved = replace(plan, system="other")
    told = [look(monitor, chat, each) for each in (plan, plan, moved, moved)]
    assert told == [None, None, "system", None]


@pytest.mark.parametrize(
    "code", ["catalog_changed", "schema_changed", "mode_changed", "core_tool_gone"]
)
def test_announced_move_is_not_told_again(
    monitor: PrefixMonitor, chat: Chat, code: NoticeCode
) -> None:
    plan = chat.session.plan(OPENAI)
    look(monitor, chat, plan)
    look(monitor, chat, plan, provider="b")
    moved = replace(plan, system="other")
    assert look(monitor, chat, moved, code) is None
    assert look(monitor, chat, moved, provider="b") is None
    assert look(monitor, chat, plan, "answer_missing") == "system"


def test_each_provider_has_a_prefix_of_its_own(monitor: PrefixMonitor, chat: Chat) -> None:
    plan = chat.session.plan(OPENAI)
    moved = replace(plan, system="other")
    look(monitor, chat, plan)
    assert look(monitor, chat, moved, provider="b") is None
    smaller = replace(OPENAI, max_tools=20)
    assert monitor.check("a", smaller, moved, history=chat.session.history) is None


def test_what_a_refusal_taught_is_expected_to_move(monitor: PrefixMonitor, chat: Chat) -> None:
    plan = chat.session.plan(OPENAI)
    look(monitor, chat, plan)
    monitor.forget("a")
    assert look(monitor, chat, replace(plan, system="other")) is None


def test_history_that_the_bot_replaced_is_its_own_doing(monitor: PrefixMonitor, chat: Chat) -> None:
    """A compaction changes every prefix, and the bot knows of it."""
    look(monitor, chat, chat.session.plan(OPENAI))
    chat.session.adopt_history([Message(role="user", content="What we said so far.")])
    assert look(monitor, chat, chat.begin(OPENAI)) is None


def test_phases_of_skills_like_stand_outside(monitor: PrefixMonitor, chat: Chat) -> None:
    plan = chat.session.plan(OPENAI)
    look(monitor, chat, plan)
    assert look(monitor, chat, replace(without_tool(plan, 0), phase="select")) is None
    assert look(monitor, chat, plan) is None


STEPS = st.lists(
    st.tuples(st.sampled_from(["find", "call", "turn", "list"]), st.integers(0, 9)), max_size=12
)


@settings(max_examples=40)
@given(STEPS, st.sampled_from([CLAUDE, OPENAI, RESPONSES]))
def test_no_conversation_moves_its_prefix_unannounced(
    steps: list[tuple[str, int]], profile: ProviderProfile
) -> None:
    monitor, chat = PrefixMonitor(), Chat(toolbox(10, core=1))
    chat.begin(profile)
    for step, chosen in steps:
        if step == "find":
            chat.find(f"tool_{chosen:03}")
        elif step == "call":
            names = [tool.name for tool in chat.session.catalog.deferred]
            chat.call(names[chosen % len(names)], {"count": 1})
        else:
            chat.answer()
            tools = toolbox(chosen + 1, core=1) if step == "list" else None
            chat.begin(profile, tools=tools)
        plan = chat.session.plan(profile)
        codes = [notice.code for notice in chat.session.take_notices()]
        history = chat.session.history
        assert monitor.check("a", profile, plan, history=history, announced=codes) is None


def test_a_tool_that_was_called_before_it_was_there_is_named_as_the_cause() -> None:
    monitor, chat = PrefixMonitor(), Chat(toolbox(1, core=1))
    chat.begin(RESPONSES)
    chat.call("tool_001", {"count": 1})
    chat.answer()
    told = []
    chat.begin(RESPONSES, tools=toolbox(2, core=1))
    for _ in range(2):
        plan = chat.session.plan(RESPONSES)
        told.append(monitor.check("a", RESPONSES, plan, history=chat.session.history))
        chat.find("tool_001")
    assert told == [None, "messages[1] (assistant, which called a tool before it was there)"]
