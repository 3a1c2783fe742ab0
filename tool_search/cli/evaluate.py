"""`tool-search eval`: the quality of an engine's ranking, by queries with known answers."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from tool_search.cli.engines import index_of
from tool_search.cli.exits import result_console, say, say_notices, side_console
from tool_search.cli.files import read_catalog, read_judged_queries
from tool_search.cli.options import CatalogOption, EngineOption, JsonOption, PresetOption
from tool_search.cli.terminal.language import spoken, spoken_language
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.search import JudgedQuery, SearchResult, ToolSearchIndex, evaluate
from tool_search.search.discovery.catalog_notices import catalog_notices
from tool_search.search.discovery.search_tool import clean_description
from tool_search.search.misses import ToolFindings, find_misses

__all__ = ["evaluate_command"]

_NS_PER_US = 1_000
_NS_PER_MS = 1_000_000
_MAX_NAMED = 3
_MAX_SHOWN = 20


def evaluate_command(
    *,
    catalog: CatalogOption,
    queries: Annotated[
        Path, typer.Option(help='The file of queries: {"query": ..., "relevant": [names]} a line.')
    ],
    engine: EngineOption = None,
    preset: PresetOption = None,
    by_tool: Annotated[
        bool,
        typer.Option(
            "--by-tool",
            help="Also show the missed tools, what was found instead, and what to change.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure the quality and the speed of an engine.

    Recall is the share of the relevant tools within the first k, averaged over
    queries. Times do not include reading the files and one warm-up search.
    """
    tools = read_catalog(catalog)
    say_notices(tools.once(catalog_notices))
    judged = read_judged_queries(queries)
    _warn_of_unknown(judged, tools)
    index, figures = _measure(tools.active, judged, engine, preset)
    found = find_misses(index, judged, {t.name: t for t in tools.active}) if by_tool else ()
    if as_json:
        content = {**figures, "by_tool": [*map(_as_object, found)]} if by_tool else figures
        typer.echo(json.dumps(content, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    for key, value in figures.items():
        is_share = isinstance(value, float) and value <= 1
        table.add_row(key, f"{value:.4f}" if is_share else f"{value:,}")
    result_console().print(table)
    if by_tool:
        _print_by_tool(found)


def _as_object(found: ToolFindings) -> dict[str, Any]:
    return {
        "tool": found.tool,
        "queries": found.queries,
        "found": found.found,
        "instead": [{"tool": name, "queries": count} for name, count in found.instead],
        "missing_words": list(found.missing_words),
        "advice": "" if found.advice is None else str(found.advice),
    }


def _print_by_tool(found: Sequence[ToolFindings]) -> None:
    """Print the missed tools, those that are never found first."""
    console = result_console()
    missed = [each for each in found if each.found < each.queries]
    never = sum(each.found == 0 for each in missed)
    console.print(
        Text(
            "\n" + spoken("eval.missed", missed=len(missed), total=len(found), never=never),
            style="dim",
        )
    )
    for each in missed[:_MAX_SHOWN]:
        instead = ", ".join(f"{name} ({count})" for name, count in each.instead)
        head = spoken("eval.found", tool=each.tool, found=each.found, queries=each.queries)
        others = spoken("eval.instead", names=instead or spoken("eval.nothing"))
        # As Text, because names and words must not be read as markup.
        console.print(Text(clean_description(head)))
        console.print(Text(f"  {clean_description(others)}"))
        if each.advice is not None:
            advice = each.advice.in_language(spoken_language())
            console.print(Text(f"  {clean_description(advice)}"))
    if len(missed) > _MAX_SHOWN:
        rest = len(missed) - _MAX_SHOWN
        console.print(Text(spoken("eval.more", count=rest), style="dim"))


def _measure(
    tools: Sequence[Tool], judged: Sequence[JudgedQuery], engine: str | None, preset: str | None
) -> tuple[ToolSearchIndex, dict[str, float]]:
    started = time.perf_counter_ns()
    index = _TimedIndex(index_of(tools, engine, preset))
    build_ns = time.perf_counter_ns() - started
    if judged:
        # The first search of a process also imports what only searches need.
        index.search(judged[0].query, limit=1)
        index.durations_ns.clear()
    report = evaluate(index, _with_progress(judged))
    durations = sorted(index.durations_ns)
    return index, {
        "recall@5": round(report.recall_at_5, 4),
        "recall@10": round(report.recall_at_10, 4),
        "ndcg@10": round(report.ndcg_at_10, 4),
        "mrr": round(report.mrr, 4),
        "build_ms": round(build_ns / _NS_PER_MS, 2),
        "p50_us": round(_percentile(durations, 0.5) / _NS_PER_US, 1),
        "p99_us": round(_percentile(durations, 0.99) / _NS_PER_US, 1),
        "queries": report.queries,
        "tools": len(tools),
    }


class _TimedIndex:
    """An index that records the time of each search."""

    def __init__(self, index: ToolSearchIndex) -> None:
        self._index = index
        self.durations_ns: list[int] = []

    def search(
        self,
        query: str | Sequence[str],
        *,
        limit: int,
        allowed: Callable[[str], bool] | None = None,
    ) -> SearchResult:
        started = time.perf_counter_ns()
        found = self._index.search(query, limit=limit, allowed=allowed)
        self.durations_ns.append(time.perf_counter_ns() - started)
        return found

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> ToolSearchIndex:
        return self._index.updated(added=added, removed=removed)


def _percentile(ascending: Sequence[int], share: float) -> int:
    """Return the nearest-rank percentile; 0 if there are no values."""
    return ascending[math.ceil(share * len(ascending)) - 1] if ascending else 0


def _with_progress(judged: Sequence[JudgedQuery]) -> Iterator[JudgedQuery]:
    console = side_console()
    if not console.is_terminal:
        yield from judged
        return
    # Drawn between searches: a thread that draws meanwhile would change their times.
    with Progress(console=console, auto_refresh=False, transient=True) as progress:
        task = progress.add_task(spoken("eval.searching"), total=len(judged))
        step = max(1, len(judged) // 100)
        for done, query in enumerate(judged):
            if done % step == 0:
                progress.update(task, completed=done, refresh=True)
            yield query


def _warn_of_unknown(judged: Iterable[JudgedQuery], catalog: ToolCatalog) -> None:
    relevant = {name for query in judged for name in query.relevant}
    unknown = sorted(relevant.difference(catalog))
    if unknown:
        named = ", ".join(map(repr, unknown[:_MAX_NAMED]))
        more = ", …" if len(unknown) > _MAX_NAMED else ""
        say(spoken("eval.unknown", count=len(unknown), names=f"{named}{more}"))
