"""`tool-search learned`: the evidence of searches, and the kept conversations."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from tool_search.cli.exits import result_console
from tool_search.cli.options import (
    CatalogOrNoneOption,
    ConfigOption,
    JsonOption,
    McpOption,
    PrefixOption,
    StoreOption,
)
from tool_search.cli.servers import read_tools
from tool_search.cli.stores import ChosenStore, choose_store
from tool_search.cli.terminal.language import clauses, spoken
from tool_search.config.loading import load_config
from tool_search.config.search import SearchSettings
from tool_search.config.stores import StoreSettings
from tool_search.core.catalog.tool import Tool
from tool_search.search.discovery.search_tool import clean_description
from tool_search.search.engines.options import EngineOptions
from tool_search.search.learned import Evidence, LearnedQueries
from tool_search.search.learned_maps import moved_most

__all__ = ["learned_command"]

_MOST_MOVED = 10


def learned_command(
    *,
    config: ConfigOption = None,
    store: StoreOption = None,
    prefix: PrefixOption = None,
    tool: Annotated[
        str | None, typer.Option(metavar="NAME", help="Print only the words that found this tool.")
    ] = None,
    catalog: CatalogOrNoneOption = None,
    mcp: McpOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the words that led to each tool, and how strongly.

    Of a request only these words are kept, sorted, with salted hashes of the user and the
    conversation. Sources are the users who taught the words. With the tools, from a file or
    from MCP servers, and `learning.vectors`: the tools that a map of meaning moves most.
    """
    place = choose_store(config, store, prefix)
    entries, conversations = ((), ()) if place.is_missing else asyncio.run(_load(place))
    now = time.time()
    shown = sorted(
        (entry for entry in entries if tool in (None, entry.tool)),
        key=lambda entry: (entry.tool, -entry.strength_at(now), entry.words),
    )
    moved: dict[str, float] | None = None
    if catalog is not None or mcp is not None:
        moved = _moved(read_tools(catalog, mcp).active, config, entries, now)
    if as_json:
        content = {
            **place.to_dict(),
            **({} if moved is None else {"moved": _moved_objects(moved)}),
            "evidence": [_entry_object(entry, now) for entry in shown],
            "conversations": list(conversations),
        }
        typer.echo(json.dumps(content, ensure_ascii=False))
    else:
        _print_table(shown, conversations, place, now)
        if moved is not None:
            said = ", ".join(f"{clean_description(t)} {c:+.2f}" for t, c in _first(moved))
            line = spoken("learned.moved", tools=said) if said else spoken("learned.no_map")
            result_console().print(Text(line, style="dim"))


def _moved(
    tools: Sequence[Tool], config: Path | None, entries: Iterable[Evidence], now: float
) -> dict[str, float]:
    """Return the change of each tool's similarity to the queries that led to it."""
    from tool_search.search.engines import semantic  # noqa: PLC0415 - needs numpy

    settings = SearchSettings() if config is None else load_config(config).tool_search.search
    engine = semantic.build(tools, EngineOptions(settings=settings))
    return moved_most(
        LearnedQueries(entries), embedder=engine.embedder, catalog=engine.catalog, now=now
    )


def _first(moved: dict[str, float]) -> list[tuple[str, float]]:
    return list(moved.items())[:_MOST_MOVED]


def _moved_objects(moved: dict[str, float]) -> list[dict[str, Any]]:
    return [{"tool": name, "change": round(change, 4)} for name, change in moved.items()]


async def _load(place: ChosenStore) -> tuple[tuple[Evidence, ...], tuple[str, ...]]:
    async with place.store as store:
        return (await store.load_evidence()).entries, await store.conversations()


def _entry_object(entry: Evidence, now: float) -> dict[str, Any]:
    hashes = {"source": entry.source, "conversation": entry.conversation}
    return {
        "tool": entry.tool,
        "words": list(entry.words),
        "strength": round(entry.strength_at(now), 3),
        "at": _to_datetime(entry.at).isoformat(),
        **{name: value for name, value in hashes.items() if value},
    }


def _print_table(
    entries: Sequence[Evidence], conversations: Sequence[str], place: ChosenStore, now: float
) -> None:
    console = result_console()
    if entries:
        table = Table(box=None, pad_edge=False)
        table.add_column(spoken("learned.tool"), overflow="fold")
        table.add_column(spoken("learned.words"), overflow="fold")
        table.add_column(spoken("learned.strength"), justify="right")
        has_sources = any(entry.source for entry in entries)
        if has_sources:
            table.add_column(spoken("learned.sources"), justify="right")
        table.add_column(spoken("learned.last"), no_wrap=True)
        for same in _by_words(entries):
            tool, words = same[0].tool, same[0].words
            strength = f"{sum(entry.strength_at(now) for entry in same):.2f}"
            last = f"{_to_datetime(max(entry.at for entry in same)):%Y-%m-%d}"
            # As Text, because names and words must not be read as markup.
            sources = (str(len(same)),) if has_sources else ()
            cells = (clean_description(tool), _readable(words), strength, *sources, last)
            table.add_row(*map(Text, cells))
        console.print(table)
    tools = len({entry.tool for entry in entries})
    learned = spoken("learned.nothing")
    if entries:
        learned = spoken("learned.entries", entries=len(entries), tools=tools)
    kept = spoken("learned.conversations", count=len(conversations))
    console.print(Text(clauses(learned, kept, place.name), style="dim"))
    others = [] if place.file is None else [str(each) for each in _other_stores(place.file)]
    if others:
        console.print(Text(spoken("learned.others", files=", ".join(others)), style="dim"))


def _other_stores(path: Path) -> list[Path]:
    """Return the other stores in the folder of the default one."""
    folder = StoreSettings().file().parent
    try:
        files = sorted(folder.glob("*.db"))
    except OSError:
        # The folder of another user: nothing in it is ours.
        return []
    return [file for file in files if file != path]


def _by_words(entries: Iterable[Evidence]) -> list[list[Evidence]]:
    """Return the entries of all sources with the same tool and words together, in order."""
    groups: dict[tuple[str, tuple[str, ...]], list[Evidence]] = {}
    for entry in entries:
        groups.setdefault((entry.tool, entry.words), []).append(entry)
    return list(groups.values())


def _readable(words: Iterable[str]) -> str:
    """Return the words without single characters that pairs of Chinese repeat."""
    listed = list(words)
    paired = {char for word in listed if len(word) == 2 and not word.isascii() for char in word}
    return clean_description(" ".join(word for word in listed if word not in paired))


def _to_datetime(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
