"""A message of a user that a runner answers, and the turn that does."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tool_search.execution import TurnCalls
from tool_search.messages import ContentPart
from tool_search.runner.observed_turn import ObservedTurn
from tool_search.runner.turn import Turn
from tool_search.runner.turn_watch import TurnWatch
from tool_search.stores import ConversationKey

__all__ = ["Question"]


@dataclass(slots=True)
class Question:
    """The arguments of one `run`, and its turn once that has begun.

    Attributes:
        message: Text, or text and pictures.
        conversation: The key of the conversation.
        user: The user's id.
        roles: The user's roles.
        keys: The keys of the calls of a turn that may be retried.
        watch: The watch of the turn's time.
        observed: What observes the turn.
        turn: The turn; None: it has not begun.
    """

    message: str | Sequence[ContentPart]
    conversation: ConversationKey
    user: str | None
    roles: Collection[str]
    keys: TurnCalls
    watch: TurnWatch
    observed: ObservedTurn
    turn: Turn | None = None

    def taken_over(self) -> None:
        """End a turn whose lock another worker has."""
        self.watch.abandon(
            f"another worker answers the conversation {self.conversation!r}, because this one "
            "did not renew its lock for the length of a lease; run the turn again"
        )
