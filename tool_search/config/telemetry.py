"""The `telemetry` section: spans, metrics, and a monitor of the event loop."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tool_search.config.search import Settings

__all__ = ["TelemetrySettings"]

_MAX_NAME_CHARS = 100
_MAX_HOLD_MS = 60_000


class TelemetrySettings(Settings):
    """The `telemetry` section: spans, metrics, and a monitor of the event loop.

    Nothing is exported by itself: the OpenTelemetry SDK of the process does it.

    Attributes:
        enabled: True for spans and metrics, which need the extra `otel`; `auto`: if it is
            installed.
        record_content: True if spans have messages, arguments, queries and results, with likely
            secrets masked; null: as `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` says.
        agent_name: The bot's name in spans; empty: none.
        loop_hold_ms: Milliseconds from which a hold of the event loop is logged and measured;
            null: it is not watched.
    """

    enabled: Literal["auto"] | bool = "auto"
    record_content: bool | None = None
    agent_name: Annotated[str, Field(max_length=_MAX_NAME_CHARS)] = ""
    loop_hold_ms: Annotated[int, Field(ge=1, le=_MAX_HOLD_MS)] | None = None
