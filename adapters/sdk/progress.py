"""The progress of a streamed reply, which its limits are compared with."""

from __future__ import annotations

__all__ = ["ReplyProgress"]


class ReplyProgress:
    """The progress of a reply, as its reader counts it.

    Attributes:
        steps: The events that said something; keep-alives and empty pieces are none.
        size: The characters of the reply that are kept.
        calls: Its calls.
        is_waiting: True as long as silence is normal: nothing was said yet, or the next
            piece is known to take its time (thinking).
        is_over: True once the reply's last event was read.
        event_size: The characters of the event that is read now.
    """

    __slots__ = ("calls", "event_size", "is_over", "is_waiting", "size", "steps")

    def __init__(self) -> None:
        self.steps = 0
        self.size = 0
        self.calls = 0
        self.is_waiting = True
        self.is_over = False
        self.event_size = 0

    def said(self, text: str) -> None:
        """Count a piece of the reply; an empty one says nothing."""
        if text:
            self.steps += 1
            self.size += len(text)

    def kept(self) -> None:
        """Count an event that is kept whole."""
        self.steps += 1
        self.size += self.event_size
