"""Thinking that is bound to its prefix, through the session that keeps it valid."""

from __future__ import annotations

from typing import Any

import pytest

from tool_search import (
    ConversationRecord,
    Message,
    ProviderProfile,
    RequestPlan,
    Tool,
    ToolCall,
    ToolCatalog,
    ToolSearchConfig,
    ToolSearchSession,
    profile_for,
)
from tool_search.core.conversation.session import CallResult
from tool_search.core.messages import NativeReply

BOUND = profile_for("anthropic", "claude-opus-5-5")
BOUND_GENERIC = BOUND.generic()
UNBOUND = profile_for("anthropic", "claude-sonnet-4-6")
TOOLS = [Tool(name=f"tool_{n:02}", description=f"Does thing {n}.") for n in range(30)]


def reply(text: str, *calls: ToolCall) -> Message:
    """A reply with thinking in it."""
    native = NativeReply(BOUND.origin, ({"type": "thinking", "thinking": text},))
    return Message(role="assistant", content=text, tool_calls=calls, native=native)


def thoughts(plan: RequestPlan) -> list[str]:
    """The texts of the replies whose own blocks a request sends back."""
    return [message.text for message in plan.messages if message.native is not None]


def say(
    session: ToolSearchSession, profile: ProviderProfile, text: str, **turn: Any
) -> RequestPlan:
    """One turn that is answered at once; gives its request."""
    session.begin_turn(text, profile=profile, **turn)
    plan = session.plan(profile)
    session.accept(reply(f"answer to {text}"))
    return plan


def search(session: ToolSearchSession, profile: ProviderProfile) -> RequestPlan:
    """Search, answer, and return the next request."""
    session.plan(profile)
    call = ToolCall(id="t1", name="tool_search", arguments='{"query": "thing 7"}')
    (call,) = session.accept(reply("searching", call))
    decision: Any = session.decide(call)
    session.commit([CallResult(decision=decision, content=decision.content)])
    return session.plan(profile)


@pytest.fixture
def session() -> ToolSearchSession:
    """A conversation that searches, before its first turn."""
    return ToolSearchSession(ToolCatalog(TOOLS))


@pytest.mark.parametrize("profile", [BOUND, BOUND_GENERIC], ids=["claude", "generic"])
def test_thinking_is_kept_while_nothing_before_it_changes(
    session: ToolSearchSession, profile: ProviderProfile
) -> None:
    say(session, profile, "one")
    say(session, profile, "two")
    assert thoughts(say(session, profile, "three")) == ["answer to one", "answer to two"]


@pytest.mark.parametrize("profile", [BOUND, BOUND_GENERIC], ids=["claude", "generic"])
def test_a_search_keeps_the_list_and_the_thinking_of_its_turn(
    session: ToolSearchSession, profile: ProviderProfile
) -> None:
    """Inside a turn such a model never sees another list."""
    session.begin_turn("one", profile=profile)
    first = session.plan(profile)
    second = search(session, profile)
    assert second.tools.names == first.tools.names
    assert thoughts(second) == ["searching"]


def test_the_filtered_list_grows_at_the_next_turn_without_earlier_thinking(
    session: ToolSearchSession,
) -> None:
    """The list grows at its end only, and what was bound to the shorter one is left out."""
    session.begin_turn("one", profile=BOUND_GENERIC)
    before = search(session, BOUND_GENERIC).tools.names
    session.accept(reply("done"))
    after = say(session, BOUND_GENERIC, "two")
    assert after.tools.names[: len(before)] == before
    assert len(after.tools) > len(before)
    assert thoughts(after) == []
    assert thoughts(say(session, BOUND_GENERIC, "three")) == ["answer to two"]


def test_claude_keeps_its_thinking_when_tools_were_discovered(session: ToolSearchSession) -> None:
    """Its list never changes by a search."""
    session.begin_turn("one", profile=BOUND)
    search(session, BOUND)
    session.accept(reply("done"))
    assert thoughts(say(session, BOUND, "two")) == ["searching", "done"]


def test_a_changed_catalog_leaves_claudes_thinking_out(session: ToolSearchSession) -> None:
    say(session, BOUND, "one")
    changed = session.catalog.updated(added=[Tool(name="tool_03", description="New.")])
    assert thoughts(say(session, BOUND, "two", catalog=changed)) == []


