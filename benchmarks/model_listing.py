"""Measure what a model is shown and given before it searches: the listing and preloads.

Run: python benchmarks/model_listing.py [--data ../shared/data] [--engine bm25 --engine hybrid]

Requests of public sets, with the queries that a model wrote for them without a look at
the catalog (`model_queries/queries.jsonl`; the folder may also be named by the environment
variable TOOL_SEARCH_DATA). No model is asked here, so the effect of a listing on one is not
measured: only how many of the right tools it names, or describes by a word of their names.
Without the data nothing is measured.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from pathlib import Path
from typing import get_args

from tool_search.catalog.formats import parse_tools
from tool_search.config.search import SearchSettings
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import estimate_tokens
from tool_search.core.discoveries import tool_tokens
from tool_search.core.settings import ListingForm
from tool_search.search import ToolSearchIndex, build_index
from tool_search.search.discovery.listing import Listing

BUDGETS = (400, 2_000, 8_000)
LIMITS = (1, 2, 3)
SCORES = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
# The number of tools that a step makes callable in all, and for each query.
CUTS = {"5 in all": (5, 5), "8 in all": (5, 8), "5 a query": (5, None)}
PRELOADS = ((0, 1.0), (1, 0.7), (3, 0.7), (1, 0.5), (3, 0.5))
_DEPTH = 5
# The catalog in which requests that need no tool are ranked.
_NONE, _CATALOG_FOR_NONE = "none", "metatool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A user's request, and what a model searched for.

    Attributes:
        set: The set, whose tools are the catalog.
        text: The request.
        relevant: The right tools; empty if none is needed.
        queries: The queries of the first step, by the wording of the search tool's text.
    """

    set: str
    text: str
    relevant: tuple[str, ...]
    queries: Mapping[str, tuple[str, ...]]


