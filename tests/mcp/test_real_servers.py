"""The packaged servers of the protocol's authors, which `make test-mcp` installs."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.helpers import call, events, free_port, listening, names, until
from tool_search import ToolCatalog, build_index
from tool_search.adapters.mcp import MCPSource
from tool_search.core.messages import ImagePart
from tool_search.runner.execution import CallProgress

PYTHON_BIN = Path(os.environ.get("MCP_PYTHON_BIN", ""))
NODE_BIN = Path(os.environ.get("MCP_NODE_BIN", ""))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for command in (
        ["git", "init", "-q", "."],
        ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty",
         "-m", "First commit of all"],
    ):  # fmt: skip
        subprocess.run(command, cwd=tmp_path, check=True)  # noqa: S603
    return tmp_path


def five(folder: Path) -> dict[str, Any]:
    return {
        "time": {
            "command": str(PYTHON_BIN / "mcp-server-time"),
            "args": ["--local-timezone", "UTC"],
        },
        "git": {"command": str(PYTHON_BIN / "mcp-server-git")},
        "everything": {"command": str(NODE_BIN / "mcp-server-everything"), "args": ["stdio"]},
        "filesystem": {"command": str(NODE_BIN / "mcp-server-filesystem"), "args": [str(folder)]},
        "memory": {
            "command": str(NODE_BIN / "mcp-server-memory"),
            "env": {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")},
        },
    }


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[MCPSource]:
    async with MCPSource({"mcpServers": five(folder)}, start_s=60) as source:
        assert {each.state for each in source.status} == {"connected"}, source.status
        yield source


async def test_five_servers_are_listed_searched_and_called(repository: Path) -> None:
    (repository / "note.txt").write_text("remember the milk")
    async with opened(repository) as source:
        counts = {each.server: each.tools for each in source.status}
        assert min(counts.values()) >= 2
        assert sum(counts.values()) == len(source.tools) >= 40
        index = build_index(tuple(ToolCatalog(source.tools).values()))
        for query, tool in (
            ("commit history log", "git_log"),
            ("current time in a timezone", "get_current_time"),
            ("read a text file", "read_text_file"),
            ("knowledge graph relations", "create_relations"),
        ):
            assert tool in [match.name for match in index.search(query, limit=5).matches]
        assert "UTC" in (await call(source, "get_current_time", timezone="UTC")).content
        log = await call(source, "git_log", repo_path=str(repository))
        assert "First commit of all" in log.content
        note = await call(source, "read_text_file", path=str(repository / "note.txt"))
        assert "remember the milk" in note.content
        outside = await call(source, "read_text_file", path="/etc/passwd")
        assert outside.is_error
        assert (await call(source, "echo", message="hi")).content.lower().startswith("echo")
        made = await call(
            source, "create_entities",
            entities=[{"name": "Ada", "entityType": "person", "observations": ["wrote it"]}],
        )  # fmt: skip
        assert not made.is_error
        assert "Ada" in (await call(source, "read_graph")).content


async def test_pictures_and_progress_of_the_reference_server(repository: Path) -> None:
    async with opened(repository) as source:
        picture = next(name for name in names(source) if "tiny" in name and "image" in name)
        parts = (await call(source, picture)).parts
        assert any(isinstance(part, ImagePart) for part in parts)
        slow = next(name for name in names(source) if "long" in name.lower())
        told = await events(source, slow, duration=0.4, steps=2)
        assert any(isinstance(event, CallProgress) for event in told)


def children(command: str) -> list[int]:
    found = subprocess.run(  # noqa: S603
        ["pgrep", "-P", str(os.getpid()), "-f", command],  # noqa: S607
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [int(number) for number in found.stdout.split()]


async def test_a_killed_server_comes_back_and_the_others_go_on(repository: Path) -> None:
    async with opened(repository) as source:
        listed = names(source)
        for number in children(str(PYTHON_BIN / "mcp-server-time")):
            os.kill(number, signal.SIGKILL)
        echo, _ = await asyncio.gather(
            call(source, "echo", message="still here"),
            until(lambda: source.status[0].state != "connected"),
        )
        assert "still here" in echo.content
        assert "UTC" in (await call(source, "get_current_time", timezone="UTC")).content
        assert names(source) == listed


@pytest.mark.parametrize("transport", ["streamableHttp", "sse"])
async def test_the_reference_server_is_used_over_http(transport: str) -> None:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        str(NODE_BIN / "mcp-server-everything"), transport,
        env={**os.environ, "PORT": str(port)},
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    path, kind = ("mcp", "http") if transport == "streamableHttp" else ("sse", "sse")
    entry = {"url": f"http://127.0.0.1:{port}/{path}", "type": kind}
    try:
        await listening(port)
        async with MCPSource({"web": entry}) as source:
            await until(lambda: bool(source.tools))
            assert "hello" in (await call(source, "echo", message="hello")).content
    finally:
        process.kill()
        await process.wait()


def test_the_program_of_the_page_runs(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "mcp.md"
    _, _, rest = page.read_text(encoding="utf-8").partition("```python\n")
    program = tmp_path / "program.py"
    program.write_text(rest.partition("```")[0], encoding="utf-8")
    path = f"{PYTHON_BIN}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(  # noqa: S603
        [sys.executable, str(program)],
        env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "[('time', 'connected', 2)]",
        "get_current_time False",
    ]


def test_the_environment_has_every_server() -> None:
    """A missing server would leave out its tests in silence."""
    for entry in five(Path()).values():
        assert Path(entry["command"]).exists(), (entry["command"], sys.executable)
