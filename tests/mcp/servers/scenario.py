"""One client's way through a gateway, on whichever client library is installed.

python scenario.py sdk1|sdk2|fastmcp legacy|auto stdio|http TARGET REPOSITORY

TARGET is the gateway's configuration with the Python that runs the gateway before it
("PYTHON,FILE"), or its address. Writes a JSON object with what the client saw.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from typing import Any

LIBRARY, MODE, TRANSPORT, TARGET, REPOSITORY = sys.argv[1:6]
SLOW = ("everything___trigger-long-running-operation", {"duration": 0.4, "steps": 2})
heard: list[str] = []
seen: list[Any] = []


async def hear(message: Any) -> None:
    method = getattr(getattr(message, "root", message), "method", None)
    if method:
        heard.append(method)


async def progress(*facts: Any) -> None:
    seen.append(facts[:2])


def started() -> dict[str, Any]:
    python, _, file = TARGET.partition(",")
    arguments = ["-m", "tool_search", "gateway", "--config", file]
    return {"command": python, "args": arguments, "env": dict(os.environ)}


@asynccontextmanager
async def with_sdk_1():
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client

    target = (
        stdio_client(StdioServerParameters(**started()))
        if TRANSPORT == "stdio"
        else streamable_http_client(TARGET)
    )
    async with target as (read, write, *_), ClientSession(read, write, message_handler=hear) as one:
        begun = await one.initialize()

        async def call(name, arguments, on_progress=None):
            answer = await one.call_tool(name, arguments, progress_callback=on_progress)
            return answer.content[0].text

        async def tools():
            return [tool.name for tool in (await one.list_tools()).tools]

        async def prompts():
            return [prompt.name for prompt in (await one.list_prompts()).prompts]

        async def prompt(name):
            return (await one.get_prompt(name)).messages[0].content.text

        yield str(begun.protocolVersion), tools, call, prompts, prompt


@asynccontextmanager
async def with_sdk_2():
    from mcp import Client, StdioServerParameters

    target = StdioServerParameters(**started()) if TRANSPORT == "stdio" else TARGET
    async with Client(target, mode=MODE, message_handler=hear) as one:

        async def call(name, arguments, on_progress=None):
            answer = await one.call_tool(name, arguments, progress_callback=on_progress)
            return answer.content[0].text

        async def tools():
            return [tool.name for tool in (await one.list_tools(cache_mode="refresh")).tools]

        async def prompts():
            return [prompt.name for prompt in (await one.list_prompts()).prompts]

        async def prompt(name):
            return (await one.get_prompt(name)).messages[0].content.text

        yield one.protocol_version, tools, call, prompts, prompt


@asynccontextmanager
async def with_fastmcp():
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    target = StdioTransport(**started()) if TRANSPORT == "stdio" else TARGET
    async with Client(target, mode=MODE, message_handler=hear) as one:

        async def call(name, arguments, on_progress=None):
            answer = await one.call_tool(name, arguments, progress_handler=on_progress)
            return answer.content[0].text

        async def tools():
            return [tool.name for tool in await one.list_tools()]

        async def prompts():
            return [prompt.name for prompt in await one.list_prompts()]

        async def prompt(name):
            return (await one.get_prompt(name)).messages[0].content.text

        yield MODE, tools, call, prompts, prompt


async def main() -> None:
    library = {"sdk1": with_sdk_1, "sdk2": with_sdk_2, "fastmcp": with_fastmcp}[LIBRARY]
    async with library() as (version, tools, call, prompts, prompt):
        found: dict[str, Any] = {"version": version, "first": await tools()}
        found["search"] = await call("search_available_tools", {"query": "commit history log"})
        await asyncio.sleep(0.2)
        found["heard"], found["then"] = list(heard), await tools()
        found["found"] = await call("git___git_log", {"repo_path": REPOSITORY})
        found["hidden"] = await call("time___get_current_time", {"timezone": "UTC"})
        found["slow"] = await call(*SLOW, progress)
        found["progress"] = seen
        found["prompts"] = await prompts()
        found["prompt"] = await prompt("everything___simple-prompt")
    sys.stdout.write("\n" + json.dumps(found) + "\n")


asyncio.run(main())
