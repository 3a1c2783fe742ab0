"""Thinking that is bound to its prefix, and the part of it that may be sent back.

Some models refuse a thinking block once `tools`, the system text or an earlier message
has changed since it was written (Anthropic, "Extended thinking", prefix binding). So
each request to such a model is compared with the one before: if it does not begin
as that one did, all earlier blocks are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from tool_search.core.messages import Message, RequestPlan

__all__ = ["PrefixBoundThinking", "ThinkingRecord"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingRecord:
    """The last request to a model with bound thinking.

    Attributes:
        holds_from: The index of the first message whose native blocks were sent.
        messages: The number of messages in the request.
        digest: The digest of its tools, system text and messages; empty: there was none, or
            another kind of model was asked since.
    """

    holds_from: int = 0
    messages: int = 0
    digest: str = ""


class PrefixBoundThinking:
    """The thinking of one conversation that is still valid.

    Args:
        record: The value of `record` when the conversation was stored.
    """

    def __init__(self, record: ThinkingRecord | None = None) -> None:
        self.record = record or ThinkingRecord()
        self._prefix = _PrefixDigest()

    def plan(self, make: Callable[[int], RequestPlan]) -> RequestPlan:
        """Return a request to a model with bound thinking, without blocks that it would refuse.

        Args:
            make: Returns the request, with native blocks left out before an index.
        """
        before = self.record
        holds_from, plan = before.holds_from, make(before.holds_from)
        if self._prefix.of(plan, before.messages) != before.digest:
            holds_from, plan = len(plan.messages), make(len(plan.messages))
        count = len(plan.messages)
        self.record = ThinkingRecord(
            holds_from=holds_from, messages=count, digest=self._prefix.of(plan, count)
        )
        return plan

    def cut_back(self, removed: int) -> None:
        """Follow a history that lost its last messages, this many of the last request."""
        count = self.record.messages - removed
        digest = self._prefix.again(count) if count > 0 else ""
        if not digest:
            self.interrupt()
        elif removed > 0:
            holds_from = min(count, self.record.holds_from)
            self.record = ThinkingRecord(holds_from=holds_from, messages=count, digest=digest)

    def interrupt(self) -> None:
        """Record a request to another kind of model, whose thinking is bound to nothing."""
        self.record = ThinkingRecord()


class _PrefixDigest:
    """The digest of a request's beginning; continues from the last one."""

    def __init__(self) -> None:
        self._head: tuple[str, str] | None = None
        self._messages: tuple[Message, ...] = ()
        self._hash = hashlib.sha256()

    def of(self, plan: RequestPlan, count: int) -> str:
        """Return the digest of a request's tools, system text and first messages."""
        head, messages = (plan.tools.fingerprint, plan.system), plan.messages[:count]
        known = len(self._messages)
        # Equal tuples are compared by identity first, which takes no time.
        if head != self._head or messages[:known] != self._messages:
            self._head, known = head, 0
            self._hash = hashlib.sha256(repr(head).encode("utf-8", "replace"))
        for message in messages[known:]:
            self._hash.update(repr(message).encode("utf-8", "replace"))
        self._messages = messages
        return self._hash.hexdigest()[:32]

    def again(self, count: int) -> str:
        """Return the digest of fewer messages; empty if they are not known any more."""
        if self._head is None or count > len(self._messages):
            return ""
        made = hashlib.sha256(repr(self._head).encode("utf-8", "replace"))
        for message in self._messages[:count]:
            made.update(repr(message).encode("utf-8", "replace"))
        return made.hexdigest()[:32]
