"""The examples for MCP run; `make test` has no SDK for them."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tool_search.serving.gateway import load_gateway_config

ROOT = Path(__file__).resolve().parents[2]


def output(name: str) -> list[str]:
    # The example's gateway starts `python`.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(  # noqa: S603
        [sys.executable, str(ROOT / "examples" / "mcp" / name)],
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_bot_finds_calls_and_warns() -> None:
    lines = output("bot.py")
    assert lines[0].startswith("! server 'missing': ")
    assert "found: find_price" in lines
    assert lines[-1] == "find_price: tea: 3.50"


@pytest.mark.skipif(version("mcp").startswith("1."), reason="the gateway needs SDK 2")
def test_the_gateway_is_searched_and_called() -> None:
    first, *found, then, called = output("gateway.py")
    assert first == "['shop___opening_hours', 'search_available_tools', 'call_tool']"
    assert found[:2] == [
        "Found 1 matching tools:",
        "1. shop___find_price - Find the price of a product.",
    ]
    assert "'shop___find_price'" in then
    assert called == "tea: 3.50"


def test_the_gateways_file_is_read() -> None:
    config = load_gateway_config(ROOT / "examples" / "mcp" / "gateway.yaml")
    assert (config.tool_search.fill, config.transport.type) == (False, "stdio")
