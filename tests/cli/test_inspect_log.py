"""`tool-search inspect-log`: the requests that a proxy has kept in a file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.cli.conftest import Command
from tests.inspector.test_recorder import CATALOG, explain, record
from tool_search.serving.inspector.log import RecordLog
from tool_search.serving.inspector.recorder import Recorder


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A log of three requests."""
    path = tmp_path / "requests.jsonl"
    recorder = Recorder(10, RecordLog(path, 1_000_000))
    for number in range(3):
        recorder.add(record(number), catalog=CATALOG, explain=explain)
    return path


def test_figures_are_printed_as_json(command: Command, kept: Path) -> None:
    shown = command("inspect-log", kept, "--json").json
    assert (shown["requests"], shown["tokens"], shown["searches"]) == (3, 30, 3)
    assert shown["never_found"] == ["never"]
    assert command("inspect-log", kept, "--last", "2", "--json").json["requests"] == 2


def test_lines_that_cannot_be_read_are_counted(command: Command, kept: Path) -> None:
    with kept.open("a", encoding="utf-8") as file:
        file.write('{"request":{"id":')
    shown = command("inspect-log", kept, "--json")
    assert shown.json["requests"] == 3
    assert "1 lines of" in shown.err


def test_another_file_is_refused_by_name(command: Command, tmp_path: Path) -> None:
    missing = command("inspect-log", tmp_path / "missing.jsonl", "--json")
    assert missing.status == 2
    assert "missing.jsonl" in missing.err
    assert "Traceback" not in missing.err


def test_the_page_shows_the_log_and_ends_with_an_open_stream(kept: Path) -> None:
    arguments = [sys.executable, "-m", "tool_search", "inspect-log", str(kept)]
    process = subprocess.Popen(  # noqa: S603  # our own command
        [*arguments, "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("3 requests: http://127.0.0.1:")
        address = line.split()[-1]
        rows = httpx2.get(f"{address}api/requests").json()
        assert [row["id"] for row in rows["requests"]] == ["r0", "r1", "r2"]
        assert rows["kept"] is True
        opened = httpx2.get(f"{address}api/requests/r1").json()
        assert opened["searched"][0]["queries"][0]["hits"][0]["reasons"]
        with httpx2.stream("GET", f"{address}api/events") as events:
            assert next(events.iter_text()) == ": open\n\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(30) in (0, 130, -signal.SIGINT)
    finally:
        process.kill()
        process.communicate()
