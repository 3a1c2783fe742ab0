"""Measure the gain of a search that learns, on public sets with known answers.

Run: python benchmarks/learning.py --data ../shared/data [--wrong 0.2] [--age 180]
or with --choose (tries constants), --speed or --meaning (votes and a learned map).

Each set is halved three times by seed. The queries of the first half are asked once,
and a relevant tool becomes evidence only if the search itself has it in its first ten.
Then the second half is asked with and without that evidence. Further sets are shown, and
are not in the macro average.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hybrid import Remembering
from search import MACRO, read_queries, read_tools

from tool_search.config.search import EmbeddingSettings, SearchSettings
from tool_search.core.catalog.tool import Tool
from tool_search.search import JudgedQuery, ToolSearchIndex, build_index
from tool_search.search.learned import (
    DEFAULT_VOTING,
    HALF_LIFE_S,
    Evidence,
    LearnedQueries,
    Voting,
    evidence_of,
    merge_evidence,
    with_votes,
)
from tool_search.search.learned_maps import LearnedMaps, MeaningVotes
from tool_search.search.vectors.embedder import load_embedder

OTHERS = ("ultratool_zh2en",)
HALVINGS = 3
DEPTH = 10
NOW = 2.0e9
DAY_S = 86_400.0


@dataclass(frozen=True, kw_only=True)
class Learnable:
    """A set, with the results of its queries without evidence.

    Attributes:
        name: The name of the set.
        tools: Its tools.
        index: An index over its tools.
        queries: All its queries.
        found: The first ten tools for each query.
    """

    name: str
    tools: Sequence[Tool]
    index: ToolSearchIndex
    queries: Sequence[JudgedQuery]
    found: Sequence[Sequence[str]]

    @classmethod
    def read(cls, folder: Path, settings: SearchSettings, most: int | None = None) -> Learnable:
        """Return the set of a folder, or so many of its queries, every one asked once."""
        # Every query is asked several times, and embedded once.
        embeds = settings.embeds
        embedder = Remembering(load_embedder(settings.embedder)) if embeds else None
        tools = read_tools(folder)
        index = build_index(tools, settings, embedder=embedder)
        queries = read_queries(folder)
        queries = queries[:: max(1, len(queries) // (most or len(queries)))][:most]
        found = [first_names(index, judged.query) for judged in queries]
        return cls(name=folder.name, tools=tools, index=index, queries=queries, found=found)

    def halves(self, seed: int) -> tuple[list[int], list[int]]:
        """Return the places of the queries of both halves."""
        places = list(range(len(self.queries)))
        random.Random(seed).shuffle(places)
        return places[: len(places) // 2], places[len(places) // 2 :]

    def evidence(self, places: Iterable[int], how: Teaching, seed: int) -> list[Evidence]:
        """Return the evidence of these queries."""
        chance = random.Random(1_000 + seed)
        taught: list[Evidence] = []
        for place in places:
            found = self.found[place]
            for name in sorted(set(self.queries[place].relevant) & set(found)):
                others = sorted(set(found) - {name})
                is_wrong = chance.random() < how.wrong and others
                tool = chance.choice(others) if is_wrong else name
                now = NOW - chance.uniform(0, how.age_days) * DAY_S
                taught += evidence_of(self.queries[place].query, tool, now=now)
        return [*merge_evidence((), taught).values()]

    def gain(self, how: Teaching, voting: Voting) -> tuple[float, float]:
        """Recall@5 of the second halves without evidence, and what it adds, as means."""
        before, rises = [], []
        for seed in range(HALVINGS):
            first, second = self.halves(seed)
            queries = LearnedQueries(self.evidence(first, how, seed), voting=voting)
            index = with_votes(self.index, queries.at(NOW))
            plain = [self.recall(place, self.found[place]) for place in second]
            taught = [
                self.recall(place, first_names(index, self.queries[place].query))
                for place in second
            ]
            before.append(statistics.fmean(plain))
            rises.append(statistics.fmean(taught) - before[-1])
        return statistics.fmean(before), statistics.fmean(rises)

    def recall(self, place: int, names: Sequence[str]) -> float:
        """Return the share of a query's relevant tools within the first five names."""
        relevant = set(self.queries[place].relevant)
        return len(relevant & set(names[:5])) / len(relevant)


class Teaching(NamedTuple):
    """The way evidence is made.

    Attributes:
        wrong: The share of evidence that names another of the first ten tools.
        age_days: The days before the second half, over which evidence is spread evenly.
    """

    wrong: float = 0.0
    age_days: float = 0.0


def first_names(index: ToolSearchIndex, query: str) -> list[str]:
    """Return the first ten tools for a query."""
    return [match.name for match in index.search(query, limit=DEPTH).matches]


def gains(sets: Sequence[Learnable], how: Teaching, voting: Voting) -> dict[str, float]:
    """Return the gain of each set."""
    return {each.name: each.gain(how, voting)[1] for each in sets}


