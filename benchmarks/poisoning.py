"""Measure what liars can teach a search that learns, and what honest users still gain.

Run: python benchmarks/poisoning.py [--data ../shared/data] [--engine bm25] [--set bfcl]
[--halvings 3] [--queries 400]
The data may also be named by the environment variable TOOL_SEARCH_BENCH_DATA. Without it,
the Chinese and Russian sets of this repository are used.

Simulated use: each set is halved by seed. The queries of the first half are asked in turn by
20 or 90 users at random, over 30 days and with what was learned so far, and each relevant tool
among the first ten becomes evidence. Then users ask the second half. A liar wants a tool that
no query wants to come first for everybody: each of its conversations has some common words of
the queries and as few words of the tool as let the search find it, then a successful call.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from learning import DAY_S, DEPTH, HALVINGS, NOW, OTHERS, Learnable, first_names
from search import MACRO

from tool_search.config.search import SearchSettings
from tool_search.core.catalog.tool import Tool
from tool_search.search import JudgedQuery, build_index
from tool_search.search.discovery.search_services import can_teach
from tool_search.search.learned import (
    Evidence,
    LearnedQueries,
    evidence_of,
    evidence_words,
    merge_evidence,
    select_evidence,
    with_votes,
)

USERS = 20
TARGETS = 2
DAYS = 30.0
SETS = Path(__file__).resolve().parent / "sets"
OWN = ("chinese", "russian")
# Evidence is read again after this many queries; a bot reads it each turn.
BATCH = 25
_MAX_WORD = 20


class Attack(NamedTuple):
    """A number of liars with the same target, and the conversations of each.

    Attributes:
        liars: The number of liars; all use the same words.
        conversations: The number of conversations of each.
        words: The number of common words in one conversation.
        users: The number of honest users who have taught the search for 30 days; 0: none.
        days: The days that the conversations are spread over.
        others: The number of other tools that each liar uses too.
    """

    liars: int
    conversations: int
    words: int = 1
    users: int = 0
    days: float = 0.0
    others: int = 0

    def __str__(self) -> str:
        said = f"{self.liars}x{self.conversations}x{self.words}"
        said += f" {self.days:.0f}d" if self.days else ""
        said += f" {self.others}t" if self.others else ""
        return said + (f" +{self.users}" if self.users else "")


ATTACKS = (
    Attack(1, 20),
    Attack(2, 20),
    Attack(2, 20, 4),
    Attack(5, 20),
    Attack(10, 20),
    Attack(100, 1),
    Attack(2, 20, days=DAYS),
    Attack(2, 20, days=DAYS, others=5),
    Attack(2, 20, users=USERS),
    Attack(10, 20, users=90),
    Attack(10, 20, 4, users=90),
    Attack(10, 20, days=DAYS, others=5, users=90),
    Attack(100, 1, users=USERS),
    Attack(100, 1, 4, users=USERS),
)


@dataclass(frozen=True, kw_only=True)
class World:
    """A set in simulated use.

    Attributes:
        part: The set.
        users: The number of honest users.
    """

    part: Learnable
    users: int = USERS

    def asker(self, chance: random.Random) -> str:
        """Return a user at random."""
        return f"user {chance.randrange(self.users)}"

    def use(self, places: Sequence[int], seed: int) -> list[Evidence]:
        """Return the evidence of honest users who asked these queries in turn."""
        chance = random.Random(7_000 + seed)
        known: list[Evidence] = []
        learned = LearnedQueries(())
        for number, place in enumerate(places):
            at = NOW - DAYS * DAY_S * (1 - number / len(places))
            if number % BATCH == 0:
                learned = LearnedQueries(known)
            user, judged = self.asker(chance), self.part.queries[place]
            index = with_votes(self.part.index, learned.at(at, user))
            found = first_names(index, judged.query)
            for name in sorted(set(judged.relevant) & set(found)):
                if can_teach(judged.query, found):
                    known = add(known, evidence_of(judged.query, name, now=at, source=user))
        return known

    def rise(
        self, places: Sequence[int], known: Sequence[Evidence], seed: int
    ) -> tuple[float, float]:
        """Return what evidence adds to these queries: recall@5, and the share of right firsts."""
        chance = random.Random(8_000 + seed)
        learned = LearnedQueries(known)
        rises, firsts = [], []
        for place in places:
            index = with_votes(self.part.index, learned.at(NOW, self.asker(chance)))
            taught = first_names(index, self.part.queries[place].query)
            plain = self.part.found[place]
            rises.append(self.part.recall(place, taught) - self.part.recall(place, plain))
            relevant = self.part.queries[place].relevant
            right = [bool(set(names[:1]) & set(relevant)) for names in (plain, taught)]
            firsts.append(right[1] - right[0])
        return statistics.fmean(rises), statistics.fmean(firsts)

    def lies(self, target: Tool, attack: Attack) -> list[Evidence]:
        """Return the evidence that liars can make for a target."""
        common = self.common_words()
        taught: list[Evidence] = []
        others = [tool for tool in self.part.tools if tool.name != target.name]
        # Accounts that are used once have words of their own, others the same.
        is_once = attack.conversations == 1
        for place in range(attack.liars if is_once else attack.conversations):
            at = NOW - attack.days * DAY_S * (1 - place / max(attack.conversations - 1, 1))
            start = place * attack.words
            words = [common[(start + step) % len(common)] for step in range(attack.words)]
            for query in disguises(words, target):
                found = first_names(self.part.index, query)
                if target.name in found and can_teach(query, found):
                    for liar in [place] if is_once else range(attack.liars):
                        source = f"liar {liar}"
                        taught += evidence_of(query, target.name, now=at, source=source)
                        if place < attack.others:
                            other = others[(7 * liar + 13 * place) % len(others)]
                            said = other.description[:80]
                            taught += evidence_of(said, other.name, now=at, source=source)
                    break
        return taught

    def common_words(self) -> list[str]:
        """Return the words of the queries that teach something, most frequent first."""
        counts: Counter[str] = Counter()
        for judged in self.part.queries:
            written = judged.query.lower().split()
            if not judged.query.isascii():
                # Chinese has no spaces: its pairs of characters are the words.
                written += [word for word in evidence_words(judged.query) if len(word) > 1]
            words = dict.fromkeys(word for word in written if len(word) <= _MAX_WORD)
            counts.update(word for word in words if word.isalpha() and evidence_words(word))
        return [word for word, _ in counts.most_common(1_000)]

    def hits(
        self, places: Sequence[int], known: Sequence[Evidence], target: str, seed: int
    ) -> tuple[float, float]:
        """Return the shares of these queries with the target first, and in the first five."""
        chance = random.Random(9_000 + seed)
        learned = LearnedQueries(known)
        ranks = []
        for place in places:
            index = with_votes(self.part.index, learned.at(NOW, self.asker(chance)))
            found = first_names(index, self.part.queries[place].query)
            ranks.append(found.index(target) if target in found else DEPTH)
        return (
            statistics.fmean(rank == 0 for rank in ranks),
            statistics.fmean(rank < 5 for rank in ranks),
        )

    def targets(self, seed: int) -> list[Tool]:
        """Return tools that no query wants."""
        wanted = {name for judged in self.part.queries for name in judged.relevant}
        unwanted = [tool for tool in self.part.tools if tool.name not in wanted]
        return random.Random(seed).sample(unwanted, min(TARGETS, len(unwanted)))


def disguises(words: Sequence[str], target: Tool) -> Iterator[str]:
    """Yield queries with these words, with more and more of the target's own."""
    own = [*dict.fromkeys(target.name.replace("_", " ").replace("-", " ").split())]
    said = " ".join(words)
    yield said
    for count in range(1, len(own) + 1):
        yield f"{said} {' '.join(own[-count:])}"
    yield f"{said} {target.description[:200]}"


