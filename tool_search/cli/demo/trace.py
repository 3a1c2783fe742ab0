"""The demo conversation as a tree: turns, their requests, and each call with its steps."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tool_search.cli.demo.accounting import Ledger
from tool_search.cli.demo.conversation import UserTurn
from tool_search.runner.events import (
    Done,
    ProviderSwitched,
    RunnerEvent,
    ToolFinished,
    ToolOutputDelta,
    ToolProgress,
)

__all__ = ["Trace", "found_names"]


@dataclass(slots=True)
class Trace:
    """The events of a conversation by request, with durations.

    Attributes:
        ledger: The conversation's requests.
        turns: The turns so far, as JSON objects.
    """

    ledger: Ledger
    turns: list[dict[str, Any]] = field(default_factory=list)
    _messages: dict[str, list[str]] = field(default_factory=dict)

    def note(self, event: UserTurn | RunnerEvent) -> None:
        """Add one event."""
        if isinstance(event, UserTurn):
            self.turns.append({"user": event.text, "requests": []})
            return
        self._add_requests()
        if isinstance(event, ToolProgress):
            self._messages.setdefault(event.call.id, []).append(event.message)
        elif isinstance(event, ToolOutputDelta):
            self._messages.setdefault(event.call.id, []).append(event.content)
        elif isinstance(event, ToolFinished):
            self._requests[-1]["calls"].append(self._call(event))
        elif isinstance(event, ProviderSwitched):
            self._requests[-1]["failed"] = event.cause
        elif isinstance(event, Done):
            self.turns[-1]["answer"] = event.answer

    def to_json(self) -> list[dict[str, Any]]:
        """Return the tree as JSON values; durations in seconds."""
        numbers = iter(self.ledger.durations_s)
        for turn in self.turns:
            for request in turn["requests"]:
                request["duration_s"] = round(next(numbers, 0.0), 6)
        return self.turns

    @property
    def _requests(self) -> list[dict[str, Any]]:
        requests: list[dict[str, Any]] = self.turns[-1]["requests"]
        return requests

    def _add_requests(self) -> None:
        known = sum(len(turn["requests"]) for turn in self.turns)
        for figures in self.ledger.requests[known:]:
            self._requests.append(
                {"provider": figures.provider, "strategy": figures.strategy, "calls": []}
            )

    def _call(self, event: ToolFinished) -> dict[str, Any]:
        call: dict[str, Any] = {
            "tool": event.tool,
            "arguments": event.call.arguments,
            "outcome": event.outcome,
            "duration_s": round(event.duration_s, 6),
            "steps": [
                {"name": step.name, "duration_s": round(step.duration_s, 6)} for step in event.steps
            ],
        }
        if messages := self._messages.pop(event.call.id, []):
            call["said"] = messages
        found = found_names(event.content)
        return {**call, "found": found} if found else call


def found_names(content: str) -> list[str] | None:
    """Return the names in a search's result, as the model reads it; None for other results."""
    try:
        read = json.loads(content)
    except ValueError:
        return None
    if not isinstance(read, dict) or "total_tools" not in read:
        return None
    return [*(match["name"] for match in read.get("matches", ())), *read.get("loaded", ())]
