"""Tool search in a FastMCP server, with the demo's 196 tools, and a small bot as its client.

Runs without a key: the stand-in server plays the model. With `--live` and OPENAI_API_KEY
the real one is asked.

Run: pip install '.[fastmcp]' openai && python examples/frameworks/with_fastmcp.py
"""

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client, FastMCP
from openai import AsyncOpenAI

from tool_search.adapters.fastmcp import ToolSearchTransform
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import ModelCall, ModelReply, ScriptedModel, StandInServer

QUESTION = 'Count the words of "to be or not to be".'
COUNT = {"name": "count_words", "arguments": {"text": "to be or not to be"}}
STEPS = (
    ModelReply(calls=(ModelCall(name="search_tools", arguments={"query": "count words"}),)),
    ModelReply(calls=(ModelCall(name="call_tool", arguments=COUNT),)),
    ModelReply(text="There are six words."),
)

tools: FastMCP[Any] = FastMCP("toolbox", transforms=[ToolSearchTransform()])
for function in TOOLBOX:
    tools.tool(function)


async def ask(model: AsyncOpenAI) -> None:
    """Ask a model that has the tools of the server."""
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    async with model, Client(tools) as client:
        functions: list[Any] = []
        for tool in await client.list_tools():
            listed = tool.model_dump(by_alias=True)
            function = {"name": tool.name, "description": tool.description or ""}
            function["parameters"] = listed["inputSchema"]
            functions.append({"type": "function", "function": function})
        print(f"the client sees {len(functions)} of {len(TOOLBOX)} tools")
        while True:
            reply = await model.chat.completions.create(
                model="gpt-5.4", messages=messages, tools=functions
            )
            said: Any = reply.choices[0].message
            messages.append(said.to_dict())
            if not said.tool_calls:
                print(said.content)
                return
            for call in said.tool_calls:
                arguments = json.loads(call.function.arguments)
                result = await client.call_tool(call.function.name, arguments, raise_on_error=False)
                text = "\n".join(getattr(part, "text", "") for part in result.content)
                print(f"{call.function.name}: {text[:70]}")
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


if "--live" in sys.argv:
    asyncio.run(ask(AsyncOpenAI()))
else:
    with StandInServer(model=ScriptedModel(STEPS)) as server:
        asyncio.run(ask(AsyncOpenAI(base_url=server.openai_base_url, api_key="none")))