def add(known: Sequence[Evidence], new: Iterator[Evidence]) -> list[Evidence]:
    """Return the evidence that a store keeps."""
    return select_evidence(merge_evidence(known, new).values(), NOW)


def print_attacks(parts: Sequence[Learnable], halvings: int) -> None:
    """Print the rise of each set, in the first five and first, and the share that liars reach."""
    print(f"{'set':18}{'rise':>8}{'first':>9}" + "".join(f"{each!s:>16}" for each in ATTACKS))
    columns: list[list[float]] = []
    for part in parts:
        rises: list[tuple[float, float]] = []
        shares: list[list[tuple[float, float]]] = [[] for _ in ATTACKS]
        for seed in range(halvings):
            world = World(part=part)
            first, second = part.halves(seed)
            known = {
                users: World(part=part, users=users).use(first, seed)
                for users in {attack.users for attack in ATTACKS} - {0}
            }
            rises.append(world.rise(second, known[USERS], seed))
            for target in world.targets(seed):
                for attack, seen in zip(ATTACKS, shares, strict=True):
                    lies = world.lies(target, attack)
                    evidence = add(known.get(attack.users, []), iter(lies))
                    seen.append(world.hits(second, evidence, target.name, seed))
        row = [statistics.fmean(column) for column in zip(*rises, strict=True)]
        for seen in shares:
            row += [statistics.fmean(column) for column in zip(*seen, strict=True)] or [0.0, 0.0]
        columns.append(row)
        print(f"{part.name:18}{line(row)}", flush=True)
    print(f"{'mean':18}{line([statistics.fmean(c) for c in zip(*columns, strict=True)])}")
    print(f"{'worst':18}{line(worst(columns))}")


