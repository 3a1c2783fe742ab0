"""`tool-search search`: the tools of a catalog that match a query."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from tool_search.adapters.compat.oh_my_pi.answer import rounded
from tool_search.adapters.compat.oh_my_pi.settings import DEFAULT_LIMIT
from tool_search.adapters.compat.oh_my_pi.terminal import discovery_block, search_answer
from tool_search.adapters.compat.weighted_bm25 import WeightedBm25Index
from tool_search.catalog.near_copies import copies_of
from tool_search.cli.engines import index_of
from tool_search.cli.exits import result_console, say_notices
from tool_search.cli.files import read_queries
from tool_search.cli.options import (
    CatalogOrNoneOption,
    EngineOption,
    McpOption,
    PresetOption,
    known_spelling,
)
from tool_search.cli.servers import read_tools
from tool_search.cli.terminal.language import spoken, wrong_use
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.search import SearchResult, ToolSearchIndex
from tool_search.search.build import PRESETS
from tool_search.search.discovery.catalog_notices import catalog_notices
from tool_search.search.discovery.search_tool import clean_description
from tool_search.search.explained import explanation_object, matched_words
from tool_search.search.index.explanation import Explanation, TermScore
from tool_search.search.index.older_first import search_older_first
from tool_search.search.index.ranking import RankedIndex
from tool_search.search.learned import Evidence, LearnedQueries, with_votes
from tool_search.search.text.documents import FieldName
from tool_search.stores import SQLiteStore

__all__ = [
    "explanation_lines",
    "places",
    "search_command",
]


_MAX_WORDS = 12
_LIMIT = 5


def explanation_lines(found: Explanation) -> Iterator[str]:
    """Yield an explanation for people, one line for each part of the score."""
    if found.is_named:
        yield spoken("ranking.named")
        return
    yield spoken("ranking.sum", sum=f"{found.sum:.2f}", boost=f"{found.boost:.2f}")
    sides = found.reasons.sides
    for side in sides:
        if len(sides) > 1 or side.name == "meaning":
            yield spoken(
                "ranking.side",
                name=spoken(f"ranking.{side.name}"),
                share=f"{side.share:.2f}",
                weight=f"{side.weight:.2f}",
                score=f"{side.score:.2f}",
            )
        words = [word for word in found.reasons.words if word.side == side.name]
        yield from map(_word_line, words[:_MAX_WORDS])
        if rest := words[_MAX_WORDS:]:
            last = f"{sum(word.share for word in rest):.2f}"
            yield spoken("ranking.more_words", count=len(rest), share=last)
    for key, share in (
        ("ranking.operators", found.operators),
        ("ranking.learned", found.learned),
    ):
        if share:
            yield spoken(key, share=f"{share:.2f}")


def places(found: Mapping[FieldName, Iterable[str]]) -> str:
    """Return words by field in one line."""
    return "; ".join(f"{field}: {', '.join(words)}" for field, words in found.items())


def _word_line(word: TermScore) -> str:
    fields = ", ".join(f"{field} {share:.2f}" for field, share in word.fields.items())
    instead = spoken("ranking.as", words=", ".join(word.instead)) if word.instead else ""
    return f"- {word.word}{instead} {word.share:.2f}: {fields}"


_QueryOption = Annotated[
    str | None, typer.Option(help="The query: a text that says what the tool should do.")
]
_QueriesOption = Annotated[
    Path | None, typer.Option(help='The file of queries: {"query": ...} a line.')
]
_LimitOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help=f"The maximum number of tools; {_LIMIT} if left out, or {DEFAULT_LIMIT} with the "
        "preset oh-my-pi.",
        show_default=False,
    ),
]
_ExplainOption = Annotated[bool, typer.Option("--explain", help="Show the parts of each score.")]
_StoreOption = Annotated[
    Path | None,
    typer.Option(help="The store of a bot, whose learned words count in the ranking."),
]
_JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object for each query.")]


def search_command(
    *,
    catalog: CatalogOrNoneOption = None,
    mcp: McpOption = None,
    query: _QueryOption = None,
    queries: _QueriesOption = None,
    limit: _LimitOption = None,
    engine: EngineOption = None,
    preset: PresetOption = None,
    explain: _ExplainOption = False,
    store: _StoreOption = None,
    as_json: _JsonOption = False,
) -> None:
    """Rank the tools of a catalog or of MCP servers for a query."""
    asked = _read_texts(query, queries)
    if limit is None:
        limit = DEFAULT_LIMIT if _is_oh_my_pi(preset) else _LIMIT
    tools = read_tools(catalog, mcp)
    say_notices(tools.once(catalog_notices))
    index = index_of(tools.active, engine, preset)
    if store is not None:
        index = _with_votes(index, store)
    for text in asked:
        found = search_older_first(
            index,
            text,
            limit=limit,
            allowed=None,
            # A preset shows another system's ranking unchanged.
            copies=copies_of(tools) if preset is None else {},
            tools=tools,
        )
        reasons = _reasons(index, found) if explain else None
        if as_json:
            content = _result_object(found, tools, reasons)
            _add_raw_scores(content["matches"], index, text)
            typer.echo(json.dumps(content, ensure_ascii=False))
        elif _is_oh_my_pi(preset) and isinstance(index, WeightedBm25Index) and not explain:
            console = result_console()
            console.print(discovery_block(search_answer(index, text, limit=limit)))
            console.print()
        else:
            _print_table(found, tools, reasons)


def _is_oh_my_pi(preset: str | None) -> bool:
    return preset is not None and known_spelling(preset, PRESETS) == "oh-my-pi"


def _read_texts(query: str | None, queries: Path | None) -> Sequence[str]:
    if (query is None) == (queries is None):
        raise wrong_use("use.one_of", first="--query", second="--queries")
    if query is not None:
        return (query,)
    return tuple(line.query for line in read_queries(queries)) if queries else ()


def _with_votes(index: ToolSearchIndex, store: Path) -> ToolSearchIndex:
    """Return the index with the votes of a store.

    Raises:
        ConfigurationError: The file does not exist.
    """
    if not store.is_file():
        raise wrong_use("use.no_store", path=f"--store {str(store)!r}")
    entries = asyncio.run(_evidence(store))
    return with_votes(index, LearnedQueries(entries).at(time.time()) if entries else None)


async def _evidence(path: Path) -> tuple[Evidence, ...]:
    async with SQLiteStore(path) as opened:
        return (await opened.load_evidence()).entries


def _reasons(index: ToolSearchIndex, found: SearchResult) -> dict[str, Explanation]:
    """Return the explanations by tool name; empty if the engine has none."""
    if not isinstance(index, RankedIndex):
        return {}
    names = [match.name for match in found.matches]
    return {each.tool: each for each in index.explain(found.query, names)}


def _result_object(
    found: SearchResult, catalog: ToolCatalog, reasons: Mapping[str, Explanation] | None
) -> dict[str, Any]:
    matches: list[dict[str, Any]] = []
    for match in found.matches:
        matches.append({"name": match.name, "score": round(match.score, 6)})
        if reasons is not None:
            matches[-1]["fields"] = matched_words(found.query, catalog[match.name])
        if reasons and match.name in reasons:
            matches[-1]["explanation"] = explanation_object(reasons[match.name])
    content = {"query": found.query, "matches": matches, "total_found": found.total_found}
    return content if reasons is None else {**content, "unmatched": list(found.unmatched)}


def _add_raw_scores(matches: Iterable[dict[str, Any]], index: ToolSearchIndex, query: str) -> None:
    """Add the scores of a preset's own ranking, with six decimals."""
    if isinstance(index, WeightedBm25Index):
        scores = {tool.name: score for tool, score in index.ranked(query)}
        for match in matches:
            match["raw_score"] = rounded(scores[match["name"]], 6)


