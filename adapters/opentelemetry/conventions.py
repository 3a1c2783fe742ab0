"""The names of OpenTelemetry's conventions for generative AI, and ours next to them.

Source: OpenTelemetry, "Semantic conventions for generative client AI spans", "... agent and
framework spans" and "... metrics", in development; the names are those of
opentelemetry-semantic-conventions 0.66b2. Names that begin with `tool_search.` are ours: the
conventions have none for them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase

from tool_search.runner.events import Done, RequestFinished, RequestStarted

__all__ = [
    "SCOPE",
    "SECONDS",
    "TOKENS",
    "captures_content",
    "finish_reason",
    "of_answer",
    "of_request",
    "turn_error",
]

SCOPE = "tool_search"
# The boundaries that the conventions advise.
SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
TOKENS = [float(4**power) for power in range(14)]

_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CAPTURING = ("true", "span_only", "span_and_event")
# The well-known values of `gen_ai.provider.name`, by the host that is asked.
_SERVICES = (
    ("*.anthropic.com", "anthropic"),
    ("*.openai.azure.com", "azure.ai.openai"),
    ("*.services.ai.azure.com", "azure.ai.inference"),
    ("*.openai.com", "openai"),
    ("*.deepseek.com", "deepseek"),
    ("*.moonshot.*", "moonshot_ai"),
    ("*.mistral.ai", "mistral_ai"),
    ("*.x.ai", "x_ai"),
    ("*.groq.com", "groq"),
    ("*.perplexity.ai", "perplexity"),
    ("*.cohere.com", "cohere"),
    ("*.amazonaws.com", "aws.bedrock"),
    ("*aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
)
# What a message of the conventions' JSON Schema may end with.
_FINISHED = {"answer": "stop", "calls": "tool_call", "refusal": "content_filter"}
# The ends of turns that have an answer, as `Bot.ask` returns it.
_ANSWERS = ("answer", "length", "max_steps")


def captures_content(environment: Mapping[str, str] | None = None) -> bool:
    """Return True if the process asks for the text of messages in spans.

    Source: opentelemetry-util-genai, OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT.
    """
    said = (os.environ if environment is None else environment).get(_CAPTURE, "")
    return said.strip().lower() in _CAPTURING


def finish_reason(stop_reason: str) -> str:
    """Return the conventions' word for the end of a reply."""
    return _FINISHED.get(stop_reason, stop_reason)


def turn_error(done: Done) -> str:
    """Return the kind of failure of a turn without an answer; empty if it has one."""
    return "" if done.stop_reason in _ANSWERS else done.stop_reason


def of_request(request: RequestStarted) -> dict[str, str | int]:
    """Return the attributes that a request's span and metrics share."""
    dialect, _, rest = request.origin.partition(":")
    host, _, port = rest.partition("/")[0].partition(":")
    shared: dict[str, str | int] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _service(dialect, host),
        "gen_ai.request.model": request.model,
    }
    if host:
        shared["server.address"] = host
    if port.isdigit():
        # An address without a port may be one of http or of https.
        shared["server.port"] = int(port)
    return shared


def of_answer(finished: RequestFinished) -> dict[str, str | int]:
    """Return the same, with what is known at the end of the request."""
    shared = of_request(finished.request)
    if finished.response_model:
        shared["gen_ai.response.model"] = finished.response_model
    if finished.error:
        shared["error.type"] = finished.error
    return shared


def _service(dialect: str, host: str) -> str:
    """Return the service of a host; of an unknown one, that whose dialect it speaks."""
    named = (name for pattern, name in _SERVICES if fnmatchcase(host, pattern))
    return next(named, dialect.partition("_")[0])
