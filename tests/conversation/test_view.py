"""Views: what a host's conversation shows of a catalog."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conversations import BOUND, CLAUDE, OPENAI, PROFILES, tool, toolbox
from tool_search import (
    ConfigurationError,
    Message,
    RunCall,
    SearchResult,
    SessionError,
    Tool,
    ToolCall,
    ToolCatalog,
    ToolSearch,
    ToolSearchConfig,
    ToolView,
    append_instructions,
    profile_for,
)
from tool_search.core.conversation.calls import AnsweredCall
from tool_search.errors import InvalidToolError

SEARCHING = ToolSearchConfig(tool_schema_mode="tool_search")
TOOLS = toolbox(30, core=2)
NAMES = [each.name for each in TOOLS]
HEAD = ("core_000", "core_001", "tool_search")


def a_view(*found: str, **more: Any) -> ToolView:
    """Return a view of 30 deferred and 2 core tools."""
    return ToolSearch(TOOLS, SEARCHING).view(found, **more)


def answered(decision: object) -> AnsweredCall:
    """Return a decision that needs no executor."""
    assert isinstance(decision, AnsweredCall)
    return decision


def test_the_first_request_declares_the_core_and_the_search_tool() -> None:
    view = a_view()
    assert view.names == HEAD
    assert view.tools().names == HEAD
    assert view.search_tool is not None
    assert view.search_tool.name == "tool_search"
    assert "tool_search" in view.instructions


def test_list_of_a_bridged_provider_has_what_was_found_and_its_plan_the_schemas() -> None:
    bridged = profile_for("openai_chat", "gpt-5.4", takes_cheapest=True)
    view = a_view("tool_003")
    assert bridged.strategy == "bridge"
    assert view.tools(bridged).names == (*HEAD, "tool_003")
    history = [Message(role="user", content="hello")]
    assert view.plan(history, bridged).tools.names == (*HEAD, "call_tool")


def test_what_a_search_found_is_declared_from_the_next_request_on() -> None:
    view = a_view()
    result = view.search({"query": "tool_007"})
    assert result.names[0] == "tool_007"
    assert view.found == result.names
    assert view.names == (*HEAD, *result.names)
    again = view.search('{"query": "tool_007"}')
    assert "tool_007" in again.loaded


async def test_a_search_off_the_event_loop_finds_the_same() -> None:
    found = await asyncio.gather(*(a_view().asearch({"query": "tool_007"}) for _ in range(4)))
    assert set(found) == {a_view().search({"query": "tool_007"})}


def test_found_names_keep_the_order_of_the_host() -> None:
    assert a_view("tool_009", "tool_003", "tool_009").names == (*HEAD, "tool_009", "tool_003")


def test_names_whose_tool_is_gone_stay_and_come_back_with_it() -> None:
    search = ToolSearch(TOOLS[:5], SEARCHING)
    view = search.view(["tool_009", "never_was", "tool_001"])
    assert view.names == ("tool_search", "tool_001")
    assert view.found == ("tool_009", "never_was", "tool_001")
    search.replace_tools(TOOLS)
    assert search.view(view.found).names == (*HEAD, "tool_009", "tool_001")


@pytest.mark.parametrize("odd", [None, 3, b"tool_001", ["tool_001"], {}])
def test_what_is_not_a_name_in_found_is_passed_over(odd: Any) -> None:
    names: list[Any] = ["tool_002", odd]
    assert a_view(*names).found == ("tool_002",)


@pytest.mark.parametrize("mode", ["full", "auto"])
def test_where_nothing_is_deferred_names_are_all_active_tools(mode: Any) -> None:
    off = tool("switched_off", active=False)
    search = ToolSearch([*TOOLS[:9], off], ToolSearchConfig(tool_schema_mode=mode))
    view = search.view(["tool_003"])
    assert sorted(view.names) == sorted(NAMES[:9])
    assert view.search_tool is None
    assert view.instructions == ""
    assert append_instructions("Be kind.", view) == "Be kind."
    assert view.mode.mode == "full"
    # A model that searches all the same learns that it may call what it looks for.
    assert "tool_003" in view.search({"query": "tool_003"}).loaded


def test_instructions_are_appended_exactly_once() -> None:
    view = a_view()
    once = append_instructions("Be kind.", view)
    assert once.startswith("Be kind.")
    assert once.count(view.instructions) == 1
    assert append_instructions(once, view) == once
    assert append_instructions("", view) == view.instructions


@pytest.mark.parametrize(
    ("message", "word"), [("你好", "工具"), ("Привет", "инструмент"), ("", "tools")]
)
def test_the_first_message_decides_the_language(message: str, word: str) -> None:
    assert word in a_view(first_message=message).instructions


def test_skills_like_is_an_error_that_says_why() -> None:
    search = ToolSearch(TOOLS, ToolSearchConfig(tool_schema_mode="skills_like"))
    with pytest.raises(ConfigurationError, match="two requests a step"):
        search.view()
    assert search.rank("tool_001").names[0] == "tool_001"


def test_a_tool_named_like_the_search_tool_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(SessionError, match=r"'tool_search'.*set search_tool_name"):
        ToolSearch([*TOOLS, tool("tool_search")], SEARCHING).view()


def test_a_call_is_checked_before_it_runs() -> None:
    view = a_view()
    fits = view.check("tool_004", {"count": 1})
    assert isinstance(fits, RunCall)
    assert list(view.found) == ["tool_004"]
    hidden = answered(view.check("tool_005", {"count": "many"}))
    assert hidden.is_error
    assert '"count"' in hidden.content
    assert list(view.found) == ["tool_004", "tool_005"]
    assert "no_such" in answered(view.check("no_such", {})).content
    assert answered(view.check("tool_006", "{broken")).is_error
    assert answered(view.check("tool_004", {"count": object()})).is_error


def test_a_call_of_a_tool_that_is_gone_says_so() -> None:
    search = ToolSearch(TOOLS, SEARCHING)
    before = search.view(["tool_003"])
    search.replace_tools([each for each in TOOLS if each.name != "tool_003"])
    gone = search.view(record=before.record())
    # It stays declared: a list that was sent loses no entry.
    assert gone.names == before.names
    assert answered(gone.check("tool_003", {"count": 1})).is_error


def test_the_search_tool_and_call_tool_can_be_checked_like_any_call() -> None:
    view = a_view()
    search = answered(view.check("tool_search", {"query": "tool_008"}))
    assert search.result is not None
    assert "tool_008" in view.found
    inner = view.check("call_tool", {"name": "tool_009", "arguments": {"count": 2}})
    assert isinstance(inner, RunCall)
    assert inner.tool.name == "tool_009"


@pytest.mark.parametrize("written", ["{broken", "[1]", '"text"', "null", "5", "{" * 2_000])
def test_broken_arguments_of_a_search_become_an_answer(written: str) -> None:
    result = a_view().search(written)
    assert result.error
    assert not result.names


@pytest.mark.parametrize("query", [None, 5, [], {}, "", "!!", ["tool_001", None]])
def test_odd_queries_raise_nothing(query: Any) -> None:
    assert isinstance(a_view().search({"query": query, "limit": "x"}), SearchResult)


def test_a_caller_finds_and_sees_only_what_is_allowed() -> None:
    allowed = {*NAMES} - {"tool_007", "core_001"}
    view = a_view("tool_007", "tool_008", allowed=allowed.__contains__)
    assert view.names == ("core_000", "tool_search", "tool_008")
    assert "tool_007" not in view.search({"query": "tool_007"}).names
    denied = answered(view.check("tool_007", {"count": 1}))
    assert denied.is_denied
    assert "tool_007" in view.found
    everything = ToolSearch(TOOLS, ToolSearchConfig(tool_schema_mode="full"))
    assert "tool_007" not in everything.view(allowed=allowed.__contains__).names
    for profile in (CLAUDE, OPENAI):
        assert not view.tools(profile).declares("tool_007")


def test_tools_with_roles_are_for_callers_that_the_host_allows() -> None:
    search = ToolSearch([*TOOLS, tool("wipe", roles=("admin",))], SEARCHING)
    assert search.view(["wipe"]).names == HEAD
    assert search.view(["wipe"], allowed=lambda _name: True).names == (*HEAD, "wipe")


def test_a_profile_decides_how_tools_are_declared() -> None:
    view = a_view()
    native = view.tools(CLAUDE)
    assert len(native) == len(TOOLS) + 1
    assert sum(entry.deferred for entry in native) == 30
    view.search({"query": "tool_007"})
    assert view.tools(CLAUDE) is native
    assert view.tools(OPENAI).names == view.names


def test_a_provider_with_a_short_list_gets_call_tool() -> None:
    search = ToolSearch(toolbox(200), ToolSearchConfig(tool_schema_mode="full"))
    view = search.view()
    assert len(view.tools()) == 200
    assert len(view.tools(OPENAI)) <= 128
    assert view.mode.mode == "tool_search"


def test_a_history_brings_back_what_it_shows() -> None:
    first = a_view()
    result = first.search({"query": "tool_007"})
    first.check("tool_020", {"count": 1})
    second = a_view()
    second.read([result.to_json(), None, "no result", "{"], ["tool_020", "unknown", "core_000"])
    assert second.names == first.names
    second.read([result], ["tool_020"])
    assert second.names == first.names


def test_a_record_goes_on_after_a_restart() -> None:
    search = ToolSearch(TOOLS, SEARCHING)
    view = search.view(first_message="你好")
    view.search({"query": "tool_007"})
    record = type(view.record()).from_dict(json.loads(json.dumps(view.record().to_dict())))
    later = ToolSearch(TOOLS, SEARCHING).view(record=record)
    assert (later.names, later.found, later.language) == (view.names, view.found, "zh-CN")
    assert later.search_tool == view.search_tool
    assert [entry.tool for entry in later.tools()] == [entry.tool for entry in view.tools()]


def test_the_mode_of_a_record_stays() -> None:
    search = ToolSearch(TOOLS)
    record = search.view().record()
    search.replace_tools(TOOLS[:20])
    assert search.view(record=record).mode.mode == "tool_search"
    assert search.view().mode.mode == "full"


def history(view: ToolView, *queries: str) -> list[Message]:
    """Return a host's history of one turn in which these were searched."""
    said = [Message(role="user", content="hello")]
    for place, query in enumerate(queries):
        call = ToolCall(id=f"c{place}", name="tool_search", arguments=json.dumps({"query": query}))
        answer = view.search({"query": query}).to_json()
        said.append(Message(role="assistant", tool_calls=(call,)))
        said.append(Message(role="tool", tool_call_id=call.id, name="tool_search", content=answer))
    return said


