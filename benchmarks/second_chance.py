"""Measure what one more request brings after an answer that says there is no tool.

Run: python benchmarks/second_chance.py [--data ../shared/data] [--recorded ../shared/recorded]

The model is a script that says "I have no tool for that." and never searches. First come the
requests of public sets (`model_queries/queries.jsonl` under `--data`), each in a conversation of
its own: how many get one more request, and what it makes callable. Then the conversation of
conversation_cost.py. Last, the assistants' texts in recordings of other projects under
`--recorded`: how many have a phrase by which such an answer is known. Data that are absent are
left out, with a sentence.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from conversation_cost import FULL, GIVING_UP, MODELS, NATIVE, TURNS, CacheCase, measured, ours
from model_listing import Request, read_requests

from tool_search import Message, ToolCatalog, ToolSearchConfig, ToolSearchSession, profile_for
from tool_search.catalog.formats import parse_tools
from tool_search.runner.session.session import says_tool_is_missing

ENGINES = ("bm25", "hybrid")
SCORES = (0.5, 0.6, 0.7, 0.8)
# The catalog in which requests that need no tool are asked.
NONE, CATALOG_FOR_NONE = "none", "metatool"
PROFILE = profile_for("openai-responses", "gpt-5.4")


def loaded(request: Request, catalog: ToolCatalog, config: ToolSearchConfig) -> tuple[str, ...]:
    """Return the tools that a second chance makes callable; empty if there is none."""
    session = ToolSearchSession(catalog, config=config)
    session.begin_turn(request.text, profile=PROFILE)
    answer = Message(role="assistant", content=GIVING_UP)
    return tuple(entry.name for entry in session.second_chance(answer))


def rows_of_requests(data: Path) -> Iterator[str]:
    """Yield a row for each engine and score."""
    requests = read_requests(data)
    names = {request.set for request in requests} - {NONE} | {CATALOG_FOR_NONE}
    catalogs = {
        name: ToolCatalog(
            parse_tools((data / name / "tools.jsonl").read_text("utf-8"), source=name)
        )
        for name in names
    }
    catalogs[NONE] = catalogs[CATALOG_FOR_NONE]
    needing = [request for request in requests if request.relevant]
    total = sum(len(request.relevant) for request in needing)
    yield (
        "| engine | `preload_score` | one more request | with a right tool | right tools | "
        "tools loaded | where no tool is needed |\n|---|--:|--:|--:|--:|--:|--:|"
    )
    for engine in ENGINES:
        for score in SCORES:
            config = ToolSearchConfig.model_validate({
                "tool_schema_mode": "tool_search",
                "search_tool_name": "find_tools",  # one set has a tool named tool_search
                "second_chance": True,
                "preload_score": score,
                "search": {"engine": engine},
            })  # fmt: skip
            found = [loaded(each, catalogs[each.set], config) for each in requests]
            pairs = [(r, f) for r, f in zip(requests, found, strict=True) if r.relevant]
            hits = [len(set(request.relevant).intersection(names)) for request, names in pairs]
            asked = sum(bool(names) for _, names in pairs)
            needless = sum(bool(f) for r, f in zip(requests, found, strict=True) if not r.relevant)
            yield (
                f"| {engine} | {score} | {asked} of {len(needing)} | {sum(map(bool, hits))} "
                f"| {sum(hits) / total:.2f} | {sum(len(names) for _, names in pairs)} "
                f"| {needless} of {len(requests) - len(needing)} |"
            )


def rows_of_conversations() -> Iterator[str]:
    """Yield the standard conversation with a model that never searches."""
    yield (
        "| system | provider | requests | shown | paid | moved | right |\n"
        "|---|---|--:|--:|--:|--:|--:|"
    )
    for dialect in MODELS:
        native = NATIVE[dialect]
        search = partial(ours, mode="tool_search", strategy=native)
        runs = {
            f"ours, {native}, searching": (search, True),
            f"ours, {native}, never searching": (search, False),
            "the same, second chance": (partial(search, second_chance=True), False),
        }
        if dialect != "openai_chat":
            full = partial(ours, mode="full", strategy=native)
            runs = {FULL: (full, False), **runs}
        for name, (run, searches) in runs.items():
            rows = measured(name, dialect, run, searches=searches)
            row = next(row for row in rows if row.cache == CacheCase())
            yield (
                f"| {name} | {dialect} | {row.requests} | {row.shown:,} | {row.paid:,} "
                f"| {row.moved} | {row.right}/{TURNS} |"
            )


def assistant_texts(value: Any) -> Iterator[str]:
    """Yield what assistants say anywhere in a recording: messages, replies and their parts."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            value = json.loads(value)
        except ValueError:
            return
    if isinstance(value, dict):
        content = value.get("content")
        if value.get("role") == "assistant" and content:
            parts = [content] if isinstance(content, str) else content
            yield "".join(
                part if isinstance(part, str) else str(part.get("text") or "") for part in parts
            )
            return
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from assistant_texts(inner)


def line_of_recordings(folder: Path) -> str:
    """Return how many texts of assistants have a phrase, without the texts."""
    texts: set[str] = set()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".yaml", ".json") and "openapi" not in path.name:
            texts.update(assistant_texts(yaml.safe_load(path.read_text("utf-8"))))
    texts = {text for text in texts if text.strip()}
    known = sum(map(says_tool_is_missing, texts))
    return f"{len(texts)} different texts of assistants, {known} with a phrase"


def main() -> None:
    """Print the tables of benchmarks/second_chance.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--recorded", type=Path, default=Path("../shared/recorded"))
    options = parser.parse_args()
    if (options.data / "model_queries" / "queries.jsonl").exists():
        for line in rows_of_requests(options.data):
            print(line, flush=True)
    else:
        print(f"no requests under {options.data}: they are left out", file=sys.stderr)
    print()
    for line in rows_of_conversations():
        print(line, flush=True)
    if options.recorded.is_dir():
        print(f"\n{line_of_recordings(options.recorded)}")
    else:
        print(f"no recordings under {options.recorded}: they are left out", file=sys.stderr)


if __name__ == "__main__":
    main()
