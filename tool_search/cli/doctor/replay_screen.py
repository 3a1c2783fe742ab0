"""`tool-search replay`: what tool search would have found and saved in kept conversations."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from tool_search.cli.doctor.checks.tools import load_tools
from tool_search.cli.doctor.examined import policy_of
from tool_search.cli.doctor.replay import Prices, Replays, replayed
from tool_search.cli.doctor.replay_plot import replay_svg
from tool_search.cli.exits import result_console, say
from tool_search.cli.files import read_catalog
from tool_search.cli.options import JsonOption, PrefixOption, StoreOption
from tool_search.cli.stores import ChosenStore, choose_store
from tool_search.cli.terminal.language import number, percent, spoken, spoken_language, wrong_use
from tool_search.config.bot import BotConfig
from tool_search.config.loading import load_config
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.profiles import ProviderProfile
from tool_search.core.values.json import encodable
from tool_search.errors import ConfigurationError, UnreadableRecordError
from tool_search.providers.profile_choice import profile_for, profile_of
from tool_search.stores.record import ConversationRecord

__all__ = ["replay_command"]

_DAY_S = 86_400.0
_MAX_ROWS = 20


_ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", help="The bot's YAML file: its tools, store and provider."),
]
_CatalogOption = Annotated[
    Path | None,
    typer.Option("--catalog", help="The file of tools, if the bot has other tools too."),
]
_DaysOption = Annotated[
    float, typer.Option("--days", min=0.01, help="Conversations used in the last days.")
]
_PriceOption = Annotated[
    float,
    typer.Option("--price", min=0.0, help="Dollars for a million input tokens."),
]
_CachedPriceOption = Annotated[
    float | None,
    typer.Option("--cached-price", min=0.0, help="The same from a cache; a tenth if left out."),
]
_PlotOption = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Write a plot to this SVG file.")
]


def replay_command(
    *,
    config: _ConfigOption = None,
    store: StoreOption = None,
    prefix: PrefixOption = None,
    catalog: _CatalogOption = None,
    days: _DaysOption = 7.0,
    price: _PriceOption = 3.0,
    cached_price: _CachedPriceOption = None,
    plot: _PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what tool search would have found, sent and saved in kept conversations.

    Nothing is asked and nothing in the store changes. With `tool_schema_mode: shadow` the bot
    itself keeps what a search would have offered; in other conversations each message of the
    user's is searched for now.
    """
    if config is None and catalog is None:
        raise wrong_use("use.replay_tools")
    bot = load_config(config) if config else BotConfig()
    tools = _tools(config, catalog, bot)
    # With --store, --config has the tools and the provider, and another bot's store is read.
    place = choose_store(None if store is not None else config, store, prefix)
    if place.file is not None and not place.file.is_file():
        raise wrong_use("use.no_store", path=place.name)
    records = asyncio.run(_records(place, time.time() - days * _DAY_S))
    cached = price / 10 if cached_price is None else cached_price
    found = replayed(
        records, tools, _profile(bot), config=bot, prices=Prices(fresh=price, cached=cached)
    )
    if plot is not None:
        _write(plot, replay_svg(found, spoken_language()))
    if as_json:
        content = {**place.to_dict(), "days": days, **found.to_dict()}
        typer.echo(encodable(json.dumps(content, ensure_ascii=False)))
    else:
        _print(found)


def _tools(config: Path | None, catalog: Path | None, bot: BotConfig) -> ToolCatalog:
    """Return the tools of a file, or those of a bot's modules.

    Raises:
        ConfigurationError: A module of tools cannot be imported.
        CatalogError: The file is wrong.
    """
    if catalog is not None:
        return read_catalog(catalog).with_policy(policy_of(bot))
    own = load_tools(bot.tools, Path(str(config)))
    if own.findings:
        raise ConfigurationError(own.findings[0].message("en-US"))
    return ToolCatalog(own.tools, policy=policy_of(bot))


def _profile(bot: BotConfig) -> ProviderProfile:
    if bot.providers:
        return profile_of(bot.providers[0], bot.profiles)
    return profile_for("anthropic", "claude-sonnet-4-6", takes_cheapest=True)


async def _records(place: ChosenStore, since: float) -> dict[str, ConversationRecord]:
    records = {}
    async with place.store as store:
        for key in await store.conversations(since=since):
            try:
                record = await store.load(key)
            except UnreadableRecordError as exc:
                say(spoken("replayed.left_out", conversation=repr(key), cause=exc))
                continue
            if record is not None:
                records[str(key)] = record
    return records


def _write(path: Path, content: str) -> None:
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as exc:
        raise wrong_use("use.plot", path=path, cause=exc.strerror or exc) from exc


def _print(found: Replays) -> None:
    console = result_console()
    table = Table(box=None, pad_edge=False)
    table.add_column(spoken("replayed.conversation"), overflow="fold")
    for key in ("turns", "called", "recall", "full", "search", "saved"):
        table.add_column(spoken(f"replayed.{key}"), justify="right")
    largest = sorted(found.conversations, key=lambda each: (-each.full_tokens, each.key))
    for each in largest[:_MAX_ROWS]:
        table.add_row(
            Text(each.key),
            str(each.turns),
            str(each.called),
            "-" if each.recall is None else percent(each.recall),
            number(each.full_tokens),
            number(each.search_tokens),
            f"${each.saved:.4f}",
        )
    console.print(table)
    if len(largest) > _MAX_ROWS:
        console.print(spoken("replayed.more", count=len(largest) - _MAX_ROWS), style="dim")
    missed = sorted({name for each in found.conversations for name in each.missed})
    if missed:
        console.print(Text(spoken("replayed.missed", names=", ".join(missed))))
    console.print(
        Text(
            spoken(
                "replayed.sum",
                count=len(found.conversations),
                recall="-" if found.recall is None else percent(found.recall),
                full=number(found.total("full_tokens")),
                search=number(found.total("search_tokens")),
                saved=f"${found.total('saved'):.4f}",
            ),
            style="bold",
        )
    )
