"""The shipped server in place of providers: `chat --stand-in` and `serve-stand-in`."""

from __future__ import annotations

import threading
from typing import Annotated

import typer

from tool_search.cli.exits import say
from tool_search.cli.terminal.language import spoken, wrong_use
from tool_search.config.bot import BotConfig
from tool_search.providers.profile_choice import profile_of
from tool_search.testing import KeywordModel, StandInServer

__all__ = ["on_stand_in", "serve_stand_in_command", "stand_in"]

_DEFAULT_PORT = 8899
_MAX_PORT = 65_535


def stand_in(port: int = 0) -> StandInServer:
    """Return a server, not yet started, whose model matches words."""
    return StandInServer(model=KeywordModel(), port=port)


def on_stand_in(config: BotConfig, server: StandInServer) -> BotConfig:
    """Return a bot whose providers are all played by a running server.

    Each keeps the strategy that it has at its own endpoint.
    """
    providers = []
    for entry in config.providers:
        address = server.openai_base_url
        if entry.type == "anthropic":
            address = server.anthropic_base_url
        given = {
            "base_url": address,
            "api_key_env": None,
            "strategy": profile_of(entry, config.profiles).strategy,
        }
        providers.append(entry.model_copy(update=given))
    return config.model_copy(update={"providers": tuple(providers)})


def serve_stand_in_command(
    *,
    port: Annotated[
        int, typer.Option(min=0, max=_MAX_PORT, help="The port; 0: any free one.")
    ] = _DEFAULT_PORT,
) -> None:
    """Run the stand-in provider server for other programs, until Ctrl-C.

    It speaks Anthropic Messages, OpenAI Chat Completions and OpenAI Responses on loopback,
    refuses what the services refuse, takes any key, and answers by matching words.
    """
    server = stand_in(port)
    try:
        server.start()
    except OSError as exc:
        raise wrong_use("use.port", port=port, cause=exc.strerror) from exc
    try:
        typer.echo(f"ANTHROPIC_BASE_URL={server.anthropic_base_url}")
        typer.echo(f"OPENAI_BASE_URL={server.openai_base_url}")
        say(spoken("stand_in.serving"))
        threading.Event().wait()
    finally:
        server.close()
