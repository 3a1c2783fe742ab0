"""The conversation of `tool-search chat`: lines in, turns and commands out."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from contextlib import aclosing, suppress
from pathlib import Path
from uuid import uuid4

from tool_search.cli.chat.screen import Screen
from tool_search.cli.inspect import NextRequest, next_request
from tool_search.cli.terminal.language import spoken_language
from tool_search.config.bot import BotConfig, ProviderConfig
from tool_search.errors import ToolSearchError
from tool_search.events import Done, ProviderSwitched
from tool_search.i18n import Language
from tool_search.runner.runner import ToolSearchRunner

__all__ = ["Chat"]

_PROMPT = "> "
# The user of permissions: "always" at the terminal is valid in later conversations too.
_PERSON = "terminal"
# Not a path: "/etc/hosts is missing" is a message.
_COMMAND = re.compile(r"/(?P<name>\w+)(?:\s+(?P<value>.*))?", re.DOTALL)


class Chat:
    """One conversation with a person or a pipe.

    Args:
        runner: The bot.
        config: Its settings.
        screen: The screen of the chat.
        loop: The event loop of the turns; lines are read outside it, so that Ctrl-C
            interrupts the reading.
        store: The file of what is kept; None: nothing is.

    Attributes:
        failed: True if a message got no answer.
    """

    def __init__(
        self,
        runner: ToolSearchRunner,
        config: BotConfig,
        screen: Screen,
        loop: asyncio.Runner,
        *,
        store: Path | None = None,
    ) -> None:
        self._store = store
        self._runner = runner
        self._config = config
        self._screen = screen
        self._loop = loop
        self._providers = {entry.id: entry for entry in config.providers}
        self._provider: ProviderConfig = config.providers[0]
        # Two chats with one bot at the same time are two conversations.
        self._key = f"chat-{uuid4().hex[:12]}"
        self.failed = False

    def talk(self) -> None:
        """Answer line after line, until the input or `/quit` ends it."""
        is_person = sys.stdin.isatty()
        self._screen.language = self._language()
        if is_person:
            self._screen.say(
                "chat.welcome",
                tools=len(self._runner.catalog.active),
                providers=", ".join(self._providers),
            )
            if self._store is not None:
                self._screen.say("chat.kept", file=self._store)
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
        """Erase the conversation, but not what its searches taught."""
        self._loop.run(self._runner.forget(self._key))

    def _answer(self, message: str, *, is_person: bool) -> None:
        try:
            self._loop.run(self._turn(message))
        except ToolSearchError as exc:
            self.failed = True
            self._screen.fail(exc)
        except KeyboardInterrupt:
            # The first Ctrl-C stops the answer, the second one the chat.
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
        """Return the language of the settings, the conversation or the environment."""
        configured = self._config.tool_search.language
        if configured != "auto":
            return configured
        session = self._runner.session(self._key)
        return session.language if session and session.has_begun else spoken_language()


def _typed_lines() -> Iterator[str]:
    """Yield typed lines, with editing if the platform supports it."""
    if sys.stdout.isatty():
        with suppress(ImportError):
            import readline  # noqa: F401, PLC0415  # `input` edits lines once it is loaded
    while True:
        try:
            yield input(_PROMPT) if sys.stdout.isatty() else _read_beside_results()
        except EOFError:
            return


def _read_beside_results() -> str:
    """Read one line; the prompt goes to standard error, apart from the results."""
    sys.stderr.write(_PROMPT)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line
