"""OpenAI Agents: ours; its own `ToolSearchTool` is run by OpenAI's Responses API alone."""

from __future__ import annotations

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from measure import PROMPT, TURNS, System
from openai import AsyncOpenAI

from tool_search.adapters.openai_agents import with_tool_search
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import StandInServer

PACKAGE = "openai-agents"


async def converse(provider: StandInServer) -> None:
    """Hold the conversation in a session of the SDK."""
    set_tracing_disabled(disabled=True)
    async with AsyncOpenAI(base_url=provider.openai_base_url, api_key="none") as client:
        agent = with_tool_search(
            Agent(
                "bot",
                instructions=PROMPT,
                model=OpenAIChatCompletionsModel("gpt-5.4", client),
                tools=[function_tool(function, strict_mode=False) for function in TOOLBOX],
            )
        )
        session = SQLiteSession("conversation")
        for need in TURNS:
            await Runner.run(agent, need.text, session=session)


SYSTEMS = (System(name="with_tool_search", own=False, converse=converse),)
