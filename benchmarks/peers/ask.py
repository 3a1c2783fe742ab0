"""Ask some systems every query of some sets; write one line of JSON for each.

It imports nothing that the systems do not need, so that each environment can run it. The
first pass over a set gives the rankings; times are measured on a sample, each query by its
best of three, after one warm-up query. Run by benchmarks/compare.py.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]
Search = Callable[[str], Sequence[str]]
Build = Callable[[Sequence[Row]], Search]

DEPTH = 10
PASSES = 3


def read(path: Path) -> list[Row]:
    """Return the rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def sample(queries: Sequence[str], count: int) -> list[str]:
    """Return the queries that are timed: the same for every system."""
    return random.Random(7).sample(list(queries), min(count, len(queries)))


def timed(search: Search, queries: Sequence[str]) -> float:
    """Microseconds of the median query, each by its best of the passes."""
    best = [float("inf")] * len(queries)
    for _ in range(PASSES):
        for place, query in enumerate(queries):
            start = time.perf_counter()
            search(query)
            best[place] = min(best[place], time.perf_counter() - start)
    return 1e6 * statistics.median(best)


def asked(build: Build, folder: Path, count: int) -> dict[str, Any]:
    """Return a system's rankings of one set, milliseconds to build, microseconds a query."""
    tools = read(folder / "tools.jsonl")
    queries = [str(row["query"]) for row in read(folder / "queries.jsonl")]
    start = time.perf_counter()
    search = build(tools)
    built = 1e3 * (time.perf_counter() - start)
    search(queries[0])
    return {
        "set": folder.name,
        "rankings": [list(search(query)) for query in queries],
        "build_ms": built,
        "median_us": timed(search, sample(queries, count)),
    }


def main() -> None:
    """Write a line for each system and set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--module", required=True, help="where SYSTEMS is: lexical, agent_frameworks"
    )
    parser.add_argument("--system", action="append")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", action="append", required=True)
    parser.add_argument("--timed", type=int, default=100)
    options = parser.parse_args()
    systems: Mapping[str, Build] = importlib.import_module(options.module).SYSTEMS
    for name in options.system or systems:
        for each in options.set:
            print(f"{name}: {each}", file=sys.stderr, flush=True)
            line = {"system": name, **asked(systems[name], options.data / each, options.timed)}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
