"""Compare the cost of a conversation of 30 turns with 200 tools, ours and others.

Run: python benchmarks/conversation_cost.py [--json FILE]

Every system talks over HTTP to the stand-in server, whose prompt cache works by prefixes,
as the vendors document theirs. The model is the same for all: it knows which tool a turn
needs, and searches if that tool is not in its view. Its view is counted at four characters
a token. `paid` weighs tokens by the vendors' prices: 0.1 from a cache, 1.25 into Claude's
cache, otherwise 1. `right` is the number of turns in which the model could call the tool it
needed. OpenAI accepts no list of 200 tools, so `of full` is the share of the cost of Claude
with every tool declared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from compare import HERE, environment

from tool_search import ToolSearchConfig, ToolSearchRunner
from tool_search.adapters import build_provider
from tool_search.catalog.catalog import ToolCatalog
from tool_search.catalog.tool import Tool
from tool_search.config.bot import ProviderConfig, SchemaMode
from tool_search.config.providers import Dialect, StrategyChoice
from tool_search.demo.toolbox import TOOLBOX
from tool_search.execution import ExecutionEvent, ExecutionResult, ToolContext, executable_tools
from tool_search.messages import ToolCall
from tool_search.testing import ModelCall, ModelReply, StandInServer
from tool_search.testing.models.arguments import fill_arguments
from tool_search.testing.server.prompt_cache import PromptCache
from tool_search.testing.server.usage import UsageFigures, reply_usage
from tool_search.testing.view import ModelView, ViewResult

PROMPT = "You are the assistant of a group chat. Answer in the user's language, briefly."
TURNS = 30
DIFFERENT = 20
TOOLS = 200
READ, WRITTEN = 0.1, 1.25
MODELS = {
    "anthropic": "claude-sonnet-4-6",
    "openai_chat": "gpt-5.4",
    "openai_responses": "gpt-5.4",
}
NATIVE: Mapping[str, StrategyChoice] = {
    "anthropic": "claude",
    "openai_chat": "generic",
    "openai_responses": "openai_responses",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The cost of one system's conversation, in tokens."""

    system: str
    dialect: str
    requests: int
    shown: int
    cached: int
    paid: int
    right: int


class CountingModel:
    """A model that knows which tool each turn needs, and records the cost of each request.

    It calls that tool if it is in view or a search has named it; otherwise it searches once
    with the turn's text, and answers.

    Args:
        search_tool: The name of the system's search tool.
        wanted: The tool for each text of a user.
    """

    def __init__(self, *, search_tool: str, wanted: Mapping[str, str]) -> None:
        self._search_tool = search_tool
        self._wanted = wanted
        self._cache = PromptCache()
        self.figures: list[UsageFigures] = []
        self.right: list[bool] = []

    def reply(self, view: ModelView) -> ModelReply:
        """Return a call, or the answer that ends the turn."""
        call = self._call(view)
        reply = ModelReply(calls=(call,)) if call else ModelReply(text="Here is what I found.")
        if call is None:
            called = {each.arguments.get("name", each.name) for each in view.calls}
            called |= {each.name for each in view.calls}
            self.right.append(self._wanted[view.last_user_text] in called)
        self.figures.append(reply_usage(view, reply, self._cache))
        return reply

    def _call(self, view: ModelView) -> ModelCall | None:
        text = view.last_user_text
        wanted = self._wanted[text]
        searches = {self._search_tool, *(tool.name for tool in view.tools if tool.is_search)}
        if any(each.name not in searches for each in view.calls):
            return None
        tool = view.tool(wanted)
        if tool is not None:
            return ModelCall(name=wanted, arguments=fill_arguments(tool.parameters, text))
        read = (result for message in view.messages for result in message.results)
        if view.tool("call_tool") and any(wanted in found_in(result) for result in read):
            arguments = {"name": wanted, "arguments": {}}
            return ModelCall(name="call_tool", arguments=arguments)
        search = next((tool for tool in view.tools if tool.name in searches), None)
        if search is None or view.calls:
            return None
        many = "queries" in search.parameters.get("properties", ())
        return ModelCall(
            name=search.name, arguments={"queries": [text]} if many else {"query": text}
        )


def found_in(result: ViewResult) -> set[str]:
    """Return the tools of a search result, in the form of FastMCP or of this library."""
    try:
        value = json.loads(result.text)
    except ValueError:
        return set()
    found = value.get("matches", ()) if isinstance(value, dict) else value
    return {tool["name"] for tool in found if isinstance(tool, dict)}


class CannedExecutor:
    """An executor whose tools all return the same short text."""

    async def run(self, call: ToolCall, context: ToolContext) -> AsyncIterator[ExecutionEvent]:
        """Yield one result."""
        del context
        yield ExecutionResult(content=json.dumps({"tool": call.name, "ok": True}))


