"""Compare each framework's own tool search with ours inside it, in one run.

Run: make bench-frameworks [DATA=../shared/data]

Every framework runs in its environment of `make test-frameworks`, one after the other, by
benchmarks/hosts/measure.py. The tables go into benchmarks/frameworks.md, between its marks.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from compare import Recorded
from search import MACRO, read_queries

from tool_search.search import evaluate

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGE = HERE / "frameworks.md"
SETS = (*MACRO, "ultratool_zh2en")
HERE_TOO = ("anthropic_runner",)  # the development environment has its package
TIMED_SET = "callnavi"
_MARKS = re.compile(r"(<!-- figures -->\n).*(\n<!-- end of figures -->)", re.DOTALL)
Line = Mapping[str, Any]


def measured(framework: str, options: argparse.Namespace) -> Iterator[Line]:
    """Return the figures of one framework's tool searches."""
    python = options.environments / f".venv-{framework}" / "bin" / "python"
    if framework in HERE_TOO:
        python = Path(sys.executable)
    if not python.exists():
        sys.exit(f"{python} is missing: make it with make .venv-{framework}/.ready")
    command = [str(python), "measure.py", "--module", f"with_{framework}"]
    command += ["--data", str(options.data.resolve()), "--queries", str(options.queries)]
    command += ["--timed-set", TIMED_SET]
    for each in SETS:
        command += ["--set", each]
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "NUMBA", "MKL")}
    done = subprocess.run(
        command,
        cwd=HERE / "hosts",
        env={**os.environ, **threads, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    yield from map(json.loads, done.stdout.splitlines())


def recall_table(lines: Sequence[Line], options: argparse.Namespace) -> str:
    """Return recall@5 of each search that ranks alone, in Markdown."""
    head = ["search", *SETS[: len(MACRO)], "**macro**", *SETS[len(MACRO) :]]
    out = [f"| {' | '.join(head)} |", "|---" + "|--:" * (len(head) - 1) + "|"]
    for line in lines:
        if "rankings" not in line:
            continue
        found = {}
        for name, rankings in line["rankings"].items():
            queries = _sample(read_queries(options.data / name), options.queries)
            found[name] = evaluate(Recorded(rankings), queries).recall_at_5
        macro = sum(found[name] for name in MACRO) / len(MACRO)
        figures = [f"{found[name]:.3f}" for name in SETS]
        figures.insert(len(MACRO), f"**{macro:.3f}**")
        out.append(f"| {' | '.join([_name(line), *figures])} |")
    return "\n".join(out)


def _sample(queries: Sequence[Any], count: int) -> list[Any]:
    sys.path.insert(0, str(HERE / "hosts"))
    from measure import sample  # noqa: PLC0415

    return sample(queries, count)


def conversation_table(lines: Sequence[Line]) -> str:
    """Return the figures of the conversations, in Markdown."""
    head = ["search", "requests", "entries of each", "definitions", "input", "prefix", "right"]
    out = [f"| {' | '.join(head)} |", "|---|--:|---|--:|--:|---|--:|"]
    for line in lines:
        talk = line.get("conversation")
        if talk is None:
            continue
        cells = [
            _name(line),
            str(talk["requests"]),
            ", ".join(map(str, talk["entries"])),
            f"{sum(talk['declared']):,}",
            f"{sum(talk['shown']):,}",
            "yes" if talk["prefix"] else "no",
            f"{talk['right']} of 5",
        ]
        out.append(f"| {' | '.join(cells)} |")
    return "\n".join(out)


def speed_table(lines: Sequence[Line]) -> str:
    """Return the time of a search as a ratio to ours in the same framework, in Markdown."""
    ours = {line["framework"]: line["median_us"] for line in lines if _is_ours(line)}
    out = ["| search | time of a search, ours is 1 |", "|---|--:|"]
    for line in lines:
        if "median_us" in line and not _is_ours(line):
            ratio = line["median_us"] / ours[line["framework"]]
            out.append(f"| {_name(line)} | {ratio:.2g} |")
    return "\n".join(out)


def _is_ours(line: Line) -> bool:
    return not line["own"] and "median_us" in line


def _name(line: Line) -> str:
    system = line["system"] if line["own"] else f"**{line['system']}**"
    return f"{line['framework']}: {system}"


def main() -> None:
    """Measure, print the tables, and write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("frameworks", nargs="+", help="such as langchain")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--environments", type=Path, default=ROOT, help="where .venv-NAME are")
    parser.add_argument("--queries", type=int, default=100, help="queries of each set")
    parser.add_argument("--json", type=Path, help="where the figures go as well")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    lines = [line for name in options.frameworks for line in measured(name, options)]
    if options.json:
        options.json.write_text(json.dumps(lines, indent=1) + "\n", "utf-8")
    versions = dict.fromkeys(f"{line['framework']} {line['version']}" for line in lines)
    figures = "\n\n".join(
        (
            f"Measured with {', '.join(versions)}; {options.queries} queries of each set.",
            "## Recall@5",
            recall_table(lines, options),
            "## One conversation of five turns",
            conversation_table(lines),
            "## Time",
            speed_table(lines),
        )
    )
    print(figures)
    page = options.page.read_text("utf-8")
    options.page.write_text(_MARKS.sub(lambda m: f"{m[1]}\n{figures}\n{m[2]}", page), "utf-8")


if __name__ == "__main__":
    main()