def macro(rises: dict[str, float]) -> float:
    """Return the mean over the eight sets."""
    return statistics.fmean(rises[name] for name in MACRO if name in rises)


def print_gains(sets: Sequence[Learnable], how: Teaching) -> None:
    """Print one line for each set."""
    print(f"{'set':20}{'queries':>8}{'before':>9}{'rise':>9}   {how}")
    rises = {}
    for each in sets:
        before, rises[each.name] = each.gain(how, DEFAULT_VOTING)
        print(f"{each.name:20}{len(each.queries):8}{before:9.4f}{rises[each.name]:+9.4f}")
    print(f"{'macro average':37}{macro(rises):+9.4f}", flush=True)


def print_choice(sets: Sequence[Learnable]) -> None:
    """Print the gain for each set of constants, and the choice with one set left out.

    The choice has the highest macro average of the others, with none of them below -0.01.
    """
    table: dict[Voting, dict[str, float]] = {}
    grid = itertools.product((8, 16, 32), ((1.0, 1.0), (1.5, 0.5)), (1.5, 2.5, 3.5))
    for neighbours, (power, shrinkage), worth in grid:
        voting = Voting(neighbours=neighbours, power=power, shrinkage=shrinkage, max_vote=worth)
        table[voting] = gains(sets, Teaching(), voting)
        least = min(table[voting][name] for name in MACRO)
        print(
            f"k {neighbours:2}  power {power}  shrinkage {shrinkage}  worth {worth}  "
            f"macro {macro(table[voting]):+.4f}  least {least:+.4f}",
            flush=True,
        )
    left_out = {}
    for name in MACRO:
        others = [other for other in MACRO if other != name]
        chosen = max(table, key=lambda v: (_allowed(table[v], others), _mean(table[v], others)))
        left_out[name] = table[chosen][name]
        print(f"without {name:18}{left_out[name]:+.4f}  {chosen}")
    print(f"chosen with one set left out: macro {macro(left_out):+.4f}")


def _mean(rises: dict[str, float], names: Sequence[str]) -> float:
    return statistics.fmean(rises[name] for name in names)


def _allowed(rises: dict[str, float], names: Sequence[str]) -> bool:
    return min(rises[name] for name in names) >= -0.01


def print_speed(each: Learnable, size: int = 10_000) -> None:
    """Print microseconds for each query with and without evidence, measured in turn."""
    chance = random.Random(1)
    words = sorted({word for judged in each.queries for word in judged.query.split()})
    lengths = [len(judged.query.split()) for judged in each.queries]
    names = sorted({name for judged in each.queries for name in judged.relevant})
    made = (
        (" ".join(chance.choices(words, k=chance.choice(lengths))), chance.choice(names))
        for _ in itertools.count()
    )
    entries: dict[object, Evidence] = {}
    while len(entries) < size:
        query, name = next(made)
        entries.update(merge_evidence((), evidence_of(query, name, now=NOW)))
    start = time.perf_counter()
    learned = LearnedQueries(entries.values())
    built = time.perf_counter() - start
    index = with_votes(each.index, learned.at(NOW))
    times: tuple[list[float], list[float]] = ([], [])
    for judged in each.queries:
        for place, asked in enumerate((each.index, index)):
            best = min(_seconds(asked, judged.query) for _ in range(3))
            times[place].append(best)
    without, with_it = (1e6 * statistics.median(column) for column in times)
    print(f"{each.name}: {len(learned):,} entries built in {1e3 * built:.0f} ms; a query takes")
    print(f"{without:.0f} us without them and {with_it:.0f} us with them, at the median")


def _seconds(index: ToolSearchIndex, query: str) -> float:
    start = time.perf_counter()
    index.search(query, limit=5)
    return time.perf_counter() - start


class Kind(NamedTuple):
    """The parts of the evidence that a search uses: votes, the learned map, or both."""

    votes: bool
    has_map: bool

    def __str__(self) -> str:
        return ("both" if self.votes else "map") if self.has_map else "votes"


KINDS = (Kind(True, False), Kind(False, True), Kind(True, True))
SIZES = (10, 30, 100, 300, 1_000)
USERS = 20
DAYS = 30.0


class MapAlone(MeaningVotes):
    """A learned map without votes."""

    def __call__(self, query: str, find: Callable[[str], Tool | None]) -> dict[str, float]:
        """Return no votes."""
        del query, find
        return {}


