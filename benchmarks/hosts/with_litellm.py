"""LiteLLM's proxy: ours, asked by a client that sends every tool with every request."""

from __future__ import annotations

import asyncio
import json
import runpy
from pathlib import Path
from typing import Any

from measure import PROMPT, TURNS, System
from openai import OpenAI

from tool_search import tool_from_function
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import StandInServer

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "frameworks" / "with_litellm.py"
PACKAGE = "litellm"


async def converse(provider: StandInServer) -> None:
    """Hold the conversation through a proxy that runs in a process of its own."""
    await asyncio.to_thread(_hold, provider)


def _hold(provider: StandInServer) -> None:
    made = [tool_from_function(function) for function in TOOLBOX]
    functions = {each.tool.name: each.function for each in made}
    empty = {"type": "object", "properties": {}}
    tools: Any = [
        {
            "type": "function",
            "function": {
                "name": each.tool.name,
                "description": each.tool.description,
                "parameters": dict(each.tool.parameters) or empty,
            },
        }
        for each in made
    ]
    messages: list[Any] = [{"role": "system", "content": PROMPT}]
    example = runpy.run_path(str(EXAMPLE))  # it knows how to run a proxy
    with (
        example["proxy"](f'api_base: "{provider.openai_base_url}", api_key: none') as address,
        OpenAI(base_url=address, api_key=example["KEY"]) as client,
    ):
        for need in TURNS:
            messages.append({"role": "user", "content": need.text})
            _turn(client, messages, tools, functions)


def _turn(client: OpenAI, messages: list[Any], tools: Any, functions: Any) -> None:
    while True:
        reply = client.chat.completions.create(model="gpt-5.4", messages=messages, tools=tools)
        said: Any = reply.choices[0].message
        messages.append({"role": "assistant", "content": said.content})
        if not said.tool_calls:
            return
        messages[-1]["tool_calls"] = [call.to_dict() for call in said.tool_calls]
        for call in said.tool_calls:
            result = str(functions[call.function.name](**json.loads(call.function.arguments)))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


SYSTEMS = (System(name="ToolSearchHandler", own=False, converse=converse),)
