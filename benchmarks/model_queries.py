"""Measure what a model's own queries find, and how several queries of a call are merged.

Run: python benchmarks/model_queries.py --data ../shared/data [--no-peers]

The data are requests of public sets with the queries that a model wrote for them, blind
(`model_queries/queries.jsonl` under `--data`, or under `$MODEL_QUERIES_DATA`). Nothing of them
is in this repository; without them the script says so and writes nothing. It writes
the tables of benchmarks/model_queries.md.

Recall is the share of a request's relevant tools among those that become callable. FastMCP's
search runs in an environment of its own, as in benchmarks/compare.py; rank_bm25 is its
`BM25Okapi` over lower-case words of name and description.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compare import environment
from rank_bm25 import BM25Okapi
from search import read_tools

from tool_search import SearchSettings, Tool, ToolCatalog, ToolSearchTool, build_index
from tool_search.search import SearchMatch, SearchResult
from tool_search.search.discovery.search_tool import merged_results

HERE = Path(__file__).resolve().parent
ENGINES = ("bm25", "hybrid", "semantic", "rank_bm25", "lexical", "regex")
SETS = ("metatool", "ultratool_en", "bfcl", "callnavi", "ultratool_zh2en")
BESIDE = "zh2en + 500 zh"
ARMS = {"user": "the user's sentence", "today": "the former text", "english": "the present text"}
DEPTH = 10
FOREIGN = 500

Ranked = Callable[[str], Sequence[str]]
Merge = Callable[[Sequence[str]], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request of a public set, with the queries of each arm."""

    relevant: frozenset[str]
    queries: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A catalog and the requests for it."""

    name: str
    tools: Sequence[Tool]
    requests: Sequence[Request]

    @property
    def asked(self) -> list[str]:
        """Every query once, in order."""
        lists = (queries for request in self.requests for queries in request.queries.values())
        return list(dict.fromkeys(query for queries in lists for query in queries))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Recall and the number of tools that became callable, averages over requests."""

    recall: float
    tools: float


def cases(data: Path) -> list[Case]:
    """Return the sets, and the Chinese requests again with Chinese tools beside the English."""
    lines = (data / "model_queries" / "queries.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    made = [
        Case(
            name=name,
            tools=read_tools(data / name),
            requests=[
                Request(
                    relevant=frozenset(row["relevant"]),
                    queries={
                        "user": [row["request"]],
                        "today": row["today"],
                        "english": row["english"],
                    },
                )
                for row in rows
                if row["set"] == name
            ],
        )
        for name in SETS
    ]
    english = made[-1]
    known = {tool.name for tool in english.tools}
    foreign = [tool for tool in read_tools(data / "_distractors_zh") if tool.name not in known]
    both = [*english.tools, *foreign[:FOREIGN]]
    return [*made, Case(name=BESIDE, tools=both, requests=english.requests)]


def figure(case: Case, arm: str, merge: Merge) -> Figure:
    """Return what the queries of an arm make callable."""
    shares, sizes = [], []
    for request in case.requests:
        queries = request.queries[arm]
        names = merge(queries) if queries else ()
        shares.append(len(request.relevant.intersection(names)) / len(request.relevant))
        sizes.append(len(names))
    return Figure(recall=sum(shares) / len(shares), tools=sum(sizes) / len(sizes))


def by_tool(case: Case, engine: Any, *, each: int, total: int) -> Merge:
    """Return the search tool's own answers with an engine, cut at the total for one query too."""
    catalog = ToolCatalog(case.tools)
    index = build_index(catalog.deferred, SearchSettings(engine=engine))
    tool = ToolSearchTool(index, catalog, max_results=each, max_results_total=total)

    def merge(queries: Sequence[str]) -> list[str]:
        found = tool.run({"queries": list(queries)})
        return [match.name for match in found.matches][:total]

    return merge


def by_rankings(rankings: Mapping[str, Sequence[str]], *, total: int) -> Merge:
    """Return the answers of another system's rankings, merged as the search tool merges."""

    def merge(queries: Sequence[str]) -> list[str]:
        results = [
            SearchResult(
                query=query,
                matches=tuple(SearchMatch(name=name) for name in rankings[query][:total]),
            )
            for query in queries
        ]
        return list(merged_results(results, limit=total).names)

    return merge


def okapi(tools: Sequence[Tool]) -> Ranked:
    """Return rank_bm25's BM25Okapi over lower-case words."""
    names = [tool.name for tool in tools]
    index = BM25Okapi([f"{tool.name} {tool.description}".lower().split() for tool in tools])

    def ranked(query: str) -> list[str]:
        scores = index.get_scores(query.lower().split())
        order = sorted(range(len(names)), key=lambda place: (-scores[place], names[place]))
        return [names[place] for place in order[:DEPTH] if scores[place] > 0]

    return ranked