def test_a_plan_has_the_hosts_history_and_keeps_none() -> None:
    view = a_view()
    said = history(view, "tool_007")
    plan = view.plan(said, CLAUDE, system_prompt="Be kind.")
    assert [message.role for message in plan.messages] == ["user", "assistant", "tool"]
    assert plan.tools == view.tools(CLAUDE)
    assert plan.system == append_instructions("Be kind.", view)
    assert view.plan(said[:1], CLAUDE).messages[-1] == said[0]
    assert view.record().history == ()


def test_discoveries_that_a_history_does_not_show_are_shown_once_and_stay_there() -> None:
    view = a_view("tool_003")
    said = [Message(role="user", content="hello")]
    first = view.plan(said, CLAUDE).messages
    assert [message.role for message in first] == ["user", "assistant", "tool", "user"]
    said += [Message(role="assistant", content="hi"), Message(role="user", content="more")]
    second = view.plan(said, CLAUDE).messages
    assert second[: len(first)] == first
    assert len(second) == len(first) + 2
    restored = ToolSearch(TOOLS, SEARCHING).view(record=view.record())
    assert restored.plan(said, CLAUDE).messages == second


def test_a_tool_called_by_name_does_not_move_the_turn_that_called_it() -> None:
    view = a_view()
    said = [Message(role="user", content="hello")]
    first = view.plan(said, CLAUDE).messages
    view.check("tool_004", {"count": 1})
    call = ToolCall(id="c1", name="tool_004", arguments='{"count": 1}')
    said.append(Message(role="assistant", tool_calls=(call,)))
    said.append(Message(role="tool", tool_call_id="c1", name="tool_004", content="4"))
    assert view.plan(said, CLAUDE).messages[: len(first)] == first
    said += [Message(role="assistant", content="4"), Message(role="user", content="more")]
    later = view.plan(said, CLAUDE).messages
    assert later[:3] == tuple(said[:3])
    assert len(later) == len(said) + 2