def conversation() -> tuple[list[Tool], list[tuple[str, str]]]:
    """Return the tools, and the turns with the tool of each; ten of them repeat."""
    extra = [Tool(name=f"chat_note_{n}", description=f"Chat note {n}.") for n in range(TOOLS)]
    tools = [item.tool for item in executable_tools(TOOLBOX)]
    tools = [*tools, *extra[: TOOLS - len(tools)]]
    dice = random.Random(11)
    wanted = dice.sample([tool for tool in tools if tool.description[-2].isalpha()], DIFFERENT)
    again = dice.sample(wanted, TURNS - DIFFERENT)
    turns = [(tool.description.split(". ")[0].rstrip("."), tool.name) for tool in (*wanted, *again)]
    return tools, turns


async def ours(
    server: StandInServer,
    *,
    dialect: Dialect,
    tools: Sequence[Tool],
    turns: Sequence[str],
    mode: SchemaMode,
    strategy: StrategyChoice,
) -> None:
    """Hold the conversation through our runner."""
    url = server.anthropic_base_url if dialect == "anthropic" else server.openai_base_url
    config = ProviderConfig.model_validate(
        {
            "id": "one",
            "type": dialect,
            "model": MODELS[dialect],
            "api_key_env": "NONE",
            "base_url": url,
            "strategy": strategy,
        }
    )
    async with build_provider(config, api_key="no-key", fallbacks=False) as provider:
        runner = ToolSearchRunner(
            providers={"one": provider},
            catalog=ToolCatalog(tools),
            executor=CannedExecutor(),
            config=ToolSearchConfig.model_validate({"tool_schema_mode": mode}),
            system_prompt=PROMPT,
        )
        for turn in turns:
            async for _ in runner.run(turn):
                pass


async def others(
    server: StandInServer,
    *,
    system: str,
    dialect: str,
    tools: Sequence[Tool],
    turns: Sequence[str],
) -> None:
    """Hold the conversation through another system, in its own environment."""
    job = {
        "system": system,
        "dialect": dialect,
        "url": server.anthropic_base_url if dialect == "anthropic" else server.openai_base_url,
        "prompt": PROMPT,
        "tools": [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": {"type": "object", "properties": {}, **(tool.parameters or {})},
            }
            for tool in tools
        ],
        "turns": list(turns),
    }
    command = [str(environment("frameworks")), str(HERE / "peers" / "converse.py")]
    await asyncio.to_thread(
        subprocess.run, command, input=json.dumps(job, default=dict), text=True, check=True
    )


def measured(name: str, dialect: str, run: Any, *, search_tool: str = "tool_search") -> Row:
    """Return one system's conversation, counted on the server's side."""
    tools, turns = conversation()
    model = CountingModel(search_tool=search_tool, wanted=dict(turns))
    with StandInServer(model=model) as server:
        asyncio.run(run(server, dialect=dialect, tools=tools, turns=[text for text, _ in turns]))
        if server.violations:
            raise SystemExit(f"{name}: refused: {server.violations[0]}")
    shown = sum(figure.input for figure in model.figures)
    read = sum(figure.cache_read for figure in model.figures)
    written = sum(figure.cache_written for figure in model.figures)
    return Row(
        system=name,
        dialect=dialect,
        requests=len(model.figures),
        shown=shown,
        cached=read,
        paid=round(shown - read - written + WRITTEN * written + READ * read),
        right=sum(model.right),
    )


def rows() -> list[Row]:
    """Return a row for every system and every dialect that it supports."""
    found = []
    for dialect in MODELS:
        native = NATIVE[dialect]
        if dialect == "anthropic":
            full = partial(ours, mode="full", strategy=native)
            found.append(measured("every tool declared", dialect, full))
        strategies: tuple[StrategyChoice, ...] = ("generic", native, "bridge")
        for strategy in dict.fromkeys(strategies):
            run = partial(ours, mode="tool_search", strategy=strategy)
            found.append(measured(f"ours, {strategy}", dialect, run))
        for system in ("pydantic-ai", "FastMCP"):
            if (system, dialect) != ("FastMCP", "openai_responses"):
                run = partial(others, system=system)
                found.append(measured(system, dialect, run, search_tool="search_tools"))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="where the rows go as well")
    options = parser.parse_args()
    found = rows()
    print("| system | provider | requests | shown | from the cache | paid | of full | right |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for row in found:
        share = row.paid / found[0].paid
        print(
            f"| {row.system} | {row.dialect} | {row.requests} | {row.shown:,} | {row.cached:,} "
            f"| {row.paid:,} | {share:.3f} | {row.right}/{TURNS} |"
        )
    if options.json:
        text = json.dumps([asdict(row) for row in found], indent=1)
        options.json.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
