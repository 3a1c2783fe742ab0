"""The screen of a chat at a terminal: what is left there after what moved."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from rich.cells import cell_len

from tests.cli.chat.emulator import Emulator
from tool_search.cli.chat.terminal import TerminalScreen
from tool_search.core.messages import ToolCall
from tool_search.i18n import LANGUAGES, Language, text
from tool_search.providers.base import Usage
from tool_search.runner.events import (
    Done,
    ProviderSwitched,
    RunnerEvent,
    RunnerWarning,
    TextDelta,
    ToolCallStarted,
    ToolFinished,
    ToolsDiscovered,
)

SEARCH = ToolCall(id="1", name="tool_search", arguments='{"query": "hex colour"}')
CALL = ToolCall(id="2", name="hex_to_rgb", arguments='{"color": "#ff8800"}')
FOUND = '{"total_tools": 9, "matches": [{"name": "hex_to_rgb"}]}'
ANSWER = "It is **orange**:\n\n- red 255\n- green 136\n\n```\n[255, 136, 0]\n```\n"


def done(answer: str) -> Done:
    return Done(answer=answer, provider="p", steps=3, usage=Usage(input_tokens=1234))


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Emulator:
    """Return a terminal that has both streams."""
    emulator = Emulator()
    monkeypatch.setattr("tool_search.cli.chat.plain.side_console", lambda: emulator.console)
    return emulator


def shown(terminal: Emulator, *events: RunnerEvent, language: Language = "en-US") -> list[str]:
    """Return the lines of a turn."""
    screen = TerminalScreen(console=terminal.console)
    screen.language = language
    screen.work()
    for event in events:
        screen.show(event)
    screen.rest()
    return terminal.shown.split("\n")


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_an_answer_is_shown_once_as_markdown_whatever_its_pieces(
    terminal: Emulator, size: int
) -> None:
    pieces = [ANSWER[place : place + size] for place in range(0, len(ANSWER), size)]
    lines = shown(terminal, *(TextDelta(text=piece) for piece in pieces), done(ANSWER))
    assert lines == [
        "It is orange:", "", " • red 255", " • green 136", "", "", " [255, 136, 0]", "",
        "p: requests 3, tokens read 1,234 (from the cache 0), written 0",
    ]  # fmt: skip


def test_an_answer_that_did_not_stream_is_shown(terminal: Emulator) -> None:
    assert shown(terminal, done("It is *noon*."))[0] == "It is noon."


def test_a_warning_after_the_text_does_not_show_it_again(terminal: Emulator) -> None:
    cut = RunnerWarning(code="reply_cut", message="it was cut")
    lines = shown(
        terminal, TextDelta(text="Half "), TextDelta(text="of it"), cut, done("Half of it")
    )
    assert lines[:2] == ["Half of it", "warning: it was cut"]
    assert "Half of it" not in lines[1:]


def test_an_answer_that_is_not_the_streamed_text_is_shown(terminal: Emulator) -> None:
    late = RunnerWarning(code="turn_timed_out", message="it took too long")
    lines = shown(terminal, TextDelta(text="Half of"), late, done("It took too long."))
    assert lines[:3] == ["Half of", "warning: it took too long", "It took too long."]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_search_is_one_line(terminal: Emulator, language: Language) -> None:
    lines = shown(
        terminal,
        ToolCallStarted(call=SEARCH, tool="tool_search"),
        ToolFinished(call=SEARCH, tool="tool_search", content=FOUND, is_error=False),
        ToolsDiscovered(names=["hex_to_rgb"], total=1),
        language=language,
    )
    assert lines == [text("chat.searched", language, query="hex colour", names="hex_to_rgb")]


def test_a_long_query_leaves_room_for_the_names(terminal: Emulator) -> None:
    query = "a tool that changes a colour with a very long name into its hex code"
    search = replace(SEARCH, arguments=json.dumps({"query": query}))
    (line,) = shown(
        terminal,
        ToolCallStarted(call=search, tool="tool_search"),
        ToolFinished(call=search, tool="tool_search", content=FOUND, is_error=False),
        ToolsDiscovered(names=["hex_to_rgb"], total=1),
    )
    assert line.startswith("search: a tool")
    assert line.endswith("… → found: hex_to_rgb")


def test_a_tool_that_no_search_named_is_told(terminal: Emulator) -> None:
    lines = shown(terminal, ToolsDiscovered(names=["hex_to_rgb"], total=1, via="preload"))
    assert lines == ["found: hex_to_rgb (1 in all)"]


def test_lines_are_cut_to_the_terminal_and_words_wrapped(terminal: Emulator) -> None:
    long = ToolFinished(call=CALL, tool="hex_to_rgb", content="слово " * 50, is_error=False)
    lines = shown(terminal, long, TextDelta(text="слово " * 50), done("слово " * 50))
    assert lines[0].endswith("…")
    assert all(cell_len(line) <= 80 for line in lines)
    assert not any("\u0441\u043b\u043e\n" in line for line in lines)
    assert {word for line in lines[1:-1] for word in line.split()} == {"слово"}


def test_the_spinner_names_the_work_and_is_gone_at_the_end(terminal: Emulator) -> None:
    screen = TerminalScreen(console=terminal.console)
    screen.work()
    assert "the model works" in terminal.shown
    screen.show(ToolCallStarted(call=CALL, tool="hex_to_rgb"))
    assert "hex_to_rgb runs" in terminal.shown
    screen.pause()
    assert terminal.shown == '→ hex_to_rgb {"color": "#ff8800"}'
    screen.work()
    screen.rest()
    assert terminal.shown == '→ hex_to_rgb {"color": "#ff8800"}'


def test_text_that_does_not_count_any_more_stays_and_the_reply_begins_again(
    terminal: Emulator,
) -> None:
    switch = ProviderSwitched(
        from_provider="a", to_provider="b", cause="overloaded", discarded_text="Half of"
    )
    lines = shown(terminal, TextDelta(text="Half of"), switch, TextDelta(text="Whole."), done(""))
    assert lines[:4] == [
        "Half of", "provider: a → b (overloaded)", "the reply begins again", "Whole.",
    ]  # fmt: skip


def test_a_model_does_not_control_the_terminal(terminal: Emulator) -> None:
    assert shown(terminal, TextDelta(text="a\x1b[2J\x07b"), done("x"))[0] == "a[2Jb"


def test_a_long_block_is_drawn_in_the_rows_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    low = Emulator(rows=10)
    monkeypatch.setattr("tool_search.cli.chat.plain.side_console", lambda: low.console)
    block = "```\n" + "".join(f"line {number}\n" for number in range(100))
    screen = TerminalScreen(console=low.console)
    screen.work()
    screen.show(TextDelta(text=block))
    screen._live.refresh()  # type: ignore[union-attr]
    assert "line 99" in low.shown
    assert "line 80" not in low.shown
    screen.rest()
    assert low.shown.count("line 80") == low.shown.count("line 99") == 1