def test_a_list_that_thinking_is_bound_to_grows_between_turns_only() -> None:
    view = a_view()
    said = [Message(role="user", content="hello")]
    before = view.plan(said, BOUND.generic()).tools
    said = history(view, "tool_007")
    assert view.plan(said, BOUND.generic()).tools == before
    said += [Message(role="assistant", content="ok"), Message(role="user", content="more")]
    assert view.plan(said, BOUND.generic()).tools.declares("tool_007")


def test_what_is_not_a_history_is_refused() -> None:
    odd: Any = [{"role": "user", "content": "hello"}]
    with pytest.raises(SessionError, match="history_from_wire"):
        a_view().plan(odd, CLAUDE)


def test_a_view_that_lives_longer_follows_its_turns() -> None:
    view = a_view("tool_003")
    view.begin_turn(ToolCatalog(TOOLS[:5]))
    # What was declared stays declared, so that the prompt cache holds.
    assert view.names == ("tool_search", "tool_003")
    view.begin_turn(ToolCatalog(TOOLS), history=history(a_view(), "tool_009"))
    assert view.names[:2] == ("tool_search", "tool_003")
    assert {"tool_009", "core_000"} <= set(view.names)
    view.begin_turn(denial_reason=lambda each: "no" if each.name == "tool_009" else None)
    assert answered(view.check("tool_009", {"count": 1})).content == "no"
    assert "tool_009" not in view.names


