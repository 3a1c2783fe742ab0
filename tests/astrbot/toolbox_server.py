"""A real MCP server over standard input and output, with the tools of a file."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TOOLS = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
server: Any = Server("toolbox")


@server.list_tools()
async def list_tools() -> list[types.Tool]:
    """Return every tool of the file."""
    return [
        types.Tool(
            name=tool["name"], description=tool["description"], inputSchema=tool["parameters"]
        )
        for tool in TOOLS
    ]


@server.call_tool(validate_input=False)
async def call_tool(name: str, arguments: dict[str, Any]) -> list[types.TextContent]:
    """Return the name and the arguments of a call."""
    return [types.TextContent(type="text", text=f"mcp {name} {json.dumps(arguments)}")]


async def main() -> None:
    """Serve until the input ends."""
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


asyncio.run(main())
