"""Measure bm25s or rank_bm25 over texts of tools; one line of JSON.

Run by benchmarks/search_growth.py: python growth.py SYSTEM FOLDER QUERIES < texts
"""

from __future__ import annotations

import gc
import json
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bm25s
import rank_bm25
import Stemmer


def resident() -> float:
    """Megabytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4_096 / 1e6


def median_ms(ask: Callable[[str], object], queries: list[str]) -> float:
    """Milliseconds of processor time of the median query, each by its best of three."""
    best = []
    for query in queries:
        runs = []
        for _ in range(3):
            start = time.process_time()
            ask(query)
            runs.append(time.process_time() - start)
        best.append(min(runs))
    return 1e3 * statistics.median(best)


def main() -> None:
    """Build, ask, and load again where the library can."""
    system, folder, queries = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    texts: list[str] = json.load(sys.stdin)
    gc.collect()
    memory, start = resident(), time.process_time()
    row: dict[str, Any] = {"system": system, "tools": len(texts)}
    if system == "bm25s":
        stemmer = Stemmer.Stemmer("english")
        options = {"stopwords": "en", "stemmer": stemmer, "show_progress": False}
        ranker = bm25s.BM25()
        ranker.index(bm25s.tokenize(texts, **options), show_progress=False)
        row["build_s"] = time.process_time() - start

        def ask(query: str) -> object:
            words = bm25s.tokenize([query], **options)
            return ranker.retrieve(words, k=5, show_progress=False, n_threads=0)

        row["memory_mb"] = resident() - memory
        row["query_ms"] = median_ms(ask, queries)
        ranker.save(str(folder))
        start = time.process_time()
        bm25s.BM25.load(str(folder))
        row["ready_s"] = time.process_time() - start
    else:
        word = re.compile(r"[a-z0-9]+")
        okapi = rank_bm25.BM25Okapi([word.findall(text.lower()) for text in texts])
        row["build_s"] = time.process_time() - start
        row["memory_mb"] = resident() - memory
        # One query takes half a second at 200,000 tools.
        row["query_ms"] = median_ms(
            lambda query: okapi.get_scores(word.findall(query.lower())).argpartition(-5),
            queries[:10],
        )
    print(json.dumps(row))


if __name__ == "__main__":
    main()
