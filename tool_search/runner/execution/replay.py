"""The calls of a turn that has an idempotency key: the key of each, and which have begun."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Protocol

from tool_search.core.conversation.record import BegunCall, KeyedTurn
from tool_search.core.values.json import json_bytes

__all__ = ["NO_TURN", "TurnCalls", "TurnKeeper"]


class TurnKeeper(Protocol):
    """A keeper of a turn that goes on."""

    async def refresh(self) -> None:
        """Take the state of the turn, while no call changes it."""
        ...

    async def save(self) -> None:
        """Write that state, with the calls that have begun."""
        ...


class TurnCalls:
    """The calls of one turn, each with a key of its own if the turn has one.

    Args:
        conversation: The conversation's key.
        key: The turn's idempotency key; None: its calls have none.
        user: The user, to whom the key belongs.

    Attributes:
        turn: The digest of user and key; empty without a key.
        begun: The calls that have begun, by id.
        keeper: Keeps them, before a tool is started; None: nothing does.
    """

    def __init__(
        self, conversation: str = "", key: str | None = None, *, user: str | None = None
    ) -> None:
        self.turn = "" if key is None else _digest([user, key])
        self.begun: dict[str, BegunCall] = {}
        self.keeper: TurnKeeper | None = None
        self._conversation = conversation
        self._used: set[str] = set()

    def resume(self, turn: KeyedTurn) -> None:
        """Go on with the calls of an earlier try.

        A call that may have run, and is made again, has its key again: its service can tell.
        """
        self.begun = dict(turn.calls)
        self._used = {call.key for call in turn.calls.values() if call.has_ended}

    async def begin(
        self, call_id: str, tool: str, arguments: Mapping[str, Any], *, is_nested: bool = False
    ) -> str:
        """Note that a tool is about to be started; return the call's key.

        The order of arguments does not matter. Equal calls get different keys: a model may
        want to roll the dice twice.

        Args:
            call_id: The id of the call.
            tool: The canonical name.
            arguments: The call's arguments.
            is_nested: True for a call inside another one, whose intent was saved.
        """
        call = [self._conversation, self.turn, tool, _sort_keys(arguments)]
        number, key = 1, _digest([1, *call])
        while key in self._used:
            number += 1
            key = _digest([number, *call])
        self._used.add(key)
        self.begun[call_id] = BegunCall(tool, key)
        if self.keeper is not None and not is_nested:
            await self.keeper.save()
        return key

    async def refresh(self) -> None:
        """Take the state of a turn that has a key, before its calls begin."""
        if self.turn and self.keeper is not None:
            await self.keeper.refresh()

    async def end(self, call_id: str, *, is_error: bool) -> None:
        """Save the result of a call, before anybody sees it; after an error it may have run."""
        if not self.turn:
            return
        for each, call in () if is_error else self.begun.items():
            if each == call_id or each.startswith(f"{call_id}."):
                self.begun[each] = call._replace(has_ended=True)
        if self.keeper is not None:
            await self.keeper.refresh()
            await self.keeper.save()


def _digest(value: list[Any]) -> str:
    written = json_bytes(value)
    return hashlib.sha256(written).hexdigest()[:32]


def _sort_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sort_keys(value[key]) for key in sorted(value)}
    return [_sort_keys(item) for item in value] if isinstance(value, list) else value


NO_TURN = TurnCalls()
"""A turn whose calls have no keys."""