def test_an_equal_relisting_keeps_the_thinking(session: ToolSearchSession) -> None:
    say(session, BOUND, "one")
    again = ToolCatalog(Tool.from_dict(tool.to_dict()) for tool in reversed(TOOLS))
    assert thoughts(say(session, BOUND, "two", catalog=again)) == ["answer to one"]


def test_another_strategy_in_the_middle_of_a_turn_leaves_the_thinking_out(
    session: ToolSearchSession,
) -> None:
    """An endpoint that refuses `defer_loading` gets another list, and no old thinking."""
    say(session, BOUND, "one")
    session.begin_turn("two", profile=BOUND)
    assert thoughts(session.plan(BOUND)) == ["answer to one"]
    assert thoughts(session.plan(BOUND_GENERIC)) == []


def test_a_catalog_beyond_claudes_limits_grows_without_old_thinking() -> None:
    session = ToolSearchSession(ToolCatalog(TOOLS))
    small = profile_for("anthropic", "claude-opus-5-5")
    small = ProviderProfile(
        dialect=small.dialect, model=small.model, origin=small.origin,
        strategy="claude", max_deferred=5, thinking_bound_to_prefix=True,
    )  # fmt: skip
    session.begin_turn("one", profile=small)
    search(session, small)
    assert thoughts(say(session, small, "two")) == []


def test_thinking_from_before_another_kind_of_model_is_left_out(
    session: ToolSearchSession,
) -> None:
    say(session, BOUND, "one")
    say(session, UNBOUND, "two")
    assert thoughts(say(session, BOUND, "three")) == []


def test_a_model_without_binding_gets_every_block_back(session: ToolSearchSession) -> None:
    """Blocks are left out only if they would be refused."""
    say(session, UNBOUND, "one")
    changed = session.catalog.updated(added=[Tool(name="another")])
    assert thoughts(say(session, UNBOUND, "two", catalog=changed)) == ["answer to one"]


def test_thinking_survives_a_restart(session: ToolSearchSession) -> None:
    say(session, BOUND, "one")
    record = ConversationRecord.from_dict(session.record().to_dict())
    again = ToolSearchSession(ToolCatalog(TOOLS), record=record)
    assert thoughts(say(again, BOUND, "two")) == ["answer to one"]


def test_a_restart_after_a_search_does_not_pass_old_thinking_off(
    session: ToolSearchSession,
) -> None:
    session.begin_turn("one", profile=BOUND_GENERIC)
    search(session, BOUND_GENERIC)
    again = ToolSearchSession(ToolCatalog(TOOLS), record=session.record())
    assert thoughts(say(again, BOUND_GENERIC, "two")) == []


def test_a_compacted_history_loses_its_thinking(session: ToolSearchSession) -> None:
    say(session, BOUND, "one")
    say(session, BOUND, "two")
    session.adopt_history(session.history[2:])
    assert thoughts(say(session, BOUND, "three")) == []


def test_a_history_that_is_read_again_keeps_its_thinking(session: ToolSearchSession) -> None:
    say(session, BOUND, "one")
    session.adopt_history(session.history)
    assert thoughts(say(session, BOUND, "two")) == ["answer to one"]


def test_an_imported_history_is_sent_without_thinking(session: ToolSearchSession) -> None:
    """The prefix that its blocks were bound to is unknown."""
    session.adopt_history([Message(role="user", content="hi"), reply("imported")])
    assert thoughts(say(session, BOUND, "one")) == []


def test_skills_like_is_one_full_request_for_a_bound_model() -> None:
    """Its phases would change the list inside a turn, even with nothing deferred."""
    config = ToolSearchConfig(tool_schema_mode="skills_like")
    core = ToolCatalog([Tool(name="a", always_load=True, parameters={"type": "object"})])
    session = ToolSearchSession(core, config=config)
    session.begin_turn("one", profile=UNBOUND)
    assert session.plan(UNBOUND, phase="select").phase == "select"
    plan = session.plan(BOUND, phase="select")
    assert (plan.phase, plan.tools[0].tool.parameters) == ("answer", {"type": "object"})
