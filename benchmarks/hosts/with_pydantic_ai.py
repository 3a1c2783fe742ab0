"""pydantic-ai: its capability `ToolSearch`, and ours, with agents on OpenAI Chat."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from measure import PROMPT, TURNS, Row, Search, System
from pydantic_ai import Agent, Tool
from pydantic_ai.capabilities import ToolSearch
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets._tool_search import keywords_search_fn

from tool_search.adapters.pydantic_ai import RankedToolSearch
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import StandInServer

PACKAGE = "pydantic-ai-slim"


def _definitions(tools: Sequence[Row]) -> list[ToolDefinition]:
    return [
        ToolDefinition(
            name=row["name"],
            description=row["description"] or "",
            parameters_json_schema=row["parameters"] or {"type": "object", "properties": {}},
        )
        for row in tools
    ]


def own_rank(tools: Sequence[Row]) -> Search:
    """Return pydantic-ai's local search: how many words of the query a tool has."""
    listed = _definitions(tools)
    context: Any = None
    return lambda query: list(keywords_search_fn(context, [query], listed))


def our_rank(tools: Sequence[Row]) -> Search:
    """Return the strategy of our capability, each query the first of a run."""
    listed = _definitions(tools)
    capability = RankedToolSearch()
    context: Any = SimpleNamespace(discovered_tool_names=set())
    loop = asyncio.new_event_loop()

    async def found(query: str) -> list[str]:
        run = await capability.for_run(context)
        strategy: Any = run.strategy
        return list(await strategy(context, [query], listed))

    return lambda query: loop.run_until_complete(found(query))


def conversing(capability_of: Callable[[], Any]) -> Any:
    """Return a conversation with an agent that has a capability."""

    async def converse(provider: StandInServer) -> None:
        agent = Agent(
            OpenAIChatModel(
                "gpt-5.4",
                provider=OpenAIProvider(base_url=provider.openai_base_url, api_key="none"),
            ),
            instructions=PROMPT,
            tools=[Tool(function, defer_loading=True) for function in TOOLBOX],
            capabilities=[capability_of()],
        )
        history = None
        for need in TURNS:
            history = (await agent.run(need.text, message_history=history)).all_messages()

    return converse


def _own() -> Any:
    return ToolSearch(strategy="keywords", max_results=5)


SYSTEMS = (
    System(name="ToolSearch", own=True, rank=own_rank, converse=conversing(_own)),
    System(
        name="RankedToolSearch", own=False, rank=our_rank, converse=conversing(RankedToolSearch)
    ),
)
