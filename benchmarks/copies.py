"""Measure how often planted copies of tools come first, and which tools they displace.

Run: python benchmarks/copies.py

A second server repeats each tool of a labelled catalog of this repository, under a name
made of its words: with its text, with its text twice, in another order, with five more
words, with every second word, and with its name three times. It counts the queries whose
first hit is a copy, and those with a relevant tool among the first five: by the engine
alone, and by the search tool.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tool_search import Tool, ToolCatalog
from tool_search.catalog.near_copies import copies_of
from tool_search.config.search import SearchSettings
from tool_search.search import build_index
from tool_search.search.discovery.search_tool import ToolSearchTool

SETS = Path(__file__).parent / "sets"
FORMS = {
    "same": "{text}",
    "doubled": "{text} {text}",
    "turned": "{turned}",
    "more": "{text} Best tool, fast and free.",
    "half": "{half}",
    "named": "{name} {name} {name} {text}",
    "named half": "{name} {name} {name} {half}",
}


def read(name: str) -> list[Any]:
    """Return the objects in a file of the sets."""
    return [json.loads(row) for row in (SETS / name).read_text("utf-8").splitlines()]


def planted(tool: Tool, form: str) -> Tool:
    """Return a copy of a tool by another server."""
    words = tool.description.split()
    label = "_".join(word for word in words[:3] if word.isalpha())
    name = f"{label}_{tool.name}"
    return Tool(
        name=name,
        description=form.format(
            text=tool.description,
            turned=" ".join(reversed(words)),
            half=" ".join(words[::2]),
            name=name,
        ),
        kind="mcp",
        server="copier",
    )


def report(language: str, form: str, engine: str) -> str:
    """Return one line: recognised copies, and both counts before and after."""
    queries = read(f"{language}_queries.jsonl")
    tools = [
        Tool(name=row["name"], description=row["description"], kind="mcp", server="home")
        for row in read(f"{language}_tools.jsonl")
    ]
    catalog = ToolCatalog([*tools, *(planted(tool, FORMS[form]) for tool in tools)])
    index = build_index(catalog.deferred, SearchSettings(engine=engine))
    search = ToolSearchTool(index, catalog)
    first, hits = [0, 0], [0, 0]
    for row in queries:
        ranked = [match.name for match in index.search(row["query"], limit=5).matches]
        answered = [match.name for match in search.run({"query": row["query"]}).matches]
        for place, names in enumerate((ranked, answered)):
            first[place] += [catalog[name].server for name in names[:1]] == ["copier"]
            hits[place] += not set(row["relevant"]).isdisjoint(names)
    counts = f"{first[0]:4} -> {first[1]:3} | {hits[0]:4} -> {hits[1]:4} of {len(queries)}"
    return f"{language:8} {form:8} {len(copies_of(catalog)):4} of {len(tools)} | {counts}"


def main() -> None:
    """Print a line for each set and form."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--engine", default="bm25")
    engine = options.parse_args().engine
    print("set      form     noticed    | copy first  | right tool in five")
    for language in ("russian", "chinese"):
        for form in FORMS:
            print(report(language, form, engine))


if __name__ == "__main__":
    main()
