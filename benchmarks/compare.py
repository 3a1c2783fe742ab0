"""Compare our engines with other tool searches: one run, the same queries, one table.

Run: python benchmarks/compare.py [--data ../shared/data] [--json FILE]

Makes an environment for each group of peers under benchmarks/.peers, from the pinned
requirements in benchmarks/peers. Quality is measured for all by
`tool_search.search.evaluate`; speed is the median over a sample of real queries, one
thread, each query by its best of three. Our default engine is measured first and last,
which shows a drift of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from recall_plot import PICTURE, Row, svg
from search import MACRO, read_queries

from tool_search.search import SearchMatch, SearchResult, evaluate

HERE = Path(__file__).resolve().parent
SPEED_SET = "union_en_dev"
SETS = (*MACRO, SPEED_SET, "ultratool_zh2en")
GROUPS = ("lexical", "agent_frameworks")
DRIFT = "ours: bm25"
Line = Mapping[str, Any]


class Recorded:
    """Rankings that another process made, as an index for `evaluate`."""

    def __init__(self, rankings: Sequence[Sequence[str]]) -> None:
        self._rankings = iter(rankings)

    def search(
        self,
        query: str | Sequence[str],
        *,
        limit: int,
        allowed: Callable[[str], bool] | None = None,  # noqa: ARG002
    ) -> SearchResult:
        """Return the next ranking; rankings come in the order of the queries."""
        names = next(self._rankings)[:limit]
        return SearchResult(
            query=str(query), matches=tuple(SearchMatch(name=name) for name in names)
        )

    def updated(self, **_: object) -> Recorded:
        """Return the same rankings."""
        return self


def environment(group: str) -> Path:
    """Return the interpreter of a group's environment; make it if it is missing."""
    home = HERE / ".peers" / group
    python = home / "bin" / "python"
    requirements = HERE / "peers" / f"{group}.txt"
    wanted, ready = requirements.read_text("utf-8"), home / ".ready"
    if not ready.exists() or ready.read_text("utf-8") != wanted:
        print(f"making the environment {group}", file=sys.stderr)
        venv.create(home, with_pip=True, clear=True)
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "-r", str(requirements)], check=True
        )
        ready.write_text(wanted, "utf-8")
    return python


def lines(python: Path, module: str, systems: Sequence[str], options: Any) -> Iterator[Line]:
    """Return the results of a group of systems on every set."""
    command = [str(python), "ask.py", "--module", module, "--data", str(options.data.resolve())]
    for each in SETS:
        command += ["--set", each]
    for system in systems:
        command += ["--system", system]
    one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "NUMBA", "MKL")}
    done = subprocess.run(
        [*command, "--timed", str(options.timed)],
        cwd=HERE / "peers",
        env={**os.environ, **one_thread},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    yield from map(json.loads, done.stdout.splitlines())


def rows_of(all_lines: Sequence[Line], data: Path) -> list[dict[str, Any]]:
    """Return one row for each system, best macro average first."""
    rows: dict[str, dict[str, Any]] = {}
    for line in all_lines:
        row = rows.setdefault(line["system"], {"system": line["system"], "recall": {}})
        report = evaluate(Recorded(line["rankings"]), read_queries(data / line["set"]))
        row["recall"][line["set"]] = report.recall_at_5
        if line["set"] == SPEED_SET:
            row |= {"speed_us": line["median_us"], "build_ms": line["build_ms"]}
    for row in rows.values():
        row["macro"] = sum(row["recall"][name] for name in MACRO) / len(MACRO)
    return sorted(rows.values(), key=lambda row: -row["macro"])


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows in Markdown."""
    head = [
        "system",
        *SETS[: len(MACRO)],
        "**macro**",
        *SETS[len(MACRO) :],
        "µs a query",
        "build ms",
    ]
    out = [f"| {' | '.join(head)} |", "|---" + "|--:" * (len(head) - 1) + "|"]
    for row in rows:
        figures = [f"{row['recall'][name]:.3f}" for name in SETS]
        figures.insert(len(MACRO), f"**{row['macro']:.3f}**")
        speed = [f"{row['speed_us']:,.0f}", f"{row['build_ms']:,.0f}"]
        out.append(f"| {' | '.join([row['system'], *figures, *speed])} |")
    return "\n".join(out)


def main() -> None:
    """Run every system, print the table, draw the plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--timed", type=int, default=100, help="queries that are timed, a set")
    parser.add_argument("--ours", action="append", help="our engines; default: bm25, hybrid")
    parser.add_argument("--json", type=Path, help="where the rows go as well")
    parser.add_argument("--plot", type=Path, default=PICTURE)
    options = parser.parse_args()
    own = [f"ours: {name}" for name in options.ours or ("bm25", "hybrid")]
    python = Path(sys.executable)
    found = list(lines(python, "ours", [*own, "rank_bm25"], options))
    for group in GROUPS:
        found += lines(environment(group), group, (), options)
    again = list(lines(python, "ours", [DRIFT], options))
    rows = rows_of(found, options.data)
    print(table(rows))
    first, last = (
        next(each["median_us"] for each in some if each["set"] == SPEED_SET)
        for some in (found, again)
    )
    print(f"\n{DRIFT}, first and last: {first:,.0f} and {last:,.0f} µs a query")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    drawn = [Row(row["system"], row["macro"], row["speed_us"]) for row in rows]
    options.plot.write_text(svg(drawn), "utf-8")


if __name__ == "__main__":
    main()
