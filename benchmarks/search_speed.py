"""Compare the speed of the default engine with rank_bm25 and, if installed, bm25s.

Run: python benchmarks/search_speed.py --data ../shared/data

One thread, real queries (union_en_dev), every engine asked the same query in
turn, the best of five; figures are ratios within the run, as machines differ.
bm25s is timed with its own tokenizer, stemmer and stop words, as ours is, on numpy
and, if numba is installed, on numba after a warm-up.

`--first SIZE` measures so many tools alone, in processor time: 200 questions that were never
asked before, each once, and 20 requests of four questions; `--without-numpy` as the package is
installed without an extra.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1")

import argparse
import gc
import importlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from search import read_queries, read_tools

from tool_search.config.search import SearchSettings
from tool_search.core.catalog.tool import Tool
from tool_search.search import ToolSearchIndex, build_index
from tool_search.search.text.documents import field_texts
from tool_search.search.text.query import query_terms
from tool_search.search.text.query_language import parse_query

# The first line of the source, so that the imports are its own and are timed.
COLD_START = """import json, sys, time; start = time.perf_counter()
from tool_search import Tool, build_index
rows = json.load(open(sys.argv[1]))
index = build_index([Tool(**row) for row in rows])
index.search("find the weather forecast for Paris tomorrow", limit=5)
print(1e3 * (time.perf_counter() - start), 1e3 * time.process_time())
print(*sorted({"pydantic", "numpy"} & set(sys.modules)))
"""
PHRASES = ('"list all"', '"get the"', 'description:"list of"', '+"search for" user')


def resident() -> float:
    """Megabytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4_096 / 1e6


def built(tools: list[Tool], label: str) -> ToolSearchIndex:
    """Return an index, and a line about what it took."""
    gc.collect()
    memory, start = resident(), time.perf_counter()
    index = build_index(tools, SearchSettings())
    seconds = time.perf_counter() - start
    gc.collect()
    print(f"{label}: {len(tools)} tools in {seconds:.2f} s, {resident() - memory:.0f} MB")
    return index


def ours(index: ToolSearchIndex) -> Callable[[str], object]:
    """Return one search without what was remembered of the query."""

    def ask(query: str) -> object:
        query_terms.cache_clear()
        parse_query.cache_clear()
        return index.search(query, limit=5)

    return ask


def bm25s_search(tools: list[Tool], backend: str) -> Callable[[str], object] | None:
    """Return bm25s over the same text, or None if it or its backend is not installed."""
    try:
        bm25s = importlib.import_module("bm25s")
        importlib.import_module(backend)
    except ImportError:
        return None
    stemmer = importlib.import_module("Stemmer").Stemmer("english")

    def tokenized(texts: list[str]) -> object:
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)

    texts = [" ".join(t for lines in field_texts(tool).values() for t in lines) for tool in tools]
    ranker = bm25s.BM25(backend=backend)
    ranker.index(tokenized([text.replace("_", " ") for text in texts]), show_progress=False)
    return lambda query: ranker.retrieve(tokenized([query]), k=5, show_progress=False, n_threads=0)


def timed(asks: dict[str, Callable[[str], object]], queries: list[str]) -> None:
    """Print median and 99th percentile in microseconds, and ours as a ratio.

    First the ratio of medians, then the median of the queries' ratios.
    """
    times: dict[str, list[float]] = {name: [] for name in asks}
    for query in queries[:20]:
        for ask in asks.values():
            ask(query)
    for query in queries:
        for name, ask in asks.items():
            runs = []
            for _ in range(5):
                start = time.perf_counter()
                ask(query)
                runs.append(time.perf_counter() - start)
            times[name].append(1e6 * min(runs))
    own = next(iter(times.values()))
    for name, taken in times.items():
        median, late = statistics.median(taken), statistics.quantiles(taken, n=100)[98]
        ratio = statistics.median(mine / other for mine, other in zip(own, taken, strict=True))
        print(
            f"  {name:12} p50 {median:9.0f} us  p99 {late:9.0f} us"
            f"  ours is {statistics.median(own) / median:.2f} or {ratio:.2f} of it"
        )


