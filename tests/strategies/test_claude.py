"""The strategy for Claude: the whole catalog deferred, results as references."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conversations import CLAUDE, OPENAI, Chat, deferred, tool, toolbox
from tool_search import (
    ClaudeToolSearchStrategy,
    Message,
    RequestPlan,
    SearchMatch,
    SearchResult,
    TextPart,
    Tool,
    ToolCall,
)
from tool_search.core.messages import ReferencePart


def results(plan: RequestPlan) -> list[object]:
    """Return the content of every tool result of a request."""
    return [message.content for message in plan.messages if message.role == "tool"]


def referred(plan: RequestPlan) -> list[str]:
    """Return every name that a request refers to."""
    parts = [part for message in plan.messages for part in message.content]
    return [name for part in parts if isinstance(part, ReferencePart) for name in part.names]


@pytest.mark.parametrize("core", [0, 3])
def test_the_catalog_is_declared_whole_with_one_breakpoint_on_what_is_shown(core: int) -> None:
    """Never on a deferred tool: the service refuses that."""
    plan = Chat(toolbox(9, core=core)).begin(CLAUDE)
    assert plan.strategy == "claude"
    assert len(plan.tools) == core + 1 + 9
    assert deferred(plan) == [f"tool_{n:03}" for n in range(9)]
    marked = [entry for entry in plan.tools if entry.cache_breakpoint]
    assert [(entry.tool.name, entry.deferred) for entry in marked] == [("tool_search", False)]


def test_a_late_core_tool_carries_the_breakpoint_behind_deferred_ones() -> None:
    chat = Chat(toolbox(3))
    chat.turn(CLAUDE)
    plan = chat.turn(CLAUDE, tools=[*toolbox(3), tool("late", always_load=True)])
    assert [entry.tool.name for entry in plan.tools if entry.cache_breakpoint] == ["late"]


def test_full_mode_defers_nothing() -> None:
    plan = Chat(toolbox(3), {"tool_schema_mode": "full"}).begin(CLAUDE)
    assert deferred(plan) == []
    assert [entry.cache_breakpoint for entry in plan.tools] == [False, False, True]


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("en-US", "Tools loaded."),
        ("zh-CN", "工具已加载。"),
        ("ru-RU", "Инструменты загружены."),
    ],
)
def test_a_line_of_text_follows_the_references_of_a_search(language: str, line: str) -> None:
    chat = Chat(toolbox(9), {"language": language})
    chat.begin(CLAUDE)
    chat.find("tool_003")
    assert results(chat.session.plan(CLAUDE)) == [(ReferencePart(("tool_003",)), TextPart(line))]


def test_a_search_result_is_references_alone_where_the_line_is_switched_off() -> None:
    chat = Chat(toolbox(9), {"boundary_text": False})
    chat.begin(CLAUDE)
    chat.find("tool_003")
    assert results(chat.session.plan(CLAUDE)) == [(ReferencePart(("tool_003",)),)]


def test_searches_of_one_reply_have_one_line_after_the_last() -> None:
    """The results of a reply go back in one message, and the line is the end of it."""
    chat = Chat(toolbox(9))
    chat.begin(CLAUDE)
    chat.calls(*(("tool_search", {"query": name}) for name in ("tool_001", "tool_002", "qwzx")))
    first, second, third = results(chat.session.plan(CLAUDE))
    line = TextPart("Tools loaded.")
    assert isinstance(first, tuple)
    assert isinstance(second, tuple)
    assert [type(part) for part in first] == [ReferencePart]
    assert second[1:] == (line,)
    assert isinstance(third, str)
    assert "Tools loaded." not in third


def test_the_line_stays_where_it_was_sent() -> None:
    chat = Chat(toolbox(9))
    chat.begin(CLAUDE)
    chat.find("tool_003")
    sent = chat.session.plan(CLAUDE).messages
    chat.answer()
    chat.turn(OPENAI)
    assert chat.begin(CLAUDE).messages[: len(sent)] == sent


def test_a_repeated_search_refers_to_what_is_loaded_already() -> None:
    """Repeated references are cheap, and help if the model forgot the first."""
    chat = Chat(toolbox(9))
    chat.begin(CLAUDE)
    chat.find("tool_003", "tool_003")
    part = results(chat.session.plan(CLAUDE))[1]
    assert isinstance(part, tuple)
    assert "tool_003" in part[0].names


@pytest.mark.parametrize("query", ["qwzx", "", "?!", None])
def test_a_result_without_match_is_one_text(query: object) -> None:
    """An empty list of references would be refused."""
    chat = Chat(toolbox(9))
    chat.begin(CLAUDE)
    chat.search(query)
    (content,) = results(chat.session.plan(CLAUDE))
    text = content if isinstance(content, str) else content[0]  # type: ignore[index]
    assert '"query"' in (text if isinstance(text, str) else text.text)
    assert referred(chat.session.plan(CLAUDE)) == []


def test_an_error_result_holds_no_references() -> None:
    chat = Chat(toolbox(9))
    result = SearchResult(query="q", matches=(SearchMatch(name="tool_003"),))
    chat.session.adopt_history(
        [
            Message(role="user", content="x"),
            Message(role="assistant", tool_calls=(ToolCall(id="1", name="tool_search"),)),
            Message(role="tool", tool_call_id="1", content=result.to_json(), is_error=True),
        ]
    )
    chat.begin(CLAUDE)
    assert isinstance(results(chat.session.plan(CLAUDE))[0], str)


def test_a_reference_that_was_refused_is_left_out_by_either_name() -> None:
    chat = Chat([*toolbox(3), tool("files.read")])
    chat.begin(CLAUDE)
    chat.find("files.read", "tool_001", "tool_002")
    chat.session.drop_references(["files_read_601e4eb6", "tool_001"])
    plan = chat.session.plan(CLAUDE)
    assert referred(plan) == ["tool_002"]
    assert len(plan.tools) == 5


def test_a_tool_called_without_a_search_is_shown_at_the_next_turn() -> None:
    chat = Chat(toolbox(9))
    chat.begin(CLAUDE)
    assert chat.call("tool_003", {"count": 1}).text == "ok"
    chat.answer()
    assert referred(chat.begin(CLAUDE)) == ["tool_003"]


@pytest.mark.parametrize("names", [(), ("a", "b")])
def test_format_result_gives_references_or_text(names: tuple[str, ...]) -> None:
    """For bots that drive a strategy themselves."""
    result = SearchResult(query="q", matches=tuple(SearchMatch(name=n) for n in names))
    part = ClaudeToolSearchStrategy().format_result(result)
    assert part == (ReferencePart(names) if names else TextPart(result.to_json()))


EVERYTHING = {item.name: item for item in [*toolbox(6, server="lab"), tool("f.1"), tool("天气")]}
_STEPS = st.lists(
    st.tuples(st.sampled_from(["search", "call", "list", "refuse", "swap"]), st.integers(0, 7),
              st.sets(st.sampled_from(sorted(EVERYTHING)))),
    max_size=12,
)  # fmt: skip


@settings(max_examples=40)
@given(_STEPS)
def test_no_request_refers_to_a_tool_that_it_does_not_declare(
    steps: list[tuple[str, int, set[str]]],
) -> None:
    """Searches, calls, catalog changes, refusals and other providers come in between."""
    chat = Chat([*EVERYTHING.values(), Tool(name="core", always_load=True)])
    chat.begin(CLAUDE)
    for step, chosen, kept in steps:
        name = sorted(EVERYTHING)[chosen]
        if step == "search":
            chat.find(name)
        elif step == "call":
            chat.call(name, {"count": 1})
        elif step == "refuse":
            chat.session.drop_references([name])
        else:
            chat.answer()
            chat.begin(OPENAI if step == "swap" else CLAUDE, tools=[EVERYTHING[n] for n in kept])
        plan = chat.session.plan(CLAUDE)
        assert set(referred(plan)) <= set(plan.tools.names)
        assert len(set(plan.tools.names)) == len(plan.tools)
        for content in results(plan):
            parts = () if isinstance(content, str) else content
            kinds = [type(part) for part in parts]  # type: ignore[attr-defined]
            assert kinds in ([], [TextPart], [ReferencePart], [ReferencePart, TextPart])
