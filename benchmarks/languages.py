"""Measure the engines on Russian and Chinese tools, with traps, on labelled sets of our own.

Run: python benchmarks/languages.py [--data ../shared/data] [--engine bm25 --engine rank_bm25]

`--beside` measures requests in eleven languages for English tools instead, alone and beside
tools in the language of the request, which count as wrong.

The tools and queries are in `sets/`; see its README. If the folder of public data is
given, the tools of its Smithery catalog are added as distractors. `--misses` lists the
queries without a full answer, `--tokenizers` the recall of rank_bm25 with the tokenizers
of other systems, and `--segmenter jieba` the difference that Chinese words by jieba make.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tool_search.catalog.formats import parse_tools
from tool_search.config.search import SearchSettings
from tool_search.core.catalog.tool import Tool
from tool_search.search import ToolSearchIndex, build_index

SETS = Path(__file__).resolve().parent / "sets"
LANGUAGES = ("russian", "chinese")
DISTRACTORS = "_distractors_smithery_mcp"

ENGLISH = "bfcl"
_ENGLISH_TOOLS = 300
# Tags of languages own the rarest words of a catalog: `es`, `de` and `en`.
_TAG = re.compile(r'"[a-z]{2}[_-][A-Z]{2}"')
ASKED_IN = ("en", "es", "fr", "de", "pt", "it", "nl", "tr", "ar", "ja", "ru", "zh")
_BESIDE = (0, 40, 400)
_DEPTH = 5
_EVERY_TOOL = ("*",)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledQuery:
    """A query, the tools that answer it, and the tools that resemble those.

    Attributes:
        query: The text of a person or a model.
        relevant: The tools to find, all within the first five.
        rivals: The tools that must not come before the first relevant one.
        kind: The difficulty of the query.
    """

    query: str
    relevant: tuple[str, ...]
    rivals: tuple[str, ...] = ()
    kind: str = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trap:
    """A query, and the tools that must not be found by it.

    Attributes:
        query: A text with a slip of the pen, or about another subject.
        forbidden: Names; `*` alone: every tool of the set.
        kind: homophone, shared_character or nothing; see the README of the sets.
    """

    query: str
    forbidden: tuple[str, ...]
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of an engine for a labelled query.

    Attributes:
        asked: The query with its labels.
        found: The names of the first five.
        recall: The share of the relevant tools among them.
        is_first: True if a relevant tool is first.
        has_rival_before: True if a rival comes before every relevant tool.
    """

    asked: LabelledQuery
    found: tuple[str, ...]
    recall: float
    is_first: bool
    has_rival_before: bool


def read_tools(language: str, data: Path | None = None) -> tuple[Tool, ...]:
    """Return the tools of a set, then the distractors, if any."""
    path = SETS / f"{language}_tools.jsonl"
    own = parse_tools(path.read_text("utf-8"), source=path.name)
    if data is None:
        return own
    catalog = data / DISTRACTORS / "tools.jsonl"
    taken = {tool.name for tool in own}
    others = parse_tools(catalog.read_text("utf-8"), source=DISTRACTORS)
    return (*own, *(tool for tool in others if tool.name not in taken))


def read_queries(language: str) -> tuple[LabelledQuery, ...]:
    """Return the queries of a set, in its order."""
    return tuple(
        LabelledQuery(
            query=row["query"],
            relevant=tuple(row["relevant"]),
            rivals=tuple(row.get("rivals", ())),
            kind=row["kind"],
        )
        for row in _rows(f"{language}_queries.jsonl")
    )


def read_traps(language: str) -> tuple[Trap, ...]:
    """Return the traps of a set, in its order."""
    if not (SETS / f"{language}_traps.jsonl").is_file():
        return ()
    return tuple(
        Trap(query=row["query"], forbidden=tuple(row["forbidden"]), kind=row["kind"])
        for row in _rows(f"{language}_traps.jsonl")
    )


