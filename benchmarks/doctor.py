"""Improve the worst descriptions of public catalogs as `tool-search doctor` says.

Run: python benchmarks/doctor.py DATA [--sets NAME ...] [--worst N]

DATA has a folder for each set, with `tools.jsonl` and `queries.jsonl`. The doctor sees every
other query of a set. Of the tools that it names as worst described, the words that it says are
lacking are written behind the description, and nothing else is changed: no person writes a
word. Recall is then measured with the other half of the queries, which the doctor has not seen:
of all of them, and of those that want one of the changed tools.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tool_search import build_index, evaluate
from tool_search.cli.doctor.examine import Examination, examine_catalog
from tool_search.cli.files import read_catalog, read_judged_queries
from tool_search.core.catalog.tool import Tool
from tool_search.search import JudgedQuery

SETS = (
    "metatool",
    "ultratool_en",
    "ultratool_zh",
    "bfcl",
    "callnavi",
    "openapi_gtc",
    "acebench_en",
)


def improved(tools: Sequence[Tool], found: Examination, names: Sequence[str]) -> list[Tool]:
    """Return the tools with the words that the doctor says are lacking."""
    lacking = {
        each.values["tool"]: each.values["words"].replace(",", "")
        for each in found.findings
        if each.code == "description_misses" and each.values["tool"] in names
    }
    return [
        replace(tool, description=f"{tool.description} {lacking[tool.name]}".strip())
        if lacking.get(tool.name)
        else tool
        for tool in tools
    ]


def recall(tools: Sequence[Tool], queries: Sequence[JudgedQuery]) -> float:
    """Return recall@5 of the default engine."""
    return evaluate(build_index(tools), queries).recall_at_5


def row(folder: Path, worst: int) -> str:
    """Return the row of one set."""
    catalog = read_catalog(folder / "tools.jsonl")
    queries = read_judged_queries(folder / "queries.jsonl")
    seen, unseen = queries[::2], queries[1::2]
    found = examine_catalog(catalog.values(), judged=seen, worst=worst)
    wanting = [each for each in unseen if not set(found.worst).isdisjoint(each.relevant)]
    after = improved(catalog.active, found, found.worst)
    changed = sum(old != new for old, new in zip(catalog.active, after, strict=True))
    cells = (
        folder.name,
        str(len(catalog.active)),
        str(changed),
        f"{recall(catalog.active, unseen):.3f}",
        f"{recall(after, unseen):.3f}",
        str(len(wanting)),
        f"{recall(catalog.active, wanting):.3f}",
        f"**{recall(after, wanting):.3f}**",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--worst", type=int, default=10)
    given = parser.parse_args()
    print(
        "| set | tools | changed | recall@5, all unseen | after | unseen that want them | "
        "recall@5 | after |\n|---|--:|--:|--:|--:|--:|--:|--:|"
    )
    for name in given.sets:
        print(row(given.data / name, given.worst), flush=True)


if __name__ == "__main__":
    main()
