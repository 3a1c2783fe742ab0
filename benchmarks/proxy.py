"""The time that a proxy adds to a request: ours, and LiteLLM's, before one provider.

Run::

    python benchmarks/proxy.py [--litellm PYTHON] [--requests 200] [--json]

A provider in a process of its own answers with a stream at once. Clients send one Chat request
after the other, with 0, 100 and 1,000 definitions, one client and 50 at a time: to the provider,
through this library's proxy passing everything on (`mode: off`) and searching, and through
LiteLLM's proxy in the environment of PYTHON, passing on and with this library's handler. Each
row is the median of the added milliseconds to the first byte and to the last, and the ratio
to the provider alone. Bounded to a few minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

ROOT = Path(__file__).resolve().parents[1]
SIZES = (0, 100, 1_000)
CLIENTS = (1, 50)
CHUNKS = 20
PROVIDER = """
import asyncio, json, sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

def chunk(delta, end=None):
    choice = {"index": 0, "delta": delta, "finish_reason": end}
    data = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [choice]}
    return f"data: {json.dumps(data)}\\n\\n".encode()

FIRST = chunk({"role": "assistant", "content": ""})
WORDS = [chunk({"content": f"word{n} "}) for n in range(int(sys.argv[2]))]
LAST = [chunk({}, "stop"), b"data: [DONE]\\n\\n"]

async def pieces():
    yield FIRST
    for word in WORDS:
        yield word
        await asyncio.sleep(0)
    for last in LAST:
        yield last

async def chat(request):
    await request.body()
    return StreamingResponse(pieces(), media_type="text/event-stream")

app = Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])])
uvicorn.run(app, port=int(sys.argv[1]), log_level="critical")
"""
PROXY = """
import sys, uvicorn
from tool_search.serving.proxy.app import ToolSearchProxy
from tool_search.serving.proxy.settings import ProxyConfig, UpstreamSettings

upstream = UpstreamSettings(base_url=sys.argv[2], dialects=("openai_chat",))
config = ProxyConfig(upstreams=(upstream,), mode=sys.argv[3])
uvicorn.run(ToolSearchProxy(config).asgi(), port=int(sys.argv[1]), log_level="critical")
"""


def body(size: int) -> dict[str, Any]:
    """Return a request with a number of definitions."""
    verbs = ("create", "list", "delete", "rename", "share", "archive", "find", "count")
    tools = [
        {
            "type": "function",
            "function": {
                "name": f"{verbs[n % len(verbs)]}_thing_{n}",
                "description": f"Can {verbs[n % len(verbs)]} thing number {n} of a project.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string", "description": "The id of the thing."},
                        "note": {"type": "string", "description": "A note for the log."},
                    },
                    "required": ["id"],
                },
            },
        }
        for n in range(size)
    ]
    question = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    return {**question, "tools": tools} if tools else question


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def running(command: Sequence[str], port: int) -> Iterator[int]:
    """Run a server until the block ends, and give its process's id."""
    # LiteLLM would ask the network for prices when it starts.
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    environment["LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"] = "true"
    environment["PYTHONPATH"] = str(ROOT)
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        else:
            raise SystemExit(f"{command[0]} did not start")
        yield process.pid
    finally:
        process.terminate()
        process.wait(20)


async def timed(client: httpx2.AsyncClient, url: str, content: bytes) -> tuple[float, float]:
    """Return the seconds to the first byte and to the last."""
    began = time.perf_counter()
    first = 0.0
    headers = {"content-type": "application/json", "authorization": "Bearer sk-x"}
    async with client.stream("POST", url, content=content, headers=headers) as response:
        if response.status_code != 200:
            raise SystemExit(f"{url}: {response.status_code} {await response.aread()!r}")
        async for _ in response.aiter_raw():
            first = first or time.perf_counter() - began
    return first, time.perf_counter() - began


