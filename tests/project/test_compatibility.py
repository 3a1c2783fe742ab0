"""The compatibility tables name tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLES = (Path(__file__).parent / "compatibility.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
TESTS = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
}


def test_a_named_test_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", TABLES))
    assert sorted(named - TESTS) == []
    assert len(named) > 100


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(tests/[\w/.]+)`", TABLES))))
def test_a_named_file_or_folder_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_every_row_says_where_it_is_tested_or_why_it_differs() -> None:
    rows = [line for line in TABLES.splitlines() if line.startswith("|")]
    cells = [re.split(r"(?<!\\)\|", row)[1:-1] for row in rows]
    widths = {len(row) for row in cells}
    assert widths <= {2, 3, 5}
    assert all(cell.strip() for row in cells for cell in row if len(row) == 3)
    assert len(cells) > 100


def _rows(text: str) -> list[str]:
    """Return the first cell of each row of a table."""
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line[:1] == "|"]
    return [row[0].strip() for row in rows]


def test_the_page_has_every_row_and_names_no_test() -> None:
    assert sorted(set(_rows(TABLES)) - set(_rows(PAGE)) - {"---", "system"}) == []
    assert "test_" not in PAGE
