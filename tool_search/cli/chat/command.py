"""`tool-search chat`: a conversation with your own bot in the terminal."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from tool_search.bot import open_bot
from tool_search.cli.chat.asking import AskingPerson
from tool_search.cli.chat.loop import Chat
from tool_search.cli.chat.screen import JsonScreen, Screen, TerminalScreen
from tool_search.cli.exits import FAILED, say
from tool_search.cli.terminal.language import spoken
from tool_search.config.bot import BotConfig
from tool_search.config.loading import load_config
from tool_search.errors import ConfigurationError

__all__ = ["chat_command"]


def chat_command(
    *,
    config: Annotated[Path, typer.Option(help="The bot's YAML file.")] = Path("bot.yaml"),
    stand_in: Annotated[
        bool,
        typer.Option(
            "--stand-in", help="Let the stand-in server play the providers: no key is needed."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object for each event.")
    ] = False,
) -> None:
    """Talk to a bot of your own providers and tools.

    Modules of tools are searched in the folder of the YAML file first. /help lists
    the commands of the chat.

    If the input is not a terminal, each line is a message and only answers are
    printed; the status is 1 if an answer is missing. Tools that need permission are
    not called then, because nobody can be asked.
    """
    settings = _settings(config)
    sys.path.insert(0, str(config.resolve().parent))
    screen: Screen = JsonScreen() if as_json else TerminalScreen()
    with asyncio.Runner() as loop:
        stack = AsyncExitStack()
        try:
            if stand_in:
                settings = _played(settings, stack)
            ask = AskingPerson(screen) if sys.stdin.isatty() else None
            bot = open_bot(settings, source=config, ask_user=ask)
            loop.run(stack.enter_async_context(bot))
            kept = settings.store.file(config) if settings.store.type == "sqlite" else None
            chat = Chat(bot.runner, settings, screen, loop, store=kept)
            try:
                chat.talk()
            finally:
                chat.forget()
        finally:
            loop.run(stack.aclose())
    if chat.failed and not sys.stdin.isatty():
        raise typer.Exit(FAILED)


def _settings(config: Path) -> BotConfig:
    if not config.exists():
        raise ConfigurationError(
            f"{config} does not exist; name the bot's file with --config, or write one with "
            "`tool-search init`"
        )
    return load_config(config)


def _played(settings: BotConfig, stack: AsyncExitStack) -> BotConfig:
    """Return the bot on a stand-in server that runs as long as the stack."""
    # Imported here: the testing package is large, and few chats need it.
    stand_in = import_module("tool_search.cli.start.stand_in")
    server = stack.enter_context(stand_in.stand_in())
    say(spoken("stand_in.note"))
    played: BotConfig = stand_in.on_stand_in(settings, server)
    return played
