"""Tables of figures that fit a terminal: in the narrowest one, a row is a list of its figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from tool_search.cli.terminal.lines import wrapped

__all__ = ["indented", "print_figures"]

_INDENT = "  "
_GAP = "  "
_UNBOUNDED = 10_000


def print_figures(
    console: Console,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    texts: int = 1,
) -> None:
    """Print rows as a table, or as lists if a word of the table would be cut.

    Args:
        console: The console.
        headings: A heading for each column.
        rows: The cells of each row; the first one names it.
        texts: The columns, from the first on, that hold no numbers.
    """
    # First with whole headings, then with a word a line.
    for shown in (headings, [heading.replace(" ", "\n") for heading in headings]):
        table = _table(shown, rows, texts)
        whole = console.options.update_width(_UNBOUNDED)
        if Measurement.get(console, whole, table).maximum <= console.width:
            console.print(table)
            return
    for row in rows:
        console.print(Text(wrapped(row[0], console.width)))
        for line in _list(headings[1:], row[1:], console.width):
            console.print(Text(line))


def _list(headings: Sequence[str], cells: Sequence[str], width: int) -> Iterator[str]:
    column = max(map(cell_len, headings), default=0) + len(_INDENT + _GAP)
    for heading, cell in zip(headings, cells, strict=True):
        if column + cell_len(cell) > width:
            yield indented(f"{heading}: {cell}", width)
        else:
            yield f"{set_cell_size(f'{_INDENT}{heading}', column)}{cell}"


def indented(text: str, cells: int) -> str:
    """Return a text in indented lines of at most so many cells, broken between words."""
    lines = wrapped(text, cells - len(_INDENT)).split("\n")
    return "\n".join(f"{_INDENT}{line}" for line in lines)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for place, heading in enumerate(headings):
        justify: Literal["left", "right"] = "left" if place < texts else "right"
        table.add_column(heading, justify=justify, vertical="bottom")
    for row in rows:
        # As Text, because names must not be read as markup.
        table.add_row(*map(Text, row))
    return table