@dataclass(slots=True)
class Catalogs:
    """The catalogs of the sets, and an index of each.

    Attributes:
        data: The folder of the sets.
        engine: The engine of the indexes.
    """

    data: Path
    engine: str
    _made: dict[str, tuple[ToolCatalog, ToolSearchIndex]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> tuple[ToolCatalog, ToolSearchIndex]:
        name = _CATALOG_FOR_NONE if name == _NONE else name
        if name not in self._made:
            text = (self.data / name / "tools.jsonl").read_text("utf-8")
            catalog = ToolCatalog(parse_tools(text, source=name))
            settings = SearchSettings(engine=self.engine)
            self._made[name] = catalog, build_index(catalog.deferred, settings)
        return self._made[name]


def read_requests(data: Path) -> list[Request]:
    """Return the requests, in the file's order."""
    lines = (data / "model_queries" / "queries.jsonl").read_text("utf-8").splitlines()
    return [
        Request(
            set=row["set"],
            text=row["request"],
            relevant=tuple(row["relevant"]),
            queries={
                "the user's sentence": (row["request"],),
                "today": tuple(row["today"]),
                "english": tuple(row["english"]),
            },
        )
        for row in map(json.loads, lines)
    ]


def interleaved(lists: Iterable[Sequence[str]], most: int | None) -> list[str]:
    """Return the names of several lists, taken in turn, each once."""
    turns = chain.from_iterable(zip_longest(*lists))
    return [name for name in dict.fromkeys(turns) if name is not None][:most]


def macro(shares: Mapping[str, Sequence[float]]) -> float:
    """Return the mean of the sets' means."""
    means = [sum(of_set) / len(of_set) for of_set in shares.values()]
    return sum(means) / len(means)


def by_set(requests: Iterable[Request], shares: Iterable[float]) -> dict[str, list[float]]:
    """Return one share for each request, by its set."""
    made: dict[str, list[float]] = {}
    for request, share in zip(requests, shares, strict=True):
        made.setdefault(request.set, []).append(share)
    return made


def listing_rows(catalogs: Catalogs, requests: Sequence[Request]) -> Iterator[str]:
    """Yield a row for each form and budget: tokens, tools named, tools described by a word."""
    needing = [request for request in requests if request.relevant]
    for form in get_args(ListingForm):
        for budget in BUDGETS:
            listing = Listing(form=form, budget=budget, language="en-US")
            named, described, tokens = [], [], {}
            for request in needing:
                shown = listing(catalogs[request.set][0])
                tokens[request.set] = estimate_tokens(shown)
                words = set(shown.replace(",", " ").replace(";", " ").split())
                named.append(sum(name in words for name in request.relevant))
                described.append(sum(_is_described(name, words) for name in request.relevant))
            counts = [len(request.relevant) for request in needing]
            names, groups = (
                macro(by_set(needing, (n / of for n, of in zip(found, counts, strict=True))))
                for found in (named, described)
            )
            mean = sum(tokens.values()) / len(tokens)
            yield f"| {form} | {budget:,} | {mean:,.0f} | {names:.2f} | {groups:.2f} |"


def _is_described(name: str, words: set[str]) -> bool:
    """True if a listing has the name, or each long word of it."""
    parts = [part.lower() for part in name.split("_") if len(part) > 3]
    return name in words or (bool(parts) and all(part in words for part in parts))


def preload_rows(catalogs: Catalogs, requests: Sequence[Request]) -> Iterator[str]:
    """Yield a row for each limit and score: what is loaded, and how often it is right."""
    ranked = [
        catalogs[request.set][1].search(request.text, limit=max(LIMITS)).matches
        for request in requests
    ]
    needed = sum(len(request.relevant) for request in requests)
    for limit in LIMITS:
        for score in SCORES:
            loaded = right = complete = for_nothing = tokens = turns = 0
            for request, matches in zip(requests, ranked, strict=True):
                names = [match.name for match in matches[:limit] if match.score >= score]
                relevant = set(request.relevant)
                loaded, turns = loaded + len(names), turns + bool(names)
                right += len(relevant.intersection(names))
                complete += bool(relevant) and relevant <= set(names)
                for_nothing += bool(names) and not relevant
                catalog = catalogs[request.set][0]
                tokens += sum(tool_tokens(catalog[name]) for name in names)
            precision, mean = right / max(loaded, 1), tokens / len(requests)
            yield (
                f"| {limit} | {score} | {turns} | {loaded} | {precision:.2f} | "
                f"{right / needed:.2f} | {complete} | {for_nothing} | {mean:.0f} |"
            )


def callable_rows(catalogs: Catalogs, requests: Sequence[Request]) -> Iterator[str]:
    """Yield a row for each wording, cut and preload: right tools callable after the first step."""
    needing = [request for request in requests if request.relevant]
    for wording in ("the user's sentence", "today", "english"):
        for cut, (each, most) in CUTS.items():
            cells = []
            for limit, score in PRELOADS:
                shares, sizes = [], []
                for request in needing:
                    _, index = catalogs[request.set]
                    lists = [
                        [match.name for match in index.search(query, limit=each).matches]
                        for query in request.queries[wording]
                    ]
                    found = set(interleaved(lists, most))
                    best = index.search(request.text, limit=limit).matches if limit else ()
                    found.update(match.name for match in best if match.score >= score)
                    relevant = request.relevant
                    shares.append(sum(name in found for name in relevant) / len(relevant))
                    sizes.append(len(found))
                mean = sum(sizes) / len(sizes)
                cells.append(f"{macro(by_set(needing, shares)):.3f} ({mean:.1f})")
            yield f"| {wording} | {cut} | {' | '.join(cells)} |"


def report(data: Path, engines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the tables."""
    requests = read_requests(data)
    yield "| listing | budget | tokens | named | named or described |\n|---|--:|--:|--:|--:|"
    yield from listing_rows(Catalogs(data, "bm25"), requests)
    for engine in engines:
        catalogs = Catalogs(data, engine)
        yield (
            f"\n`{engine}`, {len(requests)} requests\n\n| preload | score | turns | loaded | "
            "precision | recall | complete | needless | tokens a request |"
        )
        yield "|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
        yield from preload_rows(catalogs, requests)
        preloads = " | ".join(f"preload {n}, {s:g}" if n else "none" for n, s in PRELOADS)
        yield f"\n`{engine}`\n\n| wording | merged to | {preloads} |"
        yield f"|---|---|{'--:|' * len(PRELOADS)}"
        yield from callable_rows(catalogs, requests)
        yield f"| all tools declared | - |{' 1.000 |' * len(PRELOADS)}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = os.environ.get("TOOL_SEARCH_DATA", "../shared/data")
    parser.add_argument("--data", type=Path, default=Path(default), help="the folder of the sets")
    parser.add_argument("--engine", action="append", help="may be repeated; default bm25")
    options = parser.parse_args()
    if not (options.data / "model_queries" / "queries.jsonl").is_file():
        print(f"skipped: {options.data} has no model_queries/queries.jsonl")
        return
    for line in report(options.data, options.engine or ["bm25"]):
        print(line)


if __name__ == "__main__":
    main()
