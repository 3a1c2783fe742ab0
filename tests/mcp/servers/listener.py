"""A client of SDK 1.26 that writes the notifications it hears: python listener.py ADDRESS."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

heard: list[str] = []
both = asyncio.Event(), asyncio.Event()


async def hear(message: Any) -> None:
    method = str(getattr(getattr(message, "root", message), "method", ""))
    heard.append(method)
    for kind, event in zip(("prompts", "resources"), both, strict=True):
        if kind in method:
            event.set()


async def main(address: str) -> None:
    async with (
        streamable_http_client(address) as (read, write, *_),
        ClientSession(read, write, message_handler=hear) as session,
    ):
        await session.initialize()
        await session.list_prompts()
        await session.call_tool("memos___write_memo", {"name": "first"})
        async with asyncio.timeout(20):
            for each in both:
                await each.wait()
    sys.stdout.write("\n".join(heard))


asyncio.run(main(sys.argv[1]))
