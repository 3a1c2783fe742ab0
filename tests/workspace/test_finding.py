"""Finding files of a workspace by name and by content."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.workspace.calling import Desk
from tool_search.config.permissions import PermissionSettings
from tool_search.runner.execution import Cancellation
from tool_search.sources.workspace import Limits, WorkspaceError
from tool_search.sources.workspace.matching import TimeBudget, TurnBudgets, line_matcher
from tool_search.sources.workspace.walking import glob_matcher


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small project."""
    files = {
        "README.md": "needle in the docs\n",
        "src/a.py": "import os\nneedle = 1\n# Needle\n",
        "src/deep/b.py": "nothing\n",
        "src/deep/c.txt": "x\nneedle\ny\n",
        ".git/config": "needle\n",
    }
    for number, (name, content) in enumerate(files.items()):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        os.utime(path, (1_000 + number, 1_000 + number))
    return tmp_path


async def test_ls_is_in_order_and_says_what_is_a_folder(folder: Path) -> None:
    desk = Desk(folder)
    assert await desk.said("ls") == ".git/\nREADME.md  19 bytes\nsrc/"
    assert await desk.said("ls", limit=1) == ".git/\n[2 more left out]"
    assert "is no folder" in await desk.refused("ls", path="README.md")


async def test_glob_gives_what_changed_last_first(folder: Path) -> None:
    """Without what git keeps for itself."""
    desk = Desk(folder)
    assert await desk.said("glob", pattern="**/*.{py,md}") == "src/deep/b.py\nsrc/a.py\nREADME.md"
    assert await desk.said("glob", pattern="*.py", path="src") == "src/a.py"
    assert await desk.said("glob", pattern="**", limit=1) == "src/deep/c.txt\n[3 more left out]"


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a.py", True), ("*.py", "x/a.py", False), ("**/*.py", "a.py", True),
        ("**/x/**", "a/x/b/c", True), ("a/**/b", "a/b", True), ("a/**/b", "a/x/y/b", True),
        ("a/*/b", "a/x/y/b", False), ("{a,b/{c,d}}.txt", "b/d.txt", True), ("[ab].c", "b.c", True),
        ("./a", "a", True), ("{", "{", True),
    ],
)  # fmt: skip
def test_a_glob_means_what_shells_mean_by_it(pattern: str, path: str, fits: bool) -> None:
    """With `**` for any number of folders, and braces."""
    assert glob_matcher(pattern)(path) is fits


async def test_a_glob_of_too_many_alternatives_is_refused(folder: Path) -> None:
    told = await Desk(folder).refused("glob", pattern="{a,b}" * 30)
    assert "more than 64 alternatives" in told


async def test_grep_names_files_lines_or_counts(folder: Path) -> None:
    desk = Desk(folder)
    end = "\n[3 matching lines in 3 files]"
    assert await desk.said("grep", pattern="^needle") == f"README.md\nsrc/a.py\nsrc/deep/c.txt{end}"
    said = await desk.said("grep", pattern="needle", output_mode="content", path="src")
    assert said == "src/a.py:2:needle = 1\nsrc/deep/c.txt:2:needle\n[2 matching lines in 2 files]"
    counted = {"output_mode": "count", "ignore_case": True, "glob": "*.py"}
    assert await desk.said("grep", pattern="needle", **counted) == (
        "src/a.py:2\n[2 matching lines in 1 files]"
    )


async def test_grep_shows_the_lines_around_a_match(folder: Path) -> None:
    given = {"output_mode": "content", "context_lines": 1, "path": "src/deep/c.txt"}
    said = await Desk(folder).said("grep", pattern="needle", **given)
    shown = ("src/deep/c.txt-1-x", "src/deep/c.txt:2:needle", "src/deep/c.txt-3-y")
    assert said == "\n".join((*shown, "[1 matching lines in 1 files]"))


async def test_grep_says_how_much_it_has_not_shown(folder: Path) -> None:
    said = await Desk(folder).said("grep", pattern="needle", head_limit=1)
    assert said == "README.md\n[2 more left out]\n[3 matching lines in 3 files]"


