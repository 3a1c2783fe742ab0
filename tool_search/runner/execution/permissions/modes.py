"""The permission modes of conversations, kept in the bot's store."""

from __future__ import annotations

import asyncio
import logging
from typing import cast, get_args

from tool_search.config.permissions import PermissionMode
from tool_search.stores.base import PermissionModeStore
from tool_search.stores.keeping import within_patience

__all__ = ["ConversationModes"]

_KNOWN = frozenset(get_args(PermissionMode))
_log = logging.getLogger(__name__)


class ConversationModes:
    """The permission modes by conversation.

    Args:
        default: The mode of every other conversation.

    Attributes:
        changes: The number of changes so far.
    """

    def __init__(self, default: PermissionMode) -> None:
        self.default = default
        self.changes = 0
        self._store: PermissionModeStore | None = None
        self._modes: dict[str, PermissionMode] = {}
        self._unwritten: dict[str, PermissionMode] = {}
        self._writing: set[asyncio.Task[None]] = set()

    def __bool__(self) -> bool:
        return bool(self._modes)

    def __getitem__(self, conversation: str) -> PermissionMode:
        return self._modes.get(conversation, self.default)

    def keep_in(self, store: object) -> None:
        """Keep modes in a bot's store from now on, unless there is a store already.

        Args:
            store: The bot's store; ignored if it does not support modes.
        """
        if self._store is None and isinstance(store, PermissionModeStore):
            self._store = store

    def use(self, conversation: str, mode: PermissionMode) -> None:
        """Set a conversation's mode, and write it in the background."""
        self._set_mode(conversation, mode)
        self._unwritten[conversation] = mode
        if self._store is None:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # without an event loop, it is written before the next turn
        task = loop.create_task(self.write(), name="permission modes")
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def read(self, conversation: str) -> None:
        """Read a conversation's mode from the store; another process may have set it."""
        await self.write()
        if self._store is None or conversation in self._unwritten:
            return
        try:
            kept = await within_patience(self._store.load_permission_mode(conversation))
        except Exception as exc:  # noqa: BLE001  # stores are pluggable: none may end a turn
            _log.warning(
                "permission_mode_unavailable: %r stays in the mode %r: %s",
                conversation, self[conversation], exc,
            )  # fmt: skip
            return
        if conversation not in self._unwritten:
            self._set_mode(conversation, None if kept is None else _mode_of(kept, conversation))

    async def write(self) -> None:
        """Write modes that the store does not have yet; keep them if it fails."""
        store = self._store
        for conversation, mode in tuple(self._unwritten.items()) if store is not None else ():
            try:
                saving = cast("PermissionModeStore", store).save_permission_mode
                await within_patience(saving(conversation, mode))
            except Exception as exc:  # noqa: BLE001  # as above
                _log.warning("permission_mode_unavailable: it is written later: %s", exc)
                return
            if self._unwritten.get(conversation) == mode:
                del self._unwritten[conversation]

    def forget(self, conversation: str) -> None:
        """Drop a conversation's mode; the store erases it with the conversation."""
        self._unwritten.pop(conversation, None)
        self._set_mode(conversation, None)

    def _set_mode(self, conversation: str, mode: PermissionMode | None) -> None:
        if self._modes.get(conversation) == mode:
            return
        self.changes += 1
        if mode is None:
            del self._modes[conversation]
        else:
            self._modes[conversation] = mode


def _mode_of(kept: str, conversation: str) -> PermissionMode:
    if kept in _KNOWN:
        return cast("PermissionMode", kept)
    _log.warning(
        "permission_mode_unavailable: %r has the unknown mode %r; it is in the mode 'plan' "
        "until a mode is set",
        conversation, kept,
    )  # fmt: skip
    return "plan"
