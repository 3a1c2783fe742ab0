"""Gateways for tests: served over loopback in this process, or started as the command."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from mcp import Client, StdioServerParameters

from tests.gateway.helpers import SERVERS, FakeSource, tools_of
from tests.mcp.helpers import free_port, listening
from tool_search.serving.gateway import Gateway

SEARCH = "search_available_tools"
ROOT = Path(__file__).resolve().parents[2]
TWO_TOKENS = {"type": "http", "tokens_env": "GATEWAY_TEST_TOKENS"}


def gateway_over(source: Any = None, **sections: Any) -> Gateway:
    """A gateway over a source that needs no processes."""
    search = {"maxToolsLimit": 3, "maxResults": 2, **sections.pop("tool_search", {})}
    names = sections.pop("servers", SERVERS)
    return Gateway(
        {
            "mcpServers": {name: {"command": "never"} for name in names},
            "tool_search": search,
            **sections,
        },
        source=FakeSource(tools_of(SERVERS)) if source is None else source,
    )


@asynccontextmanager
async def serving(gateway: Gateway) -> AsyncGenerator[str]:
    """Serve a gateway over HTTP; gives the address of its endpoint."""
    port = free_port()
    config = uvicorn.Config(
        gateway.asgi(), port=port, log_level="error", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve())  # `serve` takes over the signals
    await listening(port)
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.should_exit = True
        await task


@asynccontextmanager
async def command(
    folder: Path, config: Mapping[str, Any], *arguments: str
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Start `tool-search gateway` with a configuration."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tool_search", "gateway", "--config", written(folder, config),
        *arguments, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def written(folder: Path, config: Mapping[str, Any]) -> str:
    path = folder / "gateway.json"
    path.write_text(json.dumps(config))
    return str(path)


def over_stdio(folder: Path, config: Mapping[str, Any]) -> StdioServerParameters:
    """The parameters by which a client starts `tool-search gateway`."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "tool_search", "gateway", "--config", written(folder, config)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


class Heard:
    """The messages that a client has heard."""

    def __init__(self) -> None:
        self.methods: list[str] = []

    async def __call__(self, message: Any) -> None:
        self.methods.append(str(getattr(message, "method", message)))


async def names(client: Client) -> list[str]:
    """The list of a client, asked for again."""
    return [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]


async def text_of(client: Client, tool: str, /, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    return "\n".join(getattr(item, "text", "") for item in answer.content)


async def post(address: str, body: object, **headers: str) -> httpx2.Response:
    """Send one request without a handshake."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with httpx2.AsyncClient() as client:
        return await client.post(
            address, content=content, headers={"Content-Type": "application/json", **headers}
        )


def call(tool: str, arguments: object = None, number: Any = 1) -> dict[str, Any]:
    """The body of a call."""
    params = {"name": tool} | ({} if arguments is None else {"arguments": arguments})
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
