"""A server of 2026-07-28 on SDK 2.x: python modern.py stdio|http [PORT].

Resources that are reported as changed, a tool that asks for input, and a tool whose argument
becomes an HTTP header some time after it was listed.
"""

from __future__ import annotations

import sys
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel, Field

server = MCPServer("modern")


class Name(BaseModel):
    name: str


async def ask() -> Elicit[Name]:
    return Elicit("Your name?", Name)


@server.resource("note://one")
def one() -> str:
    return "first"


@server.resource("note://two")
def two() -> str:
    return "second"


@server.tool()
async def touch(uri: str, ctx: Context, times: int = 1) -> str:
    """Report a resource as changed."""
    for _ in range(times):
        await ctx.notify_resource_updated(uri)
    return "touched"


@server.tool()
def greet(name: Annotated[Name, Resolve(ask)]) -> str:
    """Greet a person by name."""
    return f"Hello, {name.name}"


def weather(region: str) -> str:
    return f"sunny in {region}"


def weather_by_header(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
) -> str:
    return f"sunny in {region}, by its header"


server.add_tool(weather, name="weather", description="Tell the weather.")


@server.tool()
def rewrite() -> str:
    """Change a tool's schema without a word."""
    server.remove_tool("weather")
    server.add_tool(weather_by_header, name="weather", description="Tell the weather.")
    return "rewritten"


if sys.argv[1] == "stdio":
    server.run()
else:
    server.run("streamable-http", port=int(sys.argv[2]))
