"""Thinking that is bound to its prefix: what of it a model may still be sent back.

Some models refuse a thinking block once `tools`, the system text or an earlier message
has changed since it was written (Anthropic, "Extended thinking", prefix binding). So
each request to such a model is compared with the one before: where it does not begin
as that one did, all earlier blocks are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from tool_search.messages import RequestPlan

__all__ = ["BoundThinking", "ThinkingRecord"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingRecord:
    """What is known of the last request to a model with bound thinking.

    Attributes:
        holds_from: Index of the first message whose native blocks were sent.
        messages: How many messages the request had.
        digest: Of its tools, system text and messages; empty: there was none, or
            another kind of model was asked since.
    """

    holds_from: int = 0
    messages: int = 0
    digest: str = ""


class BoundThinking:
    """Keeps the thinking of one conversation valid.

    Args:
        record: As `record` was when the conversation was stored.
    """

    def __init__(self, record: ThinkingRecord | None = None) -> None:
        self.record = record or ThinkingRecord()

    def plan(self, make: Callable[[int], RequestPlan]) -> RequestPlan:
        """A request to a model with bound thinking, without blocks that it would refuse.

        Args:
            make: Gives the request, native blocks left out before an index.
        """
        before = self.record
        holds_from, plan = before.holds_from, make(before.holds_from)
        if _digest(plan, before.messages) != before.digest:
            holds_from, plan = len(plan.messages), make(len(plan.messages))
        count = len(plan.messages)
        self.record = ThinkingRecord(
            holds_from=holds_from, messages=count, digest=_digest(plan, count)
        )
        return plan

    def interrupt(self) -> None:
        """Notes a request to another kind of model: what it writes was bound to nothing."""
        self.record = ThinkingRecord()


def _digest(plan: RequestPlan, count: int) -> str:
    """Of a request's beginning, so many messages included."""
    prefix = repr((plan.tools.fingerprint, plan.system, plan.messages[:count]))
    return hashlib.sha256(prefix.encode("utf-8", "replace")).hexdigest()[:32]