def english_tools(data: Path) -> list[Tool]:
    """Return 300 English tools of a public set, and its tools with tags of languages."""
    path = data / ENGLISH / "tools.jsonl"
    tools = sorted(parse_tools(path.read_text("utf-8"), source=ENGLISH), key=lambda t: t.name)
    tools = [tool for tool in tools if tool.description.isascii()]
    chosen = tools[:: len(tools) // _ENGLISH_TOOLS][:_ENGLISH_TOOLS]
    names = {tool.name for tool in chosen}
    tagged = [tool for tool in tools if _TAG.search(json.dumps(tool.parameters))]
    return chosen + [tool for tool in tagged if tool.name not in names]


def requests_in(language: str) -> list[LabelledQuery]:
    """Return the requests for the English tools in a language."""
    return [
        LabelledQuery(query=row[language], relevant=tuple(row["relevant"]))
        for row in _rows("requests.jsonl")
    ]


def own_tools(language: str, data: Path) -> list[Tool]:
    """Return tools that are described in a language: of Russian and Chinese, real ones too."""
    if language in ("ru", "zh"):
        found = list(read_tools("russian" if language == "ru" else "chinese"))
        if language == "zh":
            path = data / "_distractors_zh" / "tools.jsonl"
            found += parse_tools(path.read_text("utf-8"), source=path.name)
        return list({tool.name: tool for tool in found}.values())
    rows = _rows("own_tools.jsonl")
    return [Tool(name=row["name"], description=row[language]) for row in rows if language in row]


def own_requests(language: str) -> list[LabelledQuery]:
    """Return the requests for tools that are described in the language itself."""
    return [
        LabelledQuery(query=row["asked"][language], relevant=(row["name"],))
        for row in _rows("own_tools.jsonl")
        if language in row.get("asked", ())
    ]


def outcomes(index: ToolSearchIndex, queries: Sequence[LabelledQuery]) -> tuple[Outcome, ...]:
    """Return the result of each query."""
    return tuple(_outcome(asked, _names(index, asked.query, _DEPTH)) for asked in queries)


def mean_recall(results: Sequence[Outcome]) -> float:
    """Return recall@5, averaged over the queries; 0 for no queries."""
    return sum(result.recall for result in results) / max(len(results), 1)


def violations(
    index: ToolSearchIndex, traps: Sequence[Trap], names: Sequence[str]
) -> tuple[tuple[Trap, tuple[str, ...]], ...]:
    """Return the traps that found a forbidden tool at any rank, with those tools.

    Args:
        index: The index.
        traps: The queries.
        names: The meaning of `*`.
    """
    caught = []
    for trap in traps:
        forbidden = names if trap.forbidden == _EVERY_TOOL else trap.forbidden
        found = tuple(
            name for name in _names(index, trap.query, len(names)) if name in set(forbidden)
        )
        if found:
            caught.append((trap, found))
    return tuple(caught)


def _names(index: ToolSearchIndex, query: str, limit: int) -> tuple[str, ...]:
    return tuple(match.name for match in index.search(query, limit=limit).matches)


def _outcome(asked: LabelledQuery, found: Sequence[str]) -> Outcome:
    places = [found.index(name) for name in asked.relevant if name in found]
    rivals = [found.index(name) for name in asked.rivals if name in found]
    return Outcome(
        asked=asked,
        found=tuple(found),
        recall=len(places) / len(asked.relevant),
        is_first=0 in places,
        has_rival_before=bool(rivals) and min(rivals) < min(places, default=_DEPTH),
    )


def _rows(name: str) -> Iterator[dict[str, Any]]:
    return map(json.loads, (SETS / name).read_text("utf-8").splitlines())


def print_beside(data: Path, engine: Any) -> None:
    """Print recall of the requests of each language, beside tools in that language."""
    print(f"\n| {engine}: language | {' | '.join(map(str, _BESIDE))} | own tools |")
    print(f"|---{'|--:' * (len(_BESIDE) + 1)}|")
    english = english_tools(data)
    taken = {tool.name for tool in english}
    for language in ASKED_IN:
        own = [tool for tool in own_tools(language, data) if tool.name not in taken]
        found = []
        for count in _BESIDE:
            index = build_index([*english, *own[:count]], SearchSettings(engine=engine))
            recall = mean_recall(outcomes(index, requests_in(language)))
            # What is missing is said, and not made up.
            number = "" if len(own) >= count else f" ({len(own)})"
            has_more = not count or len(own) > max(c for c in _BESIDE if c < count)
            found.append(f"{recall:.3f}{number}" if has_more else "-")
        if asked := own_requests(language):
            index = build_index([*english, *own], SearchSettings(engine=engine))
            found.append(f"{mean_recall(outcomes(index, asked)):.3f}")
        else:
            found.append("-")
        print(f"| {language} | {' | '.join(found)} |", flush=True)


def _kinds(results: Sequence[Outcome]) -> str:
    by_kind: dict[str, list[Outcome]] = defaultdict(list)
    for result in results:
        by_kind[result.asked.kind].append(result)
    return ", ".join(
        f"{kind} {mean_recall(of):.3f} ({len(of)})" for kind, of in sorted(by_kind.items())
    )


def _print_engine(
    language: str, engine: str, data: Path | None, *, segmenter: Any, has_misses: bool
) -> float:
    tools = read_tools(language, data)
    own = [tool.name for tool in read_tools(language)]
    name: Any = engine
    index = build_index(tools, SearchSettings(engine=name, segmenter=segmenter))
    results = outcomes(index, read_queries(language))
    recall = mean_recall(results)
    first = sum(result.is_first for result in results) / len(results)
    judged = [result for result in results if result.asked.rivals]
    before = sum(result.has_rival_before for result in judged)
    print(
        f"{language:9}{engine:12}{len(tools):7}{len(results):9}{recall:8.3f}{first:8.3f}"
        f"{before:9} of {len(judged)}"
    )
    print(f"    {_kinds(results)}")
    _print_traps(index, read_traps(language), own)
    if has_misses:
        for result in results:
            if result.recall < 1:
                wanted = ", ".join(result.asked.relevant)
                print(f"    miss: {result.asked.query} -> {wanted}; found {result.found}")
    return recall


def _print_traps(index: ToolSearchIndex, traps: Sequence[Trap], own: Sequence[str]) -> None:
    if not traps:
        return
    caught = violations(index, traps, own)
    for kind in sorted({trap.kind for trap in traps}):
        fell = [(trap, found) for trap, found in caught if trap.kind == kind]
        of = sum(trap.kind == kind for trap in traps)
        named = "; ".join(f"{trap.query} -> {', '.join(found[:3])}" for trap, found in fell)
        print(f"    {kind} traps sprung: {len(fell)} of {of}{': ' if fell else ''}{named}")


def _tokenizers() -> dict[str, Callable[[str], list[str]]]:
    import jieba  # noqa: PLC0415 - half a second, for this table alone

    words = re.compile(r"[a-z0-9]+")
    return {
        "lower().split()": lambda text: text.lower().split(),
        "[a-z0-9]+": lambda text: words.findall(text.lower()),
        r"\w+": lambda text: re.findall(r"\w+", text.lower()),
        "jieba": lambda text: [word for word in jieba.lcut(text.lower()) if word.strip()],
    }


def _print_tokenizers(language: str, data: Path | None, ours: float) -> None:
    """Print recall@5 of rank_bm25's BM25Okapi with the tokenizers of other systems."""
    from rank_bm25 import BM25Okapi  # noqa: PLC0415 - loads numpy, for this table alone

    tools, queries = read_tools(language, data), read_queries(language)
    for title, cut in _tokenizers().items():
        ranker = BM25Okapi([cut(f"{tool.name} {tool.description}") or [""] for tool in tools])
        results = []
        for asked in queries:
            scores = ranker.get_scores(cut(asked.query))
            best = sorted(range(len(tools)), key=lambda at: (-scores[at], tools[at].name))
            found = [tools[at].name for at in best[:_DEPTH] if scores[at] > 0]
            results.append(_outcome(asked, found))
        recall = mean_recall(results)
        ratio = f"{ours / recall:.2f} times" if recall else "-"
        print(f"    BM25Okapi, {title:16}{recall:8.3f}; the first engine has {ratio}")


def main() -> None:
    """Print a table for each language."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--engine", action="append")
    parser.add_argument("--segmenter", choices=("builtin", "jieba"), default="builtin")
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--tokenizers", action="store_true")
    parser.add_argument("--beside", action="store_true")
    options = parser.parse_args()
    if options.beside:
        for engine in options.engine or ["bm25", "hybrid"]:
            print_beside(options.data, engine)
        return
    has_distractors = (options.data / DISTRACTORS).is_dir()
    for language in LANGUAGES:
        for data in (None, options.data) if has_distractors else (None,):
            print("language engine        tools  queries     r@5   first  rival before")
            recalls = [
                _print_engine(
                    language,
                    engine,
                    data,
                    segmenter=options.segmenter,
                    has_misses=options.misses,
                )
                for engine in options.engine or ["bm25"]
            ]
            if options.tokenizers:
                _print_tokenizers(language, data, recalls[0])


if __name__ == "__main__":
    main()
