"""Spans and metrics by OpenTelemetry's conventions for generative AI.

Needs the extra `otel`. Nothing is exported here: the tracer and meter providers of the process
take spans and figures, and pass them on.
"""

try:
    import opentelemetry.metrics
    import opentelemetry.trace  # noqa: F401
except ImportError as exc:
    raise ImportError(
        "tool_search.adapters.opentelemetry needs opentelemetry-api: "
        "pip install 'tool-search-middleware[otel]'; in a clone: pip install '.[otel]'"
    ) from exc

from tool_search.adapters.opentelemetry.telemetry import OpenTelemetry

__all__ = ["OpenTelemetry"]
