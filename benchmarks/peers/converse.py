"""Hold a conversation with a stand-in provider through pydantic-ai or FastMCP's search.

Reads one JSON object from standard input: `system`, `url`, `dialect`, `prompt`, `tools`
and `turns`. Every tool returns the same short text. The server counts, so nothing is
printed. Run by benchmarks/conversation_cost.py.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any

KEY = "no-key"
MODELS = {
    "anthropic": "claude-sonnet-4-6",
    "openai_chat": "gpt-5.4",
    "openai_responses": "gpt-5.4",
}
MAX_REQUESTS = 8


def returned(name: str) -> str:
    """Return the result of every tool."""
    return json.dumps({"tool": name, "ok": True})


async def with_pydantic_ai(job: Mapping[str, Any]) -> None:
    """Run an agent whose tools are all deferred, searched by its own keywords."""
    from pydantic_ai import Agent, Tool
    from pydantic_ai.capabilities import ToolSearch

    def executor(name: str) -> Any:
        return lambda **_arguments: returned(name)

    tools = [
        Tool.from_schema(
            executor(tool["name"]),
            name=tool["name"],
            description=tool["description"],
            json_schema=tool["parameters"],
        )
        for tool in job["tools"]
    ]
    for tool in tools:
        tool.defer_loading = True
    model, settings = _pydantic_ai_model(job)
    agent = Agent(
        model,
        instructions=job["prompt"],
        tools=tools,
        capabilities=[ToolSearch(strategy="keywords", max_results=5)],
        model_settings=settings,
    )
    history = None
    for turn in job["turns"]:
        history = (await agent.run(turn, message_history=history)).all_messages()


def _pydantic_ai_model(job: Mapping[str, Any]) -> tuple[Any, Any]:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    name = MODELS[job["dialect"]]
    if job["dialect"] == "anthropic":
        claude = AsyncAnthropic(base_url=job["url"], api_key=KEY)
        caches = {
            "anthropic_cache_tool_definitions": True,
            "anthropic_cache_instructions": True,
            "anthropic_cache_messages": True,
        }
        return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=claude)), caches
    gpt = OpenAIProvider(openai_client=AsyncOpenAI(base_url=job["url"], api_key=KEY))
    kind = OpenAIChatModel if job["dialect"] == "openai_chat" else OpenAIResponsesModel
    return kind(name, provider=gpt), None


async def with_fastmcp(job: Mapping[str, Any]) -> None:
    """Run a FastMCP server with its search transform, and the simplest loop of a client."""
    from fastmcp import Client, FastMCP
    from fastmcp.server.transforms.search import BM25SearchTransform
    from fastmcp.tools.base import Tool, ToolResult

    base: Any = Tool

    class Canned(base):  # type: ignore[misc]  # the package is there at run time alone
        async def run(self, arguments: dict[str, Any]) -> ToolResult:
            del arguments
            return ToolResult(returned(self.name))

    server: Any = FastMCP("bot", transforms=[BM25SearchTransform()])
    for tool in job["tools"]:
        server.add_tool(Canned(**tool))
    async with Client(server) as client:
        listed = await client.list_tools()

        async def call(name: str, arguments: Mapping[str, Any]) -> str:
            result = await client.call_tool(name, dict(arguments), raise_on_error=False)
            return "".join(getattr(part, "text", "") for part in result.content)

        loop = _claude_loop if job["dialect"] == "anthropic" else _chat_loop
        await loop(job, listed, call)


async def _chat_loop(job: Mapping[str, Any], listed: Any, call: Any) -> None:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=job["url"], api_key=KEY)
    tools: Any = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.input_schema,
            },
        }
        for tool in listed
    ]
    messages: Any = [{"role": "system", "content": job["prompt"]}]
    for turn in job["turns"]:
        messages.append({"role": "user", "content": turn})
        for _ in range(MAX_REQUESTS):
            reply = await client.chat.completions.create(
                model=MODELS["openai_chat"], messages=messages, tools=tools
            )
            message = reply.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                break
            calls: Any = message.tool_calls
            for each in calls:
                content = await call(each.function.name, json.loads(each.function.arguments))
                messages.append({"role": "tool", "tool_call_id": each.id, "content": content})


async def _claude_loop(job: Mapping[str, Any], listed: Any, call: Any) -> None:
    from anthropic import AsyncAnthropic

    client = AsyncAnthropic(base_url=job["url"], api_key=KEY)
    ends: Any = {"type": "ephemeral"}
    tools: Any = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
        for tool in listed
    ]
    tools[-1]["cache_control"] = ends
    messages: list[Any] = []
    for turn in job["turns"]:
        content: list[Any] = [{"type": "text", "text": turn}]
        for _ in range(MAX_REQUESTS):
            marked = [*content[:-1], {**content[-1], "cache_control": ends}]
            reply = await client.messages.create(
                model=MODELS["anthropic"],
                max_tokens=4096,
                system=job["prompt"],
                tools=tools,
                messages=[*messages, {"role": "user", "content": marked}],
            )
            messages += [
                {"role": "user", "content": content},
                {"role": "assistant", "content": [b.to_dict() for b in reply.content]},
            ]
            content = [
                {
                    "type": "tool_result",
                    "tool_use_id": block.id,
                    "content": await call(block.name, block.input),
                }
                for block in reply.content
                if block.type == "tool_use"
            ]
            if not content:
                break


def main() -> None:
    """Hold the conversation that is asked for."""
    job = json.load(sys.stdin)
    run = with_pydantic_ai if job["system"] == "pydantic-ai" else with_fastmcp
    asyncio.run(run(job))


if __name__ == "__main__":
    main()
