"""`tool-search chat`: a conversation with your own bot in the terminal."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from tool_search.bot import open_bot
from tool_search.cli.chat.asking import AskingPerson
from tool_search.cli.chat.history import LineHistory, history_file, line_editor
from tool_search.cli.chat.loop import Chat
from tool_search.cli.chat.plain import PlainScreen
from tool_search.cli.chat.prices import Price, known_price
from tool_search.cli.chat.screen import JsonScreen, Screen
from tool_search.cli.chat.terminal import TerminalScreen
from tool_search.cli.exits import FAILED, say
from tool_search.cli.terminal.language import spoken, wrong_use
from tool_search.config.bot import BotConfig, ProviderConfig
from tool_search.config.loading import load_config
from tool_search.config.stores import StoreSettings

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
    settings = _ensure_store(_settings(config), config)
    price = _prices(settings)
    sys.path.insert(0, str(config.resolve().parent))
    screen = _choose_screen(settings, as_json=as_json)
    with _ended_by_signals(), asyncio.Runner() as loop:
        stack = AsyncExitStack()
        try:
            if stand_in:
                settings = _play(settings, stack)
            ask = AskingPerson(screen) if sys.stdin.isatty() else None
            bot = open_bot(settings, source=config, ask_user=ask)
            loop.run(stack.enter_async_context(bot))
            kept = settings.store.file(config) if settings.store.type == "sqlite" else None
            chat = Chat(
                bot, settings, screen, loop,
                stack=stack, price=price, store=kept, history=_history(),
            )  # fmt: skip
            try:
                chat.talk()
            finally:
                chat.forget()
        finally:
            loop.run(stack.aclose())
    if chat.failed and not sys.stdin.isatty():
        raise typer.Exit(FAILED)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """End in order, and erase the conversation, also if the terminal is closed."""
    numbers = [getattr(signal, name) for name in ("SIGHUP", "SIGTERM") if hasattr(signal, name)]
    before = {number: signal.signal(number, _end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _: object) -> None:
    raise SystemExit(128 + number)


def _ensure_store(settings: BotConfig, config: Path) -> BotConfig:
    """Return the settings; with conversations in memory if the usual file cannot be written.

    A file that the settings name is an error of the store instead.
    """
    if settings.store.type != "sqlite" or settings.store.path is not None:
        return settings
    file = settings.store.file(config)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        written = [file.parent, *([file] if file.exists() else [])]
        if all(os.access(path, os.W_OK) for path in written):
            return settings
    except OSError as exc:
        say(spoken("chat.not_kept", file=file, cause=exc.strerror))
    else:
        say(spoken("chat.not_kept", file=file, cause=os.strerror(errno.EACCES)))
    return settings.model_copy(update={"store": StoreSettings(type="memory")})


def _choose_screen(settings: BotConfig, *, as_json: bool) -> Screen:
    if as_json:
        return JsonScreen()
    search_tool = settings.tool_search.search_tool_name
    return TerminalScreen(search_tool) if sys.stdout.isatty() else PlainScreen(search_tool)


def _history() -> LineHistory | None:
    """Return the lines of earlier chats, loaded; None if nobody types."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    history = LineHistory(history_file(), line_editor())
    history.load()
    return history


def _prices(settings: BotConfig) -> Callable[[ProviderConfig], Price | None]:
    """Return the function from a provider to its price, at the addresses of its file."""
    now = datetime.now(UTC)
    prices = {entry.id: known_price(entry, now) for entry in settings.providers}

    def price(entry: ProviderConfig) -> Price | None:
        return prices[entry.id] if entry.id in prices else known_price(entry, now)

    return price


def _settings(config: Path) -> BotConfig:
    if not config.exists():
        raise wrong_use("use.no_bot", config=config)
    return load_config(config)


def _play(settings: BotConfig, stack: AsyncExitStack) -> BotConfig:
    """Return the bot on a stand-in server that runs as long as the stack."""
    # Imported here: the testing package is large, and few chats need it.
    stand_in = import_module("tool_search.cli.start.stand_in")
    server = stack.enter_context(stand_in.stand_in())
    say(spoken("stand_in.note"))
    played: BotConfig = stand_in.on_stand_in(settings, server)
    return played
