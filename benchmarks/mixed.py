"""Measure search in catalogs whose tools are described in different languages.

Run: python benchmarks/mixed.py [--data ../shared/data] [--engine hybrid] [--queries 300]

Prints recall@5 of queries beside a growing number of tools in another language, which
count as wrong; then that of tools in one language and in two: as a whole catalog, and as
one half of it that is described in two languages, beside the other half in one. The
Russian rows use the sets of our own; see `sets/README.md`.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import languages
from search import read_queries, read_tools

from tool_search.config.search import SearchSettings
from tool_search.core.catalog.tool import Tool
from tool_search.search import JudgedQuery, build_index, evaluate

_BESIDE = (0, 20, 100, 500)
_TRANSLATED = tuple(
    f"{tools} | in both"
    for tools in ("all in one", "half in one, beside its language", "half in one, beside the other")
)


class Case(NamedTuple):
    """Queries with the tools that answer them, and tools in another language.

    Attributes:
        title: The languages of the queries, their tools and the others.
        queries: The queries.
        tools: The tools that answer them.
        others: The tools to stand beside them.
    """

    title: str
    queries: Sequence[JudgedQuery]
    tools: Sequence[Tool]
    others: Sequence[Tool]


def sampled(queries: Sequence[JudgedQuery], most: int) -> Sequence[JudgedQuery]:
    """Return about so many of the queries, evenly spaced."""
    return queries[:: max(1, len(queries) // most)][:most]


def cases(data: Path, most: int) -> list[Case]:
    """Return the rows of the table."""
    chinese = read_tools(data / "_distractors_zh")
    bfcl = read_tools(data / "bfcl")
    asked = sampled(read_queries(data / "bfcl"), most)
    russian = languages.read_tools("russian")
    in_russian = [
        JudgedQuery(query=each.query, relevant=each.relevant)
        for each in languages.read_queries("russian")
    ]
    zh2en, zh = data / "ultratool_zh2en", data / "ultratool_zh"
    return [
        Case("zh, en, zh", sampled(read_queries(zh2en), most), read_tools(zh2en), chinese),
        Case("zh, zh, en", sampled(read_queries(zh), most), read_tools(zh), bfcl),
        Case("en, en, zh", asked, bfcl, chinese),
        Case("en, en, ru", asked, bfcl, russian),
        Case("ru, ru, en", in_russian, russian, bfcl),
        Case("ru, ru, zh", in_russian, russian, chinese),
        russian_to_english(russian, in_russian),
    ]


def russian_to_english(russian: Sequence[Tool], queries: Sequence[JudgedQuery]) -> Case:
    """Return the case with every second Russian tool in English, and the others beside."""
    path = languages.SETS / "russian_tools_in_english.jsonl"
    rows: list[Mapping[str, Any]] = list(map(json.loads, path.read_text("utf-8").splitlines()))
    names = {row["translates"]: row["name"] for row in rows}
    return Case(
        "ru, en, ru",
        [
            replace(each, relevant=[names[name] for name in each.relevant])
            for each in queries
            if names.keys() >= set(each.relevant)
        ],
        [Tool(name=row["name"], description=row["description"]) for row in rows],
        [tool for tool in russian if tool.name not in names],
    )


def bilingual(data: Path) -> tuple[Sequence[Tool], Sequence[Tool], Sequence[Tool]]:
    """Return tools in English, the same in Chinese, and the same in both languages."""
    english = read_tools(data / "ultratool_en")
    chinese = {tool.name: tool for tool in read_tools(data / "ultratool_zh")}
    both = [
        replace(
            tool,
            description=f"{tool.description} {chinese[tool.name].description}",
            parameters=with_both(dict(tool.parameters), dict(chinese[tool.name].parameters)),
        )
        for tool in english
    ]
    return english, list(chinese.values()), both


def with_both(schema: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with each description followed by that of the same place in another."""
    joined = dict(schema)
    for key, value in schema.items():
        second = other.get(key)
        if isinstance(value, dict) and isinstance(second, dict):
            joined[key] = with_both(value, second)
        elif key == "description" and isinstance(value, str) and isinstance(second, str):
            joined[key] = f"{value} {second}"
    return joined


