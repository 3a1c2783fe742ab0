"""Results of earlier tries of a turn, so that a retried turn repeats no call."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Protocol

from tool_search.execution.results import ExecutionResult
from tool_search.values.json import compact_json

__all__ = ["NO_TURN", "RememberedResults", "ResultMemory", "TurnCalls"]


class TurnCalls:
    """Keys for the calls of one turn; a retry of the turn has the same keys.

    Args:
        conversation: The conversation's key.
        key: The turn's idempotency key; None: results are not remembered.
    """

    def __init__(self, conversation: str = "", key: str | None = None) -> None:
        self._turn = None if key is None else [conversation, key]
        self._counts: dict[str, int] = {}

    @property
    def has_key(self) -> bool:
        """True if the calls of the turn have keys."""
        return self._turn is not None

    def key(
        self, tool: str, arguments: Mapping[str, Any], *, user: str | None = None
    ) -> str | None:
        """Return 32 hexadecimal digits for the turn's next call with these arguments.

        The order of arguments does not matter. Equal calls get different keys: a model may
        want to roll the dice twice.

        Args:
            tool: The canonical name.
            arguments: The call's arguments.
            user: The user, so that no user gets a result of another.
        """
        if self._turn is None:
            return None
        written = compact_json([*self._turn, user, tool, _sort_keys(arguments)])
        self._counts[written] = self._counts.get(written, 0) + 1
        numbered = f"{self._counts[written]}:{written}"
        return hashlib.sha256(numbered.encode("utf-8", "replace")).hexdigest()[:32]


def _sort_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sort_keys(value[key]) for key in sorted(value)}
    return [_sort_keys(item) for item in value] if isinstance(value, list) else value


NO_TURN = TurnCalls()
"""A turn whose calls have no keys."""


class ResultMemory(Protocol):
    """A memory of results by key."""

    async def get(self, key: str) -> ExecutionResult | None:
        """Return the result of an earlier call, or None."""
        ...

    async def put(self, key: str, result: ExecutionResult) -> None:
        """Remember a result."""
        ...


class RememberedResults:
    """The latest results, in this process's memory.

    Args:
        most: The number of results to keep; the oldest are dropped first.
    """

    def __init__(self, *, most: int = 10_000) -> None:
        self._most = most
        self._results: OrderedDict[str, ExecutionResult] = OrderedDict()

    async def get(self, key: str) -> ExecutionResult | None:
        """Return the result of an earlier call, or None."""
        return self._results.get(key)

    async def put(self, key: str, result: ExecutionResult) -> None:
        """Remember a result."""
        self._results[key] = result
        if len(self._results) > self._most:
            self._results.popitem(last=False)
