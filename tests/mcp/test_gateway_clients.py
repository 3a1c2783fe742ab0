"""Real clients of three libraries before a gateway over real servers; `make test-mcp` runs them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client

from tests.mcp.gateways import ROOT, SEARCH, names, text_of, written
from tests.mcp.helpers import free_port, listening
from tests.mcp.test_real_servers import PYTHON_BIN, five, repository

__all__ = ["repository"]  # a fixture

SCENARIO = Path(__file__).parent / "servers" / "scenario.py"
PYTHONS = {
    "sdk1": os.environ.get("MCP_OLD_PYTHON", ""),
    "sdk2": sys.executable,
    "fastmcp": os.environ.get("FASTMCP_PYTHON", ""),
}
WAYS = [("sdk1", "legacy"), ("sdk2", "legacy"), ("sdk2", "auto"), ("fastmcp", "legacy"),
        ("fastmcp", "auto")]  # fmt: skip
CHANGED = "notifications/tools/list_changed"


def config(folder: Path) -> dict[str, Any]:
    return {"mcpServers": five(folder), "tool_search": {"maxToolsLimit": 4, "maxResults": 3}}


@asynccontextmanager
async def started(folder: Path) -> AsyncGenerator[tuple[str, asyncio.subprocess.Process]]:
    """`tool-search gateway` over HTTP; gives its address, and the process."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tool_search", "gateway",
        "--config", written(folder, config(folder)), "--http", str(port),
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        await listening(port)
        yield f"http://127.0.0.1:{port}/mcp", process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def seen_by(library: str, mode: str, transport: str, target: str, folder: Path) -> Any:
    python = PYTHONS[library]
    if not python:
        pytest.skip(f"make test-mcp names the Python of {library}")
    done = await asyncio.create_subprocess_exec(
        python, str(SCENARIO), library, mode, transport, target, str(folder),
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await done.communicate()
    assert done.returncode == 0
    return json.loads(output.decode().splitlines()[-1])


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize(("library", "mode"), WAYS)
async def test_a_client_lists_searches_and_calls(
    library: str, mode: str, transport: str, repository: Path
) -> None:
    if transport == "stdio":
        target = f"{sys.executable},{written(repository, config(repository))}"
        seen = await seen_by(library, mode, transport, target, repository)
    else:
        async with started(repository) as (target, _):
            seen = await seen_by(library, mode, transport, target, repository)
    follows = transport == "stdio" or mode == "legacy"
    assert seen["first"][:2] == ["time___convert_time", "time___get_current_time"]
    assert seen["first"][4:] == [SEARCH, *([] if follows else ["call_tool"])]
    assert seen["search"].startswith("Found 3 matching tools:\n1. git___git_log - ")
    assert ("git___git_log" in seen["then"]) == follows
    assert (CHANGED in seen["heard"]) == (mode == "legacy")
    assert "First commit of all" in seen["found"]
    assert "UTC" in seen["hidden"]
    assert "Steps: 2" in seen["slow"]
    assert seen["progress"] == [[1.0, 2.0], [2.0, 2.0]]
    assert "everything___simple-prompt" in seen["prompts"]
    assert seen["prompt"]


def children(parent: int, program: str = "") -> list[int]:
    """The processes that a process has started."""
    found = subprocess.run(  # noqa: S603
        ["pgrep", "-P", str(parent), "-f", program or "."],  # noqa: S607
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [int(number) for number in found.stdout.split()]


async def test_a_killed_server_comes_back_and_the_others_go_on(repository: Path) -> None:
    async with started(repository) as (address, process), Client(address, mode="legacy") as client:
        assert "UTC" in await text_of(client, "time___get_current_time", timezone="UTC")
        (number,) = children(process.pid, str(PYTHON_BIN / "mcp-server-time"))
        os.kill(number, signal.SIGKILL)
        assert "hi" in await text_of(client, "everything___echo", message="hi")
        assert "UTC" in await text_of(client, "time___get_current_time", timezone="UTC")
        assert "time___get_current_time" in await names(client)


async def test_a_gateway_that_is_ended_ends_its_servers(repository: Path) -> None:
    async with started(repository) as (address, process), Client(address, mode="legacy") as client:
        await names(client)
        servers = children(process.pid)
        assert len(servers) == 5
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.wait(), 15)
        assert [number for number in servers if _is_alive(number)] == []


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


async def test_health_names_every_server(repository: Path) -> None:
    async with started(repository) as (address, _), httpx2.AsyncClient(timeout=60) as client:
        health = (await client.get(address.replace("/mcp", "/health"))).json()
    states = {name: each["state"] for name, each in health["servers"].items()}
    assert states == dict.fromkeys(five(repository), "connected")