@pytest.mark.parametrize(("turns", "lessons"), [(1, 1), (2, 0)])
def test_a_search_teaches_in_its_turn_and_the_next(turns: int, lessons: int) -> None:
    mail = tool("send_mail", description="Deliver a letter to somebody.")
    view = ToolSearch([*TOOLS, mail], SEARCHING).view()
    assert view.search({"query": "deliver a letter"}).names == ("send_mail",)
    for _ in range(turns):
        view.begin_turn()
    view.returned("send_mail")
    assert len(view.drain_lessons()) == lessons


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("search"), st.sampled_from([*NAMES, "common tool", "nothing", ""])),
        st.tuples(st.just("check"), st.sampled_from([*NAMES, "no_such"])),
        st.tuples(st.just("returned"), st.sampled_from(NAMES)),
        st.tuples(st.just("called"), st.sampled_from([*NAMES, "no_such"])),
        st.tuples(st.just("plan"), st.sampled_from(sorted(PROFILES))),
    ),
    max_size=8,
)


def follow(view: ToolView, step: tuple[str, str]) -> None:
    """Take one step of a host."""
    kind, value = step
    if kind == "search":
        view.search({"query": value})
    elif kind == "check":
        view.check(value, {"count": 1})
    elif kind == "returned":
        view.returned(value)
    elif kind == "called":
        view.read((), [value])
    else:
        view.tools(PROFILES[value])


@settings(max_examples=40, deadline=None)
@given(STEPS, st.lists(st.sampled_from(NAMES), max_size=4))
def test_names_only_grow_at_their_end(steps: list[tuple[str, str]], found: list[str]) -> None:
    search = ToolSearch(TOOLS, SEARCHING)
    view, other = search.view(found), search.view()
    names, kept = view.names, view.found
    for step in steps:
        follow(view, step)
        assert view.names[: len(names)] == names
        assert view.found[: len(kept)] == kept
        names, kept = view.names, view.found
        assert len(set(names)) == len(names)
    # `found` is all the state: a view made from it declares the same, and no other sees it.
    assert search.view(kept).names == names
    assert other.names == HEAD
    assert other.found == ()


def test_a_definition_that_is_no_tool_is_refused_before_a_view_has_it() -> None:
    odd: Any = [*TOOLS, 7]
    with pytest.raises(InvalidToolError, match="not 7"):
        ToolSearch(odd)


def test_an_inactive_tool_is_neither_found_nor_called() -> None:
    search = ToolSearch([*TOOLS, Tool(name="asleep", active=False)], SEARCHING)
    view = search.view(["asleep"])
    assert view.names == HEAD
    assert answered(view.check("asleep", {})).is_error
