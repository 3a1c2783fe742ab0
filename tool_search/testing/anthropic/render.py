"""Anthropic Messages: the dialect, and replies as the service writes them.

Source: the recorded replies and streams of Claude models, and the types of the
anthropic SDK (`Message`, `RawMessageStreamEvent`, `ErrorResponse`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tool_search.testing.anthropic.prefix_binding import signature
from tool_search.testing.anthropic.rules import check_anthropic
from tool_search.testing.anthropic.threads import recall, remember
from tool_search.testing.anthropic.view import view_of
from tool_search.testing.server.dialect import (
    Forgetful,
    StreamEvent,
    dump_json,
    parsed_arguments,
    pieces,
)
from tool_search.testing.violations import Violation, invalid

if TYPE_CHECKING:
    from tool_search.testing.server.dialect import Answer
    from tool_search.testing.server.endpoint import Endpoint
    from tool_search.testing.server.memory import ReplyMemory
    from tool_search.testing.view import ModelView

__all__ = ["AnthropicMessages"]

JSON = Mapping[str, Any]

# Source: Anthropic, API errors. 408 and 503 are not in its list: proxies before it send them.
_DOCUMENTED = {
    400: ("invalid_request_error", "Invalid request"),
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "Your credit balance is too low to access the Anthropic API."),
    403: (
        "permission_error",
        "Your API key does not have permission to use the specified resource.",
    ),
    404: ("not_found_error", "The requested resource could not be found."),
    408: ("timeout_error", "Request timed out"),
    409: ("conflict_error", "The request conflicts with the current state of the resource."),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your organization's rate limit."),
    500: ("api_error", "Internal server error"),
    503: ("api_error", "Service unavailable"),
    504: ("timeout_error", "Request timed out"),
    529: ("overloaded_error", "Overloaded"),
}


class AnthropicMessages(Forgetful):
    """`POST /v1/messages` and `/v1/messages/count_tokens`."""

    name = "anthropic"
    path = "/v1/messages"
    count_path = "/v1/messages/count_tokens"
    keep_alive = b'event: ping\ndata: {"type": "ping"}\n\n'

    def check_headers(self, headers: Mapping[str, str]) -> Violation | None:
        """Return a violation if the key or the version is missing; any value will do."""
        if not headers.get("x-api-key") and not headers.get("authorization"):
            return Violation(
                status=401,
                error_type="authentication_error",
                message="x-api-key header is required",
            )
        if not headers.get("anthropic-version"):
            return invalid("anthropic-version: header is required")
        return None

    def check(self, body: JSON, endpoint: Endpoint, *, counting: bool) -> Violation | None:
        """Return the first rule that the request breaks, or None."""
        return check_anthropic(body, endpoint=endpoint, counting=counting)

    def recall(self, body: JSON, memory: ReplyMemory) -> JSON | Violation:
        """Return the request after the messages of its thread, or a violation."""
        return recall(body, memory)

    def remember(self, answer: Answer, memory: ReplyMemory) -> None:
        """Keep the conversation if the request asks for a thread."""
        content = [block for block, _ in _blocks(answer)]
        remember(_reply_id(answer), answer.body, answer.conversation, content, memory)

    def unreadable_body(self, reason: str) -> Violation:
        """Return the answer to a body that is not a JSON object."""
        return invalid(f"The request body is not valid JSON: {reason}")

    def view(self, body: JSON) -> ModelView:
        """Return the model's view of a request."""
        return view_of(body)

    def count_body(self, tokens: int) -> JSON:
        """Return the body of a token count."""
        return {"input_tokens": tokens}

    def complete(self, answer: Answer) -> JSON:
        """Return the `Message` of a reply."""
        message = _message(answer)
        content = [block for block, _ in _blocks(answer)]
        return {**message, "content": content, "stop_reason": _stop_reason(answer)}

    def stream(self, answer: Answer) -> Iterator[StreamEvent]:
        """Yield the reply as events, with the `ping` after the first block's start."""
        started = _message(answer)
        started["usage"] = {**_usage(answer), "output_tokens": 1}
        yield _event({"type": "message_start", "message": started})
        blocks = _blocks(answer)
        for index, (block, deltas) in enumerate(blocks):
            start = _empty(block)
            yield _event({"type": "content_block_start", "index": index, "content_block": start})
            if index == 0:
                yield _event({"type": "ping"})
            for delta in deltas:
                yield _event({"type": "content_block_delta", "index": index, "delta": delta})
            yield _event({"type": "content_block_stop", "index": index})
        usage = _usage(answer)
        kept = ("cache_creation_input_tokens", "cache_read_input_tokens", "input_tokens")
        yield _event(
            {
                "type": "message_delta",
                "delta": {
                    "stop_reason": _stop_reason(answer),
                    "stop_sequence": None,
                    "stop_details": None,
                },
                "usage": {key: usage[key] for key in (*kept, "output_tokens")},
            }
        )
        yield _event({"type": "message_stop"})

    def documented_error(self, status: int) -> Violation:
        """Return the error that Anthropic documents for a status."""
        fallback = ("api_error" if status >= 500 else "invalid_request_error", f"Error {status}")
        error_type, message = _DOCUMENTED.get(status, fallback)
        return Violation(status=status, error_type=error_type, message=message)

    def error_body(self, violation: Violation, request_id: str) -> JSON:
        """Return an `ErrorResponse`."""
        error: dict[str, Any] = {"type": violation.error_type, "message": violation.message}
        if violation.code is not None:
            error["details"] = {"error_code": violation.code}
        return {"type": "error", "error": error, "request_id": request_id}

    def error_event(self, violation: Violation, request_id: str) -> StreamEvent:
        """Return the `error` event of a stream."""
        return _event(self.error_body(violation, request_id))

    def headers(self, request_id: str) -> Mapping[str, str]:
        """Return the headers of every answer."""
        return {"request-id": request_id}


