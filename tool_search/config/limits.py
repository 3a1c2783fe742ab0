"""The sections `limits`, of what comes in, and `telemetry`, of what is measured."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tool_search.config.settings import Settings

__all__ = ["LimitSettings", "TelemetrySettings"]

_MAX_NAME_CHARS = 100
_MAX_HOLD_MS = 60_000
_Seconds = Annotated[float, Field(gt=0, le=31_536_000, allow_inf_nan=False)]


class LimitSettings(Settings):
    """The `limits` section: bounds of what comes in, whoever sends it.

    Attributes:
        max_bytes: Bytes of one body, message of an MCP server, or event of a stream, unpacked.
        max_items: Values in its JSON.
        max_depth: Levels of its JSON.
        body_timeout_s: Seconds for one body, from its first byte on; a stream of events and a
            download that is passed on may last.
        silence_s: Seconds of silence in a stream of an MCP server.
    """

    max_bytes: Annotated[int, Field(ge=10_000, le=2_000_000_000)] = 32_000_000
    max_items: Annotated[int, Field(ge=1_000, le=100_000_000)] = 500_000
    max_depth: Annotated[int, Field(ge=10, le=400)] = 400
    body_timeout_s: _Seconds = 300.0
    silence_s: _Seconds = 86_400.0


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
