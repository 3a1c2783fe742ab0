"""Measures the time to produce the bytes of a request's tools.

Run::

    python -m benchmarks.tool_bytes [--json] [--tools 25 100 1000 10000]

For each catalog and strategy: the first request (of a new catalog and conversation,
with nothing kept) and a later one, as a ratio to `json.dumps` of the same wire list in
the same run. The time is that of `ToolSearchStrategy.declare` and the adapter's
`encode_tools`; the catalog and its fingerprint are there before, as `begin_turn` makes
them. Each figure is the best of 80 conversations, of 12 with more than 1,000 tools.

The catalogs are made up after real ones: names of three words, a description of 8 to
30 words, one to six described parameters, some of them enumerations, arrays or nested.
The generic list is what is sent after one search: the search tool and five discoveries.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from tool_search.adapters.anthropic import wire as anthropic_wire
from tool_search.adapters.openai_chat import wire as openai_chat_wire
from tool_search.catalog.validation import SCHEMAS
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import wire_name
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import ToolList
from tool_search.core.profiles import ProviderProfile
from tool_search.core.strategies import (
    ClaudeToolSearchStrategy,
    GenericToolSearchStrategy,
    PlanInput,
    ToolSearchStrategy,
)
from tool_search.providers.profile_choice import profile_for
from tool_search.search.build import build_index
from tool_search.search.discovery.search_tool import ToolSearchTool, call_tool_definition

_WORDS = re.findall(
    r"\w+",
    """account address archive balance calendar channel contact customer currency document driver
    email event file filter forecast group image invoice issue label language limit list location
    message model number order page payment person price product project query range record region
    report repository result route schedule search server status stock table target task template
    ticket title token total user value vehicle weather window""",
)
_VERBS = re.findall(
    r"\w+", "add check close convert count create delete export find get list move read send set"
)
_DISCOVERED = 5
_MAX_FIRST, _MAX_LATER = 3.0, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The figures of one catalog and strategy.

    Attributes:
        strategy: The strategy and the dialect.
        tools: The number of tools in the catalog.
        sent: The number of tools in the list.
        bytes: The list's length in UTF-8.
        dumps_us: Microseconds of `json.dumps` of the list.
        first: The first request's time as a ratio to that.
        later: A later request's.
    """

    strategy: str
    tools: int
    sent: int
    bytes: int
    dumps_us: float
    first: float
    later: float

    @property
    def holds(self) -> bool:
        """True if both ratios are within their limits."""
        return self.first <= _MAX_FIRST and self.later <= _MAX_LATER


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One strategy in one dialect."""

    label: str
    strategy: type[ToolSearchStrategy]
    profile: ProviderProfile
    encode: Callable[[ToolList, ProviderProfile], bytes]


_CASES = (
    Case(
        label="Claude, anthropic",
        strategy=ClaudeToolSearchStrategy,
        profile=profile_for("anthropic", "claude-sonnet-4-6"),
        encode=anthropic_wire.encode_tools,
    ),
    Case(
        label="generic, openai_chat",
        strategy=GenericToolSearchStrategy,
        profile=profile_for("openai_chat", "gpt-5.4"),
        encode=openai_chat_wire.encode_tools,
    ),
)


def made_tools(count: int, *, seed: int = 1) -> list[Tool]:
    """Tools like those of real servers, the same for the same seed."""
    source = random.Random(seed)
    return [_made_tool(source, number) for number in range(count)]


def _made_tool(source: random.Random, number: int) -> Tool:
    words = source.sample(_WORDS, 8)
    properties = {word: _made_parameter(source) for word in words[: source.randint(1, 6)]}
    return Tool(
        name=f"{source.choice(_VERBS)}_{words[6]}_{words[7]}_{number}",
        description=_sentence(source, source.randint(8, 30)),
        parameters={
            "type": "object",
            "properties": properties,
            "required": list(properties)[: source.randint(0, 2)],
        },
        kind="mcp",
        server=f"server_{number % 40}",
    )


def _made_parameter(source: random.Random) -> dict[str, Any]:
    described = {"description": _sentence(source, source.randint(4, 12))}
    kind = source.randrange(6)
    if kind == 0:
        return {"type": "string", "enum": source.sample(_WORDS, 4), **described}
    if kind == 1:
        return {"type": "array", "items": {"type": "string"}, **described}
    if kind == 2:
        inner = {word: {"type": "number"} for word in source.sample(_WORDS, 2)}
        return {"type": "object", "properties": inner, **described}
    return {"type": source.choice(("string", "integer", "boolean")), **described}


def _sentence(source: random.Random, words: int) -> str:
    return f"{' '.join(source.choices(_WORDS, k=words)).capitalize()}."


def conversation_of(tools: Sequence[Tool], profile: ProviderProfile) -> PlanInput:
    """Return a conversation over these tools that has discovered five of them."""
    catalog = ToolCatalog(tools)
    names = catalog.names
    search = ToolSearchTool(build_index(catalog.deferred[:1]), catalog).definition()
    step = max(1, len(names) // _DISCOVERED)
    discovered = names[::step][:_DISCOVERED]
    return PlanInput(
        catalog=catalog,
        profile=profile,
        schemas=SCHEMAS,
        mode="tool_search",
        catalog_order=(search.name, *names),
        declared_order=(search.name, *discovered),
        core=frozenset(),
        search_tool=search,
        call_tool=call_tool_definition("en-US"),
    )


def measure(case: Case, count: int) -> Row:
    """Return the figures of one strategy for a catalog of so many tools."""
    batches, size = (8, 10) if count <= 1_000 else (4, 3)
    first, later, dumps = [], [], []
    for batch in range(batches):
        seeds = range(batch * size, batch * size + size)
        producers = [_producer(case, made_tools(count, seed=seed)) for seed in seeds]
        wire_name.cache_clear()
        gc.collect()
        first += [_seconds(produce) for produce in producers]
        encoded = producers[0]()
        dump = partial(json.dumps, json.loads(encoded))
        for _ in range(max(2, min(40, 1_000_000 // len(encoded)))):
            later.append(_seconds(producers[0], repeats=20))
            dumps.append(_seconds(dump))
    return Row(
        strategy=case.label,
        tools=count,
        sent=len(json.loads(encoded)),
        bytes=len(encoded),
        dumps_us=round(min(dumps) * 1e6, 1),
        first=round(min(first) / min(dumps), 2),
        later=round(min(later) / min(dumps), 4),
    )


def _producer(case: Case, tools: Sequence[Tool]) -> Callable[[], bytes]:
    """Do the work of one conversation in a process with empty caches."""
    strategy, conversation = case.strategy(), conversation_of(tools, case.profile)
    conversation.catalog.fingerprint  # noqa: B018 - a session has it before its first request

    def produce() -> bytes:
        return case.encode(strategy.declare(conversation), case.profile)

    return produce


def _seconds(work: Callable[[], object], *, repeats: int = 1) -> float:
    # As in `timeit`: a garbage collection would be counted in a random row.
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in range(repeats):
            work()
        return (time.perf_counter() - start) / repeats
    finally:
        gc.enable()


def format_table(rows: Sequence[Row]) -> str:
    """Lay rows out as a Markdown table."""
    lines = [
        "| strategy             |  tools |   sent |     bytes | json.dumps, µs | first |  later |",
        "|----------------------|-------:|-------:|----------:|---------------:|------:|-------:|",
    ]
    lines += [
        f"| {row.strategy:20} | {row.tools:6,} | {row.sent:6,} | {row.bytes:9,} "
        f"| {row.dumps_us:14,.1f} | {row.first:5.2f} | {row.later:6.4f} |"
        for row in rows
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a ratio is beyond its limit."""
    parser = argparse.ArgumentParser(description="Time to produce the bytes of a tool list.")
    parser.add_argument("--tools", type=int, nargs="+", default=[25, 100, 1_000, 10_000])
    parser.add_argument("--json", action="store_true", help="print JSON, not a table")
    options = parser.parse_args(arguments)
    rows = [measure(case, count) for case in _CASES for count in options.tools]
    bars = {"first": _MAX_FIRST, "later": _MAX_LATER}
    if options.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "bars": bars}, indent=2))
    else:
        print(format_table(rows))
        print(f"\nratios to json.dumps; at most {_MAX_FIRST} first, {_MAX_LATER} later")
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
