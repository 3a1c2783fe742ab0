"""Draw the demo in terminals: 80 and 120 columns, dark and light, in each language.

Run: python docs/pictures/terminal.py            draw every picture anew
     python docs/pictures/terminal.py --check    fail if a committed picture is stale
"""

from __future__ import annotations

import asyncio
import io
import re
import sys
from collections.abc import Mapping
from html import unescape
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME, TerminalTheme

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parents[1]))

from tool_search.cli.demo.conversation import Demo, UserTurn, prepared_demo  # noqa: E402
from tool_search.cli.demo.screen import DemoScreen  # noqa: E402
from tool_search.cli.terminal.language import choose_language  # noqa: E402
from tool_search.i18n import LANGUAGES  # noqa: E402
from tool_search.runner.events import RunnerEvent  # noqa: E402

COLUMNS = (80, 120)
_LIGHT = TerminalTheme(
    (255, 255, 255),
    (31, 35, 40),
    [(36, 41, 47), (207, 34, 46), (17, 99, 41), (77, 45, 0), (9, 105, 218), (130, 80, 223),
     (27, 124, 131), (110, 119, 129)],
)  # fmt: skip
THEMES = {"dark": SVG_EXPORT_THEME, "light": _LIGHT}
# Fonts of another site: a reader's own monospaced one is as good.
_FONT_FACES = re.compile(r"\s*@font-face \{[^}]*\}")
_TEXT = re.compile(r'textLength="([\d.]+)"([^>]*)>([^<]*)</text>')


def _with_cells(found: re.Match[str]) -> str:
    """Return a text of rich's picture with the length of its cells: rich counts characters."""
    length, attributes, written = found.groups()
    shown = unescape(written)
    cells = float(length) * cell_len(shown) / max(1, len(shown))
    return f'textLength="{cells:g}"{attributes}>{written}</text>'


async def conversation() -> tuple[Demo, list[UserTurn | RunnerEvent]]:
    """Return the demo that has run, and its events."""
    async with prepared_demo(live=False) as (demo, events):
        return demo, [event async for event in events]


def picture(demo: Demo, events: list[UserTurn | RunnerEvent], columns: int, theme: str) -> str:
    """Return the demo as a terminal of some columns shows it, without its times."""
    console = Console(
        record=True, width=columns, file=io.StringIO(), force_terminal=True, highlight=False,
        color_system="truecolor", legacy_windows=False,
    )  # fmt: skip
    screen = DemoScreen(console, demo)
    screen.show_result()
    screen.show_opening(is_live=False)
    screen.show_events(events)
    screen.show_requests()
    screen.show_result()
    return svg(console, "tool-search demo", columns, theme)


def svg(console: Console, title: str, columns: int, theme: str) -> str:
    """Return what a console has recorded as a picture without fonts of another site."""
    drawn = console.export_svg(title=title, theme=THEMES[theme], unique_id=f"t{columns}{theme}")
    drawn = _TEXT.sub(_with_cells, _FONT_FACES.sub("", drawn))
    lines = (line.rstrip() for line in drawn.splitlines())
    return "\n".join(line for line in lines if line) + "\n"


def pictures() -> dict[Path, str]:
    """Return every picture by its file."""
    demo, events = asyncio.run(conversation())
    drawn = {}
    for language in LANGUAGES:
        choose_language(language)
        for columns in COLUMNS:
            for theme in THEMES:
                path = FOLDER / f"terminal-{language}-{columns}-{theme}.svg"
                drawn[path] = picture(demo, events, columns, theme)
    choose_language(None)
    return drawn


def write_or_check(pictures: Mapping[Path, str]) -> None:
    """Write the pictures, by file; with `--check`, end the process if one is stale."""
    stale = []
    for path, drawn in pictures.items():
        if not path.exists() or path.read_text(encoding="utf-8") != drawn:
            stale.append(path.name)
            if "--check" not in sys.argv[1:]:
                path.write_text(drawn, encoding="utf-8")
    if stale and "--check" in sys.argv[1:]:
        sys.exit(f"stale: {', '.join(stale)}; run: make pictures")


if __name__ == "__main__":
    write_or_check(pictures())