def swapped(index: ToolSearchIndex, tools: list[Tool]) -> None:
    """Print what exchanging one server of 30 tools takes: for unseen tools, and back and forth."""
    servers = {tool.server: list[Tool]() for tool in tools if tool.server}
    for tool in tools:
        if tool.server:
            servers[tool.server].append(tool)
    large = [listed[:30] for listed in servers.values() if len(listed) >= 30][:20]
    runs = []
    for turn, old in enumerate(large):
        new = [
            replace(tool, name=f"v2_{tool.name}", description=f"{tool.description} turn{turn}")
            for tool in large[turn - 1]
        ]
        start = time.perf_counter()
        index = index.updated(added=new, removed=[tool.name for tool in old])
        runs.append(1e3 * (time.perf_counter() - start))
    print(f"  30 unseen tools: median {statistics.median(runs):.2f} ms, best {min(runs):.2f} ms")
    runs = []
    for old in large[1:] * 2:
        names = [tool.name for tool in old]
        for change in ({"added": (), "removed": names}, {"added": old, "removed": ()}):
            start = time.perf_counter()
            index = index.updated(**change)
            runs.append(1e3 * (time.perf_counter() - start))
    away, back = runs[len(runs) // 2 :: 2], runs[len(runs) // 2 + 1 :: 2]
    print(f"  a server away: median {statistics.median(away):.2f} ms, ", end="")
    print(f"back again: median {statistics.median(back):.2f} ms")


def phrases(index: ToolSearchIndex) -> None:
    """Print what phrase queries of common words take, the best of five."""
    for query in PHRASES:
        runs = []
        for _ in range(5):
            start = time.perf_counter()
            found = index.search(query, limit=5).total_found
            runs.append(1e3 * (time.perf_counter() - start))
        print(f"  {query}: {min(runs):.1f} ms, {found} found")


def cold_start(tools: list[Tool]) -> None:
    """Print what a fresh process takes to import, index 1,000 tools and search, compiled."""
    rows = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        for tool in tools[:: len(tools) // 1_000][:1_000]
    ]
    environment = {key: value for key, value in os.environ.items() if key[:8] != "PYTHONDO"}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tools.json"
        file.write_text(json.dumps(rows), "utf-8")
        environment["PYTHONPYCACHEPREFIX"] = folder
        command = [sys.executable, "-c", COLD_START, str(file)]
        runs = [
            subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            for _ in range(6)
        ]
    # The first run compiles.
    wall, cpu = (min(float(run.stdout.split()[n]) for run in runs[1:]) for n in (0, 1))
    loaded = " and ".join(runs[0].stdout.split()[2:]) or "neither pydantic nor numpy"
    print(f"cold start, 1,000 tools: best {wall:.0f} ms of 5, CPU {cpu:.0f} ms; loads {loaded}")


def copied(tools: list[Tool], count: int) -> list[Tool]:
    """Return so many tools: evenly chosen ones, or copies under other names."""
    if count <= len(tools):
        return [tools[place * len(tools) // count] for place in range(count)]
    return [
        replace(tool, name=f"{tool.name}_{copy}", description=f"{tool.description} v{copy}")
        for copy in range(-(-count // len(tools)))
        for tool in tools
    ][:count]


def first_questions(tools: list[Tool], queries: list[str], has_numpy: bool) -> None:
    """Print what questions take that are asked for the first time, beside bm25s on numpy."""
    clock = time.process_time
    [tool.fingerprint for tool in tools]
    start = clock()
    index = build_index(tools, SearchSettings())
    seconds = {"ours": clock() - start}
    asks: dict[str, Callable[[str], object]] = {"ours": lambda query: index.search(query, limit=5)}
    start = clock()
    peer = bm25s_search(tools, "numpy") if has_numpy else None
    if peer is not None:
        seconds["bm25s"], asks["bm25s"] = clock() - start, peer
        peer("warm")
    chosen = queries[:: max(1, len(queries) // 200)][:200]
    requests = [" ".join(chosen[place : place + 4]) for place in range(0, 80, 4)]
    print(f"{len(tools)} tools, {'with' if has_numpy else 'without'} numpy, ms of processor time")
    for label, asked in (("first", chosen), ("long", requests)):
        times: dict[str, list[float]] = {name: [] for name in asks}
        for query in asked:
            for name, ask in asks.items():
                start = clock()
                ask(query)
                times[name].append(1e3 * (clock() - start))
        own = statistics.median(times["ours"])
        for name, taken in times.items():
            late = statistics.quantiles(taken, n=100)[98]
            print(
                f"  {label} {name:6} build {seconds[name]:.2f} s  "
                f"p50 {statistics.median(taken):.2f}  p99 {late:.2f}  max {max(taken):.2f}  "
                f"ours is {own / statistics.median(taken):.2f} of it"
            )


def main() -> None:
    """Print the figures for the real catalog and for one of 50,000 tools."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--first", type=int)
    parser.add_argument("--without-numpy", action="store_true")
    options = parser.parse_args()
    folder = options.data / "union_en_dev"
    tools = read_tools(folder)
    queries = [judged.query for judged in read_queries(folder)]
    if options.first:
        if options.without_numpy:
            sys.modules["numpy"] = None  # type: ignore[assignment]
        else:
            importlib.import_module("numpy")
        first_questions(copied(tools, options.first), queries, not options.without_numpy)
        return
    index = built(tools, "real catalog")
    asks = {"ours": ours(index)}
    for backend in ("numpy", "numba"):
        peer = bm25s_search(tools, backend)
        if peer is not None:
            asks[f"bm25s {backend}"] = peer
    timed(asks, queries)
    reference = build_index(tools, SearchSettings(engine="rank_bm25"))
    timed({"ours": ours(index), "rank_bm25": ours(reference)}, queries[::25])
    swapped(index, tools)
    phrases(index)
    cold_start(tools)
    many = copied(tools, 50_000)
    [tool.fingerprint for tool in many]
    index = built(many, "four times over")
    timed({"ours": ours(index)}, queries)
    swapped(index, many)


if __name__ == "__main__":
    main()
