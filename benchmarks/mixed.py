"""Measure search in catalogs whose tools are described in different languages.

Run: python benchmarks/mixed.py [--data ../shared/data] [--engine hybrid] [--queries 300]

Prints recall@5 of queries beside a growing number of tools in another language, which
count as wrong. The Russian rows use the sets of our own; see `sets/README.md`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import languages
from search import read_queries, read_tools

from tool_search.catalog.tool import Tool
from tool_search.config.search import SearchSettings
from tool_search.search import JudgedQuery, build_index, evaluate

_BESIDE = (0, 20, 100, 500)


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
        replace(tool, description=f"{tool.description} {chinese[tool.name].description}")
        for tool in english
    ]
    return english, list(chinese.values()), both


def recall(tools: Sequence[Tool], queries: Sequence[JudgedQuery], engine: str) -> float:
    """Return recall@5."""
    return evaluate(build_index(tools, SearchSettings(engine=engine)), queries).recall_at_5


def main() -> None:
    """Print the table of each engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--engine", action="append")
    parser.add_argument("--queries", type=int, default=300)
    options = parser.parse_args()
    rows = cases(options.data, options.queries)
    for engine in options.engine or ["bm25", "hybrid"]:
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
        print(f"\n| {engine}: queries | English tools | Chinese tools | both in one |")
        print("|---|--:|--:|--:|")
        for language in ("zh", "en"):
            queries = read_queries(options.data / f"ultratool_{language}")
            found = [f"{recall(tools, queries, engine):.3f}" for tools in bilingual(options.data)]
            print(f"| {language} | {' | '.join(found)} |", flush=True)


if __name__ == "__main__":
    main()
