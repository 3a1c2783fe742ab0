"""Tool search in an agent of the OpenAI Agents SDK, with the demo's 196 tools.

Runs without a key: the stand-in server plays the provider. With `--live` and OPENAI_API_KEY
it asks the real one.

Run: pip install '.[openai-agents]' && python examples/frameworks/with_openai_agents.py
"""

import asyncio
import sys

from agents import Agent, Model, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from tool_search.adapters.openai_agents import with_tool_search
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import KeywordModel, StandInServer

QUESTION = 'Count the words of "to be or not to be".'


async def ask(model: Model | str) -> None:
    """Ask an agent that has every tool of the demo."""
    tools = [function_tool(function, strict_mode=False) for function in TOOLBOX]
    agent = with_tool_search(Agent("bot", model=model, tools=[*tools]))
    result = await Runner.run(agent, QUESTION)
    print(result.final_output)


if "--live" in sys.argv:
    asyncio.run(ask("gpt-5.4"))
else:
    set_tracing_disabled(disabled=True)
    with StandInServer(model=KeywordModel()) as server:
        client = AsyncOpenAI(base_url=server.openai_base_url, api_key="none")
        asyncio.run(ask(OpenAIResponsesModel("gpt-5.4", client)))
        for number, request in enumerate(server.requests, 1):
            print(f"request {number}: {len(request.tool_names)} of {len(TOOLBOX)} tools")
