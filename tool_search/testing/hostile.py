"""A hostile MCP server, service and page on loopback, and bounds to hold a set-up to.

To try a bot, a gateway or a proxy of one's own, in a fresh process::

    with HostileServer() as server, Bounds() as bounds:
        ...  # talk to server.mcp("packed"), server.service("many") or server.page("endless")
    bounds.check()
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from importlib import import_module
from importlib.util import find_spec
from threading import Thread, current_thread
from typing import Any, Self

from tool_search.errors import ToolSearchError

# Windows lacks it.
resource: Any = import_module("resource") if find_spec("resource") else None

__all__ = ["ATTACKS", "Bounds", "HostileServer"]

ATTACKS = ("packed", "endless", "many", "stream", "deep", "event", "encoding")
"""`packed`: a gigabyte in a megabyte; `endless`: JSON without an end; `many`: 400,000 parts;
`stream`: as many in one event; `deep`: 100,000 levels; `event`: one event without an end;
`encoding`: one nobody asked for."""

_THREAD = "hostile server"
_PARTS = 400_000
_PIECE = b"x" * 1_000_000
_TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("attack", "fine")]


class Bounds:
    """Bounds of a block: memory of the process, and CPU of one callback of an event loop.

    The callbacks of a `HostileServer` do not count.

    Args:
        memory_mb: Megabytes above the peak before.
        callback_ms: Milliseconds of CPU on the thread of the loop.

    Attributes:
        spent_mb: The megabytes that the block took.
        longest_ms: The milliseconds of its longest callback.
        longest: The callback.
    """

    def __init__(self, *, memory_mb: float = 60.0, callback_ms: float = 20.0) -> None:
        self._bounds = memory_mb, callback_ms
        self.spent_mb = self.longest_ms = 0.0
        self.longest = ""

    def __enter__(self) -> Self:
        self._peak = _peak_mb()
        self._run = run = asyncio.Handle._run  # noqa: SLF001 - the place where every callback runs

        def measured(handle: asyncio.Handle) -> None:
            began = time.thread_time()
            run(handle)
            spent = (time.thread_time() - began) * 1_000
            if spent > self.longest_ms and current_thread().name != _THREAD:
                self.longest_ms, self.longest = spent, repr(handle)[:300]

        setattr(asyncio.Handle, "_run", measured)  # noqa: B010
        return self

    def __exit__(self, *_: object) -> None:
        setattr(asyncio.Handle, "_run", self._run)  # noqa: B010
        self.spent_mb = _peak_mb() - self._peak

    def check(self) -> None:
        """Compare the block with the bounds.

        Raises:
            ToolSearchError: It took more.
        """
        memory_mb, callback_ms = self._bounds
        if self.spent_mb > memory_mb:
            raise ToolSearchError(f"it took {self.spent_mb:.0f} MB, {memory_mb:g} are allowed")
        if self.longest_ms > callback_ms:
            raise ToolSearchError(
                f"a callback took {self.longest_ms:.0f} ms of CPU, {callback_ms:g} are allowed: "
                f"{self.longest}"
            )


def _peak_mb() -> float:
    """Return the peak of the process's memory; 0 where the system does not say, as on Windows."""
    if resource is None:
        return 0.0
    peak: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


class HostileServer:
    """An HTTP server on loopback, in a thread of its own, that answers with an attack."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name=_THREAD, daemon=True)
        self._address = ""

    def mcp(self, attack: str) -> str:
        """Return the address of an MCP server; its tool `fine` answers, `attack` attacks."""
        return f"{self._address}/mcp/{attack}"

    def service(self, attack: str) -> str:
        """Return the base address of a service, in the formats of OpenAI and Anthropic."""
        return f"{self._address}/service/{attack}/v1"

    def page(self, attack: str) -> str:
        """Return the address of a page."""
        return f"{self._address}/page/{attack}"

    def __enter__(self) -> Self:
        self._thread.start()
        starting = asyncio.start_server(_answer, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result()
        self._address = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(_end(self._server), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _end(server: asyncio.Server) -> None:
    server.close()
    answers = asyncio.all_tasks() - {asyncio.current_task()}
    for answer in answers:
        answer.cancel()
    # Each has closed its connection in the loop's next round.
    await asyncio.gather(*answers, return_exceptions=True)
    await asyncio.sleep(0)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    # Cancelled: the server ends.
    ended = asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError
    with suppress(*ended), closing(writer):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            size = head.lower().partition("content-length:")[2].partition("\r\n")[0].strip()
            body = await reader.readexactly(int(size or 0))
            _, kind, attack, *_ = [*head.split(" ")[1].split("/"), "", ""]
            asked: Any = json.loads(body) if body.startswith(b"{") else {}
            method = asked.get("method") if kind == "mcp" else None
            if kind == "mcp" and not head.startswith("POST"):
                writer.write(b"HTTP/1.1 405 Not Allowed\r\nContent-Length: 0\r\n\r\n")
            elif method is not None and (answer := _calm(method, asked)) is not None:
                writer.write(answer)
            else:
                await _attack(writer, attack, kind, asked.get("id"))
                break


def _calm(method: str, asked: dict[str, Any]) -> bytes | None:
    """Return the answer of an MCP server to all but the call of `attack`."""
    result: dict[str, Any] = {}
    if "id" not in asked:
        return b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
    if method == "initialize":
        info = {"name": "hostile", "version": "1"}
        version = asked["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        result = {"tools": _TOOLS}
    elif method == "tools/call" and asked["params"]["name"] == "attack":
        return None
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "fine"}]}
    else:
        error = {"code": -32_601, "message": "no such method"}
        return _json({"jsonrpc": "2.0", "id": asked["id"], "error": error})
    return _json({"jsonrpc": "2.0", "id": asked["id"], "result": result})


def _json(content: object) -> bytes:
    body = json.dumps(content).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body


async def _attack(writer: asyncio.StreamWriter, attack: str, kind: str, number: object) -> None:
    media = "text/event-stream" if attack in ("event", "stream") else "application/json"
    media = "text/html" if kind == "page" else media
    encoding = {"packed": "gzip", "encoding": "br"}.get(attack, "identity")
    writer.write(
        f"HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Encoding: {encoding}\r\n"
        "Connection: close\r\n\r\n".encode()
    )
    before = b'{"jsonrpc": "2.0", "id": %b, "result": {"content": [' % json.dumps(number).encode()
    for piece in _pieces(attack, before):
        writer.write(piece)
        await writer.drain()


def _pieces(attack: str, before: bytes) -> Iterator[bytes]:
    if attack == "packed":
        yield from _pack()
    elif attack == "many":
        yield before
        for number in range(_PARTS // 1_000):
            comma = b"," if number else b""
            yield comma + b",".join([b'{"type":"text","text":"x"}'] * 1_000)
        yield b"]}}"
    elif attack == "stream":
        yield b"data: "
        yield from _pieces("many", before)
        yield b"\n\n"
    elif attack == "deep":
        yield before + b"[" * 100_000 + b"]" * 100_000 + b"]}}"
    else:
        yield b"data: " if attack == "event" else before + b'{"type":"text","text":"'
        while True:
            yield _PIECE


def _pack() -> Iterator[bytes]:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    yield packer.compress(b'{"jsonrpc":"2.0","id":1,"result":{"text":"')
    yield packer.flush(zlib.Z_FULL_FLUSH)
    # After a full flush a piece stands for itself, so that one is packed and sent again.
    piece = packer.compress(_PIECE) + packer.flush(zlib.Z_FULL_FLUSH)
    for _ in range(1_000):
        yield piece
    yield packer.compress(b'"}}') + packer.flush()
