"""The real command, in this process or in one of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tool_search.cli.application import app
from tool_search.cli.terminal.language import choose_language
from tool_search.testing import StandInServer

TOOLS = (
    {"name": "get_weather", "description": "Weather forecast of a city.", "server": "weather"},
    {"name": "send_mail", "description": "Send an e-mail to somebody."},
    {"name": "query_train", "description": "查询火车票和时刻表"},
    {"name": "convert_currency", "description": "Convert money between currencies."},
    {"name": "hand_over", "description": "Hand over to a person.", "kind": "handoff"},
)


class Outcome:
    """The output and the status of a command."""

    def __init__(self, out: str, err: str, status: int) -> None:
        self.out, self.err, self.status = out, err, status

    @property
    def json(self) -> Any:
        """Standard output, which is one JSON value."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """Standard output, which is JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


Command = Callable[..., Outcome]
COMMAND = (sys.executable, "-c", "from tool_search.cli import main; main()")


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run `tool-search` in this process."""
    monkeypatch.setattr(sys, "path", [*sys.path])

    def run(*arguments: object, typed: str = "", env: Mapping[str, str] | None = None) -> Outcome:
        try:
            result = CliRunner().invoke(app, list(map(str, arguments)), input=typed, env=env)
        finally:
            # The language of `--language` would hold for the tests that come after.
            choose_language(None)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.stdout, result.stderr, result.exit_code)

    return run


@pytest.fixture
def process() -> Command:
    """Run `tool-search` in a process of its own."""

    def run(*arguments: object, typed: str = "", env: Mapping[str, str] | None = None) -> Outcome:
        done = subprocess.run(  # noqa: S603  # our own command
            [
                sys.executable,
                "-c",
                "from tool_search.cli import main; main()",
                *map(str, arguments),
            ],
            input=typed.encode(),
            capture_output=True,
            timeout=60,
            env=env,
            check=False,
        )
        return Outcome(done.stdout.decode(), done.stderr.decode(), done.returncode)

    return run


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a file for a command to read."""

    def file(name: str, content: str) -> Path:
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return path

    return file


def as_lines(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the entries as JSON Lines."""
    return "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)


@pytest.fixture
def catalog(write: Callable[[str, str], Path]) -> Path:
    """Return a file of five tools."""
    return write("tools.jsonl", as_lines(TOOLS))


@pytest.fixture
def large_catalog(write: Callable[[str, str], Path]) -> Path:
    """Return a file of 200 tools of two servers, and one core tool."""
    many = [
        {
            "name": f"tool_{index:03}",
            "description": f"Does the thing of number {index}, and takes its time.",
            "parameters": {"type": "object", "properties": {"value": {"type": "integer"}}},
            "server": f"server_{index % 2}",
        }
        for index in range(200)
    ]
    return write("many.jsonl", as_lines([*many, TOOLS[-1]]))


@pytest.fixture
def server() -> Iterator[StandInServer]:
    """Yield a provider on loopback."""
    with StandInServer() as running:
        yield running
