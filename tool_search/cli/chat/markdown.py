"""Markdown of a model as a terminal shows it, in blocks that are finished while it streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import ClassVar

from markdown_it import MarkdownIt
from rich import markdown
from rich.console import Console, ConsoleOptions, JustifyMethod, OverflowMethod, RenderResult
from rich.containers import Lines
from rich.segment import Segment
from rich.text import Text
from rich.theme import Theme

from tool_search.cli.terminal.lines import breaks

__all__ = ["AnswerMarkdown", "finished_length"]

# HTML, images and link definitions stay text: rendered, they would be lost, or hide an address.
_PARSER = (
    MarkdownIt("commonmark", {"html": False})
    .enable(["strikethrough", "table"])
    .disable(["image", "reference"])
)


def finished_length(text: str) -> int:
    r"""Return the length of the blocks that no further line can change.

    >>> finished_length("One.\n\n- two\n- thr")
    6
    """
    whole = text[: text.rfind("\n") + 1]
    starts = [token.map[0] for token in _PARSER.parse(whole) if token.map and not token.level]
    if not starts:
        return 0
    lines = whole.split("\n")
    return sum(len(line) + 1 for line in lines[: starts[-1]])


# On a dark terminal and on a light one: rich's own style has a black background.
_THEME = Theme({"markdown.code": "bold cyan"})


class _WrappedText(Text):
    """A text whose Chinese is broken between characters, but not before a closing mark."""

    def wrap(
        self,
        console: Console,
        width: int,
        *,
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        tab_size: int = 8,
        no_wrap: bool | None = None,
    ) -> Lines:
        """Return the lines of at most so many cells."""
        if no_wrap or self.no_wrap:
            return super().wrap(
                console, width, justify=justify, overflow=overflow, tab_size=tab_size, no_wrap=True
            )
        lines = Lines()
        for paragraph in self.split(allow_blank=True):
            paragraph.expand_tabs(tab_size)
            parts = paragraph.divide(breaks(paragraph.plain, width))
            for part in parts:
                part.rstrip()
            if alignment := justify or self.justify:
                parts.justify(console, width, justify=alignment, overflow=overflow or "fold")
            lines.extend(parts)
        return lines


class _Paragraph(markdown.Paragraph):
    """A paragraph with our line breaks."""

    def on_enter(self, context: markdown.MarkdownContext) -> None:
        """Begin with an empty text."""
        super().on_enter(context)
        self.text = _WrappedText(justify="left")


class _Heading(markdown.Heading):
    """A heading at the left margin, without a frame."""

    def on_enter(self, context: markdown.MarkdownContext) -> None:
        """Begin with an empty text."""
        super().on_enter(context)
        self.text = _WrappedText(justify="left")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text


class AnswerMarkdown(markdown.Markdown):
    """Markdown of a model: no HTML, no hidden addresses, whole words.

    Args:
        text: The Markdown.
    """

    elements: ClassVar[dict[str, type[markdown.MarkdownElement]]] = {
        **markdown.Markdown.elements,
        "paragraph_open": _Paragraph,
        "heading_open": _Heading,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        self.markup = text
        self.parsed = _PARSER.parse(text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with console.use_theme(_THEME):
            drawn = [*_segments(super().__rich_console__(console, options), console, options)]
        lines = [*Segment.split_lines(drawn)]
        # rich begins a table or a list with an empty line, also where nothing is above it.
        while lines and _is_empty(lines[0]):
            del lines[0]
        while lines and _is_empty(lines[-1]):
            del lines[-1]
        for above, line in pairwise([[], *lines]):
            # The end of a table and the start of what follows are two empty lines.
            if _is_empty(above) and _is_empty(line):
                continue
            yield from line
            yield Segment.line()


def _segments(result: RenderResult, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
    for part in result:
        if isinstance(part, Segment):
            yield part
        else:
            yield from console.render(part, options)


def _is_empty(line: Iterable[Segment]) -> bool:
    """True if nothing of a line is seen, not even a background."""
    return not any(
        segment.text.strip() or (segment.style and segment.style.bgcolor) for segment in line
    )
