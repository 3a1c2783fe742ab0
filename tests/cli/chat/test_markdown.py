"""Markdown of a model: its blocks while it streams, and its lines in a terminal."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from tool_search.cli.chat.markdown import AnswerMarkdown, finished_length

ANSWER = """\
# Heading

Some **bold** text, `code` and a [link](https://example.com/x) <b>of HTML</b>.

一个有 196 个工具的机器人，每次请求只发送其中几个；模型需要时再搜索。

- one
- two
  - nested

1. first
2. second

| name | price |
|------|------:|
| 苹果 | 3 |
| Яблоко | 12 |

> a quote

```python
def double(x):
    return 2 * x
```

[1]: https://example.com/y
"""


def drawn(text: str, columns: int) -> str:
    """Return Markdown as a terminal without colours shows it."""
    file = io.StringIO()
    Console(file=file, width=columns, color_system=None).print(AnswerMarkdown(text))
    return file.getvalue()


def test_one_empty_line_is_between_blocks_and_code_keeps_its_own() -> None:
    shown = drawn("- a\n\n| b |\n|---|\n| c |\n\nd\n\n```\ne\n\n\nf\n```\n", 20)
    lines = [line.strip() for line in shown.split("\n")]
    assert lines[: lines.index("d") + 1] == ["• a", "", "b", "─", "c", "", "d"]
    assert lines.index("f") - lines.index("e") == 3


@pytest.mark.parametrize("columns", [20, 80, 120])
def test_lines_fit_and_no_text_is_lost(columns: int) -> None:
    shown = drawn(ANSWER, columns)
    assert max(map(cell_len, shown.split("\n"))) <= columns
    together = "".join(shown.split())
    for kept in (
        "Heading", "bold", "<b>ofHTML</b>", "(https://example.com/x)", "模型需要时再搜索。",
        "•nested", "2second", "Яблоко12", "aquote", "return2*x", "[1]:https://example.com/y",
    ):  # fmt: skip
        assert kept in together
    assert "**" not in shown
    assert "```" not in shown


def test_chinese_is_broken_before_no_closing_mark() -> None:
    lines = drawn("查询查询。查询，查询。查询", 8).split("\n")
    assert not any(line.startswith(("。", "，")) for line in lines)


def test_words_with_spaces_stay_whole() -> None:
    text = "Короткие слова остаются целыми and so do these"
    shown = drawn(text, 20)
    assert [word for line in shown.split("\n") for word in line.split()] == text.split()


BLOCKS = st.lists(
    st.sampled_from(
        ["para\n", "\n", "- a\n", "  more\n", "1. b\n", "```\n", "# h\n", "| a |\n", "|---|\n",
         "> q\n", "    code\n", "---\n", "===\n", "<b>\n", "**x", "\n\n"]
    ),
    max_size=25,
)  # fmt: skip


@given(BLOCKS)
def test_finished_blocks_are_those_of_the_whole_answer(pieces: list[str]) -> None:
    whole, rest, blocks = "", "", []
    for piece in pieces:
        whole, rest = whole + piece, rest + piece
        if length := finished_length(rest):
            blocks.append(rest[:length])
            rest = rest[length:]
    assert "".join(blocks) + rest == whole

    def lines(text: str) -> list[str]:
        return [line.rstrip() for line in drawn(text, 40).split("\n") if line.strip()]

    apart = [line for block in (*blocks, rest) for line in lines(block)]
    assert apart == lines(whole)
