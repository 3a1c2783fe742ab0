"""The conversation of `tool-search chat`: lines in, turns and commands out."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from uuid import uuid4

from tool_search.bot import Bot
from tool_search.cli.chat.cost import ConversationCost, ProviderCost
from tool_search.cli.chat.history import LineHistory, typed_lines
from tool_search.cli.chat.prices import Price
from tool_search.cli.chat.screen import Screen
from tool_search.cli.doctor.replay import only_searches
from tool_search.cli.inspect import NextRequest, next_request
from tool_search.cli.terminal.language import named_language, spoken_language
from tool_search.config.bot import BotConfig, ProviderConfig, provider_from_string
from tool_search.errors import ToolSearchError
from tool_search.i18n import Language
from tool_search.providers.profile_choice import profile_of
from tool_search.runner.events import Done, ProviderSwitched
from tool_search.runner.providers import name_providers
from tool_search.stores.record import ConversationRecord

__all__ = ["Chat"]

# The user of permissions: "always" at the terminal is valid in later conversations too.
_PERSON = "terminal"
# Not a path: "/etc/hosts is missing" is a message.
_COMMAND = re.compile(r"/(?P<name>\w+)(?:\s+(?P<value>.*))?", re.DOTALL)


class Chat:
    """One conversation with a person or a pipe.

    Args:
        bot: The open bot.
        config: Its settings.
        screen: The screen of the chat.
        loop: The event loop of the turns; lines are read outside it, so that Ctrl-C
            interrupts the reading.
        stack: Closes what the chat opens.
        store: The file of what is kept; None: nothing is.
        history: The lines that were typed before; None: they are not kept.
        price: The function from a provider to its price.

    Attributes:
        failed: True if a message got no answer.
    """

    def __init__(
        self,
        bot: Bot,
        config: BotConfig,
        screen: Screen,
        loop: asyncio.Runner,
        *,
        stack: AsyncExitStack,
        price: Callable[[ProviderConfig], Price | None],
        store: Path | None = None,
        history: LineHistory | None = None,
    ) -> None:
        self._runner = bot.runner
        self._config = config
        self._screen = screen
        self._loop = loop
        self._stack = stack
        self._price = price
        self._store = store
        self._history = history
        self._providers = {entry.id: entry for entry in config.providers}
        self._provider: ProviderConfig = config.providers[0]
        # Two chats with one bot at the same time are two conversations.
        self._key = f"chat-{uuid4().hex[:12]}"
        self._costs: dict[str, ProviderCost] = {}
        self._searches = 0
        self._commands: Mapping[str, Callable[[str], None]] = {
            "model": self._model,
            "use": self._model,
            "tools": lambda _: self._screen.show_tools(self._next_request(), self._provider),
            "cost": lambda _: self._screen.show_cost(ConversationCost(providers=self._costs)),
            "reset": self._reset,
            "help": lambda _: self._screen.say("chat.help"),
        }
        self.failed = False

    def talk(self) -> None:
        """Answer line after line, until the input or `/quit` ends it."""
        is_person = sys.stdin.isatty()
        self._screen.language = self._language()
        if is_person:
            self._welcome()
        for line in typed_lines(self._history) if is_person else sys.stdin:
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

    def _welcome(self) -> None:
        tools, providers = len(self._runner.catalog.active), ", ".join(self._providers)
        self._screen.say("chat.welcome", tools=tools, providers=providers)
        if self._store is not None:
            self._screen.say("chat.kept", file=self._store)
        if self._history is not None and self._history.is_kept:
            self._screen.say("chat.history", file=self._history.path)

    def _answer(self, message: str, *, is_person: bool) -> None:
        try:
            self._screen.work()
            self._loop.run(self._turn(message))
        except ToolSearchError as exc:
            self.failed = True
            self._screen.fail(exc)
        except KeyboardInterrupt:
            # The first Ctrl-C stops the answer, the second one the chat.
            if not is_person:
                raise
            self._screen.rest()
            self._screen.say("chat.stopped")
        finally:
            self._screen.rest()

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
                    self._add_cost(event)

    def _add_cost(self, turn: Done) -> None:
        """Count a turn; all of it for the provider that ended it."""
        request, record = self._next_request(), self._record()
        provider = self._provider
        cost = self._costs.get(provider.id) or ProviderCost(
            model=provider.model,
            price=self._price(provider),
            has_cache=profile_of(provider, self._config.profiles).cache != "none",
        )
        searches = 0 if record is None else _searching_replies(record)
        self._costs[provider.id] = cost.with_turn(
            requests=turn.steps,
            searches=max(0, searches - self._searches),
            usage=turn.usage,
            shown=request.tokens,
            full=request.full_tokens,
        )
        self._searches = searches

    def _obey(self, name: str, value: str) -> None:
        command = self._commands.get(name)
        if command is None:
            self._screen.say("chat.unknown_command", command=f"/{name}")
        else:
            command(value)

    def _reset(self, _: str) -> None:
        self._loop.run(self._runner.forget(self._key))
        self._costs, self._searches = {}, 0
        self._screen.say("chat.reset")

    def _model(self, wanted: str) -> None:
        """Show the provider and the model, or choose others from the next message on."""
        if not wanted:
            listed = ", ".join(f"{each.id} ({each.model})" for each in self._providers.values())
            self._screen.say(
                "chat.model",
                provider=self._provider.id,
                model=self._provider.model,
                providers=listed,
            )
            return
        if wanted not in self._providers and not self._open_provider(wanted):
            return
        self._runner.use(wanted)
        self._provider = self._providers[wanted]
        self._screen.say("chat.using", provider=wanted)

    def _open_provider(self, wanted: str) -> bool:
        """Add the provider that a string means; say why not, and return False, if it cannot be."""
        known = ", ".join(self._providers)
        if ":" not in wanted:
            self._screen.say("chat.unknown_provider", provider=repr(wanted), providers=known)
            return False
        try:
            entry = provider_from_string(wanted, self._providers.values())
            opened = name_providers(
                {wanted: entry}, configured=self._config.providers, profiles=self._config.profiles
            )
        except ToolSearchError as exc:
            self._screen.say("chat.unusable_provider", cause=exc, providers=known)
            return False
        for provider in opened.built:
            self._loop.run(self._stack.enter_async_context(provider))
        self._runner.add_provider(wanted, opened.by_id[wanted], cooldown_s=entry.cooldown_s)
        self._providers[wanted] = entry.model_copy(update={"id": wanted})
        return True

    def _next_request(self) -> NextRequest:
        return next_request(
            self._runner.catalog, self._config, self._provider, record=self._record()
        )

    def _record(self) -> ConversationRecord | None:
        """Return the conversation; None if it has not begun."""
        session = self._runner.session(self._key)
        return session.record() if session and session.has_begun else None

    def _language(self) -> Language:
        """Return the language of the settings, the person or the conversation."""
        configured = self._config.tool_search.language
        if configured != "auto":
            return configured
        # One message in another language does not change what the person reads.
        if (named := named_language()) is not None:
            return named
        session = self._runner.session(self._key)
        return session.language if session and session.has_begun else spoken_language()


def _searching_replies(record: ConversationRecord) -> int:
    """Return the number of replies that did nothing but search."""
    own = {record.search_tool.name, *record.former_search_names}
    return sum(only_searches(reply, own) for reply in record.history if reply.role == "assistant")
