"""Ctrl-C at each question of `init`."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(("typed", "question"), [(b"", b"kind"), (b"opnai\nopenai\n", b"model")])
def test_ctrl_c_at_a_question_ends_with_130_and_writes_nothing(
    tmp_path: Path, typed: bytes, question: bytes
) -> None:
    asked_again = bool(typed)
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        variables = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}
        os.execve(sys.executable, [sys.executable, "-m", "tool_search", "init"], variables)  # noqa: S606
    shown = b""
    while question not in shown or (typed and b"Which model" not in shown):
        shown += os.read(terminal, 1024)
        if typed and b"Which kind" in shown:
            os.write(terminal, typed)
            typed = b""
    os.write(terminal, b"\x03")
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 130
    assert b"Traceback" not in shown
    assert (b"'opnai' is not a kind of provider" in shown) is asked_again
    assert list(tmp_path.iterdir()) == []
