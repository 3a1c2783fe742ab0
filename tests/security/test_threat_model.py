"""The threat model: every line of the page names an existing test."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
CITED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
LINES = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| *")]


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


def test_every_test_that_the_page_cites_is_there() -> None:
    assert [f"{path}::{name}" for path, name in CITED if name not in names_in(path)] == []


def test_every_threat_has_a_test() -> None:
    _, *threats = LINES
    assert len(threats) > 25
    assert [line for line in threats if "tests/" not in line] == []
