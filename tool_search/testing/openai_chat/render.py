"""OpenAI Chat Completions: replies as the service writes them.

Source: the recorded replies of OpenAI models, and the types of the openai SDK
(`ChatCompletion`, `ChatCompletionChunk`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tool_search.testing.openai_chat.errors import CREATED, OpenAIErrors
from tool_search.testing.openai_chat.rules import check_openai_chat
from tool_search.testing.openai_chat.view import view_of
from tool_search.testing.server.dialect import Forgetful, StreamEvent, dump_json, pieces

if TYPE_CHECKING:
    from tool_search.testing.server.dialect import Answer
    from tool_search.testing.server.endpoint import Endpoint
    from tool_search.testing.view import ModelView
    from tool_search.testing.violations import Violation

__all__ = ["OpenAIChat"]

JSON = Mapping[str, Any]


class OpenAIChat(OpenAIErrors, Forgetful):
    """`POST /v1/chat/completions`."""

    name = "openai_chat"
    path = "/v1/chat/completions"
    count_path = None

    def check(self, body: JSON, endpoint: Endpoint, *, counting: bool) -> Violation | None:  # noqa: ARG002 - this API counts nothing
        """Return the first rule that the request breaks, or None."""
        return check_openai_chat(body, endpoint=endpoint)

    def view(self, body: JSON) -> ModelView:
        """Return the model's view of a request."""
        return view_of(body)

    def count_body(self, tokens: int) -> JSON:
        """Return a token count; never requested, because the API has no such path."""
        return {"input_tokens": tokens}

    def complete(self, answer: Answer) -> JSON:
        """Return the `ChatCompletion` of a reply."""
        message: dict[str, Any] = {
            "role": "assistant",
            "content": answer.text or (None if answer.calls else ""),
            "refusal": None,
            "annotations": [],
        }
        if answer.thinking is not None:
            message |= _render_reasoning(answer, answer.thinking)
        if answer.calls:
            message["tool_calls"] = [
                {
                    "id": _call_id(answer, index),
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for index, call in enumerate(answer.calls)
            ]
        choice = {"index": 0, "message": message, "finish_reason": _finish_reason(answer)}
        return {**_envelope(answer), "choices": [choice], "usage": _usage(answer)}

    def stream(self, answer: Answer) -> Iterator[StreamEvent]:
        """Yield the reply as chunks, the usage last if it was requested."""
        with_usage = bool((answer.body.get("stream_options") or {}).get("include_usage"))
        for delta in _deltas(answer):
            yield _chunk(answer, delta, None, with_usage=with_usage)
        yield _chunk(answer, {}, _finish_reason(answer), with_usage=with_usage)
        if with_usage:
            last = {**_envelope(answer, "chat.completion.chunk"), "choices": []}
            yield StreamEvent(data=dump_json({**last, "usage": _usage(answer)}))
        yield StreamEvent(data="[DONE]")


def _envelope(answer: Answer, kind: str = "chat.completion") -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{answer.digest[20:40]}",
        "object": kind,
        "created": CREATED,
        "model": answer.body["model"],
        "service_tier": "default",
        "system_fingerprint": None,
    }


def _usage(answer: Answer) -> JSON:
    usage = answer.usage
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def _finish_reason(answer: Answer) -> str:
    return answer.stop_reason or ("tool_calls" if answer.calls else "stop")


def _render_reasoning(answer: Answer, text: str) -> dict[str, Any]:
    """Return reasoning, or a piece of it, by the endpoint's name for it.

    Source of `reasoning_details`: OpenRouter, Reasoning tokens; recorded replies.
    """
    if answer.reasoning_field != "reasoning_details":
        return {answer.reasoning_field: text}
    detail = {"type": "reasoning.text", "text": text, "format": "unknown", "index": 0}
    return {"reasoning": text, "reasoning_details": [detail]}


def _call_id(answer: Answer, index: int) -> str:
    return f"call_{answer.digest[:20]}{index:02d}"


def _deltas(answer: Answer) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": None if answer.calls else "", "refusal": None}
    for piece in pieces(answer.thinking or ""):
        yield _render_reasoning(answer, piece)
    for piece in pieces(answer.text):
        yield {"content": piece}
    for index, call in enumerate(answer.calls):
        opened = {
            "index": index,
            "id": _call_id(answer, index),
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }
        yield {"tool_calls": [opened]}
        for piece in pieces(call.arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _chunk(
    answer: Answer, delta: dict[str, Any], finish_reason: str | None, *, with_usage: bool
) -> StreamEvent:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    chunk = {**_envelope(answer, "chat.completion.chunk"), "choices": [choice]}
    if with_usage:
        chunk["usage"] = None
    calls = delta.get("tool_calls")
    in_tool_call = bool(calls and calls[0]["function"]["arguments"])
    return StreamEvent(data=dump_json(chunk), in_tool_call=in_tool_call)