@dataclass(frozen=True, kw_only=True)
class Taught:
    """A half of a set, taught by users over some days.

    Attributes:
        each: The set.
        queries: The evidence.
        maps: The learned maps of it; trained.
        tools: The tools that were taught.
        second: The other half, and the users who ask it.
    """

    each: Learnable
    queries: LearnedQueries
    maps: LearnedMaps
    tools: frozenset[str]
    second: Sequence[tuple[int, str]]

    @classmethod
    def teach(cls, each: Learnable, searches: int, seed: int) -> Taught:
        """Return the set with its first searches taught, and its map trained."""
        chance, maps = random.Random(2_000 + seed), LearnedMaps()
        first, second = each.halves(seed)
        asked = first[:searches]
        noting = with_votes(each.index, maps.votes(LearnedQueries(()), now=NOW, source=""))
        found: list[Evidence] = []
        for number, place in enumerate(asked):
            query = each.queries[place].query
            first_names(noting, query)
            days = DAYS * (1 - number / len(asked))
            user = f"user{chance.randrange(USERS):02}"
            for name in sorted(set(each.queries[place].relevant) & set(each.found[place])):
                found += evidence_of(
                    query,
                    name,
                    now=NOW - days * DAY_S,
                    source=user,
                    vector=maps.vector_of(query),
                )
        queries = LearnedQueries(merge_evidence((), found).values())
        maps.use(queries)
        taught = cls(
            each=each,
            queries=queries,
            maps=maps,
            tools=frozenset(entry.tool for entry in found),
            second=[(place, f"user{chance.randrange(USERS):02}") for place in second],
        )
        taught.wait()
        return taught

    def wait(self) -> None:
        """Search until a map is trained, if one will be."""
        first_names(self.index(KINDS[2], self.second[0][1]), self.each.queries[0].query)
        while self.maps.is_training:
            time.sleep(0.01)

    def index(self, kind: Kind, user: str) -> ToolSearchIndex:
        """Return the index of the set for the searches of a user."""
        if not kind.has_map:
            return with_votes(self.each.index, self.queries.at(NOW, user))
        made = MeaningVotes if kind.votes else MapAlone
        return with_votes(self.each.index, made(self.maps, self.queries, now=NOW, source=user))

    def rises(self, kind: Kind) -> tuple[float, float, int]:
        """Return the rise of recall, that of tools never taught, and the number of those."""
        every, untaught = [], []
        for place, user in self.second:
            names = first_names(self.index(kind, user), self.each.queries[place].query)
            rise = self.each.recall(place, names) - self.each.recall(place, self.each.found[place])
            every.append(rise)
            if self.tools.isdisjoint(self.each.queries[place].relevant):
                untaught.append(rise)
        return statistics.fmean(every), statistics.fmean(untaught or [0.0]), len(untaught)


def print_meaning(sets: Sequence[Learnable], halvings: int, sizes: Sequence[int]) -> None:
    """Print the rise by votes, by the map and by both, for numbers of searches."""
    for size in sizes:
        sums: dict[str, list[float]] = {str(kind): [] for kind in KINDS}
        for each in sets:
            if size > SIZES[0] and len(each.queries) < 2 * SIZES[SIZES.index(size) - 1]:
                continue
            row = []
            taught = [Taught.teach(each, size, seed) for seed in range(halvings)]
            for kind in KINDS:
                columns = list(zip(*(one.rises(kind) for one in taught), strict=True))
                rise, untaught = map(statistics.fmean, columns[:2])
                sums[str(kind)].append(rise)
                row.append(f"{kind!s:>6} {rise:+.4f} ({untaught:+.4f})")
            print(
                f"{size:5} {each.name:16}", "  ".join(row), f"  untaught {columns[2]}", flush=True
            )
        means = {name: statistics.fmean(rises) for name, rises in sums.items() if rises}
        print(f"{size:5} {'mean':16}", {name: f"{mean:+.4f}" for name, mean in means.items()})


def main() -> None:
    """Print the requested table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    engine: str = "bm25"
    parser.add_argument("--engine", default=engine)
    parser.add_argument("--wrong", type=float, default=0.0, help="share of wrong evidence")
    parser.add_argument("--age", type=float, default=0.0, help="days the evidence is spread over")
    parser.add_argument("--choose", action="store_true", help="try constants, one set left out")
    parser.add_argument("--speed", action="store_true", help="what 10,000 entries cost a query")
    parser.add_argument("--meaning", action="store_true", help="votes, a learned map, and both")
    parser.add_argument("--set", action="append", help="a set, instead of all")
    parser.add_argument("--size", action="append", type=int, help="a number of searches")
    parser.add_argument("--halvings", type=int, default=HALVINGS)
    options = parser.parse_args()
    # A busy machine must not make it a search by words.
    settings = SearchSettings(engine=options.engine, embedding=EmbeddingSettings(query_s=60.0))
    if options.speed:
        print_speed(Learnable.read(options.data / "bfcl", settings))
        return
    names = options.set or (*MACRO, *OTHERS)
    sets = [Learnable.read(options.data / name, settings) for name in names]
    if options.meaning:
        print_meaning(sets, options.halvings, options.size or SIZES)
    elif options.choose:
        print_choice(sets)
    else:
        print(f"half-life {HALF_LIFE_S / DAY_S:.0f} days")
        print_gains(sets, Teaching(options.wrong, options.age))


if __name__ == "__main__":
    main()
