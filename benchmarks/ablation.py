"""Measure what each part of the default engine is worth, by leaving it out.

Run: python benchmarks/ablation.py [--data ../shared/data] [--queries 300] [--part NAME]

Prints the change of recall@5 when a part is off: on the macro average of the eight sets of
one language, with its standard error over pairs of equal queries; on the other seven when
the set that needs the part most is left out, since a part that one set alone needs is
fitted to it; on the set that loses most and the one that gains most; on the Russian and
Chinese sets of our own; on queries that a model wrote; and the number of Chinese traps
that find something forbidden. A part that no column needs may be deleted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from operator import sub
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import languages
from search import MACRO, read_queries, read_tools

from tool_search.core.catalog.tool import Tool
from tool_search.search import JudgedQuery, evaluate
from tool_search.search.engines import bm25
from tool_search.search.engines.options import EngineOptions
from tool_search.search.index.ranking import RankedIndex
from tool_search.search.text import documents
from tool_search.search.text import query as text_query

_FLOOR = 0.1
_BM25 = "tool_search.search.engines.bm25"
_TOKENIZER = "tool_search.search.text.tokenizer"
_DOCUMENTS = "tool_search.search.text.documents"
_QUERY = "tool_search.search.text.query"


def _none(*_: object) -> tuple[()]:
    return ()


PARTS: Mapping[str, Mapping[str, Any]] = {
    "nothing": {},
    "best sentence": {f"{_BM25}.query_sentences": _none},
    "words of the name that are covered": {f"{_BM25}._NAME_COVERED": 0.0},
    "words of the text that are covered": {f"{_BM25}._TEXT_COVERED": 0.0},
    "synonyms of a verb": {f"{_BM25}.synonyms_of": _none},
    "quotations count less": {f"{_QUERY}._QUOTED": 1.0},
    "numbers count less": {f"{_QUERY}._NUMBER": 1.0},
    "single characters of Chinese": {f"{_BM25}.drop_lone": lambda values, *_: values},
    "unseen tools in rarity": {f"{_BM25}._UNSEEN_TOOLS": 0.0},
}
"""The changes that switch each part of a search off, by the part's name."""


_field_texts = documents.field_texts


def _norms(**changed: float) -> tuple[tuple[float, float, float], ...]:
    """Return the norms of the fields with one value in all of them."""
    norms = (replace(documents.FIELD_WEIGHTS[name], **changed) for name in documents.FIELDS)
    return tuple((each.weight, each.b, each.typical_length) for each in norms)


def _all_but(field: str) -> Callable[[Tool], dict[documents.FieldName, list[str]]]:
    """Return `field_texts` without one field."""

    def texts(tool: Tool) -> dict[documents.FieldName, list[str]]:
        return {name: own for name, own in _field_texts(tool).items() if name != field}

    return texts


INDEXED: Mapping[str, Mapping[str, Any]] = {
    "weights of the fields": {f"{_DOCUMENTS}._NORMS": _norms(weight=1.0)},
    "lengths of the fields": {f"{_DOCUMENTS}._NORMS": _norms(b=0.0)},
    "stems of English words": {f"{_TOKENIZER}._english": str, f"{_TOKENIZER}._english_all": list},
    "stems of Russian words": {f"{_TOKENIZER}._russian": str},
    "stop words": {f"{module}.STOP_WORDS": frozenset[str]() for module in (_TOKENIZER, _DOCUMENTS)},
    "languages of a text apart": {f"{_DOCUMENTS}.is_bilingual": lambda _: False},
    **{
        f"the field {name}": {f"{_DOCUMENTS}.field_texts": _all_but(name)}
        for name in ("server", "description", "parameters", "parameter_texts")
    },
}
"""The same for parts of an index, which is built again without them in a new process."""


class Measured(NamedTuple):
    """The figures of one variant.

    Attributes:
        sets: Recall@5 of each query, by public set.
        russian: Recall@5 on the Russian set.
        chinese: Recall@5 on the Chinese set.
        written: Recall@5 of queries that a model wrote, as today and in English.
        traps: The number of Chinese traps that find something forbidden.
    """

    sets: Mapping[str, Sequence[float]]
    russian: float
    chinese: float
    written: tuple[float, float]
    traps: int

    @property
    def macro(self) -> float:
        """The average over the public sets."""
        return statistics.fmean(map(statistics.fmean, self.sets.values()))


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
                name: [evaluate(indexes[name], [query]).recall_at_5 for query in queries]
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
        for name, value in {**PARTS, **INDEXED}[part].items():
            stack.enter_context(mock.patch(name, value))
        for clear in (text_query.query_terms.cache_clear, text_query.query_sentences.cache_clear):
            clear()
            stack.callback(clear)
        yield


def measured_without(part: str, folder: Path, most: int) -> Measured:
    """Return the figures of a new index without a part; for a process of its own.

    Words that were read before would keep their stems.
    """
    with without(part):
        return Data(folder, most).measured()


def row(part: str, found: Measured, whole: Measured) -> str:
    """Return a line of the table."""
    pairs = {name: list(map(sub, found.sets[name], whole.sets[name])) for name in MACRO}
    changes = {name: statistics.fmean(own) for name, own in pairs.items()}
    variance = sum(statistics.variance(own) / len(own) for own in pairs.values())
    rests = {
        name: statistics.fmean(changes[other] for other in MACRO if other != name) for name in MACRO
    }
    left_out = max(rests, key=lambda name: rests[name])
    worst, best = (pick(changes, key=lambda name: changes[name]) for pick in (min, max))
    cells = [
        f"{found.macro - whole.macro:+.4f} ± {variance**0.5 / len(MACRO):.4f}",
        f"{rests[left_out]:+.4f} {left_out}",
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
    parser.add_argument("--part", action="append", choices=[*PARTS, *INDEXED])
    options = parser.parse_args()
    data = Data(options.data, options.queries)
    with without("nothing"):
        whole = data.measured()
    print(
        f"all parts: macro {whole.macro:.4f}, Russian {whole.russian:.3f}, Chinese "
        f"{whole.chinese:.3f}, a model's queries {whole.written[0]:.3f} as today and "
        f"{whole.written[1]:.3f} in English, {whole.traps} traps sprung\n"
    )
    print(
        "| without | macro | one set left out | loses most | gains most "
        "| ru | zh | today | English | traps |"
    )
    print(f"|---{'|--:' * 9}|")
    chosen = options.part or [*(name for name in PARTS if PARTS[name]), *INDEXED]
    context = get_context("spawn")
    for part in chosen:
        if part in PARTS:
            with without(part):
                found = data.measured()
        else:
            with ProcessPoolExecutor(1, mp_context=context) as process:
                arguments = part, options.data, options.queries
                found = process.submit(measured_without, *arguments).result()
        print(row(part, found, whole), flush=True)


if __name__ == "__main__":
    main()
