"""Somebody who knows another system follows its page, and searches their own tools."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.project.run_page import ROOT, blocks

PAGES = sorted((ROOT / "docs" / "moving").glob("*.md"))
# AstrBot's page ends in a chat; Kode's search is a program, which test_documents.py runs.
WITHOUT_COMMAND = ("astrbot-proposal", "kode")


def _run(line: str, folder: Path) -> str:
    words = shlex.split(line)
    programs = {"tool-search": ["-m", "tool_search"], "python": []}
    done = subprocess.run(  # noqa: S603  # our own commands
        [sys.executable, *programs[words[0]], *words[1:]],
        capture_output=True, text=True, encoding="utf-8", timeout=240, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert done.returncode == 0, (line, done.stderr)
    return done.stdout


def _lines(path: Path) -> list[str]:
    return [line for block in blocks(path, "sh") for line in block.splitlines()]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_has_at_most_five_steps(path: Path) -> None:
    steps = re.findall(r"^(\d)\. ", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert steps == [str(number) for number in range(1, len(steps) + 1)]
    assert 3 <= len(steps) <= 5


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_what_a_page_installs_and_makes_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = set(known["project"]["optional-dependencies"])
    for listed in re.findall(r"pip install '\.\[([\w,-]+)\]'", text):
        assert set(listed.split(",")) <= extras
    targets = re.findall(
        r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert set(re.findall(r"^make ([\w-]+)$", text, re.MULTILINE)) <= set(targets)


@pytest.mark.parametrize(
    "path", [path for path in PAGES if ".zh-CN" not in path.name], ids=lambda path: path.stem
)
def test_the_commands_of_a_page_end_with_a_search_of_ones_own_tools(
    path: Path, tmp_path: Path
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for block in blocks(path, "json"):
        (tmp_path / "tools.json").write_text(block, encoding="utf-8")
    lines = [line for line in _lines(path) if not line.startswith("make ")]
    printed = [_run(line, tmp_path) for line in lines]
    if path.stem not in WITHOUT_COMMAND:
        assert len(printed) >= 2
        assert all("create_issue" in output for output in printed), printed
        # Other rankings find "an e-mail" by its "an", and put it last.
        assert all("send_mail" not in output.partition("create_issue")[0] for output in printed)


@pytest.mark.parametrize(
    "path", [path for path in PAGES if ".zh-CN" in path.name], ids=lambda path: path.name
)
def test_the_commands_of_both_languages_are_the_same(path: Path) -> None:
    english = path.with_name(path.name.replace(".zh-CN", ""))
    assert _lines(path) == _lines(english)
    assert blocks(path, "json") == blocks(english, "json")
