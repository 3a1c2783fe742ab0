"""Compare the cost of a conversation of 30 turns with 200 tools, ours and others.

Run: python benchmarks/conversation_cost.py [--ours] [--prices FILE] [--json FILE]

Every system talks over HTTP to the stand-in server, whose prompt cache works by prefixes,
as the vendors document theirs. The model is the same for all: it knows which tool a turn
needs, and searches if that tool is not in its view. Its view is counted at four characters
a token. `paid` weighs tokens by the vendors' prices: 0.1 from a cache, 1.25 into Claude's
cache, otherwise 1. `of full` is the share of the cost of Claude with every tool declared.
`moved` counts prefixes that moved unannounced; `right` the turns in which the model could call
the tool it needed. `waiting` is a model of latency, whose three figures are options.

The second table has money: the price lists of `prices.json`, output included, and the strategy
that each vendor's profile gets. `with pauses` is the default's share if the cache is lost before
every fifth turn.
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
from typing import Any, ClassVar

from compare import HERE, environment
from prices import Price, read_prices

from tool_search import RunnerWarning, ToolSearchConfig, ToolSearchRunner, profile_for
from tool_search.adapters import build_provider
from tool_search.config.bot import ProviderConfig
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import DeclaredTool, StrategyName, ToolCall, ToolList
from tool_search.core.settings import Dialect, SchemaMode, StrategyChoice
from tool_search.core.strategies import BridgeToolSearchStrategy, PlanInput, register_strategy
from tool_search.runner.execution import (
    ExecutionEvent,
    ExecutionResult,
    ToolContext,
    executable_tools,
)
from tool_search.sources.toolbox import TOOLBOX
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
PAUSE = 5
STEP = 40
FULL = "every tool declared"
GIVING_UP = "I have no tool for that."
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
class CacheCase:
    """A cache that a conversation is counted with.

    Attributes:
        paused: True if it is lost before every fifth turn, as in a pause of an hour.
        whole_requests: True if it has prefixes of any length, as `Price.whole_requests`.
    """

    paused: bool = False
    whole_requests: bool = False

    def new(self) -> PromptCache:
        """Return the cache, empty."""
        return PromptCache(least=0, step=1) if self.whole_requests else PromptCache()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The cost of one system's conversation, in tokens.

    Attributes:
        system: The system.
        dialect: The dialect of its requests.
        cache: The cache that the tokens were counted with.
        requests: Its requests.
        shown: Input tokens.
        cached: Those that came from a cache.
        written: Those that were written into a cache.
        output: The model's tokens.
        moved: Times that a request did not begin as the one before it, unannounced.
        right: Turns in which the model could call the tool it needed.
    """

    system: str
    dialect: str
    cache: CacheCase
    requests: int
    shown: int
    cached: int
    written: int
    output: int
    moved: int
    right: int

    @property
    def paid(self) -> int:
        """Input tokens, weighed by what vendors usually ask for a cache."""
        fresh = self.shown - self.cached - self.written
        return round(fresh + WRITTEN * self.written + READ * self.cached)

    def dollars(self, price: Price) -> float:
        """Return the price of the conversation."""
        fresh = self.shown - self.cached - self.written
        return price.dollars(
            fresh=fresh, read=self.cached, written=self.written, output=self.output
        )

    def seconds(self, waiting: Waiting) -> float:
        """Return the time that a user waits in the whole conversation, as a model of it."""
        fresh = self.shown - self.cached
        return (
            self.requests * waiting.request_s
            + fresh / waiting.read_per_s
            + self.output / waiting.written_per_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A model of latency, which is assumed and not measured.

    Attributes:
        request_s: Seconds of every request, whatever is in it.
        read_per_s: Uncached input tokens read in a second.
        written_per_s: Output tokens written in a second.
    """

    request_s: float
    read_per_s: float
    written_per_s: float


@register_strategy
class SteppedToolSearchStrategy(BridgeToolSearchStrategy):
    """A prototype: the bridge, whose list grows by whole steps of discoveries."""

    name: ClassVar[StrategyName] = "steps"
    list_grows = True

    def declare(self, conversation: PlanInput) -> ToolList:
        """Return the bridge's list and as many discoveries as fill whole steps."""
        fixed = super().declare(conversation)
        if conversation.mode != "tool_search":
            return fixed
        found = [n for n in conversation.declared_order if not fixed.declares(n)]
        names = tuple(found[: len(found) // STEP * STEP])
        more = (DeclaredTool(tool) for tool in conversation.definitions(names))
        return ToolList((*fixed, *more))


CASES = tuple(
    CacheCase(paused=paused, whole_requests=whole)
    for paused in (False, True)
    for whole in (False, True)
)


class CountingModel:
    """A model that knows which tool each turn needs, and records the cost of each request.

    It calls that tool if it is in view or a search has named it; otherwise it searches once
    with the turn's text, and answers.

    Args:
        search_tool: The name of the system's search tool.
        wanted: The tool for each text of a user.
        schemas: The schemas of tools, which a model has read when it calls one through another.
        searches: False for a model that says it has no tool, and never searches.
    """

    def __init__(
        self,
        *,
        search_tool: str,
        wanted: Mapping[str, str],
        schemas: Mapping[str, Mapping[str, Any]],
        searches: bool = True,
    ) -> None:
        self._search_tool = search_tool
        self._searches = searches
        self._wanted = wanted
        self._schemas = schemas
        self._caches = {case: case.new() for case in CASES}
        self.figures: dict[CacheCase, list[UsageFigures]] = {case: [] for case in CASES}
        self.right: list[bool] = []

    def reply(self, view: ModelView) -> ModelReply:
        """Return a call, or the answer that ends the turn."""
        call = self._call(view)
        called = {each.arguments.get("name", each.name) for each in view.calls}
        is_right = self._wanted[view.last_user_text] in called.union(c.name for c in view.calls)
        gives_up = not (is_right or self._searches)
        answer = ModelReply(text=GIVING_UP if gives_up else "Here is what I found.")
        reply = ModelReply(calls=(call,)) if call else answer
        if call is None:
            self.right.append(is_right)
        for case, cache in self._caches.items():
            self.figures[case].append(reply_usage(view, reply, cache))
            if call is None and case.paused and len(self.right) % PAUSE == 0:
                self._caches[case] = case.new()
        return reply

    def _call(self, view: ModelView) -> ModelCall | None:
        text = view.last_user_text
        wanted = self._wanted[text]
        searches = {self._search_tool, *(tool.name for tool in view.tools if tool.is_search)}
        # A search that shows preloaded tools is not the model's own.
        made = [each for each in view.calls if not each.id.startswith(("preload_", "second_"))]
        if any(each.name not in searches for each in made):
            return None
        tool = view.tool(wanted)
        if tool is not None:
            return ModelCall(name=wanted, arguments=fill_arguments(tool.parameters, text))
        read = (result for message in view.messages for result in message.results)
        if view.tool("call_tool") and any(wanted in found_in(result) for result in read):
            written = fill_arguments(self._schemas[wanted], text)
            arguments = {"name": wanted, "arguments": written}
            return ModelCall(name="call_tool", arguments=arguments)
        search = next((tool for tool in view.tools if tool.name in searches), None)
        if search is None or made or not self._searches:
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
    preload: int = 0,
    second_chance: bool = False,
) -> int:
    """Hold the conversation through our runner; return the prefixes that moved unannounced."""
    url = server.anthropic_base_url if dialect == "anthropic" else server.openai_base_url
    config = ProviderConfig.model_validate(
        {
            "id": "one",
            "type": dialect,
            "model": "kimi-k3" if strategy == "tools_in_messages" else MODELS[dialect],
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
            config=ToolSearchConfig(
                tool_schema_mode=mode, preload=preload, second_chance=second_chance
            ),
            system_prompt=PROMPT,
        )
        moved = 0
        for turn in turns:
            async for event in runner.run(turn):
                moved += isinstance(event, RunnerWarning) and event.code == "prefix_moved"
        return moved


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
    command = [str(environment("agent_frameworks")), str(HERE / "peers" / "converse.py")]
    await asyncio.to_thread(
        subprocess.run, command, input=json.dumps(job, default=dict), text=True, check=True
    )


def measured(
    name: str,
    dialect: str,
    run: Any,
    *,
    search_tool: str = "tool_search",
    searches: bool = True,
) -> list[Row]:
    """Return one system's conversation, counted on the server's side with each cache."""
    tools, turns = conversation()
    model = CountingModel(
        search_tool=search_tool,
        wanted=dict(turns),
        schemas={tool.name: tool.parameters or {} for tool in tools},
        searches=searches,
    )
    with StandInServer(model=model) as server:
        texts = [text for text, _ in turns]
        moved = asyncio.run(run(server, dialect=dialect, tools=tools, turns=texts))
        if server.violations:
            raise SystemExit(f"{name}: refused: {server.violations[0]}")
    return [
        Row(
            system=name,
            dialect=dialect,
            cache=case,
            requests=len(figures),
            shown=sum(figure.input for figure in figures),
            cached=sum(figure.cache_read for figure in figures),
            written=sum(figure.cache_written for figure in figures),
            output=sum(figure.output for figure in figures),
            moved=moved or 0,
            right=sum(model.right),
        )
        for case, figures in model.figures.items()
    ]


def our_rows() -> list[Row]:
    """Return the rows of each strategy and every dialect that it supports."""
    found = []
    for dialect in MODELS:
        native = NATIVE[dialect]
        # OpenAI Chat takes no list of 200 tools; Responses has the same cache.
        if dialect != "openai_chat":
            found += measured(FULL, dialect, partial(ours, mode="full", strategy=native))
        strategies: tuple[StrategyChoice, ...] = ("generic", native, "steps", "bridge")
        if dialect == "openai_chat":
            strategies += ("tools_in_messages",)
        for strategy in dict.fromkeys(strategies):
            run = partial(ours, mode="tool_search", strategy=strategy)
            found += measured(f"ours, {strategy}", dialect, run)
            run = partial(run, preload=1)
            found += measured(f"ours, {strategy}, preload 1", dialect, run)
    return found


def other_rows() -> list[Row]:
    """Return the rows of the other systems and every dialect that they support."""
    found = []
    for dialect in MODELS:
        for system in ("pydantic-ai", "FastMCP"):
            if (system, dialect) != ("FastMCP", "openai_responses"):
                run = partial(others, system=system)
                found += measured(system, dialect, run, search_tool="search_tools")
    return found


def print_tokens(rows: Sequence[Row], waiting: Waiting) -> None:
    """Print the table of tokens."""
    rows = [row for row in rows if row.cache == CacheCase()]
    full = next(row for row in rows if row.system == FULL)
    heads = ("system", "provider", "requests", "shown", "from the cache", "paid", "of full")
    print(f"| {' | '.join((*heads, 'moved', 'waiting', 'right'))} |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for row in rows:
        print(
            f"| {row.system} | {row.dialect} | {row.requests} | {row.shown:,} | {row.cached:,} "
            f"| {row.paid:,} | {row.paid / full.paid:.3f} | {row.moved} "
            f"| {row.seconds(waiting):.0f} s | {row.right}/{TURNS} |"
        )


def print_money(rows: Sequence[Row], prices: Sequence[Price]) -> None:
    """Print what a conversation costs at each vendor, with the strategy that it gets."""
    heads = ("vendor", "model", "default", "every tool", "default costs", "of full")
    print(f"\n| {' | '.join((*heads, 'generic', 'steps', 'bridge', 'with pauses'))} |")
    print("|---|---|---|--:|--:|--:|--:|--:|--:|--:|")
    for price in prices:
        profile = profile_for(
            price.dialect, price.model, base_url=price.base_url, takes_cheapest=True
        )
        default = f"ours, {profile.strategy}"
        full, cost, share = priced(rows, default, price)
        others = (
            priced(rows, f"ours, {name}", price)[2] for name in ("generic", "steps", "bridge")
        )
        paused = priced(rows, default, price, paused=True)[2]
        print(
            f"| {price.provider} | {price.model} | `{profile.strategy}` | ${full:.4f} "
            f"| ${cost:.4f} | **{share:.2f}** | {' | '.join(f'{other:.2f}' for other in others)} "
            f"| {paused:.2f} |"
        )


def priced(
    rows: Sequence[Row], system: str, price: Price, *, paused: bool = False
) -> tuple[float, float, float]:
    """Return the price of every tool declared, of a system, and the system's share."""
    case = CacheCase(paused=paused, whole_requests=price.whole_requests)
    known = {(row.system, row.dialect): row for row in rows if row.cache == case}
    full_in = "anthropic" if price.dialect == "anthropic" else "openai_responses"
    full = known[FULL, full_in].dollars(price)
    cost = known[system, price.dialect].dollars(price)
    return full, cost, cost / full


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="where the rows go as well")
    parser.add_argument("--prices", type=Path, help="a JSON list of price lists; default: ours")
    parser.add_argument("--ours", action="store_true", help="leave the other systems out")
    parser.add_argument("--request-s", type=float, default=0.5, help="of the model of waiting")
    parser.add_argument("--read-per-s", type=float, default=5000.0)
    parser.add_argument("--written-per-s", type=float, default=60.0)
    options = parser.parse_args()
    waiting = Waiting(
        request_s=options.request_s,
        read_per_s=options.read_per_s,
        written_per_s=options.written_per_s,
    )
    rows = our_rows()
    print_tokens(rows if options.ours else [*rows, *other_rows()], waiting)
    print_money(rows, read_prices(options.prices) if options.prices else read_prices())
    if options.json:
        text = json.dumps([asdict(row) for row in rows], indent=1)
        options.json.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
