"""What a call of a batch came to: for the session, and as an event."""

from __future__ import annotations

from dataclasses import dataclass

from tool_search.conversation.calls import AnsweredCall, CallDecision, CallResult, RunCall
from tool_search.events import CallStep, ToolFinished
from tool_search.execution.results import ExecutionResult
from tool_search.messages import ToolCall

__all__ = ["CallOutcome", "meant_tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """A call is over.

    Attributes:
        call: As the model made it.
        decision: What was decided; None: it was cancelled before that.
        result: Its one result.
        duration_s: Seconds from its beginning; 0 where nothing was run.
        steps: What its life was made of, in order.
    """

    call: ToolCall
    decision: CallDecision | None
    result: ExecutionResult
    duration_s: float = 0.0
    steps: tuple[CallStep, ...] = ()

    @property
    def tool(self) -> str:
        """The canonical name of what the call comes down to, `call_tool` looked through."""
        return meant_tool(self.decision) if self.decision is not None else self.call.name

    def to_commit(self) -> CallResult:
        """The same for a session."""
        result = self.result
        decision = self.decision or AnsweredCall(
            call=self.call, content=result.content, is_error=True
        )
        return CallResult(
            decision=decision,
            content=result.content,
            is_error=result.is_error,
            parts=result.parts,
        )

    def finished(self, content: str | None = None) -> ToolFinished:
        """The same as an event.

        Args:
            content: What the model reads, where a history says it otherwise.
        """
        return ToolFinished(
            call=self.call,
            tool=self.tool,
            content=self.result.content if content is None else content,
            is_error=self.result.is_error,
            duration_s=self.duration_s,
            outcome=self.result.outcome,
            parts=self.result.parts,
            steps=self.steps,
        )


def meant_tool(decision: CallDecision) -> str:
    """The canonical name of what a call comes down to, `call_tool` looked through."""
    if isinstance(decision, RunCall):
        return decision.tool.name
    return decision.names_tool.name if decision.names_tool else decision.call.name
