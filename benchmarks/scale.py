"""Measure what grows: the index with its tools, and a store in Redis with its conversations.

Run: PYTHONPATH=. python benchmarks/scale.py [--tools 1000 10000 100000]
     [--conversations 100 1000 10000] (needs redis-server)

CPU time of this process for the index, and the memory that it takes; bytes of the server for a
conversation of ten turns, and the time of its load by the clock, which other programs disturb.
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
from dataclasses import replace
from pathlib import Path

from stores import first_record, one_turn

from tests.stores.redis.servers import RedisServer, running
from tool_search import Tool
from tool_search.config.search import SearchSettings
from tool_search.search.build import build_index
from tool_search.stores.redis import RedisStore

_VERBS = [
    "get",
    "list",
    "create",
    "update",
    "delete",
    "send",
    "search",
    "move",
    "copy",
    "export",
    "import",
    "share",
]
_NOUNS = [
    f"{kind}{part}" for kind in ["mail", "file", "task", "user", "order"] for part in range(200)
]
_QUERIES = 50
_LOADS = 200
_TURNS = 10
_PAGE = os.sysconf("SC_PAGE_SIZE")


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


def index_row(count: int) -> str:
    """Return the table's row for so many tools."""
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
    return (
        f"| {count:,} | {built:.2f} | {taken / 2**20:.0f} | {statistics.median(times) * 1e3:.2f} |"
    )


def _used(server: RedisServer) -> int:
    found = re.search(rb"used_memory:(\d+)", server.ask_all("INFO", "memory"))
    if found is None:
        raise SystemExit("the server says nothing of its memory")
    return int(found[1])


async def store_row(server: RedisServer, count: int) -> str:
    """Return the table's row for so many conversations."""
    server.ask("FLUSHALL")
    before = _used(server)
    messages = tuple(message for number in range(_TURNS) for message in one_turn(number))
    record = replace(first_record(), history=messages)
    async with RedisStore(server.url) as store:
        for first in range(0, count, 50):
            keys = [f"c{number}" for number in range(first, min(count, first + 50))]
            await asyncio.gather(*(store.save(key, record) for key in keys))
        each = (_used(server) - before) / count
        times = []
        for number in random.Random(1).choices(range(count), k=_LOADS):
            began = time.perf_counter()
            await store.load(f"c{number}")
            times.append(time.perf_counter() - began)
    return f"| {count:,} | {each / 1000:.1f} | {statistics.median(times) * 1e3:.1f} |"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tools", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--conversations", type=int, nargs="*", default=[100, 1_000, 10_000])
    options = parser.parse_args()
    print("| tools | first index, s of CPU | memory, MiB | a search, ms of CPU |")
    print("|---|---|---|---|")
    for count in options.tools:
        print(index_row(count))
    print("\n| conversations of ten turns | KB each in Redis | a load, ms |\n|---|---|---|")
    fast = ("--appendfsync", "no")
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), fast) as server:
        for count in options.conversations:
            print(asyncio.run(store_row(server, count)))


if __name__ == "__main__":
    main()
