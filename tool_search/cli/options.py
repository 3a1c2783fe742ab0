"""Options that several commands share, and the choice of one value from a list."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from tool_search.cli.terminal.language import spoken, wrong_use
from tool_search.search.build import ENGINES, PRESETS

__all__ = [
    "CatalogOption",
    "CatalogOrNoneOption",
    "ConfigOption",
    "EngineOption",
    "JsonOption",
    "McpOption",
    "PrefixOption",
    "PresetOption",
    "StoreOption",
    "chosen",
    "known_spelling",
]

_CATALOG_HELP = "The file of tools: JSON or JSON Lines, in any known format; - for standard input."
CatalogOption = Annotated[
    Path,
    typer.Option("--catalog", help=_CATALOG_HELP),
]
CatalogOrNoneOption = Annotated[
    Path | None,
    typer.Option("--catalog", help=_CATALOG_HELP),
]
McpOption = Annotated[
    str | None,
    typer.Option(
        "--mcp",
        help="The file with `mcpServers`, or the address of a server: their tools instead of "
        "--catalog.",
        metavar="FILE|URL",
    ),
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="The bot's YAML file, which names the store.")
]
EngineOption = Annotated[
    str | None,
    typer.Option("--engine", help=f"The engine: {', '.join(ENGINES)}; bm25 if left out."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
PresetOption = Annotated[
    str | None,
    typer.Option("--preset", help=f"The ranking of another system: {', '.join(PRESETS)}."),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="FILE|URL",
        help="The store itself: its SQLite file, or the address of Redis.",
    ),
]
PrefixOption = Annotated[
    str | None,
    typer.Option("--prefix", help="The prefix of the keys, if --store is Redis: tool-search."),
]


def chosen(option: str, value: str, allowed: Iterable[str]) -> str:
    """Return the allowed value that is meant; `-` and `_` are the same, as is the case.

    Raises:
        ConfigurationError: The value is not allowed; the message lists those that are.
    """
    names = tuple(allowed)
    found = known_spelling(value, names)
    if found in names:
        return found
    near = get_close_matches(found, names, n=1)
    hint = spoken("use.near", name=repr(near[0])) if near else ""
    listed = ", ".join(names) + hint
    raise wrong_use("use.value", option=option, value=repr(value), names=listed)


def known_spelling(value: str, names: Iterable[str]) -> str:
    """Return the name that differs from a value only in case, `-` or `_`; else the value."""
    return next((name for name in names if _plain(name) == _plain(value)), value)


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_")
