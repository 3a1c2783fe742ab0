"""Files that several tasks and processes write."""

from __future__ import annotations

import json
import multiprocessing
import resource
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from tool_search.core.values.files import locked, replace_file


def _add(path: str, side: int, count: int) -> None:
    for number in range(count):
        file = Path(path)
        with locked(file):
            content = json.loads(file.read_bytes()) if file.exists() else []
            replace_file(file, json.dumps([*content, f"{side}.{number}"]).encode())


def test_no_change_of_threads_or_processes_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "list.json"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_add, args=(str(path), side, 20)) for side in range(2)]
    threads = [threading.Thread(target=_add, args=(str(path), side, 20)) for side in range(2, 5)]
    everyone: list[Any] = [*workers, *threads]
    for each in everyone:
        each.start()
    for each in everyone:
        each.join()
    assert sorted(json.loads(path.read_bytes())) == sorted(
        f"{side}.{number}" for side in range(5) for number in range(20)
    )
    assert path.stat().st_mode & 0o777 == 0o600


def test_file_that_fails_its_check_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a"
    replace_file(path, b"old", mode=0o640)

    def refuse(new: Path) -> None:
        assert new.read_bytes() == b"new"
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - our own
        replace_file(path, b"new", check=refuse)
    assert path.read_bytes() == b"old"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def _write_onto_full_disk(path: str) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with pytest.raises(OSError, match="too large"):
        replace_file(Path(path), b"x" * 1_000)


def test_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a"
    replace_file(path, b"old")
    writer = multiprocessing.get_context("spawn").Process(
        target=_write_onto_full_disk, args=(str(path),)
    )
    writer.start()
    writer.join()
    assert writer.exitcode == 0
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
