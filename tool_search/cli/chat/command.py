"""`tool-search chat`: a conversation in the terminal with a bot of one's own."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import typer

from tool_search.bot import open_runner
from tool_search.cli.chat.asking import AskingPerson
from tool_search.cli.chat.loop import Chat
from tool_search.cli.chat.screen import JsonScreen, Screen, TerminalScreen
from tool_search.cli.exits import FAILED
from tool_search.config.loading import load_config

__all__ = ["chat_command"]


def chat_command(
    *,
    config: Annotated[Path, typer.Option(help="The bot: a YAML file.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object an event.")] = False,
) -> None:
    """Talk to a bot of your own providers and tools.

    Where the input is no terminal, each line of it is a message, only answers are
    results, and the status is 1 if one of them never came; nobody is there to be
    asked for permission, so what needs it is not called. Modules of tools are looked
    for beside the YAML file first. /help lists the commands.
    """
    settings = load_config(config)
    sys.path.insert(0, str(config.resolve().parent))
    screen: Screen = JsonScreen() if as_json else TerminalScreen()
    with asyncio.Runner() as loop:
        stack = AsyncExitStack()
        try:
            ask = AskingPerson(screen) if sys.stdin.isatty() else None
            bot = open_runner(settings, source=config, ask=ask)
            runner = loop.run(stack.enter_async_context(bot))
            chat = Chat(runner, settings, screen, loop)
            try:
                chat.talk()
            finally:
                chat.forget()
        finally:
            loop.run(stack.aclose())
    if chat.failed and not sys.stdin.isatty():
        raise typer.Exit(FAILED)
