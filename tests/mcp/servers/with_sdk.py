"""A server on the official SDK, 1.x or 2.x: python with_sdk.py stdio|http|sse [PORT]."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from typing import Any

try:
    from mcp.server.mcpserver import Context, Image, MCPServer
except ImportError:
    from mcp.server.fastmcp import Context, Image
    from mcp.server.fastmcp import FastMCP as MCPServer

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
server = MCPServer("with-sdk")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def process_id() -> str:
    """Return the id of this process."""
    return str(os.getpid())


@server.tool()
def fail(reason: str) -> str:
    """Fail for a reason."""
    raise ValueError(reason)


@server.tool()
def picture() -> Any:
    """Return a picture of one pixel."""
    return Image(data=PIXEL, format="png")


@server.tool()
async def count_slowly(steps: int, pause: float, ctx: Context) -> str:
    """Count, and report progress after each step."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
        await asyncio.sleep(pause)
    return f"counted to {steps}"


@server.tool()
def secrets_seen() -> str:
    """List the environment variables of this process."""
    return ",".join(sorted(os.environ))


def main(transport: str, port: int) -> None:
    if transport == "stdio":
        server.run("stdio")
        return
    import uvicorn

    app = server.sse_app() if transport == "sse" else server.streamable_http_app()
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
