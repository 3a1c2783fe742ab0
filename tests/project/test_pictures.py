"""The pictures of the README show what the demo measures."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from rich.cells import cell_len

from tool_search.cli.demo.conversation import prepared_demo
from tool_search.i18n import LANGUAGES, text

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
SVG = "{http://www.w3.org/2000/svg}"


def test_no_picture_is_stale() -> None:
    done = subprocess.run(  # noqa: S603  # our own script
        [sys.executable, str(PICTURES / "draw.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


async def _figures() -> Mapping[str, Any]:
    async with prepared_demo(live=False) as (demo, events):
        async for _ in events:
            pass
        return demo.to_dict()


async def test_bars_and_sums_are_the_demos_figures() -> None:
    figures = await _figures()
    tree = ET.parse(PICTURES / "tokens.svg")  # noqa: S314  # our own file
    bars: dict[str, list[int]] = {"full": [], "ours": []}
    for bar in tree.iter(f"{SVG}rect"):
        if "data-tokens" in bar.attrib:
            bars[bar.attrib["class"]].append(int(bar.attrib["data-tokens"]))
    requests = figures["requests"]
    assert bars["ours"] == [request["tokens"] for request in requests]
    assert bars["full"] == [request["full_tokens"] for request in requests]
    lines = [line for line in tree.iter(f"{SVG}line") if line.attrib["class"] == "line"]
    switches = [str(switch["request"]) for switch in figures["switches"]]
    assert [line.attrib["data-request"] for line in lines] == switches
    words = " ".join(text.text or "" for text in tree.iter(f"{SVG}text"))
    figures_shown = f"{sum(bars['full']):,} → {sum(bars['ours']):,} token"
    assert figures_shown in words
    for readme in ("README.md", "README.zh-CN.md"):
        assert figures_shown in (ROOT / readme).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["tokens.svg", "turn.svg"])
def test_a_picture_is_legible_on_a_phone_and_on_a_dark_page(name: str) -> None:
    text = (PICTURES / name).read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in text
    assert 'class="card"' in text  # a background of its own, whatever the page's is
    width = int(re.search(r'viewBox="0 0 (\d+) ', text).group(1))  # type: ignore[union-attr]
    sizes = [int(size) for size in re.findall(r'font-size="(\d+)"', text)]
    assert min(sizes) * 390 / width >= 9.5  # CSS pixels on a phone 390 wide


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("theme", ["dark", "light"])
def test_a_terminal_of_the_demo_shows_its_result_twice(
    language: str, columns: int, theme: str
) -> None:
    """Words, not bytes: another release of rich may draw them otherwise."""
    path = PICTURES / f"terminal-{language}-{columns}-{theme}.svg"
    drawn = path.read_text(encoding="utf-8")
    tree = ET.fromstring(drawn)  # noqa: S314  # our own file
    lines = [(text.text or "").replace("\xa0", " ") for text in tree.iter(f"{SVG}text")]
    result = text("demo.result", language, saving="90 %", tokens="28,578", full_tokens="289,671")
    shown = result.replace(",", " ") if language == "ru-RU" else result
    assert sum(shown in line for line in lines) == 2
    assert max(map(cell_len, lines)) <= columns
    assert "http" not in re.sub(r"http://www\.w3\.org/\S*", "", drawn).replace(
        "https://www.textualize.io", ""
    )


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("theme", ["dark", "light"])
def test_a_terminal_of_the_chat_has_whole_words_in_lines_that_fit(
    language: str, columns: int, theme: str
) -> None:
    path = PICTURES / f"chat-{language}-{columns}-{theme}.svg"
    tree = ET.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314  # our own file
    rows: dict[float, list[tuple[float, str]]] = {}
    for part in tree.iter(f"{SVG}text"):
        if "textLength" in part.attrib:
            place = rows.setdefault(float(part.attrib["y"]), [])
            place.append((float(part.attrib["x"]), (part.text or "").replace("\xa0", " ")))
    lines = ["".join(part for _, part in sorted(row)).rstrip() for _, row in sorted(rows.items())]
    assert max(map(cell_len, lines)) <= columns
    together = " ".join(lines)
    keys = ("stand_in.note", "chat.state_found", "chat.state_deferred")
    for sentence in (*(text(key, language) for key in keys), "convert_length", "26", "$0."):
        words = sentence.split() if language != "zh-CN" else sentence
        assert all(word in together for word in words)
    # A line that goes on in the next one ends with a whole word.
    assert not any(line.endswith("-") or line.startswith(("，", "。", ",")) for line in lines)
