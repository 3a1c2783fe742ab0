"""Each command without the extras that it needs: the extra is named, and the status is 2."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import as_lines

ROOT = Path(__file__).resolve().parents[2]
# In a process of its own, because modules that are loaded already would hide what is missing.
_PROGRAM = """
import json, sys
for name in ("anthropic", "openai", "mcp", "starlette", "uvicorn", "jieba", "rank_bm25", "re2",
             "opentelemetry", "numpy", "redis"):
    sys.modules[name] = None
from typer.testing import CliRunner
from tool_search.cli.application import app
ended = {}
for given in json.loads(sys.argv[1]):
    done = CliRunner().invoke(app, given.split())
    ended[given] = (done.exit_code, done.stdout, done.stderr)
print(json.dumps(ended))
"""
NEEDING = {
    "demo": "anthropic",
    "chat --stand-in --config {folder}/bot.yaml": "anthropic",
    "search --catalog {folder}/t.jsonl --query x --engine regex": "regex",
    "search --catalog {folder}/t.jsonl --query x --engine rank_bm25": "jieba",
    "search --catalog {folder}/t.jsonl --query x --preset astrbot": "jieba",
    "search --catalog {folder}/t.jsonl --query x --engine semantic": "semantic",
    "eval --catalog {folder}/t.jsonl --queries {folder}/q.jsonl --engine hybrid": "semantic",
    "search --mcp http://127.0.0.1:9 --query x": "mcp",
    "inspect --mcp http://127.0.0.1:9": "mcp",
    "proxy --upstream http://127.0.0.1:9 --dialect anthropic": "proxy",
    "gateway --config {folder}/gateway.json": "gateway",
    "learned --store redis://127.0.0.1:9": "redis",
    "forget --all --store redis://127.0.0.1:9": "redis",
}
PLAIN = (
    "search --catalog {folder}/t.jsonl --query weather",
    "eval --catalog {folder}/t.jsonl --queries {folder}/q.jsonl",
    "inspect --catalog {folder}/t.jsonl --provider anthropic",
    "inspect --catalog {folder}/t.jsonl --provider openai",
    "doctor --catalog {folder}/t.jsonl",
    "learned --store {folder}/none.db",
    "init --folder {folder}/new",
)


@pytest.fixture
def ended(
    write: Callable[[str, str], Path], tmp_path: Path
) -> Callable[..., dict[str, tuple[int, str, str]]]:
    """Run commands in an environment with the extra `cli` alone."""
    write("t.jsonl", as_lines([{"name": "get_weather", "description": "Get the weather."}]))
    write("q.jsonl", '{"query": "weather", "relevant": ["get_weather"]}')
    write("gateway.json", '{"mcpServers": {}}')
    write("bot.yaml", "providers: [{id: p, type: anthropic, model: claude-sonnet-4-6}]\n")

    def run(*commands: str) -> dict[str, tuple[int, str, str]]:
        given = [command.format(folder=tmp_path) for command in commands]
        done = subprocess.run(  # noqa: S603  # our own command
            [sys.executable, "-c", _PROGRAM, json.dumps(given)],
            capture_output=True, check=True, encoding="utf-8", cwd=ROOT,
        )  # fmt: skip
        results = json.loads(done.stdout)
        return {command: results[said] for command, said in zip(commands, given, strict=True)}

    return run


def test_a_missing_extra_is_named_by_every_command(
    ended: Callable[..., dict[str, tuple[int, str, str]]],
) -> None:
    for command, (status, out, err) in ended(*NEEDING).items():
        assert (status, out) == (2, ""), command
        assert "Traceback" not in err
        assert f"pip install 'tool-search-middleware[{NEEDING[command]}]'" in err, command


def test_other_commands_need_no_extra(
    ended: Callable[..., dict[str, tuple[int, str, str]]],
) -> None:
    for command, (status, _, err) in ended(*PLAIN).items():
        # 3: `doctor` has warnings.
        assert status == (3 if command.startswith("doctor") else 0), (command, err)
