"""A bot with the tools of an MCP server, found by search and called.

Runs without a key: the stand-in server plays the provider, and `server.py` next to this file is
the MCP server. With files of your own it is `open_bot("bot.yaml")`.

Run, with `tool-search-middleware[mcp,openai]` installed: python examples/mcp/bot.py
"""

import asyncio
import sys
from pathlib import Path

from tool_search import RunnerWarning, TextDelta, ToolFinished, ToolsDiscovered, open_bot
from tool_search.testing import KeywordModel, StandInServer

SERVER = str(Path(__file__).with_name("server.py"))


async def main() -> None:
    """One question, which a tool of the server answers."""
    with StandInServer(model=KeywordModel()) as server:
        local = {
            "id": "local",
            "type": "openai-chat",
            "model": "qwen3",
            "base_url": server.openai_base_url,
            "api_key_env": None,
        }
        config = {
            "providers": [local],
            "mcpServers": {
                "shop": {"command": sys.executable, "args": [SERVER]},
                "missing": {"command": "a-server-that-is-not-installed"},
            },
            "tool_schema_mode": "tool_search",
            "store": {"type": "memory"},
        }
        async with open_bot(config) as bot:
            async for event in bot.run('Find the price of "tea".'):
                if isinstance(event, RunnerWarning):
                    print(f"! {event.message}")
                elif isinstance(event, ToolsDiscovered):
                    print(f"found: {', '.join(event.names)}")
                elif isinstance(event, ToolFinished):
                    print(f"{event.tool}: {event.content}")
                elif isinstance(event, TextDelta):
                    print(event.text, end="")
            print()


if __name__ == "__main__":
    asyncio.run(main())
