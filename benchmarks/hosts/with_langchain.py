"""LangChain: ours; its own `LLMToolSelectorMiddleware` asks a model to choose."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from measure import PROMPT, TURNS, Row, Search, System

from tool_search import ToolSearchConfig
from tool_search.adapters.langchain import ToolSearchMiddleware
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import StandInServer

PACKAGE = "langchain"


def our_rank(tools: Sequence[Row]) -> Search:
    """Return the search tool of our middleware, each query the first of a thread."""
    listed = [
        StructuredTool(
            name=row["name"],
            description=row["description"] or "-",
            args_schema=row["parameters"] or {"type": "object", "properties": {}},
            func=str,
        )
        for row in tools
    ]
    # A set has a tool that is called `tool_search`.
    middleware = ToolSearchMiddleware(ToolSearchConfig(search_tool_name="search_tools_of_set"))
    runtime: Any = SimpleNamespace(state={}, tools=listed, tool_call_id="1")

    def search(query: str) -> list[str]:
        update: Any = middleware._run_search(runtime, queries=[query]).update  # noqa: SLF001
        return list(update["discovered"])

    return search


async def converse(provider: StandInServer) -> None:
    """Hold the conversation with an agent, whose thread a checkpointer keeps."""
    key: Any = "none"
    model = ChatOpenAI(
        model="gpt-5.4",
        base_url=provider.openai_base_url,
        api_key=key,
        use_responses_api=False,
    )
    agent = create_agent(
        model,
        tools=list(TOOLBOX),
        system_prompt=PROMPT,
        middleware=[ToolSearchMiddleware()],
        checkpointer=InMemorySaver(),
    )
    for need in TURNS:
        asked: Any = {"messages": [("user", need.text)]}
        await agent.ainvoke(asked, {"configurable": {"thread_id": "1"}})


SYSTEMS = (System(name="ToolSearchMiddleware", own=False, rank=our_rank, converse=converse),)
