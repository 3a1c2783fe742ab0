"""Reference pages are made from the code, and current."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from tool_search.cli.application import COMMANDS, app

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "reference.py"


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_reference_pages_are_current(reference: ModuleType) -> None:
    stale = [
        name
        for name, text in reference.pages().items()
        if (ROOT / name).read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run: make reference"


def test_every_command_and_option_of_the_help_is_on_the_page(reference: ModuleType) -> None:
    page = reference.command_line()
    for name in COMMANDS:
        done = CliRunner().invoke(app, [name, "--help"], prog_name="tool-search")
        assert done.exit_code == 0
        _, _, section = page.partition(f"\n## tool-search {name}\n")
        section = section.partition("\n## ")[0]
        options = set(re.findall(r"^  (--[\w-]+)", done.stdout, re.MULTILINE)) - {"--help"}
        assert options
        assert {option for option in options if f"| `{option}` |" not in section} == set(), name
