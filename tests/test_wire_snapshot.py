"""`benchmarks/wire_snapshot.py`: two snapshots of one commit are equal, and a change is seen."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
FEW = ("restart-responses", "fallback-midway-claude", "swap-chat-glm", "vendors")


@pytest.fixture
def witness(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("wire_snapshot")


@pytest.fixture
def older(witness: ModuleType, tmp_path: Path) -> Path:
    """A small snapshot."""
    witness.write_snapshot(tmp_path / "older", only=FEW)
    return tmp_path / "older"


def test_two_processes_write_the_same(witness: ModuleType, older: Path, tmp_path: Path) -> None:
    newer = tmp_path / "newer"
    command = [sys.executable, str(BENCHMARKS / "wire_snapshot.py"), "write", str(newer)]
    only = [word for name in FEW for word in ("--only", name)]
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    subprocess.run([*command, *only], env=environment, check=True, capture_output=True)  # noqa: S603 - our own command
    assert witness.differences(older, newer, renamed={}) == []
    assert (newer / "bodies" / "vendors.txt").stat().st_size > 100_000
    assert len(list((newer / "bodies").iterdir())) > len(FEW)


@pytest.mark.parametrize("part", ["bodies", "events", "answers"])
def test_one_changed_byte_is_reported_with_its_line(
    witness: ModuleType, older: Path, part: str
) -> None:
    changed = next(path for path in sorted((older / part).iterdir()) if path.stat().st_size)
    content = changed.read_bytes()
    newer = shutil.copytree(older, older.parent / "newer")
    place = len(content) - 2  # before the end of the last line
    (newer / part / changed.name).write_bytes(content[:place] + b"~\n")
    (report,) = witness.differences(older, newer, renamed={})
    line = content[:place].count(b"\n") + 1
    assert f"{part}/{changed.name}: line {line}, byte" in report.replace(os.sep, "/")
