"""A gateway over 7,679 tools: ours, FastMCP's BM25 transform over its proxy, and no gateway.

Run, with the extra `gateway` installed::

    python benchmarks/gateway.py --data DATA [--fastmcp PYTHON] [--seconds 20]

One server in a process of its own lists the tools of `DATA/_distractors_smithery_mcp` over HTTP
and answers every call at once. The same client (plain HTTP, with the handshake) asks it directly,
through `tool-search gateway` with `fill: false` and with its default list, and through FastMCP's
proxy with `BM25SearchTransform` in the environment of PYTHON: the first list, searches and calls
one after the other, then calls of 50 clients at once. Each phase ends after `--seconds`, so that
a run takes minutes. Tokens are this library's estimate.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2

from tool_search.core.catalog.tool import estimate_tokens
from tool_search.core.values.json import compact_json

ROOT = Path(__file__).resolve().parents[1]
SET = "_distractors_smithery_mcp"
CLIENTS = 50
SEARCHES, CALLS = 20, 200
QUERIES = (
    "scrape a web page", "send an email", "create a github issue", "current weather", "read a file",
    "translate text", "search flights", "stock price", "list calendar events", "generate an image",
)  # fmt: skip
UPSTREAM = """
import json, sys, uvicorn
from mcp.server.lowlevel import Server
from mcp import types

tools, seen = [], set()
for line in open(sys.argv[1], encoding="utf-8"):
    tool = json.loads(line)
    schema = tool.get("parameters") or {}
    if tool["name"] not in seen and isinstance(schema, dict):
        seen.add(tool["name"])
        tools.append({"name": tool["name"], "description": tool.get("description") or "",
                      "inputSchema": {**schema, "type": "object"}})

async def list_tools(ctx, params):
    return {"tools": tools, "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}

async def call_tool(ctx, params):
    return types.CallToolResult(content=[types.TextContent(type="text", text="done")])

server = Server("many", on_list_tools=list_tools, on_call_tool=call_tool,
                get_tool_input_schema=lambda name: None)
# The client refuses events of more than a megabyte, and so large a list is one.
app = server.streamable_http_app(json_response=True)
uvicorn.run(app, port=int(sys.argv[2]), log_level="error")
"""
FASTMCP = """
import sys
from fastmcp import FastMCP
from fastmcp.server import create_proxy
from fastmcp.server.transforms.search import BM25SearchTransform

proxy = create_proxy(sys.argv[1], name="gateway", mode="auto")
proxy.add_transform(BM25SearchTransform(max_results=10))
proxy.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False,
          log_level="ERROR")
