"""Lines that fit a terminal: wide characters count two cells."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

from rich.cells import cell_len, chop_cells, set_cell_size

__all__ = ["breaks", "cut", "visible", "wrapped", "wrapped_columns"]

_MARK = "…"
# A word that would leave more than this share of the line empty is cut itself.
_MAX_EMPTY_SHARE = 0.3
_COLUMN = re.compile(r"\S.*?\s{2,}(?=\S)")
_WIDE = r"\u2e80-\u303f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uff60"
# A wide character with the closing marks after it, or a word with its spaces.
_PIECE = re.compile(
    rf"[（「『《“]?[{_WIDE}][、。，；：！？）」』》”…,.;:!?)]*\s*"
    rf"|[^\s{_WIDE}]+[、。，；：！？）」』》”]*\s*|\s+"
)


def cut(line: str, cells: int) -> str:
    """Return a text as one line of at most so many cells, cut between words if possible.

    >>> cut("convert length kilometres", 16), cut("查询火车票", 7)
    ('convert length…', '查询火…')
    """
    line = " ".join(line.split())
    if cell_len(line) <= cells:
        return line
    # A wide character that is cut in two becomes a space.
    kept = set_cell_size(line, max(0, cells - 1)).rstrip()
    if not line[len(kept) : len(kept) + 1].isspace():
        whole, space, _ = kept.rpartition(" ")
        if space and cell_len(whole) >= cells * (1 - _MAX_EMPTY_SHARE):
            kept = whole
    return f"{kept.rstrip(' ,;')}{_MARK}"[: max(0, cells)]


def wrapped(text: str, cells: int, *, first: int = 0) -> str:
    r"""Return a text in lines of at most so many cells, broken between words.

    Chinese, Japanese and Korean have no spaces: their lines are broken between characters,
    but not before a closing mark. Only a word that is longer than a line is broken itself.

    Args:
        text: The text; its own line feeds remain.
        cells: The cells of a line.
        first: The cells of the first line that are taken.

    >>> wrapped("找到的工具继续。", 8)
    '找到的工\n具继续。'
    """
    lines: list[str] = []
    for paragraph in text.split("\n"):
        lines.extend(_lines(paragraph, max(2, cells), 0 if lines else first))
    return "\n".join(lines)


def wrapped_columns(text: str, cells: int) -> str:
    r"""Return lines of a name, spaces and a description; descriptions continue in their column.

    >>> wrapped_columns("/quit  ends the chat", 15)
    '/quit  ends the\n       chat'
    """
    lines: list[str] = []
    for line in text.split("\n"):
        column = _COLUMN.match(line)
        margin = cell_len(column[0]) if column else 0
        if column is None or margin > cells / 2:
            lines.append(wrapped(line, cells))
        else:
            described = wrapped(line[column.end() :], cells - margin)
            lines.append(column[0] + described.replace("\n", f"\n{' ' * margin}"))
    return "\n".join(lines)


def breaks(line: str, cells: int, *, first: int = 0) -> list[int]:
    """Return the places at which a line is broken, as `wrapped` does.

    Args:
        line: The text, without line feeds.
        cells: The cells of a line.
        first: The cells of the first line that are taken.
    """
    places: list[int] = []
    start = place = 0
    room = cells - first
    for piece in _PIECE.findall(line):
        if cell_len(line[start:place] + piece.rstrip()) > room:
            if line[start:place].strip() or room < cells:
                places.append(place)
                start, room = place, cells
            rest = line[start : place + len(piece)]
            for part in chop_cells(rest, cells)[:-1] if cell_len(rest.rstrip()) > cells else ():
                start += len(part)
                places.append(start)
        place += len(piece)
    return places


def visible(shown: str) -> str:
    """Return the text without control characters: a model must not control the terminal."""
    return "".join(
        char for char in shown if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs")
    )


def _lines(paragraph: str, cells: int, taken: int) -> Iterator[str]:
    edges = [0, *breaks(paragraph, cells, first=taken), len(paragraph)]
    for start, end in pairwise(edges):
        yield paragraph[start:end].rstrip()
