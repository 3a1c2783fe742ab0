"""The conversation of `tool-search chat`: lines in, turns and commands out."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Iterator
from contextlib import aclosing, suppress
from uuid import uuid4

from tool_search.cli.chat.screen import Screen
from tool_search.cli.inspect import NextRequest, next_request
from tool_search.config.bot import BotConfig, ProviderConfig
from tool_search.errors import ToolSearchError
from tool_search.events import Done, ProviderSwitched
from tool_search.i18n import Language, language_of_locale
from tool_search.runner.runner import ToolSearchRunner

__all__ = ["Chat"]

_PROMPT = "> "
# Who sits at the terminal: what is allowed "always" there holds in later conversations too.
_PERSON = "terminal"
# Not a path: "/etc/hosts is missing" is a message.
_COMMAND = re.compile(r"/(?P<name>\w+)(?:\s+(?P<value>.*))?", re.DOTALL)


class Chat:
    """One conversation with a person, or with a pipe.

    Args:
        runner: The bot.
        config: Its settings.
        screen: Shows what happens.
        loop: Runs the turns, so that reading a line can be interrupted like any other
            reading.

    Attributes:
        failed: Whether a message got no answer.
    """

    def __init__(
        self, runner: ToolSearchRunner, config: BotConfig, screen: Screen, loop: asyncio.Runner
    ) -> None:
        self._runner = runner
        self._config = config
        self._screen = screen
        self._loop = loop
        self._providers = {entry.id: entry for entry in config.providers}
        self._provider: ProviderConfig = config.providers[0]
        # Two chats with one bot, side by side, are two conversations.
        self._key = f"chat-{uuid4().hex[:12]}"
        self.failed = False

    def talk(self) -> None:
        """Answers line after line, until they end or `/quit` does."""
        is_person = sys.stdin.isatty()
        self._screen.language = self._language()
        if is_person:
            self._screen.say(
                "chat.welcome",
                tools=len(self._runner.catalog.active),
                providers=", ".join(self._providers),
            )
        for line in _typed_lines() if is_person else sys.stdin:
            message = line.strip()
            command = _COMMAND.fullmatch(message)
            if command and command["name"] in ("quit", "exit"):
                return
            if command:
                self._obey(command["name"], (command["value"] or "").strip())
            elif message:
                self._answer(message, is_person=is_person)
            self._screen.language = self._language()

    def forget(self) -> None:
        """Erases the conversation; what its searches taught stays."""
        self._loop.run(self._runner.forget(self._key))

    def _answer(self, message: str, *, is_person: bool) -> None:
        try:
            self._loop.run(self._turn(message))
        except ToolSearchError as exc:
            self.failed = True
            self._screen.fail(exc)
        except KeyboardInterrupt:
            # A person stops the answer and goes on; a second Ctrl-C ends the chat.
            if not is_person:
                raise
            self._screen.say("chat.stopped")

    async def _turn(self, message: str) -> None:
        turn = self._runner.run(message, conversation=self._key, user=_PERSON)
        async with aclosing(turn) as events:
            async for event in events:
                self._screen.language = self._language()
                self._screen.show(event)
                if isinstance(event, ProviderSwitched):
                    self._provider = self._providers[event.to_provider]
                elif isinstance(event, Done):
                    self._provider = self._providers[event.provider]

    def _obey(self, name: str, value: str) -> None:
        if name == "use":
            self._use(value)
        elif name == "tools":
            self._screen.show_tools(self._next_request(), self._provider)
        elif name == "reset":
            self._loop.run(self._runner.forget(self._key))
            self._screen.say("chat.reset")
        elif name == "help":
            self._screen.say("chat.help")
        else:
            self._screen.say("chat.unknown_command", command=f"/{name}")

    def _use(self, provider: str) -> None:
        if provider not in self._providers:
            known = ", ".join(self._providers)
            self._screen.say("chat.unknown_provider", provider=repr(provider), providers=known)
            return
        self._runner.use(provider)
        self._provider = self._providers[provider]
        self._screen.say("chat.using", provider=provider)

    def _next_request(self) -> NextRequest:
        session = self._runner.session(self._key)
        return next_request(
            self._runner.catalog,
            self._config,
            self._provider,
            record=session.record() if session and session.has_begun else None,
        )

    def _language(self) -> Language:
        """The settings', or else the conversation's, or else the environment's."""
        configured = self._config.tool_search.language
        if configured != "auto":
            return configured
        session = self._runner.session(self._key)
        return session.language if session and session.has_begun else _environment_language()


def _typed_lines() -> Iterator[str]:
    """What a person types, line by line, with editing where the platform has it."""
    if sys.stdout.isatty():
        with suppress(ImportError):
            import readline  # noqa: F401, PLC0415  # `input` edits lines once it is loaded
    while True:
        try:
            yield input(_PROMPT) if sys.stdout.isatty() else _read_beside_results()
        except EOFError:
            return


def _read_beside_results() -> str:
    """One line, the prompt not among the results, which go to a file or a pipe."""
    sys.stderr.write(_PROMPT)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line


def _environment_language() -> Language:
    names = (os.environ.get(key) for key in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return language_of_locale(next(filter(None, names), ""))
