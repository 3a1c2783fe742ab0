"""The figures of requests, and the logs of turns: a record for each event."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from contextvars import ContextVar

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import ReferencePart, RequestPlan
from tool_search.core.profiles import ProviderProfile
from tool_search.errors import ProviderError
from tool_search.providers.base import ReplyEnd, Usage
from tool_search.runner.events import (
    Done,
    ProviderSwitched,
    RequestFinished,
    RequestStarted,
    RunnerEvent,
    RunnerWarning,
    SearchFinished,
    ToolCallStarted,
    ToolFinished,
    ToolsDiscovered,
    TurnEvent,
)

__all__ = [
    "ConversationFilter",
    "EventLog",
    "current_conversation",
    "request_finished",
    "request_log",
    "request_started",
]

current_conversation: ContextVar[str] = ContextVar("tool_search_conversation", default="")
"""The key of the conversation whose turn runs here, in its tools and threads too."""
_requests = logging.getLogger("tool_search.requests")


class ConversationFilter(logging.Filter):
    """A filter that gives records the key of their conversation, as `conversation`.

    Records from outside a turn get an empty one. It belongs to a handler: a filter of a logger
    does not see the records of the loggers below it.

    Example:
        ::

            handler.addFilter(ConversationFilter())
            handler.setFormatter(logging.Formatter("%(conversation)s %(name)s %(message)s"))
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the key to a record that has none; no record is held back."""
        if not hasattr(record, "conversation"):
            record.conversation = current_conversation.get()
        return True


class EventLog:
    """A log with one JSON object for each event, which has the conversation's key.

    It has names, figures and causes, and nothing that users, models or tools say; of services
    the words by which one refuses a form of requests, without keys and cut. The same
    fields are attributes of each record, for handlers that write their own form: `event`,
    `conversation` and `fields`.

    Args:
        logger: The log; None: `tool_search.runner.events`, at the level INFO, warnings at WARNING.

    Example:
        ::

            open_bot("bot.yaml", calls=CallOptions(turn_observers=[EventLog()]))
    """

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger or logging.getLogger("tool_search.runner.events")

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
        # So that a row for the refusal can be written.
        words = {"refusal": event.message} if event.code == "form_refused" else {}
        return {"code": event.code, **words}
    if isinstance(event, RequestFinished):
        return _request_fields(event)
    if isinstance(event, SearchFinished):
        return _search_fields(event)
    if isinstance(event, Done):
        return {
            "provider": event.provider,
            "stop_reason": event.stop_reason,
            "requests": event.steps,
            **_usage_fields(event.usage),
        }
    return None


def _search_fields(event: SearchFinished) -> dict[str, object]:
    return {
        "call": event.call.id,
        "tools": list(event.found),
        "best_score": event.best_score,
        "total_found": event.total_found,
        "total_tools": event.total_tools,
        "failed": event.is_error,
        "duration_s": round(event.duration_s, 6),
    }


def _request_fields(event: RequestFinished) -> dict[str, object]:
    sent = event.request
    return {
        "provider": sent.provider,
        "model": sent.model,
        "response_model": event.response_model,
        "strategy": sent.strategy,
        "phase": sent.phase,
        "tools": sent.tools,
        "deferred": sent.deferred,
        "tool_tokens": sent.tool_tokens,
        "saved_tokens": sent.saved_tokens,
        "prefix_kept": sent.is_prefix_kept,
        "duration_s": round(event.duration_s, 6),
        "first_s": None if event.first_s is None else round(event.first_s, 6),
        "stop_reason": event.stop_reason,
        "error": event.error,
        **_usage_fields(event.usage),
    }


def _usage_fields(usage: Usage) -> dict[str, object]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
    }


def request_log() -> Callable[[TurnEvent], None] | None:
    """Return what logs a line for each request, at the level INFO of `tool_search.requests`."""
    return _log_request if _requests.isEnabledFor(logging.INFO) else None


def _log_request(seen: TurnEvent) -> None:
    event = seen.event
    if not isinstance(event, RequestFinished):
        return
    sent, usage = event.request, event.usage
    if event.error:
        end = f"failed: {event.error}"
    else:
        end = (
            f"{event.stop_reason}, {usage.input_tokens} tokens in "
            f"({usage.cache_read_tokens} from the cache), {usage.output_tokens} out"
        )
    prefix = {True: "prefix kept", False: "prefix changed", None: "no prefix"}
    first = "" if event.first_s is None else f", first after {event.first_s:.2f} s"
    _requests.info(
        "%s %s: %s; %d tools, %d deferred, about %d tokens of definitions, %d saved; %s; %.2f s%s",
        sent.provider, sent.model, end, sent.tools, sent.deferred, sent.tool_tokens,
        sent.saved_tokens, prefix[sent.is_prefix_kept], event.duration_s, first,
        extra={
            "event": "RequestFinished",
            "conversation": seen.conversation,
            "fields": _request_fields(event),
        },
    )  # fmt: skip


async def request_started(
    name: str,
    profile: ProviderProfile,
    plan: RequestPlan,
    catalog: ToolCatalog,
    *,
    is_prefix_kept: bool | None,
) -> RequestStarted:
    """Return the figures of a request that is about to be sent."""
    deferred, tokens = plan.tools.sizes
    tokens += _referenced_tokens(plan, catalog)
    # A definition takes about 0.1 ms, and is estimated once: those of a new catalog aside.
    if not catalog.has_computed(_all_tokens):
        await asyncio.to_thread(catalog.once, _all_tokens)
    return RequestStarted(
        provider=name,
        model=profile.model,
        origin=profile.origin,
        strategy=plan.strategy,
        phase=plan.phase,
        tools=len(plan.tools),
        deferred=deferred,
        tool_tokens=tokens,
        saved_tokens=catalog.once(_all_tokens) - tokens,
        is_prefix_kept=is_prefix_kept,
    )


def request_finished(
    started: RequestStarted,
    began: float,
    first_at: float | None,
    end: ReplyEnd | None,
    error: BaseException | None,
) -> RequestFinished:
    """Return the figures of a request that has ended.

    Args:
        started: The figures of its start.
        began: The time of its start, by `time.monotonic`.
        first_at: The time of the first event of the reply; None: none came.
        end: The end of the reply; an error after it is not the reply's.
        error: The failure in its place.
    """
    failed = "no_end" if error is None else _kind_of(error)
    return RequestFinished(
        request=started,
        duration_s=time.monotonic() - began,
        first_s=None if first_at is None else first_at - began,
        usage=end.usage if end else Usage(),
        stop_reason=end.stop_reason if end else None,
        error="" if end else failed,
        response_id=end.id if end else "",
        response_model=end.model if end else "",
    )


def _kind_of(error: BaseException) -> str:
    """Return the kind of an error in one word: few values, none of them anybody's text."""
    if isinstance(error, (asyncio.CancelledError, GeneratorExit)):
        return "cancelled"
    if isinstance(error, ProviderError) and error.status is not None:
        return str(error.status)
    # Without an answer, the SDK's exception says more: a time-out or no connection.
    return type(error.__cause__ or error).__name__


def _all_tokens(catalog: ToolCatalog) -> int:
    return sum(tool.estimated_tokens for tool in catalog.active)


def _referenced_tokens(plan: RequestPlan, catalog: ToolCatalog) -> int:
    """Return the tokens of the definitions that references in messages load, each once."""
    shown: dict[str, Tool] = {}
    for message in plan.messages:
        for part in () if isinstance(message.content, str) else message.content:
            if isinstance(part, ReferencePart):
                shown |= {name: catalog[name] for name in part.names if name in catalog}
                shown |= {tool.name: tool for tool in part.tools}
    return sum(tool.estimated_tokens for tool in shown.values())
