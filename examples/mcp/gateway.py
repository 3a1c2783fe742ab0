"""A gateway in Python, and a client of the official SDK that searches and calls through it.

Run, with `tool-search-middleware[gateway]` installed: python examples/mcp/gateway.py
"""

import asyncio
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent

FOLDER = Path(__file__).parent
COMMAND = ["-m", "tool_search", "gateway", "--config", str(FOLDER / "gateway.yaml")]


def text_of(answer: CallToolResult) -> str:
    """Return the text of a result."""
    return "\n".join(item.text for item in answer.content if isinstance(item, TextContent))


async def main() -> None:
    """List, search, list again, call."""
    gateway = StdioServerParameters(command=sys.executable, args=COMMAND, cwd=FOLDER.parents[1])
    async with Client(gateway, mode="legacy") as client:
        print([tool.name for tool in (await client.list_tools()).tools])
        print(text_of(await client.call_tool("search_available_tools", {"query": "price"})))
        print([tool.name for tool in (await client.list_tools()).tools])
        print(text_of(await client.call_tool("shop___find_price", {"product": "tea"})))


if __name__ == "__main__":
    asyncio.run(main())
