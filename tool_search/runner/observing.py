"""Observers of turns: callbacks for events, and a log with a record for each event."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence

from tool_search.events import (
    Done,
    ProviderSwitched,
    RunnerEvent,
    RunnerWarning,
    ToolCallStarted,
    ToolFinished,
    ToolsDiscovered,
    TurnEvent,
    TurnObserver,
)
from tool_search.values.redaction import log_failure

__all__ = ["EventLog", "TurnNotifier"]

_log = logging.getLogger(__name__)


class TurnNotifier:
    """Calls the observers of one turn.

    Args:
        observers: The observers.
        conversation: The key of the conversation.
    """

    def __init__(self, observers: Sequence[TurnObserver], conversation: str) -> None:
        self._observers = observers
        self._conversation = conversation
        self._start = time.monotonic()

    def __call__(self, event: RunnerEvent) -> None:
        """Give an event to each observer."""
        if not self._observers:
            return
        elapsed = time.monotonic() - self._start
        seen = TurnEvent(conversation=self._conversation, elapsed_s=elapsed, event=event)
        for observer in self._observers:
            try:
                observer(seen)
            except Exception:  # noqa: BLE001  # the bot's own: it must not end a turn
                log_failure(_log, "an observer of turns failed")


class EventLog:
    """A log with one JSON object for each event, which has the conversation's key.

    It has names, figures and causes, and nothing that users, models or tools say. The same
    fields are attributes of each record, for handlers that write their own form: `event`,
    `conversation` and `fields`.

    Args:
        logger: The log; None: `tool_search.events`, at the level INFO, warnings at WARNING.

    Example:
        ::

            open_bot("bot.yaml", calls=CallOptions(turn_observers=[EventLog()]))
    """

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger or logging.getLogger("tool_search.events")

    def __call__(self, seen: TurnEvent) -> None:
        """Log one event."""
        fields = _fields(seen.event)
        if fields is None:
            return
        name = type(seen.event).__name__
        content = {
            "event": name,
            "conversation": seen.conversation,
            "elapsed_s": round(seen.elapsed_s, 6),
            **fields,
        }
        level = logging.WARNING if isinstance(seen.event, RunnerWarning) else logging.INFO
        self._logger.log(
            level,
            "%s",
            json.dumps(content, ensure_ascii=False),
            extra={"event": name, "conversation": seen.conversation, "fields": fields},
        )


def _fields(event: RunnerEvent) -> dict[str, object] | None:
    """Return the fields of an event without anybody's words; None: it is not logged."""
    if isinstance(event, ToolCallStarted):
        return {"tool": event.tool, "call": event.call.id}
    if isinstance(event, ToolFinished):
        return {
            "tool": event.tool,
            "call": event.call.id,
            "outcome": event.outcome,
            "duration_s": round(event.duration_s, 6),
        }
    if isinstance(event, ToolsDiscovered):
        return {"tools": list(event.names), "via": event.via, "total": event.total}
    if isinstance(event, ProviderSwitched):
        return {"from": event.from_provider, "to": event.to_provider}
    if isinstance(event, RunnerWarning):
        return {"code": event.code}
    if isinstance(event, Done):
        usage = event.usage
        return {
            "provider": event.provider,
            "stop_reason": event.stop_reason,
            "requests": event.steps,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        }
    return None
