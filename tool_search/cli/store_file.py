"""The store that a command reads or erases."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tool_search.config.bot import load_config
from tool_search.config.stores import StoreSettings
from tool_search.errors import ConfigurationError

__all__ = ["ConfigOption", "StoreOption", "store_file"]

ConfigOption = Annotated[Path | None, typer.Option("--config", help="The bot: a YAML file.")]
StoreOption = Annotated[Path | None, typer.Option("--store", help="The store itself: a file.")]


def store_file(config: Path | None, store: Path | None) -> Path:
    """The file that is meant: a bot's, a named one, or what a bot without a file has.

    Raises:
        ConfigurationError: Both are named, or the bot keeps nothing.
    """
    if config is not None and store is not None:
        raise ConfigurationError("give one of --config and --store")
    if store is not None:
        return store
    if config is None:
        return StoreSettings().file()
    settings = load_config(config).store
    if settings.type == "memory":
        raise ConfigurationError(
            f"{config}: store.type is 'memory': nothing outlives the bot's process; "
            "set it to sqlite to keep what is learned"
        )
    return settings.file(config)