def fastmcp(every: Sequence[Case]) -> list[dict[str, Sequence[str]]]:
    """Return FastMCP's rankings of every query of every case, from its environment."""
    sets = [
        {
            "tools": [
                {"name": t.name, "description": t.description, "parameters": dict(t.parameters)}
                for t in case.tools
            ],
            "queries": case.asked,
        }
        for case in every
    ]
    done = subprocess.run(
        [environment("agent_frameworks"), "ranked.py"],
        cwd=HERE / "peers",
        input=json.dumps({"module": "agent_frameworks", "systems": ["FastMCP"], "sets": sets}),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    rankings = json.loads(done.stdout)["FastMCP"]
    return [
        dict(zip(case.asked, of, strict=True)) for case, of in zip(every, rankings, strict=True)
    ]


def rows_of_five(every: Sequence[Case], *, peers: bool) -> Iterator[tuple[str, str, list[Figure]]]:
    """Yield each system and arm with its figure of each case, five tools in all."""
    for engine in ENGINES:
        merges = [by_tool(case, engine, each=5, total=5) for case in every]
        for arm in ARMS:
            pairs = zip(every, merges, strict=True)
            yield engine, arm, [figure(case, arm, merge) for case, merge in pairs]
        print(f"{engine}: done", file=sys.stderr, flush=True)
    others: dict[str, list[dict[str, Sequence[str]]]] = {"rank_bm25, its Okapi": []}
    for case in every:
        ranked = okapi(case.tools)
        others["rank_bm25, its Okapi"].append({query: ranked(query) for query in case.asked})
    if peers:
        others["FastMCP"] = fastmcp(every)
    for name, rankings in others.items():
        for arm in ARMS:
            ranked_pairs = zip(every, rankings, strict=True)
            found = [figure(case, arm, by_rankings(ranks, total=5)) for case, ranks in ranked_pairs]
            yield name, arm, found


def table(rows: Sequence[tuple[str, str, list[Figure]]], *, tools: bool) -> str:
    """Return rows in Markdown: recall by set, the macro average, and the number of tools."""
    head = ["", "queries", *SETS, "**macro**", BESIDE, *(["tools"] if tools else [])]
    out = [f"| {' | '.join(head)} |", "|---|---" + "|--:" * (len(head) - 2) + "|"]
    for name, arm, found in rows:
        five = found[: len(SETS)]
        figures = [f"{each.recall:.3f}" for each in five]
        figures.append(f"**{sum(each.recall for each in five) / len(five):.3f}**")
        figures.append(f"{found[-1].recall:.3f}")
        if tools:
            figures.append(f"{sum(each.tools for each in five) / len(five):.1f}")
        out.append(f"| {' | '.join([name, ARMS.get(arm, arm), *figures])} |")
    return "\n".join(out)


def budgets(every: Sequence[Case]) -> list[tuple[str, str, list[Figure]]]:
    """Return what the search tool finds under several budgets, with the present text."""
    rows = []
    for engine in ("bm25", "hybrid"):
        for each, total in ((5, 5), (5, 8), (6, 8), (8, 8), (5, 10), (10, 10)):
            label = f"{engine}, {each} a query, {total} in all"
            found = [
                figure(case, "english", by_tool(case, engine, each=each, total=total))
                for case in every
            ]
            rows.append((label, "english", found))
    return rows


def main() -> None:
    """Write benchmarks/model_queries.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    where = os.environ.get("MODEL_QUERIES_DATA", "../shared/data")
    parser.add_argument("--data", type=Path, default=Path(where))
    parser.add_argument("--no-peers", action="store_true", help="leave FastMCP out")
    options = parser.parse_args()
    if not (options.data / "model_queries" / "queries.jsonl").exists():
        print(f"no queries under {options.data}: nothing is measured", file=sys.stderr)
        return
    every = cases(options.data)
    found = list(rows_of_five(every, peers=not options.no_peers))
    page = HERE / "model_queries.md"
    text = page.read_text("utf-8")
    text = with_part(text, "five", table(found, tools=False))
    page.write_text(with_part(text, "budgets", table(budgets(every), tools=True)), "utf-8")


def with_part(page: str, part: str, content: str) -> str:
    """Return a page with new content between the marks of a part."""
    before, begin, rest = page.partition(f"<!-- {part} -->")
    _, end, after = rest.partition(f"<!-- end of {part} -->")
    if not begin or not end:
        raise SystemExit(f"benchmarks/model_queries.md has no marks of the part {part!r}")
    return f"{before}{begin}\n\n{content}\n\n{end}{after}"


if __name__ == "__main__":
    main()
