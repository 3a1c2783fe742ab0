"""Results that a retried turn is given again, so that nothing is done twice."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Protocol

from tool_search.execution.results import ExecutionResult
from tool_search.values.json import compact_json

__all__ = ["NO_TURN", "RememberedResults", "ResultMemory", "TurnCalls"]


class TurnCalls:
    """The calls of one turn, told apart by keys that a retry of the turn has too.

    Args:
        conversation: Where the turn is.
        key: The turn's own; None: the bot gives none, and nothing is remembered.
    """

    def __init__(self, conversation: str = "", key: str | None = None) -> None:
        self._turn = None if key is None else [conversation, key]
        self._made: dict[str, int] = {}

    @property
    def has_key(self) -> bool:
        """Whether its calls have keys."""
        return self._turn is not None

    def key(
        self, tool: str, arguments: Mapping[str, Any], *, user: str | None = None
    ) -> str | None:
        """Return 32 hexadecimal digits for the turn's next call of this kind.

        The order of arguments does not matter. Equal calls have keys of their own: a
        model may mean to roll the dice twice.

        Args:
            tool: What is called.
            arguments: With what.
            user: Who asks: what one user was given is no answer for another.
        """
        if self._turn is None:
            return None
        written = compact_json([*self._turn, user, tool, _sorted(arguments)])
        self._made[written] = self._made.get(written, 0) + 1
        numbered = f"{self._made[written]}:{written}"
        return hashlib.sha256(numbered.encode("utf-8", "replace")).hexdigest()[:32]


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


NO_TURN = TurnCalls()
"""A turn without a key: its calls have none either."""


class ResultMemory(Protocol):
    """Remembers what calls came to."""

    async def get(self, key: str) -> ExecutionResult | None:
        """The result of a call that was made."""
        ...

    async def put(self, key: str, result: ExecutionResult) -> None:
        """Remembers a result."""
        ...


class RememberedResults:
    """The latest results, in this process.

    Args:
        most: How many; the oldest go first.
    """

    def __init__(self, *, most: int = 10_000) -> None:
        self._most = most
        self._results: OrderedDict[str, ExecutionResult] = OrderedDict()

    async def get(self, key: str) -> ExecutionResult | None:
        """The result of a call that was made."""
        return self._results.get(key)

    async def put(self, key: str, result: ExecutionResult) -> None:
        """Remembers a result."""
        self._results[key] = result
        if len(self._results) > self._most:
            self._results.popitem(last=False)
