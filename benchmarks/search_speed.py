"""How fast the default engine is, beside rank_bm25 and, where installed, bm25s.

Run: python benchmarks/search_speed.py --data ../shared/data

One thread, real queries (union_en_dev), every engine asked the same query in
turn, the best of three; figures are ratios within the run, as machines differ.
bm25s is timed with its own tokenizer, stemmer and stop words, as ours is.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse
import gc
import importlib
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from search import read_queries, read_tools

from tool_search.catalog import Tool
from tool_search.config import SearchSettings
from tool_search.search import ToolSearchIndex, build_index
from tool_search.search.documents import field_texts
from tool_search.search.query import query_terms


def resident() -> float:
    """Megabytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4_096 / 1e6


def built(tools: list[Tool], label: str) -> ToolSearchIndex:
    """An index, and a line about what it took."""
    gc.collect()
    memory, start = resident(), time.perf_counter()
    index = build_index(tools, SearchSettings())
    seconds = time.perf_counter() - start
    gc.collect()
    print(f"{label}: {len(tools)} tools in {seconds:.2f} s, {resident() - memory:.0f} MB")
    return index


def ours(index: ToolSearchIndex) -> Callable[[str], object]:
    """One search without what was remembered of the query."""

    def ask(query: str) -> object:
        query_terms.cache_clear()
        return index.search(query, limit=5)

    return ask


def bm25s_search(tools: list[Tool]) -> Callable[[str], object] | None:
    """bm25s on numpy over the same text, or None where it is not installed."""
    try:
        bm25s = importlib.import_module("bm25s")
    except ImportError:
        return None
    stemmer = importlib.import_module("Stemmer").Stemmer("english")

    def tokenized(texts: list[str]) -> object:
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)

    texts = [" ".join(t for lines in field_texts(tool).values() for t in lines) for tool in tools]
    ranker = bm25s.BM25(backend="numpy")
    ranker.index(tokenized([text.replace("_", " ") for text in texts]), show_progress=False)
    return lambda query: ranker.retrieve(tokenized([query]), k=5, show_progress=False, n_threads=0)


def timed(asks: dict[str, Callable[[str], object]], queries: list[str]) -> None:
    """Prints median and 99th percentile in microseconds, and the ratio of medians."""
    times: dict[str, list[float]] = {name: [] for name in asks}
    for query in queries[:20]:
        for ask in asks.values():
            ask(query)
    for query in queries:
        for name, ask in asks.items():
            runs = []
            for _ in range(3):
                start = time.perf_counter()
                ask(query)
                runs.append(time.perf_counter() - start)
            times[name].append(1e6 * min(runs))
    first = statistics.median(next(iter(times.values())))
    for name, taken in times.items():
        median, late = statistics.median(taken), statistics.quantiles(taken, n=100)[98]
        print(
            f"  {name:12} p50 {median:9.0f} us  p99 {late:9.0f} us  ours is {median / first:.2f} x"
        )


def swapped(index: ToolSearchIndex, tools: list[Tool]) -> None:
    """Prints what exchanging one server of 30 tools takes."""
    old = [tool for tool in tools if tool.server][:30]
    new = [replace(tool, name=f"v2_{tool.name}") for tool in old]
    runs = []
    for _ in range(20):
        start = time.perf_counter()
        index = index.updated(added=new, removed=[tool.name for tool in old])
        runs.append(1e3 * (time.perf_counter() - start))
        old, new = new, old
    print(f"  swap of 30 tools: median {statistics.median(runs):.2f} ms, best {min(runs):.2f} ms")


def main() -> None:
    """Prints the figures for the real catalog and for one of 50,000 tools."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    folder = parser.parse_args().data / "union_en_dev"
    tools = read_tools(folder)
    queries = [judged.query for judged in read_queries(folder)]
    index = built(tools, "real catalog")
    asks = {"ours": ours(index)}
    peer = bm25s_search(tools)
    if peer is not None:
        asks["bm25s numpy"] = peer
    timed(asks, queries)
    reference = build_index(tools, SearchSettings(engine="rank_bm25"))
    timed({"ours": ours(index), "rank_bm25": ours(reference)}, queries[::25])
    swapped(index, tools)
    many = [
        replace(tool, name=f"{tool.name}_{copy}", description=f"{tool.description} v{copy}")
        for copy in range(4)
        for tool in tools
    ][:50_000]
    [tool.fingerprint for tool in many]
    index = built(many, "four times over")
    timed({"ours": ours(index)}, queries)
    swapped(index, many)


if __name__ == "__main__":
    main()