async def measure(url: str, size: int, clients: int, requests: int) -> tuple[float, float]:
    """Return the median milliseconds to the first byte and to the last."""
    content = json.dumps(body(size)).encode()
    limits = httpx2.Limits(max_connections=clients)
    async with httpx2.AsyncClient(timeout=60, limits=limits) as client:
        for _ in range(3):
            await timed(client, url, content)

        async def one(count: int) -> list[tuple[float, float]]:
            return [await timed(client, url, content) for _ in range(count)]

        each = max(requests // clients, 2)
        rows = [row for rows in await asyncio.gather(*map(one, [each] * clients)) for row in rows]
    return tuple(statistics.median(column) * 1e3 for column in zip(*rows, strict=True))


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process and of its children, in MB."""
    total = 0
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            status = (folder / "status").read_text() if (folder / "status").exists() else ""
            fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
            if str(pid) in (folder.name, fields.get("PPid", "").strip()) and "VmRSS" in fields:
                total += int(fields["VmRSS"].split()[0])
    return total / 1024


def litellm(python: str, folder: Path, port: int, upstream: str, *, handler: bool) -> list[str]:
    """Return the command of LiteLLM's proxy before a provider."""
    model = {"model": "openai/m", "api_base": upstream, "api_key": "sk-x"}
    settings: dict[str, Any] = {"model_list": [{"model_name": "m", "litellm_params": model}]}
    if handler:
        settings["litellm_settings"] = {"callbacks": ["tool_search.adapters.litellm.handler"]}
    file = folder / f"litellm{handler}.json"
    file.write_text(json.dumps(settings))
    command = str(Path(python).with_name("litellm"))
    return [command, "--config", str(file), "--host", "127.0.0.1", "--port", str(port)]


def started(stack: ExitStack, python: str | None) -> dict[str, tuple[str, int]]:
    """Start a provider and the proxies before it; return their addresses and process ids."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    port = free_port()
    stack.enter_context(running([sys.executable, "-c", PROVIDER, str(port), str(CHUNKS)], port))
    upstream = f"http://127.0.0.1:{port}/v1"
    commands: dict[str, Callable[[int], list[str]]] = {
        name: partial(own_proxy, upstream, mode)
        for name, mode in (("this proxy, passing on", "off"), ("this proxy", "auto"))
    }
    if python:
        commands["LiteLLM, passing on"] = lambda p: litellm(
            python, folder, p, upstream, handler=False
        )
        commands["LiteLLM with our handler"] = lambda p: litellm(
            python, folder, p, upstream, handler=True
        )
    targets: dict[str, tuple[str, int]] = {"the provider alone": (upstream, 0)}
    for name, command in commands.items():
        own = free_port()
        pid = stack.enter_context(running(command(own), own))
        targets[name] = f"http://127.0.0.1:{own}/v1", pid
    return targets


def own_proxy(upstream: str, mode: str, port: int) -> list[str]:
    """Return the command of this library's proxy."""
    return [sys.executable, "-c", PROXY, str(port), upstream, mode]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--litellm", metavar="PYTHON")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        targets = started(stack, options.litellm)
        for size in SIZES:
            for clients in CLIENTS:
                base: tuple[float, float] | None = None
                for name, (url, pid) in targets.items():
                    first, last = asyncio.run(
                        measure(f"{url}/chat/completions", size, clients, options.requests)
                    )
                    base = base or (first, last)
                    row = {
                        "tools": size, "clients": clients, "by": name,
                        "first_ms": first, "added_first_ms": first - base[0],
                        "added_last_ms": last - base[1], "ratio": last / base[1],
                        "memory_mb": memory_mb(pid) if pid else None,
                    }  # fmt: skip
                    rows.append(row)
                    if not options.json:
                        print_row(row)
    if options.json:
        print(json.dumps(rows))


def print_row(row: dict[str, Any]) -> None:
    """Print a row of the table in Markdown."""
    memory = f"{row['memory_mb']:.0f}" if row["memory_mb"] else ""
    print(
        f"| {row['tools']:,} | {row['clients']} | {row['by']} | {row['first_ms']:.1f} | "
        f"{row['added_first_ms']:.1f} | {row['added_last_ms']:.1f} | {row['ratio']:.2f} | "
        f"{memory} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
