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


def _rows(text: str) -> list[tuple[str, ...]]:
    """Return the rows of all tables, each with the heading that it is under."""
    heading, rows = "", []
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.strip("# ")
        elif line.startswith("|") and not line.startswith("|---"):
            cells = re.split(r"(?<!\\)\|", line)[1:-1]
            rows.append((heading, *(cell.strip() for cell in cells)))
    return rows


def test_the_page_has_each_row_in_its_place_and_names_no_test() -> None:
    assert [row[:2] for row in _rows(PAGE)] == [row[:2] for row in _rows(TABLES)]
    assert "test_" not in PAGE


def test_the_page_says_of_each_row_what_was_tested() -> None:
    """A reason for a difference may follow on the page."""
    for shown, tested in zip(_rows(PAGE), _rows(TABLES), strict=True):
        if len(tested) == 4:
            assert shown[2].startswith(tested[2]), shown[1]


def test_each_row_that_says_the_same_names_its_tests() -> None:
    same = [row for row in _rows(TABLES) if re.search(r"\bthe same(?! order)\b", row[2])]
    assert len(same) > 60
    assert [row[1] for row in same if len(row) == 4 and "test" not in row[3]] == []
