"""Entries of servers for tests, and calls of their tools."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tool_search.adapters.mcp import MCPSource
from tool_search.core.messages import ToolCall
from tool_search.runner.execution.context import ToolContext
from tool_search.runner.execution.results import ExecutionEvent, ExecutionResult

SERVERS = Path(__file__).parent / "servers"


def plain(*tools: Any, timeout: float = 20, **plan: Any) -> dict[str, Any]:
    """The entry of a server without an SDK; see servers/plain.py."""
    content = json.dumps({"tools": tools, **plan})
    return {
        "command": sys.executable,
        "args": [str(SERVERS / "plain.py"), content],
        "timeout": timeout,
    }


def with_sdk(python: str = sys.executable) -> dict[str, Any]:
    """The entry of a stdio server on the official SDK."""
    return {"command": python, "args": [str(SERVERS / "with_sdk.py"), "stdio"]}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


async def listening(port: int) -> None:
    """Wait until a server takes connections."""
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            return


@asynccontextmanager
async def over_http(transport: str, port: int) -> AsyncGenerator[dict[str, Any]]:
    """A server on the official SDK as a process; gives its entry."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SERVERS / "with_sdk.py"), transport, str(port)
    )
    try:
        await listening(port)
        path = "sse" if transport == "sse" else "mcp"
        kind = transport if transport == "sse" else "http"
        yield {"url": f"http://127.0.0.1:{port}/{path}", "type": kind}
    finally:
        process.kill()
        await process.wait()


async def events(source: MCPSource, tool: str, **arguments: Any) -> list[ExecutionEvent]:
    call = ToolCall(id="1", name=tool, arguments=json.dumps(arguments))
    context = ToolContext(conversation="c", language="en-US")
    return [event async for event in source.executor.run(call, context)]


async def call(source: MCPSource, tool: str, **arguments: Any) -> ExecutionResult:
    *_, last = await events(source, tool, **arguments)
    assert isinstance(last, ExecutionResult)
    return last


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so; the test's time-out ends a wait in vain."""
    while not condition():  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(0.02)


def names(source: MCPSource) -> list[str]:
    return [tool.name for tool in source.tools]
