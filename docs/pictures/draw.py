"""Draw the pictures of the README and the documentation from the demo's own figures.

Run: python docs/pictures/draw.py            draw both pictures anew
     python docs/pictures/draw.py --check    fail if a committed picture is stale
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]

# One colour scheme for light pages and one for dark ones. The card has its own background, so
# the text is legible even on a page whose scheme differs from the reader's setting.
_STYLE = """
  .card { fill: #ffffff; stroke: #d0d7de }
  .text, .head, .value { fill: #1f2328; font-family: system-ui, "Segoe UI", sans-serif }
  .soft { fill: #57606a }
  .full { fill: #b4bcc5 }
  .ours { fill: #0969da }
  .line { stroke: #cf222e; stroke-width: 2; stroke-dasharray: 5 5 }
  .switch { fill: #cf222e }
  .arrow { stroke: #57606a; stroke-width: 2; fill: none }
  .box { fill: #eef4fb; stroke: #0969da }
  @media (prefers-color-scheme: dark) {
    .card { fill: #161b22; stroke: #3d444d }
    .text, .head, .value { fill: #f0f6fc }
    .soft { fill: #b1bac4 }
    .full { fill: #545d68 }
    .ours { fill: #58a6ff }
    .line { stroke: #ff7b72 }
    .switch { fill: #ff7b72 }
    .arrow { stroke: #b1bac4 }
    .box { fill: #1c2b3f; stroke: #58a6ff }
  }
"""
_WIDTH = 640
_HEIGHT = 470
_LEFT, _RIGHT, _TOP, _BOTTOM = 16, 624, 132, 404


def demo_figures() -> dict[str, Any]:
    """Return what `tool-search demo --json` prints."""
    command = [sys.executable, "-m", "tool_search", "demo", "--json"]
    done = subprocess.run(  # noqa: S603  # our own command
        command, cwd=ROOT, check=True, capture_output=True, text=True, encoding="utf-8"
    )
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def tokens_picture(figures: Mapping[str, Any]) -> str:
    """Return the SVG of each request's tokens, with tool search and without."""
    requests: Sequence[Mapping[str, Any]] = figures["requests"]
    ours = sum(request["tokens"] for request in requests)
    full = sum(request["full_tokens"] for request in requests)
    highest = max(request["full_tokens"] for request in requests)
    step = (_RIGHT - _LEFT) / len(requests)
    body = [
        _text(24, 40, f"{full:,} → {ours:,} tokens", size=28, css="head", weight=700),
        _text(24, 70, f"One conversation, {len(requests)} requests, 196 tools", size=20),
        '<rect class="full" x="24" y="88" width="18" height="18" rx="3"/>',
        _text(50, 104, "all tools", size=20, css="text soft"),
        '<rect class="ours" x="150" y="88" width="18" height="18" rx="3"/>',
        _text(176, 104, "tool search", size=20, css="text soft"),
    ]
    for number, request in enumerate(requests):
        body += _bars(number, request, highest, _LEFT + number * step, step)
    for switch in figures["switches"]:
        body += _switch(switch, _LEFT + switch["request"] * step)
    body.append(_text(24, 454, "tokens of each request, estimated", size=18, css="text soft"))
    label = f"Tokens of each request: {full:,} with all tools, {ours:,} with tool search"
    return _svg(_WIDTH, _HEIGHT, label, body)


def _bars(
    number: int, request: Mapping[str, Any], highest: int, left: float, step: float
) -> list[str]:
    shown = []
    for kind, tokens, inset in (
        ("full", request["full_tokens"], 3.0),
        ("ours", request["tokens"], 3.0),
    ):
        height = (_BOTTOM - _TOP) * tokens / highest
        shown.append(
            f'<rect class="{kind}" x="{left + inset:.1f}" y="{_BOTTOM - height:.1f}" '
            f'width="{step - 2 * inset:.1f}" height="{height:.1f}" data-request="{number}" '
            f'data-tokens="{tokens}"/>'
        )
    top = _BOTTOM - (_BOTTOM - _TOP) * request["tokens"] / highest
    middle = left + step / 2
    label = f"{request['tokens'] / 1000:.1f}k"
    shown.append(_text(middle, top - 6, label, size=17, css="value", anchor="middle"))
    shown.append(_text(middle, _BOTTOM + 22, str(number + 1), size=17, anchor="middle"))
    return shown


def _switch(switch: Mapping[str, Any], place: float) -> list[str]:
    words = f"{switch['from']} fails, {switch['to']} goes on"
    line = (
        f'<line class="line" x1="{place:.1f}" y1="{_TOP - 10}" x2="{place:.1f}" '
        f'y2="{_BOTTOM + 28}" data-request="{switch["request"]}"/>'
    )
    return [
        line,
        _text(place + 8, _TOP - 14, words, size=19, css="text switch", weight=600),
    ]


_STEPS = (
    ("1  The user asks", "begin_turn: fixes mode and language, applies a new catalog"),
    ("2  A request is planned", "plan: core tools, tool_search, what was found so far"),
    ("3  The model answers", "accept: text ends the turn, calls go on"),
    ("4  Each call is decided", "decide: a search, a wrong argument or a tool to run"),
    ("5  Tools run", "arguments, permission, hooks, the function, its result"),
    ("6  Results are committed", "commit: what a search found is callable from now on"),
)


def turn_picture() -> str:
    """Return the SVG of one turn: plan, reply, calls, results, and again."""
    body = [_text(24, 40, "One turn", size=28, css="head", weight=700)]
    for number, (title, words) in enumerate(_STEPS):
        top = 62 + number * 88
        body += [
            f'<rect class="box" x="24" y="{top}" width="524" height="66" rx="8"/>',
            _text(40, top + 28, title, size=20, weight=600),
            _text(40, top + 53, words, size=16, css="text soft"),
        ]
        if number:
            body.append(_arrow(f"M 286 {top - 22} V {top - 3}"))
    second, last = 62 + 88 + 33, 62 + 5 * 88 + 33
    body.append(_arrow(f"M 548 {last} H 590 V {second} H 551"))
    body.append(
        f'<text class="text soft" font-size="16" text-anchor="middle" '
        f'transform="translate(612 {(second + last) / 2:.0f}) rotate(90)">'
        "the next request, on any provider</text>"
    )
    return _svg(_WIDTH, 600, "The steps of one turn, from the question to the answer", body)


def _arrow(path: str) -> str:
    return f'<path class="arrow" d="{path}" marker-end="url(#tip)"/>'


def _text(
    x: float,
    y: float,
    words: str,
    *,
    size: int,
    css: str = "text",
    anchor: str = "start",
    weight: int = 400,
) -> str:
    return (
        f'<text class="{css}" x="{x:.1f}" y="{y:.1f}" font-size="{size}" '
        f'font-weight="{weight}" text-anchor="{anchor}">{escape(words)}</text>'
    )


def _svg(width: int, height: int, label: str, body: Sequence[str]) -> str:
    tip = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path class="soft" d="M 0 0 L 8 4 L 0 8 z"/>'
        "</marker></defs>"
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="{escape(label)}">'
    )
    card = f'<rect class="card" x="1" y="1" width="{width - 2}" height="{height - 2}" rx="10"/>'
    return "\n".join([head, f"<style>{_STYLE}</style>", tip, card, *body, "</svg>", ""])


def pictures() -> dict[Path, str]:
    """Return the text of each picture by its file."""
    return {
        FOLDER / "tokens.svg": tokens_picture(demo_figures()),
        FOLDER / "turn.svg": turn_picture(),
    }


def main() -> None:
    """Draw the pictures, or check them."""
    parser = argparse.ArgumentParser(description="Draw the pictures of the documentation.")
    parser.add_argument("--check", action="store_true", help="fail if a picture is stale")
    check = parser.parse_args().check
    stale = []
    for path, drawn in pictures().items():
        if not path.is_file() or path.read_text(encoding="utf-8") != drawn:
            stale.append(path.relative_to(ROOT).as_posix())
            if not check:
                path.write_text(drawn, encoding="utf-8")
    if check and stale:
        sys.exit(f"stale: {', '.join(stale)}; run: make pictures")


if __name__ == "__main__":
    main()