def _print_table(
    found: SearchResult, catalog: ToolCatalog, reasons: Mapping[str, Explanation] | None
) -> None:
    console = result_console()
    console.print(Text(found.query, style="bold"))
    if found.matches:
        console.print(_table(found, catalog, reasons))
    shown = spoken(
        "ranking.found",
        shown=len(found.matches),
        found=found.total_found,
        total=found.total_tools,
    )
    if found.unmatched:
        shown += spoken("ranking.unmatched", words=", ".join(found.unmatched))
    console.print(Text(shown, style="dim"))
    if reasons:
        console.print(Text(spoken("ranking.scores"), style="dim"))
    console.print()


def _table(
    found: SearchResult, catalog: ToolCatalog, reasons: Mapping[str, Explanation] | None
) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(spoken("ranking.score"), justify="right")
    table.add_column(spoken("ranking.tool"), overflow="fold")
    has_servers = any(match.server for match in found.matches)
    if has_servers:
        table.add_column(spoken("ranking.server"), overflow="fold")
    last = "ranking.description" if reasons is None else "ranking.why"
    table.add_column(spoken(last), overflow="fold")
    for match in found.matches:
        row = [f"{match.score:.3f}", match.name, *([match.server or ""] if has_servers else [])]
        if reasons is None:
            row.append(clean_description(match.description))
        else:
            row.append(_why(found.query, catalog[match.name], reasons.get(match.name)))
        # As Text, because a definition must not be read as markup.
        table.add_row(*map(Text, row))
    return table


def _why(query: str, tool: Tool, found: Explanation | None) -> str:
    if found is None or not (found.is_named or found.reasons.sides):
        return places(matched_words(query, tool))
    return "\n".join(explanation_lines(found))
