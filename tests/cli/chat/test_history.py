"""Typed lines are kept for the next chat, for their owner alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tool_search.cli.chat.history import LineHistory, history_file


def loaded(path: Path) -> tuple[LineHistory, list[str]]:
    """Return a history, and the lines that the editor got."""
    lines: list[str] = []
    editor: Any = SimpleNamespace(add_history=lines.append)
    history = LineHistory(path, editor)
    history.load()
    return history, lines


def test_lines_are_there_in_the_next_chat(tmp_path: Path) -> None:
    path = tmp_path / "state" / "chat_history"
    history, lines = loaded(path)
    assert (history.is_kept, lines) == (True, [])
    other, _ = loaded(path)
    for line in ("hello", "", "  a secret", "火车票"):
        history.add(line)
    other.add("/tools")
    assert loaded(path)[1] == ["hello", "火车票", "/tools"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "state" / "chat_history"
    loaded(path)[0].add("hello")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    loaded(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_old_file_is_shortened(tmp_path: Path) -> None:
    path = tmp_path / "chat_history"
    path.write_text("".join(f"line {number}\n" for number in range(3_000)), "utf-8")
    lines = loaded(path)[1]
    assert (len(lines), lines[-1]) == (1_000, "line 2999")
    assert len(path.read_text("utf-8").splitlines()) == 1_000
    left = sorted(file.name for file in tmp_path.iterdir())
    assert left == [".chat_history.lock", "chat_history"]


def test_a_home_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    history, lines = loaded(tmp_path / "file" / "chat_history")
    history.add("hello")
    assert (history.is_kept, lines) == (False, [])


def test_a_broken_file_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "chat_history"
    path.write_bytes(b"a\xff\x00b\nc\nhalf")
    assert loaded(path)[1] == ["a\ufffd\x00b", "c"]


def test_the_state_folder_is_the_one_of_the_specification(tmp_path: Path) -> None:
    named = history_file({"XDG_STATE_HOME": str(tmp_path)})
    assert named == tmp_path / "tool-search" / "chat_history"
    relative = history_file({"XDG_STATE_HOME": "state"})
    assert relative == Path.home() / ".local" / "state" / "tool-search" / "chat_history"
