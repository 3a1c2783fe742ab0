"""Draw the logo of the AstrBot plugin: a magnifying glass over a list of tools.

    python .ci/astrbot_logo.py

256 x 256, as AstrBot's guide for plugins recommends. Its bytes depend on zlib's release; its
pixels do not.
"""

from __future__ import annotations

import math
import struct
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGO = ROOT / "examples" / "astrbot_plugin_tool_search" / "logo.png"
SIZE = 256
_BACK, _LIST, _FOUND, _GLASS = (37, 78, 158), (150, 180, 232), (255, 198, 64), (255, 255, 255)
_BARS = ((62, 138), (100, 120), (138, 92), (176, 104))
_FOUND_BAR = 1
_CENTRE, _RADIUS, _STROKE = (146, 116), 56, 15
_HANDLE = ((188, 158), (222, 194))


def _box(x: float, y: float, box: tuple[float, float, float, float], r: float) -> float:
    """Return the distance to a box with round corners; negative inside."""
    left, top, right, bottom = box
    dx = max(left + r - x, x - right + r, 0.0)
    dy = max(top + r - y, y - bottom + r, 0.0)
    return math.hypot(dx, dy) - r


def _segment(x: float, y: float, width: float) -> float:
    (ax, ay), (bx, by) = _HANDLE
    along = ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2)
    along = min(max(along, 0.0), 1.0)
    return math.hypot(x - ax - along * (bx - ax), y - ay - along * (by - ay)) - width


def _blend(under: tuple[float, ...], over: tuple[int, ...], distance: float) -> tuple[float, ...]:
    share = min(max(0.5 - distance, 0.0), 1.0)
    return tuple(a + (b - a) * share for a, b in zip(under, over, strict=True))


def pixel(column: int, row: int) -> tuple[int, int, int, int]:
    """Return red, green, blue and opacity of a pixel."""
    x, y = column + 0.5, row + 0.5
    colour: tuple[float, ...] = _BACK
    for index, (top, length) in enumerate(_BARS):
        shade = _FOUND if index == _FOUND_BAR else _LIST
        colour = _blend(colour, shade, _box(x, y, (34, top, 34 + length, top + 18), 9))
    away = math.hypot(x - _CENTRE[0], y - _CENTRE[1])
    colour = _blend(colour, _GLASS, abs(away - _RADIUS) - _STROKE / 2)
    colour = _blend(colour, _GLASS, _segment(x, y, 12))
    opacity = min(max(0.5 - _box(x, y, (0, 0, SIZE, SIZE), 52), 0.0), 1.0)
    red, green, blue = (round(each) for each in colour)
    return red, green, blue, round(255 * opacity)


def pixels() -> bytes:
    """Return the rows of the picture, each after its PNG filter of 0."""
    return b"".join(
        b"\0" + b"".join(bytes(pixel(column, row)) for column in range(SIZE)) for row in range(SIZE)
    )


def png() -> bytes:
    """Return the picture as a PNG."""
    head = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 6, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(pixels(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content))
        + name
        + content
        + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks
    )


if __name__ == "__main__":
    LOGO.write_bytes(png())
    print(f"{LOGO}: {LOGO.stat().st_size:,} bytes")
