"""Measure the ranking of the engines on public sets with known answers.

Run: python benchmarks/search.py --data ../shared/data [--engine bm25 --engine rank_bm25]

Every query of every set counts; the last line is the macro average of recall@5
over the eight sets of one language. `--floor 0` shows what the relevance floor costs,
`--segmenter jieba` what Chinese words by jieba change.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from tool_search.config.search import SearchSettings
from tool_search.core.catalog.tool import Tool
from tool_search.search import EvaluationReport, JudgedQuery, build_index, evaluate

MACRO = (
    "metatool",
    "ultratool_zh",
    "ultratool_en",
    "acebench_en",
    "bfcl",
    "callnavi",
    "openapi_gtc",
    "mcptoolbenchpp",
)
OTHERS = ("union_en_dev", "mcp_dehydrator")


def read_tools(folder: Path) -> list[Tool]:
    """Return the tools of a set, in its order."""
    rows = map(json.loads, (folder / "tools.jsonl").read_text("utf-8").splitlines())
    return [
        Tool(
            name=row["name"],
            description=row["description"] or "",
            parameters=row["parameters"],
            server=row.get("server"),
            kind="mcp" if row.get("server") else "plugin",
        )
        for row in rows
    ]


def read_queries(folder: Path) -> list[JudgedQuery]:
    """Return the queries of a set with their answers, in its order."""
    rows = map(json.loads, (folder / "queries.jsonl").read_text("utf-8").splitlines())
    return [JudgedQuery(query=row["query"], relevant=row["relevant"]) for row in rows]


def measured(folder: Path, settings: SearchSettings) -> tuple[EvaluationReport, float, float]:
    """Return the report on one set, milliseconds to build, microseconds a query."""
    tools, queries = read_tools(folder), read_queries(folder)
    start = time.perf_counter()
    index = build_index(tools, settings)
    built = time.perf_counter()
    report = evaluate(index, queries)
    asked = time.perf_counter()
    return report, 1e3 * (built - start), 1e6 * (asked - built) / max(len(queries), 1)


def main() -> None:
    """Print one line a set and engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--engine", action="append")
    parser.add_argument("--floor", type=float, default=0.1)
    parser.add_argument("--segmenter", choices=("builtin", "jieba"), default="builtin")
    options = parser.parse_args()
    for engine in options.engine or ["bm25"]:
        name: Any = engine
        settings = SearchSettings(
            engine=name, min_relevance=options.floor, segmenter=options.segmenter
        )
        total = 0.0
        print(
            f"{engine:20}{'r@5':>8}{'r@10':>8}{'ndcg@10':>9}{'mrr':>8}{'build ms':>10}{'us/q':>8}"
        )
        for name in (*MACRO, *OTHERS):
            report, build, query = measured(options.data / name, settings)
            total += report.recall_at_5 if name in MACRO else 0.0
            print(
                f"{name:20}{report.recall_at_5:8.3f}{report.recall_at_10:8.3f}"
                f"{report.ndcg_at_10:9.3f}{report.mrr:8.3f}{build:10.0f}{query:8.0f}",
                flush=True,
            )
        print(f"{'macro recall@5':20}{total / len(MACRO):8.4f}")


if __name__ == "__main__":
    main()
