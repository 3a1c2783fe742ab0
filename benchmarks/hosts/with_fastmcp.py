"""FastMCP: its search transforms, and ours, behind an MCP client and the simplest loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from fastmcp import Client, FastMCP
from fastmcp.server.transforms.search import BM25SearchTransform, RegexSearchTransform
from fastmcp.tools.base import Tool, ToolResult
from measure import FOUND, PROMPT, TURNS, Row, Search, System
from openai import AsyncOpenAI

from tool_search.adapters.fastmcp import ToolSearchTransform
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import StandInServer

PACKAGE = "fastmcp"


_BASE: Any = Tool


class _Canned(_BASE):  # type: ignore[misc]  # the package is there at run time alone
    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        del arguments
        return ToolResult(self.name)


def ranked(transform_of: Callable[[], Any], *, as_pattern: bool = False) -> Any:
    """Return a maker of rankings: a client calls the search tool of a server."""

    def rank(tools: Sequence[Row]) -> Search:
        server: Any = FastMCP("tools", transforms=[transform_of()])
        for row in tools:
            schema = row["parameters"] or {"type": "object", "properties": {}}
            server.add_tool(
                _Canned(name=row["name"], description=row["description"] or "", parameters=schema)
            )
        loop = asyncio.new_event_loop()
        client: Any = Client(server)
        loop.run_until_complete(client.__aenter__())  # closed with the process

        def search(query: str) -> list[str]:
            asked = {"pattern": "|".join(query.split())} if as_pattern else {"query": query}
            result = loop.run_until_complete(
                client.call_tool("search_tools", asked, raise_on_error=False)
            )
            text = "".join(getattr(part, "text", "") for part in result.content)
            found = [] if result.is_error else _read(text)
            return [each["name"] for each in found]

        return search

    return rank


def _read(text: str) -> list[Any]:
    try:
        found = json.loads(text)
    except ValueError:  # a sentence: nothing was found
        return []
    return found if isinstance(found, list) else []


def conversing(transform_of: Callable[[], Any]) -> Any:
    """Return a conversation with a server that has a transform."""

    async def converse(provider: StandInServer) -> None:
        server: Any = FastMCP("toolbox", transforms=[transform_of()])
        for function in TOOLBOX:
            server.tool(function)
        model = AsyncOpenAI(base_url=provider.openai_base_url, api_key="none")
        async with model, Client(server) as client:
            listed = [tool.model_dump(by_alias=True) for tool in await client.list_tools()]
            tools: Any = [
                {
                    "type": "function",
                    "function": {
                        "name": tool["name"],
                        "description": tool["description"],
                        "parameters": tool["inputSchema"],
                    },
                }
                for tool in listed
            ]
            messages: Any = [{"role": "system", "content": PROMPT}]
            for need in TURNS:
                messages.append({"role": "user", "content": need.text})
                await _turn(model, client, messages, tools)

    return converse


async def _turn(model: AsyncOpenAI, client: Any, messages: Any, tools: Any) -> None:
    while True:
        reply = await model.chat.completions.create(model="gpt-5.4", messages=messages, tools=tools)
        said: Any = reply.choices[0].message
        messages.append(said.to_dict())
        if not said.tool_calls:
            return
        for call in said.tool_calls:
            arguments = json.loads(call.function.arguments)
            result = await client.call_tool(call.function.name, arguments, raise_on_error=False)
            text = "".join(getattr(part, "text", "") for part in result.content)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


def _bm25() -> Any:
    return BM25SearchTransform(max_results=FOUND)


def _regex() -> Any:
    return RegexSearchTransform(max_results=FOUND)


SYSTEMS = (
    System(name="BM25SearchTransform", own=True, rank=ranked(_bm25), converse=conversing(_bm25)),
    System(
        name="RegexSearchTransform",
        own=True,
        rank=ranked(_regex, as_pattern=True),
        converse=conversing(_regex),
    ),
    System(
        name="ToolSearchTransform",
        own=False,
        rank=ranked(ToolSearchTransform),
        converse=conversing(ToolSearchTransform),
    ),
)
