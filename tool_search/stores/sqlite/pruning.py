"""Bounds on the conversations of a SQLite store, applied after saves in its thread."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable

from tool_search.stores.base import ConversationKey
from tool_search.stores.sqlite.conversations import prune
from tool_search.stores.sqlite.file import SQLiteFile

__all__ = ["Pruning"]

_DAY_S = 86_400.0
# A turn reads its conversation before it saves it: a recent read may belong to a running turn.
_IN_USE_S = 3600.0
_EVERY_S = 60.0
# One in this many conversations may exist beyond the bound.
_SLACK = 20
# Other work of the store waits for at most one batch.
_BATCH = 100


class Pruning:
    """Erases conversations beyond a store's bounds, except those in a running turn.

    Args:
        file: The store's file.
        keep_days: Days that a conversation is kept after its last use; None: forever.
        keep_conversations: The number of conversations to keep; None: all.
        clock: Returns the seconds since 1970.
    """

    def __init__(
        self,
        file: SQLiteFile,
        keep_days: float | None,
        keep_conversations: int | None,
        clock: Callable[[], float],
    ) -> None:
        self._file = file
        self._keep_days = keep_days
        self._keep_conversations = keep_conversations
        self._clock = clock
        self._in_use: dict[ConversationKey, float] = {}
        self._saves = 0
        self._next = time.monotonic()

    @property
    def _is_bounded(self) -> bool:
        return self._keep_days is not None or self._keep_conversations is not None

    def used(self, key: ConversationKey) -> None:
        """Note that a turn of the conversation may have begun."""
        if self._is_bounded:
            self._in_use.pop(key, None)
            self._in_use[key] = time.monotonic()

    def saved(self, key: ConversationKey) -> None:
        """Note that a turn has ended; prune from time to time."""
        if not self._is_bounded:
            return
        self._in_use.pop(key, None)
        self._saves += 1
        many = max(1, (self._keep_conversations or _SLACK * _BATCH) // _SLACK)
        now = time.monotonic()
        if self._saves >= many or now >= self._next:
            self._saves, self._next = 0, now + _EVERY_S
            self._in_use = {
                k: began for k, began in self._in_use.items() if began > now - _IN_USE_S
            }
            self._submit(frozenset(self._in_use))

    def _submit(self, in_use: frozenset[ConversationKey]) -> None:
        days, most = self._keep_days, self._keep_conversations

        def work(connection: sqlite3.Connection) -> bool:
            oldest = -1.0 if days is None else self._clock() - days * _DAY_S
            erased = prune(connection, oldest=oldest, most=most, in_use=in_use, batch=_BATCH)
            if erased == _BATCH:
                self._submit(in_use)
            return 0 < erased < _BATCH

        self._file.submit(work)
