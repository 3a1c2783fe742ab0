"""Tables of figures in terminals of any width."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from tool_search.cli.terminal.tables import print_figures
from tool_search.i18n import LANGUAGES, Language, text

_KEYS = (
    "provider", "strategy", "mode", "limit", "tools", "tokens", "full", "pays", "searches", "cache"
)  # fmt: skip
_ROWS = [
    ("main (claude-sonnet-4-6)", "claude", "tool_search", "-", "3", "302", "96", "7", "-", "302"),
    ("二号 (gpt-5.4)", "generic", "full", "128", "200", "12,345", "23,456", "8", "1", "-"),
]


def _shown(language: Language, width: int) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=width, highlight=False)
    headings = [text(f"examined.{key}", language) for key in _KEYS]
    print_figures(console, headings, _ROWS, texts=3)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", [20, 40, 80, 120, 200])
def test_no_word_of_a_table_is_cut(width: int, language: Language) -> None:
    lines = _shown(language, width)
    assert all(cell_len(line.rstrip()) <= width for line in lines)
    words = {word for line in lines for word in line.split()}
    cells = {word for row in _ROWS for cell in row for word in cell.split()}
    assert cells <= words
    assert not any("…" in line for line in lines)


def test_a_wide_terminal_has_a_row_for_each_entry() -> None:
    heading, first, second = _shown("en-US", 200)
    assert heading.split()[:3] == ["provider", "strategy", "mode"]
    assert first.split()[-3:] == ["7", "-", "302"]
    assert second.split()[0] == "二号"
    assert len(_shown("en-US", 120)) == 5
    assert len(_shown("en-US", 80)) == 2 * len(_KEYS)
