"""Measure what each part of the default engine is worth, by leaving it out.

Run: python benchmarks/ablation.py [--data ../shared/data] [--queries 300] [--part NAME]

Prints the change of recall@5 when a part is off: on the macro average of the eight sets of
one language, on the set that loses most and the one that gains most, on the Russian and
Chinese sets of our own, on queries that a model wrote, and the number of Chinese traps
that find something forbidden. A part that no column needs may be deleted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import languages
from search import MACRO, read_queries, read_tools

from tool_search.catalog.tool import Tool
from tool_search.search import JudgedQuery, evaluate
from tool_search.search.engines import bm25
from tool_search.search.engines.options import EngineOptions
from tool_search.search.index.ranking import RankedIndex
from tool_search.search.text import query as text_query

_FLOOR = 0.1
_BM25 = "tool_search.search.engines.bm25"
_QUERY = "tool_search.search.text.query"


def _none(*_: object) -> tuple[()]:
    return ()


PARTS: Mapping[str, Mapping[str, Any]] = {
    "nothing": {},
    "best sentence": {f"{_BM25}.query_sentences": _none},
    "pairs of neighbouring words": {f"{_BM25}._HAS_PAIRS": 0.0},
    "words of the name that are covered": {f"{_BM25}._NAME_COVERED": 0.0},
    "words of the text that are covered": {f"{_BM25}._TEXT_COVERED": 0.0},
    "stop words in names": {f"{_BM25}._MAX_NAME_WORDS": 0},
    "synonyms of a known action": {f"{_BM25}._RELATED_TO_KNOWN": 0.0},
    "synonyms of an unknown action": {f"{_BM25}._RELATED_TO_UNKNOWN": 0.0},
    "quotations count less": {f"{_QUERY}._QUOTED": 1.0},
    "numbers count less": {f"{_QUERY}._NUMBER": 1.0},
    "single characters of Chinese": {
        f"{_BM25}.drop_single_character_matches": lambda values, *_: values
    },
    "contractions (it's, don't)": {
        "tool_search.search.text.tokenizer._CONTRACTION": re.compile("(?!)")
    },
    "unseen tools in rarity": {f"{_BM25}._UNSEEN_TOOLS": 0.0},
}
"""The changes that switch each part off, by the part's name."""


class Measured(NamedTuple):
    """The figures of one variant.

    Attributes:
        sets: Recall@5 by public set.
        russian: Recall@5 on the Russian set.
        chinese: Recall@5 on the Chinese set.
        written: Recall@5 of queries that a model wrote, as today and in English.
        traps: The number of Chinese traps that find something forbidden.
    """

    sets: Mapping[str, float]
    russian: float
    chinese: float
    written: tuple[float, float]
    traps: int

    @property
    def macro(self) -> float:
        """The average over the public sets."""
        return statistics.fmean(self.sets.values())


class Data:
    """Everything that is measured, read once.

    Args:
        folder: The public sets.
        most: The number of queries of a set.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self.queries: dict[str, Sequence[JudgedQuery]] = {}
        self._indexes = {name: built(read_tools(folder / name)) for name in MACRO}
        self._own = {name: built(languages.read_tools(name)) for name in languages.LANGUAGES}
        for name in MACRO:
            queries = read_queries(folder / name)
            step = max(1, len(queries) // most)
            self.queries[name] = queries[::step][:most]
        rows = (folder / "model_queries" / "queries.jsonl").read_text("utf-8").splitlines()
        self.written = [row for row in map(json.loads, rows) if row["set"] in MACRO]

    def measured(self) -> Measured:
        """Return the figures of the engine as it is at present."""
        indexes, own = fresh(self._indexes), fresh(self._own)
        recall = {
            name: languages.mean_recall(languages.outcomes(own[name], languages.read_queries(name)))
            for name in languages.LANGUAGES
        }
        names = [tool.name for tool in languages.read_tools("chinese")]
        traps = languages.violations(own["chinese"], languages.read_traps("chinese"), names)
        return Measured(
            sets={
                name: evaluate(indexes[name], queries).recall_at_5
                for name, queries in self.queries.items()
            },
            russian=recall["russian"],
            chinese=recall["chinese"],
            written=(self._written(indexes, "today"), self._written(indexes, "english")),
            traps=len(traps),
        )

    def _written(self, indexes: Mapping[str, RankedIndex], form: str) -> float:
        """Return the recall of a model's queries, five tools for each query."""
        shares = []
        for row in self.written:
            found = {
                match.name
                for text in row[form]
                for match in indexes[row["set"]].search(text, limit=5).matches
            }
            shares.append(len(found & set(row["relevant"])) / len(row["relevant"]))
        return statistics.fmean(shares)


def built(tools: Sequence[Tool]) -> RankedIndex:
    """Return a new index of the default engine; `build_index` would return an old one."""
    return RankedIndex(bm25.build(tools, EngineOptions()), min_relevance=_FLOOR)


def fresh(indexes: Mapping[str, RankedIndex]) -> dict[str, RankedIndex]:
    """Return the same indexes without what they keep between searches."""
    return {name: index.updated(added=(), removed=()) for name, index in indexes.items()}


@contextlib.contextmanager
def without(part: str) -> Iterator[None]:
    """Switch a part off."""
    clear: Callable[[], None]
    with contextlib.ExitStack() as stack:
        for name, value in PARTS[part].items():
            stack.enter_context(mock.patch(name, value))
        for clear in (text_query.query_terms.cache_clear, text_query.query_sentences.cache_clear):
            clear()
            stack.callback(clear)
        yield


def row(part: str, found: Measured, whole: Measured) -> str:
    """Return a line of the table."""
    changes = {name: found.sets[name] - whole.sets[name] for name in MACRO}
    worst, best = (pick(changes, key=lambda name: changes[name]) for pick in (min, max))
    cells = [
        f"{found.macro - whole.macro:+.4f}",
        f"{changes[worst]:+.3f} {worst}" if changes[worst] < 0 else "-",
        f"{changes[best]:+.3f} {best}" if changes[best] > 0 else "-",
        f"{found.russian - whole.russian:+.3f}",
        f"{found.chinese - whole.chinese:+.3f}",
        *(f"{now - then:+.3f}" for now, then in zip(found.written, whole.written, strict=True)),
        f"{found.traps - whole.traps:+d}",
    ]
    return f"| {part} | {' | '.join(cells)} |"


def main() -> None:
    """Print a line for each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--part", action="append", choices=PARTS)
    options = parser.parse_args()
    data = Data(options.data, options.queries)
    with without("nothing"):
        whole = data.measured()
    print(
        f"all parts: macro {whole.macro:.4f}, Russian {whole.russian:.3f}, Chinese "
        f"{whole.chinese:.3f}, a model's queries {whole.written[0]:.3f} as today and "
        f"{whole.written[1]:.3f} in English, {whole.traps} traps sprung\n"
    )
    print("| without | macro | loses most | gains most | ru | zh | today | English | traps |")
    print(f"|---{'|--:' * 8}|")
    for part in options.part or [name for name in PARTS if PARTS[name]]:
        with without(part):
            print(row(part, data.measured(), whole), flush=True)


if __name__ == "__main__":
    main()
