"""Measure the time of a search by meaning in a large catalog.

Run: python benchmarks/hybrid_speed.py --data ../shared/data [--queries 200]

Uses real tools and queries of union_en_dev; every engine gets the same query in turn, and
the best of three counts. Queries are embedded by the shipped model. The vectors of tools
are random, which saves minutes and does not change the time of an exact search.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from search import read_queries, read_tools

from tool_search.config.search import SearchSettings
from tool_search.search import Embedder, ToolSearchIndex, build_index
from tool_search.search.vectors.embedder import load_embedder

ENGINES = ("bm25", "semantic", "hybrid")
REPEATS = 3
SWAPPED = 30


class RandomTools:
    """The shipped embedder for a query, and random vectors for a batch of tools."""

    dimensions = 512
    identity = "random tools"

    def __init__(self) -> None:
        self.model: Embedder = load_embedder(None)
        self._random = np.random.default_rng(0)

    def embed(self, texts: Sequence[str]) -> ArrayLike:
        """Return a row for each text."""
        if len(texts) == 1:
            return np.asarray(self.model.embed(texts), np.float32)
        return self._random.normal(size=(len(texts), self.dimensions)).astype(np.float32)


def best(action: Callable[[str], object], texts: Sequence[str]) -> float:
    """Milliseconds of the fastest call, one with each text."""
    times = []
    for text in texts:
        start = time.perf_counter()
        action(text)
        times.append(1e3 * (time.perf_counter() - start))
    return min(times)


def main() -> None:
    """Print a line for each engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--queries", type=int, default=200)
    options = parser.parse_args()
    folder = options.data / "union_en_dev"
    tools, embedder = read_tools(folder), RandomTools()
    indexes: dict[str, ToolSearchIndex] = {
        engine: build_index(
            tools,
            SearchSettings(engine=engine, vector_cache=None),
            embedder=None if engine == "bm25" else embedder,
        )
        for engine in ENGINES
    }
    times: dict[str, list[float]] = {name: [] for name in (*ENGINES, "embedding alone")}

    def embed(text: str) -> None:
        embedder.model.embed([text])

    for judged in read_queries(folder)[: options.queries]:
        # Another query each time, so that no result comes from a cache.
        texts = [judged.query + " " * number for number in range(REPEATS)]
        for engine, index in indexes.items():
            times[engine].append(best(partial(index.search, limit=5), texts))
        times["embedding alone"].append(best(embed, texts))
    print(f"{len(tools)} tools, {options.queries} queries, milliseconds")
    for name, found in times.items():
        print(
            f"{name:17} median {statistics.median(found):7.2f}  p99 {np.percentile(found, 99):7.2f}"
        )
    server = sorted(tools, key=lambda tool: tool.name)[:SWAPPED]
    names = [tool.name for tool in server]
    hybrid = indexes["hybrid"]

    def swap(_: str) -> None:
        hybrid.updated(added=(), removed=names).updated(added=server, removed=())

    swapped = best(swap, [""] * REPEATS)
    print(f"{SWAPPED} tools swapped, their vectors made already: {swapped:.2f}")


if __name__ == "__main__":
    main()
