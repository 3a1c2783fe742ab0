"""The conversations that a runner has in memory, one turn of each at a time."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice

from tool_search.core.conversation.record import KeyedTurn
from tool_search.providers.prompt_cache import PrefixMonitor
from tool_search.runner.session.session import ToolSearchSession
from tool_search.runner.turn_watch import TurnWatch
from tool_search.stores import ConversationKey
from tool_search.stores.keeping import KeptConversation

__all__ = ["OpenConversation", "OpenConversations"]

_MAX_SESSIONS = 1024
_MAX_WARM_SESSIONS = 256  # a conversation's last request is as large as its history
# A consumer that takes no event for so long is not waited for.
_IDLE_S = 1.0


@dataclass(slots=True)
class OpenConversation:
    """The state of one conversation between its turns.

    Attributes:
        key: The conversation's key in the store.
        lock: Held by the turn that goes on.
        session: Its state; None: it was not read from the store yet.
        last: The `id` of the provider that was asked last.
        prefixes: The monitor of the last request to each provider.
        kept: The store's side of it.
        users: The number of turns that go on or wait.
        watch: The watch of the turn that goes on.
        is_forgotten: True once the conversation is erased.
        turns: The latest turns that have an idempotency key, oldest first.
    """

    key: ConversationKey
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    session: ToolSearchSession | None = None
    last: str | None = None
    prefixes: PrefixMonitor = field(default_factory=PrefixMonitor)
    kept: KeptConversation | None = None
    users: int = 0
    watch: TurnWatch | None = None
    is_forgotten: bool = False
    turns: tuple[KeyedTurn, ...] = ()

    def keyed_turn(self, key: str) -> KeyedTurn | None:
        """Return the turn that has a key, or None."""
        return next((turn for turn in self.turns if turn.key == key), None)

    def note(self, turn: KeyedTurn) -> None:
        """Keep a turn as the newest, in place of an earlier state of it."""
        self.turns = (*(each for each in self.turns if each.key != turn.key), turn)

    async def wait_for_turn(self) -> bool:
        """Wait until no turn goes on; return False if its consumer takes no events."""
        if not self.lock.locked():
            return True
        acquiring = asyncio.ensure_future(self.lock.acquire())
        try:
            while not (await asyncio.wait([acquiring], timeout=_IDLE_S))[0]:
                if self.watch is not None and self.watch.idle_s >= _IDLE_S:
                    return False
        finally:
            acquiring.cancel()
            await asyncio.wait([acquiring])
            if not acquiring.cancelled():
                self.lock.release()
        return True


class OpenConversations:
    """The conversations in memory; those that were not used for longest make room."""

    def __init__(self) -> None:
        self._by_key: OrderedDict[ConversationKey, OpenConversation] = OrderedDict()

    def get(self, key: ConversationKey) -> OpenConversation | None:
        """Return a conversation if it is in memory."""
        return self._by_key.get(key)

    def remove(self, known: OpenConversation) -> None:
        """Drop a conversation, unless another one has its key already."""
        if self._by_key.get(known.key) is known:
            del self._by_key[known.key]

    @asynccontextmanager
    async def alone(self, key: ConversationKey) -> AsyncGenerator[OpenConversation, None]:
        """Give the conversation once no other turn of it goes on."""
        while True:
            known = self._by_key.setdefault(key, OpenConversation(key))
            self._by_key.move_to_end(key)
            known.users += 1
            try:
                async with known.lock:
                    # It may have been erased during the wait: then another one has its key.
                    if not known.is_forgotten:
                        yield known
                        return
            finally:
                known.users -= 1
                self._make_room()

    def _make_room(self) -> None:
        """Drop conversations that are in the store, the bytes of their requests first."""
        cold = len(self._by_key) - _MAX_WARM_SESSIONS
        if cold > 0:
            known = next(islice(self._by_key.values(), cold - 1, None))
            if known.session is not None and not known.users:
                known.session.forget_work()
        spare = len(self._by_key) - _MAX_SESSIONS
        if spare > 0:
            idle = (key for key, known in self._by_key.items() if not known.users)
            for key in list(islice(idle, spare)):
                del self._by_key[key]