async def test_grep_passes_over_binary_and_very_large_files(folder: Path) -> None:
    (folder / "a.bin").write_bytes(b"needle\0")
    (folder / "big.txt").write_text("needle\n" * 20)
    desk = Desk(folder, limits=Limits(searched_bytes=100))
    assert await desk.said("grep", pattern="needle", path="src/a.py") == (
        "src/a.py\n[1 matching lines in 1 files]"
    )
    assert "1 files were too large to search" in await desk.said("grep", pattern="needle")


async def test_what_gitignore_names_is_not_searched(folder: Path) -> None:
    pytest.importorskip("pathspec", reason="needs pathspec, of the extra workspace")
    (folder / ".gitignore").write_text("!\n*.md\n/src/deep/\n")
    (folder / "src" / ".gitignore").write_text("a.py\n")
    desk = Desk(folder)
    assert await desk.said("grep", pattern="needle") == "Nothing matches."
    assert await desk.said("glob", pattern="**/*.py", path="src") == "No file fits."
    assert "needle" in await desk.said("read_file", file_path="README.md")


async def test_a_search_ends_at_the_limit_of_entries(folder: Path) -> None:
    desk = Desk(folder, limits=Limits(entries=3))
    assert "stopped after 3 files and folders" in await desk.said("glob", pattern="**")


@pytest.mark.parametrize("pattern", [r"(?=n)needle", r"(n)e\1?edle"])
async def test_what_re2_has_not_is_searched_all_the_same(folder: Path, pattern: str) -> None:
    assert "src/a.py" in await Desk(folder).said("grep", pattern=pattern)


async def test_an_invalid_pattern_is_told(folder: Path) -> None:
    assert "'(' is not valid" in await Desk(folder).refused("grep", pattern="(")


async def test_a_runaway_pattern_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tool_search.sources.workspace.matching._SECONDS", 0.5)
    (folder / "a.txt").write_text("a" * 60 + "!")
    told = await Desk(folder).refused("grep", pattern=r"^(a+)+(?!.)$")
    assert "took longer" in told


def test_a_line_matches_alike_with_and_without_re2() -> None:
    texts = ["a\nb中\n\nB", "", "ab"]
    budget = TimeBudget()
    plain = line_matcher("b", ignore_case=True, budget=budget)(texts)
    aside = line_matcher("(?=b)b", ignore_case=True, budget=budget)(texts)
    assert plain == aside == [[1, 3], [], [0]]


def test_the_patterns_of_a_turn_share_their_time() -> None:
    budget = TimeBudget(0.5)
    slow = line_matcher("(?=a)(a+)+$", ignore_case=False, budget=budget)
    with pytest.raises(WorkspaceError, match=r"longer than the 0\.5 s"):
        slow(["a" * 60 + "b"])
    with pytest.raises(WorkspaceError, match="have used up"):
        line_matcher("(?=b)b", ignore_case=False, budget=budget)(["b"])


def test_a_turn_has_one_budget_whatever_calls_it_makes() -> None:
    budgets, turn = TurnBudgets(), Cancellation()
    first, second = (budgets.of(Cancellation(turn)) for _ in range(2))
    assert first is second
    assert budgets.of(Cancellation()) is not first


@pytest.mark.parametrize("rule", ["deny", "ask"])
async def test_rules_on_reading_hold_for_every_search(folder: Path, rule: str) -> None:
    """A search shows neither the text nor the name of a file that may not be read."""
    (folder / "private").mkdir()
    (folder / "private" / "diary.txt").write_text("alpha, but secretly\n")
    (folder / "open.txt").write_text("alpha\n")
    rules = PermissionSettings.model_validate({rule: ["read_file(private*)"]})
    desk = Desk(folder, rules=rules)
    found = await desk.said("grep", pattern="alpha", output_mode="content")
    assert "open.txt" in found
    assert "diary" not in found
    assert "secretly" not in found
    assert "1 left out: the rules do not let you read them" in found
    assert "diary" not in await desk.said("glob", pattern="**/*.txt")
    assert "diary" not in await desk.said("ls", path="private")
    assert "private" not in await desk.said("ls")
