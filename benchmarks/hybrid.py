"""Measure hybrid ranking by words and meaning, on public sets with known answers.

Run: python benchmarks/hybrid.py --data ../shared/data [--set bfcl] [--cache vectors.sqlite]

Prints recall@5 of each variant on each set, the macro average over the eight sets of
one language, and, for each set, the weight of meaning that the seven others choose with
its recall. Every query of every set counts. `--floor 0` shows the cost of the relevance
floor.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from search import MACRO, read_queries, read_tools

from tool_search.config.search import HybridSettings, SearchSettings
from tool_search.core.catalog.tool import Tool
from tool_search.search import SearchResult, ToolSearchIndex, build_index, evaluate
from tool_search.search.vectors.embedder import Embedder, load_embedder

OTHERS = ("ultratool_zh2en", "mcp_dehydrator")
WEIGHTS = (0.1, 0.2, 0.3, 0.4, 0.5)


class Remembering:
    """An embedder that embeds each text once for all variants."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._known: dict[str, ArrayLike] = {}
        self.identity = inner.identity
        self.dimensions = inner.dimensions

    def embed(self, texts: Sequence[str]) -> ArrayLike:
        """Return a row for each text."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, np.asarray(self._inner.embed(new)), strict=True))
        return np.array([self._known[text] for text in texts])


class Timed:
    """An index that records the time of each search."""

    def __init__(self, index: ToolSearchIndex) -> None:
        self._index = index
        self.seconds: list[float] = []

    def search(
        self,
        query: str | Sequence[str],
        *,
        limit: int,
        allowed: Callable[[str], bool] | None = None,
    ) -> SearchResult:
        """Return the tools that fit the query."""
        start = time.perf_counter()
        found = self._index.search(query, limit=limit, allowed=allowed)
        self.seconds.append(time.perf_counter() - start)
        return found

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> ToolSearchIndex:
        """Return an index with other tools."""
        return self._index.updated(added=added, removed=removed)


def variants() -> dict[str, tuple[str, HybridSettings]]:
    """Scorer and settings by the variant's name."""
    hybrids = {f"hybrid {weight}": HybridSettings(semantic_weight=weight) for weight in WEIGHTS} | {
        "no dictionary": HybridSettings(dictionary=False),
        "weights": HybridSettings(fusion="weights"),
        "rrf 60": HybridSettings(fusion="rrf"),
        "rrf 10": HybridSettings(fusion="rrf", rrf_k=10),
    }
    alone = {"bm25": ("bm25", HybridSettings()), "semantic": ("semantic", HybridSettings())}
    return alone | {name: ("hybrid", chosen) for name, chosen in hybrids.items()}


def left_out(table: Mapping[str, Mapping[str, float]]) -> dict[str, tuple[str, float]]:
    """For each set the variant that is best on the others, and its recall there."""
    names = [f"hybrid {weight}" for weight in WEIGHTS]
    chosen = {}
    for name in MACRO:
        rest = [other for other in MACRO if other != name]
        best = max(names, key=lambda variant: sum(table[other][variant] for other in rest))
        chosen[name] = best, table[name][best]
    return chosen


def main() -> None:
    """Print a line for each set, then the averages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--set", action="append", dest="sets")
    parser.add_argument("--cache", default="auto")
    parser.add_argument("--floor", type=float, default=0.1)
    options = parser.parse_args()
    table: dict[str, dict[str, float]] = {}
    print(f"{'recall@5':17}" + "".join(f"{name:>14}" for name in variants()))
    for name in options.sets or (*MACRO, *OTHERS):
        tools, queries = read_tools(options.data / name), read_queries(options.data / name)
        embedder = Remembering(load_embedder(None))
        table[name], medians = {}, []
        for variant, (engine, hybrid) in variants().items():
            settings = SearchSettings(
                engine=engine,
                hybrid=hybrid,
                preset="tooldiscovery" if hybrid.fusion == "rrf" else None,
                min_relevance=options.floor,
                vector_cache=options.cache,
            )
            given = None if engine == "bm25" else embedder
            index = Timed(build_index(tools, settings, embedder=given))
            table[name][variant] = evaluate(index, queries).recall_at_5
            medians.append(1e3 * statistics.median(index.seconds))
        print(f"{name:17}" + "".join(f"{value:14.4f}" for value in table[name].values()))
        print(f"{'  ms a query':17}" + "".join(f"{value:14.2f}" for value in medians), flush=True)
    if set(MACRO) <= table.keys():
        for variant in variants():
            average = statistics.fmean(table[name][variant] for name in MACRO)
            print(f"macro {variant:14}{average:.4f}")
        chosen = left_out(table)
        print(f"one set left out    {statistics.fmean(value for _, value in chosen.values()):.4f}")
        print("   ", ", ".join(f"{name}: {variant}" for name, (variant, _) in chosen.items()))


if __name__ == "__main__":
    main()
