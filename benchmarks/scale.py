"""Measure what grows: a store with its conversations and their turns, an index with its tools.

Run: PYTHONPATH=. python benchmarks/scale.py [--conversations 100 1000 10000 100000]
     [--turns 10 100 1000] [--tools 10 100 1000 10000] [--plots docs/pictures]
(needs redis-server; 100,000 conversations take about 2 GB of memory and as much disk)

Conversations have ten turns of one search each. Bytes are the server's memory, or the file's size.
A load reads a conversation that the process does not know; a turn saves four messages more in
one that it knows. Medians by the clock, which other programs disturb; `appendfsync no` and
`synchronous normal`, so that no disk is measured. The index is measured in CPU time.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from scale_plot import Series, line_plot
from stores import first_record, one_turn

from tests.stores.redis.servers import RedisServer, running
from tool_search import ConversationRecord, SQLiteStore, Tool
from tool_search.cli.doctor.requests import figures_of, planned_request
from tool_search.config.conversation import ToolSearchConfig
from tool_search.config.search import SearchSettings
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.discoveries import tool_tokens
from tool_search.providers.profile_choice import profile_for
from tool_search.search.build import build_index
from tool_search.stores.redis import RedisStore

_VERBS = [
    "get", "list", "create", "update", "delete", "send", "search", "move", "copy", "export",
    "import", "share",
]  # fmt: skip
_NOUNS = [
    f"{kind}{part}" for kind in ("mail", "file", "task", "user", "order") for part in range(200)
]
_QUERIES = 50
_ASKED = 200
_TURNS = 10
_AT_ONCE = 50
_KB = 1000
_PAGE = os.sysconf("SC_PAGE_SIZE")
Store = RedisStore | SQLiteStore


class StoreRow(NamedTuple):
    """Figures of a store at one size."""

    size: int
    kilobytes: float
    load_ms: float
    turn_ms: float


class IndexRow(NamedTuple):
    """Figures of a catalog at one size."""

    tools: int
    build_s: float
    mebibytes: float
    search_ms: float
    full_tokens: int
    first_tokens: int


def _memory() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE


def _tool(number: int) -> Tool:
    verb, noun = _VERBS[number % len(_VERBS)], _NOUNS[number // len(_VERBS) % len(_NOUNS)]
    return Tool(
        name=f"{verb}_{noun}_{number}",
        description=f"{verb.title()} a {noun} of the account, with filters by date and owner.",
        parameters={"type": "object", "properties": {"owner": {"type": "string"}}},
    )


def index_row(count: int) -> IndexRow:
    """Return the figures of so many tools."""
    tools = [_tool(number) for number in range(count)]
    before, cpu = _memory(), time.process_time()
    index = build_index(tools, SearchSettings())
    index.search("get mail1", limit=5)
    built, taken = time.process_time() - cpu, _memory() - before
    chance = random.Random(1)
    times = []
    for _ in range(_QUERIES):
        query = f"{chance.choice(_VERBS)} the {chance.choice(_NOUNS)} of an owner"
        cpu = time.process_time()
        index.search(query, limit=5)
        times.append(time.process_time() - cpu)
    catalog = ToolCatalog(tools)
    profile = profile_for("openai_chat", "gpt-5.4", strategy="generic")
    plan = planned_request(
        catalog, profile, config=ToolSearchConfig(tool_schema_mode="tool_search")
    ).plan
    return IndexRow(
        count,
        built,
        max(taken / 2**20, 0.1),
        statistics.median(times) * 1e3,
        sum(map(tool_tokens, tools)),
        figures_of(plan, b"", catalog).tokens,
    )


def talked(turns: int) -> ConversationRecord:
    """Return a conversation of so many turns."""
    messages = tuple(message for number in range(turns) for message in one_turn(number))
    return replace(first_record(), history=messages)


async def _timed_turn(store: Store, key: str, record: ConversationRecord) -> float:
    """Return the seconds of a save of one turn more."""
    longer = replace(record, history=(*record.history, *one_turn(len(record.history))))
    began = time.perf_counter()
    await store.save(key, longer)
    return time.perf_counter() - began


async def conversation_rows(
    opened: Callable[[], Store], used: Callable[[], int], counts: Sequence[int]
) -> list[StoreRow]:
    """Return the figures of a store that grows to each number of conversations."""
    record, rows, before, known = talked(_TURNS), [], used(), 0
    for count in sorted(counts):
        async with opened() as store:
            for first in range(known, count, _AT_ONCE):
                keys = [f"c{number}" for number in range(first, min(count, first + _AT_ONCE))]
                await asyncio.gather(*(store.save(key, record) for key in keys))
        known = count
        loads, turns = [], []
        async with opened() as store:
            for number in random.Random(1).choices(range(count), k=_ASKED):
                began = time.perf_counter()
                await store.load(f"c{number}")
                loads.append(time.perf_counter() - began)
                await store.save("measured", record)
                turns.append(await _timed_turn(store, "measured", record))
        each = (used() - before) / count / _KB
        middle = [statistics.median(values) * 1e3 for values in (loads, turns)]
        rows.append(StoreRow(count, each, *middle))
    return rows


async def turn_rows(
    opened: Callable[[], Store], used: Callable[[], int], counts: Sequence[int]
) -> list[StoreRow]:
    """Return the figures of one conversation with each number of turns."""
    rows = []
    for count in sorted(counts):
        record, before = talked(count), used()
        loads, turns = [], []
        async with opened() as store:
            await store.save(f"t{count}", record)
        size = (used() - before) / _KB
        for _ in range(5):
            async with opened() as store:
                began = time.perf_counter()
                known = await store.load(f"t{count}")
                loads.append(time.perf_counter() - began)
                if known is None:
                    raise SystemExit("a conversation is lost")
                # The first write of a process opens more than the file.
                turns += [await _timed_turn(store, f"t{count}", known) for _ in range(5)]
        middle = [statistics.median(values) * 1e3 for values in (loads, turns)]
        rows.append(StoreRow(count, size, *middle))
    return rows


def _used(server: RedisServer) -> int:
    found = re.search(rb"used_memory:(\d+)", server.ask_all("INFO", "memory"))
    if found is None:
        raise SystemExit("the server says nothing of its memory")
    return int(found[1])


def _file_size(path: Path) -> int:
    return sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*"))


def measure_stores(
    folder: Path, conversations: Sequence[int], turns: Sequence[int]
) -> dict[str, tuple[list[StoreRow], list[StoreRow]]]:
    """Return the figures by conversations and by turns, of each store."""
    rows = {}
    with running(folder / "redis", ("--appendfsync", "no")) as server:

        def on_redis() -> Store:
            return RedisStore(server.url, patience_s=60)

        by_number = asyncio.run(conversation_rows(on_redis, lambda: _used(server), conversations))
        server.ask("FLUSHALL")
        rows["Redis"] = by_number, asyncio.run(turn_rows(on_redis, lambda: _used(server), turns))
    many, long = folder / "many.db", folder / "long.db"
    rows["SQLite"] = (
        asyncio.run(
            conversation_rows(lambda: SQLiteStore(many), lambda: _file_size(many), conversations)
        ),
        asyncio.run(turn_rows(lambda: SQLiteStore(long), lambda: _file_size(long), turns)),
    )
    return rows


def print_stores(head: str, rows: dict[str, list[StoreRow]]) -> Series:
    """Print a table, and return its lines."""
    print(
        f"\n| {head} | Redis: KB | load, ms | a turn, ms | SQLite: KB | load, ms | a turn, ms |\n"
        "|--:|--:|--:|--:|--:|--:|--:|"
    )
    for redis, file in zip(rows["Redis"], rows["SQLite"], strict=True):
        cells = [f"{kb:,.1f} | {load:.2f} | {turn:.2f}" for _, kb, load, turn in (redis, file)]
        print(f"| {redis.size:,} | {' | '.join(cells)} |")
    return {
        f"{name}: {what}": [(row.size, row[place]) for row in own]
        for name, own in rows.items()
        for what, place in (("a load, ms", 2), ("a turn, ms", 3))
    }


def print_index(rows: Sequence[IndexRow]) -> Series:
    """Print the table of tools, and return its lines."""
    print(
        "\n| tools | first index, s of CPU | memory, MiB | a search, ms of CPU | tokens of all | "
        "tokens of a first request |\n|--:|--:|--:|--:|--:|--:|"
    )
    for row in rows:
        print(
            f"| {row.tools:,} | {row.build_s:.3f} | {row.mebibytes:.0f} | {row.search_ms:.2f} | "
            f"{row.full_tokens:,} | {row.first_tokens:,} |"
        )
    return {
        "first index, ms of CPU": [(row.tools, max(row.build_s * 1e3, 0.1)) for row in rows],
        "a search, ms of CPU": [(row.tools, row.search_ms) for row in rows],
        "tokens of all tools": [(row.tools, row.full_tokens) for row in rows],
        "tokens, tool search": [(row.tools, row.first_tokens) for row in rows],
    }


def main() -> None:
    """Print the tables, and draw the plots."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    many = [100, 1_000, 10_000, 100_000]
    parser.add_argument("--conversations", type=int, nargs="*", default=many)
    parser.add_argument("--turns", type=int, nargs="*", default=[10, 100, 1_000])
    parser.add_argument("--tools", type=int, nargs="*", default=[10, 100, 1_000, 10_000])
    parser.add_argument("--plots", type=Path, help="The folder of the plots; none if left out.")
    options = parser.parse_args()
    plots = {
        "scale-tools": (
            "Tools of a catalog",
            "tools",
            print_index([index_row(count) for count in sorted(options.tools)]),
        )
    }
    with tempfile.TemporaryDirectory() as folder:
        rows = measure_stores(Path(folder), options.conversations, options.turns)
    for place, (name, title, across) in enumerate(
        (
            ("scale-conversations", "Conversations of ten turns in a store", "conversations"),
            ("scale-turns", "Turns of one conversation", "turns"),
        )
    ):
        lines = print_stores(across, {store: own[place] for store, own in rows.items()})
        plots[name] = (title, across, lines)
    for name, (title, across, lines) in plots.items() if options.plots else ():
        drawn = line_plot(title, across, lines)
        (options.plots / f"{name}.svg").write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
