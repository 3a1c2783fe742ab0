"""`tool-search search`: the tools of a catalog that fit a query."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from tool_search.catalog import ToolCatalog
from tool_search.cli.discovery_block import discovery_block, search_answer
from tool_search.cli.engines import ENGINE_NAMES, PRESET_NAMES, index_of
from tool_search.cli.explain import matched_words
from tool_search.cli.files import read_catalog, read_queries
from tool_search.cli.terminal import result_console
from tool_search.errors import ConfigurationError
from tool_search.search import SearchResult, ToolSearchIndex
from tool_search.search.weighted_bm25 import WeightedBm25Index
from tool_search.search_tool import clean_description
from tool_search.surfaces.oh_my_pi_answer import rounded

__all__ = ["search_command"]


def search_command(
    *,
    catalog: Annotated[Path, typer.Option(help="A file of tools, in any known format.")],
    query: Annotated[str | None, typer.Option(help="What the tool should do.")] = None,
    queries: Annotated[
        Path | None, typer.Option(help='A file of queries, {"query": ...} a line.')
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many tools at most.")] = 5,
    engine: Annotated[
        str | None, typer.Option(help=f"One of {', '.join(ENGINE_NAMES)}; default: bm25.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help=f"Rank as another: {', '.join(PRESET_NAMES)}.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show which words were found where.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a query.")] = False,
) -> None:
    """Rank the tools of a catalog for a query."""
    asked = _asked(query, queries)
    tools = read_catalog(catalog)
    index = index_of(tools.active, engine, preset)
    for text in asked:
        found = index.search(text, limit=limit)
        if as_json:
            content = _result_object(found, tools, explain=explain)
            _add_raw_scores(content["matches"], index, text)
            typer.echo(json.dumps(content, ensure_ascii=False))
        elif preset == "oh-my-pi" and isinstance(index, WeightedBm25Index) and not explain:
            console = result_console()
            console.print(discovery_block(search_answer(index, text, limit=limit)))
            console.print()
        else:
            _print_table(found, tools, explain=explain)


def _asked(query: str | None, queries: Path | None) -> Sequence[str]:
    if (query is None) == (queries is None):
        raise ConfigurationError("give one of --query and --queries")
    if query is not None:
        return (query,)
    return tuple(line.query for line in read_queries(queries)) if queries else ()


def _result_object(found: SearchResult, catalog: ToolCatalog, *, explain: bool) -> dict[str, Any]:
    matches: list[dict[str, Any]] = []
    for match in found.matches:
        matches.append({"name": match.name, "score": round(match.score, 6)})
        if explain:
            matches[-1]["fields"] = matched_words(found.query, catalog[match.name])
    content = {"query": found.query, "matches": matches, "total_found": found.total_found}
    return {**content, "unmatched": list(found.unmatched)} if explain else content


def _add_raw_scores(matches: Iterable[dict[str, Any]], index: ToolSearchIndex, query: str) -> None:
    """Adds what a preset's own ranking gave, to six decimals."""
    if isinstance(index, WeightedBm25Index):
        scores = {tool.name: score for tool, score in index.ranked(query)}
        for match in matches:
            match["raw_score"] = rounded(scores[match["name"]], 6)


def _print_table(found: SearchResult, catalog: ToolCatalog, *, explain: bool) -> None:
    console = result_console()
    console.print(Text(found.query, style="bold"))
    if found.matches:
        console.print(_table(found, catalog, explain=explain))
    shown = f"{len(found.matches)} of {found.total_found} found, {found.total_tools} searched"
    missing = f"; no tool has: {', '.join(found.unmatched)}" if found.unmatched else ""
    console.print(Text(f"{shown}{missing}", style="dim"))
    console.print()


def _table(found: SearchResult, catalog: ToolCatalog, *, explain: bool) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("score", justify="right")
    table.add_column("tool", overflow="fold")
    has_servers = any(match.server for match in found.matches)
    if has_servers:
        table.add_column("server", overflow="fold")
    table.add_column("found where" if explain else "description", overflow="fold")
    for match in found.matches:
        row = [f"{match.score:.3f}", match.name, *([match.server or ""] if has_servers else [])]
        if explain:
            row.append(_places(matched_words(found.query, catalog[match.name]).items()))
        else:
            row.append(clean_description(match.description))
        # As Text, because a definition must not be read as markup.
        table.add_row(*map(Text, row))
    return table


def _places(found: Iterable[tuple[str, Sequence[str]]]) -> str:
    return "; ".join(f"{field}: {', '.join(words)}" for field, words in found)
