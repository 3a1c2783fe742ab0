"""Draw recall over the time of a query, from the table of benchmarks/compare.md.

Run: python benchmarks/recall_plot.py [--table benchmarks/compare.md]

Writes docs/pictures/recall.svg. benchmarks/compare.py measures the table; this only draws
it, so that a row that was measured again shows at once.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parent
PICTURE = HERE.parent / "docs" / "pictures" / "recall.svg"
_WIDTH, _HEIGHT = 760, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 120, 20, 50
_LEAST_US, _MOST_US = 100.0, 1_000_000.0
_LEAST, _MOST = 0.40, 0.95
_OURS = "ours"


class Row(NamedTuple):
    """A system, its macro average of recall@5, and the microseconds of a query."""

    system: str
    recall: float
    microseconds: float


def rows_of(page: str) -> list[Row]:
    """Return the rows of the table on a page, in its order."""
    lines = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    head, *rest = lines
    recall, speed = head.index("**macro**"), head.index("µs a query")
    return [
        Row(cells[0], float(cells[recall].strip("*")), float(cells[speed].replace(",", "")))
        for cells in rest
        if len(cells) == len(head)
    ]


def place(row: Row) -> tuple[float, float]:
    """Return the place of a row's point."""
    return across(row.microseconds), down(row.recall)


def across(microseconds: float) -> float:
    """Return the horizontal place of a time, on a logarithmic scale."""
    share = math.log(microseconds / _LEAST_US) / math.log(_MOST_US / _LEAST_US)
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def down(recall: float) -> float:
    """Return the vertical place of a recall."""
    return _HEIGHT - _BOTTOM - (recall - _LEAST) / (_MOST - _LEAST) * (_HEIGHT - _TOP - _BOTTOM)


def label_places(rows: list[Row]) -> dict[str, float]:
    """Return the vertical place of each label, so that no two cover each other."""
    found: dict[str, float] = {}
    taken: list[tuple[float, float]] = []
    for row in sorted(rows, key=lambda row: -row.recall):
        x, y = place(row)
        while any(abs(y - other) < 14 and abs(x - left) < 110 for left, other in taken):
            y += 2
        taken.append((x, y))
        found[row.system] = y
    return found


def svg(rows: list[Row]) -> str:
    """Return the picture."""
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"',
        'font-family="sans-serif" font-size="12" role="img">',
        "<title>Recall@5 over the time of a query</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
    ]
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for step in range(round((_MOST - _LEAST) * 10) + 1):
        recall = _LEAST + step / 10
        y = down(recall)
        out.append(f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="#dddddd"/>')
        out.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{recall:.1f}</text>')
    for power, label in ((2, "0.1 ms"), (3, "1 ms"), (4, "10 ms"), (5, "0.1 s"), (6, "1 s")):
        x = across(10.0**power)
        out.append(f'<path d="M{x:.1f} {_TOP}V{bottom}" stroke="#dddddd"/>')
        out.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{label}</text>')
    labels = label_places(rows)
    for row in rows:
        x, y = place(row)
        colour, weight = (
            ("#c0392b", "bold") if row.system.startswith(_OURS) else ("#2c6fab", "normal")
        )
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>')
        out.append(
            f'<text x="{x + 9:.1f}" y="{labels[row.system] + 4:.1f}" font-weight="{weight}">'
            f"{escape(row.system)}</text>"
        )
    middle = (_LEFT + right) / 2
    out.append(
        f'<text x="{middle}" y="{_HEIGHT - 10}" text-anchor="middle">'
        "a query, median, 13,237 tools</text>"
    )
    out.append(
        f'<text transform="translate(16 {_HEIGHT / 2}) rotate(-90)" text-anchor="middle">'
        "recall@5, average of eight public sets</text>"
    )
    return "\n".join([*out, "</svg>\n"])


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, default=HERE / "compare.md")
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args()
    options.picture.write_text(svg(rows_of(options.table.read_text("utf-8"))), "utf-8")


if __name__ == "__main__":
    main()