def _event(data: JSON) -> StreamEvent:
    delta = data.get("delta", {})
    return StreamEvent(
        name=data["type"],
        data=dump_json(data),
        in_tool_call=delta.get("type") == "input_json_delta" and bool(delta["partial_json"]),
    )


def _reply_id(answer: Answer) -> str:
    return f"msg_01{answer.digest[20:40]}"


def _message(answer: Answer) -> dict[str, Any]:
    return {
        "model": answer.body["model"],
        "id": _reply_id(answer),
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "usage": _usage(answer),
    }


def _usage(answer: Answer) -> dict[str, Any]:
    usage = answer.usage
    return {
        "input_tokens": usage.fresh,
        "cache_creation_input_tokens": usage.cache_written,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_written,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": usage.output,
        "service_tier": "standard",
    }


def _stop_reason(answer: Answer) -> str:
    return answer.stop_reason or ("tool_use" if answer.calls else "end_turn")


def _blocks(answer: Answer) -> list[tuple[dict[str, Any], list[JSON]]]:
    """Return each block of the reply, and the deltas that stream it."""
    blocks: list[tuple[dict[str, Any], list[JSON]]] = []
    if answer.thinking is not None:
        signed = signature(answer.conversation, answer.thinking)
        block: dict[str, Any] = {
            "type": "thinking",
            "thinking": answer.thinking,
            "signature": signed,
        }
        deltas: list[JSON] = [
            {"type": "thinking_delta", "thinking": piece} for piece in pieces(answer.thinking)
        ]
        blocks.append((block, [*deltas, {"type": "signature_delta", "signature": signed}]))
    if answer.text:
        text_deltas: list[JSON] = [
            {"type": "text_delta", "text": piece} for piece in pieces(answer.text)
        ]
        blocks.append(({"type": "text", "text": answer.text}, text_deltas))
    for index, call in enumerate(answer.calls):
        block = {
            "type": "tool_use",
            "id": f"toolu_01{answer.digest[:20]}{index:02d}",
            "name": call.name,
            "input": parsed_arguments(call.arguments),
            "caller": {"type": "direct"},
        }
        blocks.append((block, [_json_delta(part) for part in ("", *pieces(call.arguments))]))
    return blocks


def _empty(block: JSON) -> JSON:
    """Return a block as its start event shows it."""
    emptied: dict[str, Any] = {"thinking": "", "signature": "", "text": "", "input": {}}
    return {
        key: emptied.get(key, value) if key != "type" else value for key, value in block.items()
    }


def _json_delta(part: str) -> JSON:
    return {"type": "input_json_delta", "partial_json": part}