def worst(rows: Sequence[Sequence[float]]) -> list[float]:
    """Return the lowest rises and the highest shares."""
    columns = [*zip(*rows, strict=True)]
    return [*map(min, columns[:2]), *map(max, columns[2:])]


def line(row: Sequence[float]) -> str:
    """Return the figures of one set as text."""
    shares = zip(row[2::2], row[3::2], strict=True)
    return f"{row[0]:+8.4f}{row[1]:+9.4f}" + "".join(f"{a:8.3f} /{b:6.3f}" for a, b in shares)


def own_set(name: str, settings: SearchSettings) -> Learnable:
    """Return one of this repository's sets."""
    rows = {
        kind: map(json.loads, (SETS / f"{name}_{kind}.jsonl").read_text("utf-8").splitlines())
        for kind in ("tools", "queries")
    }
    tools = [Tool(name=row["name"], description=row["description"]) for row in rows["tools"]]
    queries = [JudgedQuery(query=r["query"], relevant=r["relevant"]) for r in rows["queries"]]
    index = build_index(tools, settings)
    found = [first_names(index, judged.query) for judged in queries]
    return Learnable(name=name, tools=tools, index=index, queries=queries, found=found)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    given = os.environ.get("TOOL_SEARCH_BENCH_DATA")
    parser.add_argument("--data", type=Path, default=Path(given) if given else None)
    parser.add_argument("--set", action="append")
    parser.add_argument("--halvings", type=int, default=HALVINGS)
    parser.add_argument("--queries", type=int)
    engine: str = "bm25"
    parser.add_argument("--engine", default=engine)
    options = parser.parse_args()
    settings = SearchSettings(engine=options.engine)
    if options.data is None:
        print_attacks([own_set(name, settings) for name in options.set or OWN], options.halvings)
        return
    names = options.set or (*MACRO, *OTHERS)
    parts = [Learnable.read(options.data / name, settings, options.queries) for name in names]
    print_attacks(parts, options.halvings)


if __name__ == "__main__":
    main()
