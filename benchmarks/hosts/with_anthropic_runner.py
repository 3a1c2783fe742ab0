"""anthropic's tool runner: ours, and every tool; its own search runs in the service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anthropic import AsyncAnthropic
from anthropic.lib.tools import beta_tool
from measure import PROMPT, TURNS, Row, Search, System

from tool_search import ToolSearchConfig
from tool_search.adapters.anthropic_runner import searchable
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import StandInServer

PACKAGE = "anthropic"


def our_rank(tools: Sequence[Row]) -> Search:
    """Return the search tool of the runner, each query the first of a conversation."""

    def nothing() -> str:
        return ""

    made = searchable(
        (
            beta_tool(
                nothing,
                name=row["name"],
                description=row["description"] or "-",
                input_schema=row["parameters"] or {"type": "object", "properties": {}},
            )
            for row in tools
        ),
        ToolSearchConfig(search_tool_name="search_tools_of_set"),  # a set has a `tool_search`
    )
    tool: Any = next(each for each in made if each.name == made.view.search_tool_name)
    definitions = [each.to_dict() for each in made if each is not tool]

    def search(query: str) -> list[str]:
        tool._view = made.search.view(tools=definitions)  # noqa: SLF001  # found tools are passed over
        found = tool.call({"queries": [query]})
        return [each["tool_name"] for each in found] if isinstance(found, list) else []

    return search


def conversing(*, searches: bool) -> Any:
    """Return a conversation with a runner for each turn."""

    async def converse(provider: StandInServer) -> None:
        config = ToolSearchConfig(tool_schema_mode="auto" if searches else "full")
        tools = searchable(TOOLBOX, config, asynchronous=True)
        messages: list[Any] = []
        url = provider.anthropic_base_url
        async with AsyncAnthropic(base_url=url, api_key="none") as client:
            for need in TURNS:
                messages.append({"role": "user", "content": need.text})
                runner = client.beta.messages.tool_runner(
                    model="claude-sonnet-4-6",
                    max_tokens=1_000,
                    system=PROMPT,
                    messages=[*messages],
                    tools=tools,
                    thread=False,
                )
                async for message in runner:
                    messages.append({"role": "assistant", "content": message.content})
                    answer = await runner.generate_tool_call_response()
                    if answer is not None:
                        messages.append(answer)

    return converse


SYSTEMS = (
    System(
        name="every tool",
        own=True,
        converse=conversing(searches=False),
        dialect="anthropic",
    ),
    System(
        name="searchable",
        own=False,
        rank=our_rank,
        converse=conversing(searches=True),
        dialect="anthropic",
    ),
)
