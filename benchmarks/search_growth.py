"""Measure how the default engine grows beside bm25s and rank_bm25, from 1,000 to 200,000 tools.

Run: python benchmarks/search_growth.py [--data ../shared/data] [--sizes 1000 13237 ...]

Real tools and queries (union_en_dev); larger catalogs repeat the tools under other names, with
another word in the description. Each system runs in a process of its own, the same texts, one
thread, one after another; times are processor time, as machines are seldom idle. Imports are
apart. An index from disk is read in a new process, the fingerprints of its tools included.
rank_bm25 is left out above 50,000 tools, where one query takes 0.2 s already. Writes
benchmarks/search_growth.svg.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse
import gc
import importlib
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from compare import environment
from search import read_queries, read_tools
from search_speed import ours, resident

from tool_search.config.search import SearchSettings
from tool_search.core.catalog.tool import Tool
from tool_search.search import build_index
from tool_search.search.text.documents import field_texts

HERE = Path(__file__).resolve().parent
SIZES = (1_000, 10_000, 13_237, 50_000, 200_000)
MOST_FOR_RANK_BM25 = 50_000


def sized(tools: list[Tool], size: int) -> list[Tool]:
    """Return so many tools: evenly chosen ones, or copies under other names."""
    if size <= len(tools):
        step = len(tools) / size
        return [tools[int(place * step)] for place in range(size)]
    copies = -(-size // len(tools))
    return [
        replace(tool, name=f"{tool.name}_{copy}", description=f"{tool.description} v{copy}")
        for copy in range(copies)
        for tool in tools
    ][:size]


def texts(tools: list[Tool]) -> list[str]:
    """Return the texts that the other libraries index: the same as ours."""
    return [
        " ".join(text for listed in field_texts(tool).values() for text in listed).replace("_", " ")
        for tool in tools
    ]


def own_row(tools: list[Tool], queries: list[str], folder: str) -> dict[str, Any]:
    """Return the figures of the default engine; run in a process of its own."""
    [tool.fingerprint for tool in tools]
    # The other libraries import their modules and numpy before they are timed, too.
    importlib.import_module("numpy")
    build_index([Tool(name="weather", description="天气 and погода")]).search("天气", limit=1)
    gc.collect()
    memory, start = resident(), time.process_time()
    index = build_index(tools, SearchSettings(min_relevance=0.1))
    row: dict[str, Any] = {"system": "ours: bm25", "tools": len(tools)}
    row["build_s"] = time.process_time() - start
    gc.collect()
    row["memory_mb"] = resident() - memory
    row["query_ms"] = median_ms(ours(index), queries)
    del index
    # Another floor is another index in memory, and the same file.
    build_index(tools, SearchSettings(index_cache=folder, min_relevance=0.11))
    return row


def seconds_to_ready(tools: list[Tool], folder: str) -> float:
    """Return the time to read the index of known tools; run in a new process."""
    build_index([Tool(name="weather")])
    start = time.process_time()
    build_index(tools, SearchSettings(index_cache=folder))
    return time.process_time() - start


def median_ms(ask: Any, queries: list[str]) -> float:
    """Return milliseconds of processor time of the median query, each by its best of three."""
    best = []
    for query in queries:
        runs = []
        for _ in range(3):
            start = time.process_time()
            ask(query)
            runs.append(time.process_time() - start)
        best.append(min(runs))
    return 1e3 * sorted(best)[len(best) // 2]


def measured(options: Any, size: int) -> list[dict[str, Any]]:
    """Return the rows of all systems for one size."""
    tools = sized(read_tools(options.data / "union_en_dev"), size)
    queries = [each.query for each in read_queries(options.data / "union_en_dev")][:50]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--data", str(options.data), "--folder", folder]
        row: dict[str, Any] = {}
        for step in ("--own", "--ready"):
            done = subprocess.run(
                [*command, step, str(size)], capture_output=True, text=True, check=True
            )
            row |= json.loads(done.stdout)
        rows.append(row)
        content, python = json.dumps(texts(tools)), environment("growth")
        del tools
        for system in ("bm25s", "rank_bm25") if size <= MOST_FOR_RANK_BM25 else ("bm25s",):
            script = [python, HERE / "peers" / "growth.py", system, folder, json.dumps(queries)]
            done = subprocess.run(script, input=content, capture_output=True, text=True, check=True)
            rows.append(json.loads(done.stdout))
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows in Markdown."""
    lines = [
        "| tools | system | a query, ms | build, s | ready from disk, s | memory, MB |",
        "|--:|---|--:|--:|--:|--:|",
    ]
    for row in rows:
        ready = f"{row['ready_s']:.2f}" if "ready_s" in row else ""
        lines.append(
            f"| {row['tools']:,} | {row['system']} | {row['query_ms']:.2f} | {row['build_s']:.2f} "
            f"| {ready} | {row['memory_mb']:.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Print the table and draw the plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    for step in ("--own", "--ready"):
        parser.add_argument(step, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.own or options.ready:
        folder = options.data / "union_en_dev"
        tools = sized(read_tools(folder), options.own or options.ready)
        if options.ready:
            print(json.dumps({"ready_s": seconds_to_ready(tools, options.folder)}))
            return
        queries = [each.query for each in read_queries(folder)][:50]
        print(json.dumps(own_row(tools, queries, options.folder)))
        return
    rows = []
    for size in options.sizes:
        found = measured(options, size)
        print(*map(json.dumps, found), sep="\n", file=sys.stderr)
        rows += found
    print(table(rows))
    subprocess.run(
        [environment("plot"), HERE / "peers" / "plot_growth.py", HERE / "search_growth.svg"],
        input=json.dumps(rows),
        text=True,
        check=True,
    )


if __name__ == "__main__":
    main()
