"""The lock of a turn in a store that workers share: one worker at a time answers a conversation.

The lock has a lease, so that a dead worker's lock ends. While the store fails, turns go on
without it: a bot that answers twice is better than one that is silent.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from uuid import uuid4

from tool_search.stores import ConversationKey, ConversationStore, TurnLockStore
from tool_search.stores.backlog import within_patience

__all__ = ["turn_locked"]

_LEASE_S = 30.0
_FIRST_PAUSE_S = 0.02
_LAST_PAUSE_S = 0.5
_log = logging.getLogger(__name__)


@asynccontextmanager
async def turn_locked(
    store: ConversationStore, key: ConversationKey, *, lost: Callable[[], None]
) -> AsyncGenerator[None, None]:
    """Hold the lock of a conversation's turns, once no other worker has it.

    Args:
        store: The store; without locks, this does nothing.
        key: The conversation's key.
        lost: Called if another worker has the lock: this one was halted for longer than the
            lease.
    """
    if not isinstance(store, TurnLockStore):
        yield
        return
    holder = uuid4().hex
    if not await _take(store, key, holder):
        yield
        return
    ended = asyncio.Event()
    renewing = asyncio.create_task(_renew(store, key, holder, lost, ended=ended))
    try:
        yield
    finally:
        # A store that loses the cancellation must not keep the lock for ever.
        ended.set()
        renewing.cancel()
        await asyncio.wait([renewing])
        await _release(store, key, holder)


async def _take(store: TurnLockStore, key: ConversationKey, holder: str) -> bool:
    """Wait for the lock; return False if the store fails."""
    pause = _FIRST_PAUSE_S
    try:
        while not await within_patience(store.lock_turn(key, holder=holder, lease_s=_LEASE_S)):
            # Workers that wait should not ask at the same moment.
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311
            pause = min(2 * pause, _LAST_PAUSE_S)
    except Exception as exc:  # noqa: BLE001  # stores are pluggable: none may end a turn
        _log.warning(
            "turn_lock_unavailable: a turn of the conversation %r goes on without a lock: %s",
            key,
            exc,
        )
        return False
    except asyncio.CancelledError:
        # The store may have given the lock.
        await _release(store, key, holder)
        raise
    return True


async def _renew(
    store: TurnLockStore,
    key: ConversationKey,
    holder: str,
    lost: Callable[[], None],
    *,
    ended: asyncio.Event,
) -> None:
    while not ended.is_set():
        await asyncio.sleep(_LEASE_S / 3)
        try:
            has_lock = await within_patience(store.lock_turn(key, holder=holder, lease_s=_LEASE_S))
        except Exception as exc:  # noqa: BLE001  # as above; the next time may succeed
            _log.warning("turn_lock_unavailable: the lock of %r is not renewed: %s", key, exc)
            continue
        if not has_lock:
            _log.warning("turn_lock_lost: another worker answers the conversation %r", key)
            lost()
            return


async def _release(store: TurnLockStore, key: ConversationKey, holder: str) -> None:
    try:
        await within_patience(store.unlock_turn(key, holder=holder))
    except Exception as exc:  # noqa: BLE001  # as above; the lease ends by itself
        _log.warning("turn_lock_unavailable: the lock of %r ends with its lease: %s", key, exc)
