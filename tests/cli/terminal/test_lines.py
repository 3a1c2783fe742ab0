"""Lines of a terminal, with wide characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tool_search.cli.terminal.lines import cut, wrapped, wrapped_columns
from tool_search.i18n import LANGUAGES, Language, text

TEXTS = st.text(st.sampled_from("ab，。：的查询 .,-"), max_size=60)


@given(TEXTS, st.integers(1, 30))
def test_a_cut_line_fits(line: str, cells: int) -> None:
    shown = cut(line, cells)
    assert cell_len(shown) <= cells
    assert shown == " ".join(line.split()) or shown.endswith("…")


@given(TEXTS, st.integers(4, 30), st.integers(0, 3))
def test_wrapped_lines_fit_and_lose_nothing(line: str, cells: int, first: int) -> None:
    shown = wrapped(line, cells, first=first)
    head, *rest = shown.split("\n")
    assert cell_len(head) <= cells - first
    assert all(cell_len(each) <= cells for each in rest)
    assert "".join(shown.split()) == "".join(line.split())


def test_words_are_whole_and_chinese_is_broken_between_characters() -> None:
    assert wrapped("one three five", 9) == "one three\nfive"
    assert wrapped("一个有 196 个工具的机器人", 12) == "一个有 196\n个工具的机器\n人"


def test_a_line_does_not_begin_with_a_closing_mark() -> None:
    assert wrapped("查询查询。查询", 8) == "查询查\n询。查询"


def test_a_word_longer_than_the_line_is_broken() -> None:
    assert wrapped("a convert_length", 8) == "a\nconvert_\nlength"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_description_continues_in_its_column(language: Language) -> None:
    listed = text("chat.help", language)
    column = listed.index(listed.split()[1])
    shown = wrapped_columns(listed, 50)
    assert all(cell_len(line) <= 50 for line in shown.split("\n"))
    assert all(line.startswith(("/", " " * column)) for line in shown.split("\n"))
    assert "".join(shown.split()) == "".join(listed.split())
    assert wrapped_columns("/quit  ends the chat", 8) == wrapped("/quit  ends the chat", 8)