class Translated(NamedTuple):
    """The recall of tools before and after they get a second language.

    Attributes:
        whole: Of all tools, in one language and in both.
        beside_own: Of half the tools, beside the others in their language.
        beside_other: Of half the tools, beside the others in the other language.
    """

    whole: tuple[float, float]
    beside_own: tuple[float, float]
    beside_other: tuple[float, float]


def translated(data: Path, language: str, engine: str) -> Translated:
    """Return what a second language changes for the queries of one."""
    english, chinese, both = bilingual(data)
    own, other = (english, chinese) if language == "en" else (chinese, english)
    queries = read_queries(data / f"ultratool_{language}")
    names = sorted(tool.name for tool in own)
    half = set(random.Random(0).sample(names, len(names) // 2))
    inside = {
        place: [tool for tool in tools if tool.name in half]
        for place, tools in (("one", own), ("both", both))
    }

    def pair(rest: Sequence[Tool]) -> tuple[float, float]:
        outside = [tool for tool in rest if tool.name not in half]
        one, two = (
            recall_of(half, [*tools, *outside], queries, engine) for tools in inside.values()
        )
        return one, two

    whole = recall(own, queries, engine), recall(both, queries, engine)
    return Translated(whole, pair(own), pair(other))


def recall_of(
    names: Collection[str], tools: Sequence[Tool], queries: Sequence[JudgedQuery], engine: str
) -> float:
    """Return the share of the wanted tools among these that are in the first five."""
    index = build_index(tools, SearchSettings(engine=engine))
    hits = []
    for judged in queries:
        found = {match.name for match in index.search(judged.query, limit=5).matches}
        hits += [name in found for name in judged.relevant if name in names]
    return sum(hits) / len(hits)


def recall(tools: Sequence[Tool], queries: Sequence[JudgedQuery], engine: str) -> float:
    """Return recall@5."""
    return evaluate(build_index(tools, SearchSettings(engine=engine)), queries).recall_at_5


def print_beside(rows: Sequence[Case], engine: str) -> None:
    """Print recall beside tools in another language."""
    print(f"\n| {engine}: queries, tools, beside | {' | '.join(map(str, _BESIDE))} |")
    print(f"|---{'|--:' * len(_BESIDE)}|")
    for case in rows:
        names = {tool.name for tool in case.tools}
        others = [tool for tool in case.others if tool.name not in names]
        figures = [
            f"{recall([*case.tools, *others[:count]], case.queries, engine):.3f}"
            if len(others) >= count or count == _BESIDE[-1]
            else "-"
            for count in _BESIDE
        ]
        print(f"| {case.title} | {' | '.join(figures)} |", flush=True)


def print_translated(data: Path, engine: str) -> None:
    """Print recall of tools in one language and in two."""
    print(f"\n| {engine}: queries | {' | '.join(_TRANSLATED)} |")
    print(f"|---{'|--:' * 2 * len(_TRANSLATED)}|")
    for language in ("zh", "en"):
        figures = [f"{one:.3f} | {two:.3f}" for one, two in translated(data, language, engine)]
        print(f"| {language} | {' | '.join(figures)} |", flush=True)


def main() -> None:
    """Print the tables of each engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--engine", action="append")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--row", action="append", help="the start of a row's title; all if absent")
    options = parser.parse_args()
    rows = [
        case
        for case in cases(options.data, options.queries)
        if case.title.startswith(tuple(options.row or [""]))
    ]
    for engine in options.engine or ["bm25", "hybrid"]:
        print_beside(rows, engine)
        print_translated(options.data, engine)


if __name__ == "__main__":
    main()
