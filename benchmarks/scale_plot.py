"""Line plots on two logarithmic scales, for the curves of `scale.py`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import escape

__all__ = ["Series", "line_plot"]

Series = Mapping[str, Sequence[tuple[float, float]]]
"""Points (x, y) of each line, by its name."""

_WIDTH, _HEIGHT = 760, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 190, 50, 50
_COLOURS = ("#0969da", "#bc4c00", "#1a7f37", "#8250df", "#57606a")
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.soft{fill:#57606a}.back{fill:#fff}"
    ".grid{stroke:#d0d7de}polyline{fill:none;stroke-width:2.5}"
    "@media (prefers-color-scheme:dark){.back{fill:#161b22}text{fill:#f0f6fc}"
    ".soft{fill:#b1bac4}.grid{stroke:#3d444d}}"
)


def line_plot(title: str, across: str, series: Series) -> str:
    """Return the SVG of lines.

    Args:
        title: The title, with the unit of the lines if they share one.
        across: The name of the horizontal axis.
        series: The lines; all values are above 0.
    """
    points = [point for line in series.values() for point in line]
    xs, ys = _Scale([x for x, _ in points]), _Scale([y for _, y in points])
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    named = f'x="{middle}" y="{_HEIGHT - 10}" text-anchor="middle"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{_STYLE}</style>',
        f'<rect class="back" width="{_WIDTH}" height="{_HEIGHT}" rx="8"/>',
        f'<text x="{_LEFT}" y="28">{escape(title)}</text>',
        *_grid(xs, ys),
        f'<text class="soft" {named}>{escape(across)}</text>',
        *_lines(xs, ys, series),
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


class _Scale:
    """Whole powers of ten around some values."""

    def __init__(self, values: Sequence[float]) -> None:
        self.first = math.floor(math.log10(min(values)))
        self.last = max(self.first + 1, math.ceil(math.log10(max(values))))

    def share(self, value: float) -> float:
        """Return the place of a value between the first power and the last."""
        return (math.log10(value) - self.first) / (self.last - self.first)

    def powers(self) -> Iterator[int]:
        """Yield the exponents."""
        yield from range(self.first, self.last + 1)


def _x(scale: _Scale, value: float) -> float:
    return _LEFT + scale.share(value) * (_WIDTH - _LEFT - _RIGHT)


def _y(scale: _Scale, value: float) -> float:
    return _HEIGHT - _BOTTOM - scale.share(value) * (_HEIGHT - _TOP - _BOTTOM)


def _grid(xs: _Scale, ys: _Scale) -> Iterator[str]:
    for power in xs.powers():
        x = _x(xs, 10.0**power)
        yield (
            f'<text class="soft" x="{x:.1f}" y="{_HEIGHT - 30}" text-anchor="middle">'
            f"{_number(power)}</text>"
        )
    for power in ys.powers():
        y = _y(ys, 10.0**power)
        yield (
            f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}"/>'
            f'<text class="soft" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
            f"{_number(power)}</text>"
        )


def _lines(xs: _Scale, ys: _Scale, series: Series) -> Iterator[str]:
    ends = sorted((_y(ys, line[-1][1]), name) for name, line in series.items())
    places: dict[str, float] = {}
    below = -math.inf
    for end, name in ends:
        # Names of lines that end at one place are written below each other.
        below = places[name] = max(end + 4, below + 16)
    for number, (name, line) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        drawn = " ".join(f"{_x(xs, x):.1f},{_y(ys, y):.1f}" for x, y in line)
        yield f'<polyline points="{drawn}" stroke="{colour}"/>'
        yield (
            f'<text x="{_WIDTH - _RIGHT + 10}" y="{places[name]:.1f}" style="fill:{colour}">'
            f"{escape(name)}</text>"
        )


def _number(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"
