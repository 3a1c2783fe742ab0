"""The texts of a tool that are embedded: five, or fewer.

Run: python benchmarks/tool_texts.py --data ../shared/data [--queries 250]

Recall@5 of `hybrid` on each set, the same drawn queries for every choice. The scale of the
embedder is measured anew with the same texts, and no vector is read from a cache.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from search import MACRO, read_queries, read_tools

from tool_search.config.search import SearchSettings
from tool_search.core.catalog.tool import Tool
from tool_search.search import build_index, evaluate
from tool_search.search.text.documents import FieldName
from tool_search.search.vectors import tools as vectors

Parts = tuple[str, str, str, str, str]
CHOICES: Mapping[str, Callable[[Parts], Sequence[str]]] = {
    "five: name, description, both, parameters' names, their texts": lambda p: p,
    "name, both, parameters' texts": lambda p: (p[0], p[2], p[4]),
    "name, both, parameters' names and texts": lambda p: (p[0], p[2], f"{p[3]} {p[4]}".strip()),
    "name, description, parameters' names and texts": lambda p: (
        p[0], p[1], f"{p[3]} {p[4]}".strip(),
    ),
}  # fmt: skip
SETS = (*MACRO, "ultratool_zh2en")


def recalls(choice: str, data: Path, most: int) -> list[float]:
    """Return recall@5 on each set with a choice of texts."""

    def texts(
        tool: Tool, fields: Mapping[FieldName, list[str]], described: str, about: str
    ) -> tuple[str, ...]:
        name = ", ".join((vectors._spoken(tool.name), *fields.get("aliases", ())))  # noqa: SLF001
        both = f"{name}: {described}" if described else ""
        names = " ".join(islice(fields.get("parameters", ()), 400))
        parts = name, described, both, names, about[:600]
        return tuple(part for part in CHOICES[choice](parts) if part)

    vectors._texts_in = texts  # noqa: SLF001
    found = []
    for name in SETS:
        queries = read_queries(data / name)
        random.Random(1).shuffle(queries)
        settings = SearchSettings(engine="hybrid", vector_cache=None)
        index = build_index(read_tools(data / name), settings)
        found.append(evaluate(index, queries[:most]).recall_at_5)
    return found


def main() -> None:
    """Print one row a choice, each measured in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--queries", type=int, default=250)
    parser.add_argument("--choice", choices=list(CHOICES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.choice:
        print(json.dumps(recalls(options.choice, options.data, options.queries)))
        return
    print(f"| texts | {' | '.join(SETS)} | macro of the first eight |")
    for choice in CHOICES:
        command = [sys.executable, __file__, "--data", str(options.data)]
        command += ["--queries", str(options.queries), "--choice", choice]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        cells = " | ".join(f"{recall:.3f}" for recall in found)
        print(f"| {choice} | {cells} | {sum(found[: len(MACRO)]) / len(MACRO):.4f} |", flush=True)


if __name__ == "__main__":
    main()