"""


class Session:
    """A session of the handshake, over plain HTTP: what a client itself needs is not measured.

    Args:
        address: The endpoint.
        http: The connection.
    """

    def __init__(self, address: str, http: httpx2.AsyncClient) -> None:
        self._address = address
        self._http = http
        self._headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        self._number = 0

    async def begin(self) -> None:
        """Make the handshake."""
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "benchmark", "version": "1"},
        }
        response = await self._post("initialize", params)
        self._headers["Mcp-Session-Id"] = response.headers["mcp-session-id"]
        await self._post("notifications/initialized", None)

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a request."""
        response = await self._post(method, params)
        text = response.text
        if response.headers["content-type"].startswith("text/event-stream"):
            lines = [line for line in text.splitlines() if line.startswith("data: {")]
            text = lines[-1].removeprefix("data: ")
        result: dict[str, Any] = json.loads(text)["result"]
        return result

    async def call(self, name: str, arguments: dict[str, Any]) -> None:
        """Call a tool; raise if it fails."""
        result = await self.ask("tools/call", {"name": name, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(f"{name}: {result}")

    async def _post(self, method: str, params: dict[str, Any] | None) -> Any:
        self._number += 1
        body: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            body.update(id=self._number, params=params)
        response = await self._http.post(self._address, json=body, headers=self._headers)
        response.raise_for_status()
        return response


@asynccontextmanager
async def session(address: str) -> AsyncIterator[Session]:
    """Open a session."""
    async with httpx2.AsyncClient(timeout=120) as http:
        opened = Session(address, http)
        await opened.begin()
        yield opened


def free_port() -> int:
    """Return a port that is free."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@asynccontextmanager
async def process(*command: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a program until the block ends."""
    started = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.terminate()
        await started.wait()


async def listening(port: int, seconds: float = 120) -> None:
    """Wait until a port takes connections."""
    async with asyncio.timeout(seconds):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            return


async def times(run: Callable[[int], Awaitable[object]], count: int, seconds: float) -> list[float]:
    """Return the milliseconds of each run, at most a number of runs and of seconds."""
    taken = list[float]()
    end = time.perf_counter() + seconds
    while len(taken) < count and (not taken or time.perf_counter() < end):
        began = time.perf_counter()
        await run(len(taken))
        taken.append(1e3 * (time.perf_counter() - began))
    return taken


def megabytes(number: int) -> float:
    """Return the resident memory of a process."""
    for line in Path(f"/proc/{number}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


async def at_once(
    address: str, call: Callable[[Session], Awaitable[object]], seconds: float
) -> float:
    """Return the calls a second of 50 clients."""
    done = 0

    async def one(client: Session, end: float) -> None:
        nonlocal done
        while time.perf_counter() < end:
            await call(client)
            done += 1

    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(session(address)) for _ in range(CLIENTS)]
        began = time.perf_counter()
        with suppress(TimeoutError):
            async with asyncio.timeout(3 * seconds):
                await asyncio.gather(*(one(client, began + seconds) for client in clients))
        return done / (time.perf_counter() - began)


async def measure(
    name: str,
    address: str,
    *,
    search: Callable[[Session, str], Awaitable[object]] | None,
    call: Callable[[Session], Awaitable[object]],
    seconds: float,
    number: int | None,
) -> dict[str, Any]:
    """Return the figures of one way to the tools."""
    async with session(address) as client:
        began = time.perf_counter()
        first = (await client.ask("tools/list", {}))["tools"]
        first_s = time.perf_counter() - began
        lists = await times(lambda _: client.ask("tools/list", {}), 20, seconds)
        searches = list[float]()
        if search is not None:
            asked = search
            await asked(client, "anything")
            searches = await times(
                lambda turn: asked(client, QUERIES[turn % len(QUERIES)]), SEARCHES, seconds
            )
        await call(client)
        calls = await times(lambda _: call(client), CALLS, seconds)
    return {
        "way": name,
        "tools": len(first),
        "tokens": estimate_tokens(compact_json(first)),
        "first_list_ms": 1e3 * first_s,
        "list_ms": statistics.median(lists),
        "search_ms": statistics.median(searches) if searches else None,
        "call_ms": statistics.median(calls),
        "calls_a_second": await at_once(address, call, seconds / 2),
        "mb": megabytes(number) if number is not None else None,
    }


async def through_gateway(
    upstream: str, tool: str, seconds: float, folder: Path, **settings: object
) -> dict[str, Any]:
    """Measure `tool-search gateway`."""
    port, file = free_port(), folder / f"{free_port()}.json"
    file.write_text(
        json.dumps({
            "mcpServers": {"many": {"url": upstream, "timeout": 120}},
            "tool_search": {"learning": {"enabled": False}, **settings},
            "store": {"type": "memory"},
        })
    )  # fmt: skip
    command = [sys.executable, "-m", "tool_search", "gateway", "--config", str(file)]
    async with process(*command, "--http", str(port)) as started:
        await listening(port)
        async with httpx2.AsyncClient() as http:
            # A server that needs more than ten seconds comes later.
            while not (await http.get(f"http://127.0.0.1:{port}/health")).json()["tools"]:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
        return await measure(
            f"tool-search gateway, {json.dumps(settings)}",
            f"http://127.0.0.1:{port}/mcp",
            search=lambda client, query: client.call("search_available_tools", {"query": query}),
            call=lambda client: client.call(f"many___{tool}", {}),
            seconds=seconds,
            number=started.pid,
        )


async def through_fastmcp(python: str, upstream: str, tool: str, seconds: float) -> dict[str, Any]:
    """Measure FastMCP's proxy with its BM25 transform."""
    port = free_port()
    async with process(python, "-c", FASTMCP, upstream, str(port)) as started:
        await listening(port)
        return await measure(
            "FastMCP's BM25SearchTransform over its proxy",
            f"http://127.0.0.1:{port}/mcp",
            search=lambda client, query: client.call("search_tools", {"query": query}),
            call=lambda client: client.call("call_tool", {"name": tool, "arguments": {}}),
            seconds=seconds,
            number=started.pid,
        )


async def main() -> None:
    """Measure every way, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--fastmcp", metavar="PYTHON", default="")
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    tools = options.data / SET / "tools.jsonl"
    lines = (json.loads(line) for line in tools.read_text("utf-8").splitlines())
    tool = next(one["name"] for one in lines if not one["parameters"].get("required"))
    port = free_port()
    upstream = f"http://127.0.0.1:{port}/mcp"
    print(
        "| way | tools in the list | tokens | first list ms | list ms | search ms | call ms "
        "| calls/s, 50 clients | MB |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        async with process(sys.executable, "-c", UPSTREAM, str(tools), str(port)):
            await listening(port)
            print_row(
                await measure(
                    "directly",
                    upstream,
                    search=None,
                    call=lambda client: client.call(tool, {}),
                    seconds=options.seconds,
                    number=None,
                )
            )
            for settings in ({"fill": False}, {}):
                print_row(
                    await through_gateway(upstream, tool, options.seconds, Path(folder), **settings)
                )
            if options.fastmcp:
                print_row(await through_fastmcp(options.fastmcp, upstream, tool, options.seconds))


def print_row(found: dict[str, Any]) -> None:
    """Print the figures of one way."""
    places = {
        "tools": 0, "tokens": 0, "first_list_ms": 0, "list_ms": 1, "search_ms": 1, "call_ms": 2,
        "calls_a_second": 1, "mb": 0,
    }  # fmt: skip
    figures = (
        "" if found[key] is None else f"{found[key]:,.{count}f}" for key, count in places.items()
    )
    print(f"| {found['way']} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
