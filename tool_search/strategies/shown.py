"""A history as the requests of one strategy show it, written once and then extended."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tool_search.messages import Message

__all__ = ["Show", "ShownHistory"]

Show = Callable[[Sequence[Message], int], Message]
"""Shows the message of a history at an index; called once for each message, in order."""


class ShownHistory:
    """The messages of a history as requests show them.

    Args:
        show: Shows one message; it may look at the run of results that the message is in,
            and may keep what it has shown, but depends on nothing else.
        before: The same history as it was shown otherwise. Messages that come out equal are
            taken from it: whoever has written them recognizes them.

    Attributes:
        shown: The messages as they were shown last.
    """

    def __init__(self, show: Show, before: ShownHistory | None = None) -> None:
        self._show = show
        self._before = before.shown if before is not None else ()
        self._history: tuple[Message, ...] = ()
        self._messages: list[Message] = []
        self.shown: tuple[Message, ...] = ()

    def precedes(self, history: tuple[Message, ...]) -> bool:
        """True if a history goes on from what was shown."""
        count = len(self._history)
        # Equal tuples are compared by identity first, which takes no time.
        if history[:count] != self._history:
            return False
        # Results of one reply are shown together.
        is_open = count > 0 and self._history[-1].role == "tool"
        return not (is_open and len(history) > count and history[count].role == "tool")

    def through(self, history: tuple[Message, ...]) -> tuple[Message, ...]:
        """Show a history that goes on from what was shown."""
        for index in range(len(self._history), len(history)):
            shown = self._show(history, index)
            if shown is not history[index] and index < len(self._before):
                known = self._before[index]
                shown = known if known == shown else shown
            self._messages.append(shown)
        if len(self.shown) != len(self._messages):
            self.shown = tuple(self._messages)
        self._history, self._before = history, ()
        return self.shown
