"""OpenAI Chat Completions: what the model is shown, and replies as the service writes them.

Source: the recorded replies of OpenAI models, and the types of the openai SDK
(`ChatCompletion`, `ChatCompletionChunk`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tool_search.testing.openai_chat.render_common import CREATED, OpenAIErrors
from tool_search.testing.openai_chat.rules import check_openai_chat
from tool_search.testing.openai_chat.rules_messages import brought_by
from tool_search.testing.server.dialect import Forgetful, StreamEvent, dumped, pieces
from tool_search.testing.view import (
    ModelView,
    ViewCall,
    ViewMessage,
    ViewResult,
    VisibleTool,
    read_arguments,
)

if TYPE_CHECKING:
    from tool_search.testing.server.dialect import Answer
    from tool_search.testing.server.endpoint import Endpoint
    from tool_search.testing.violations import Violation

__all__ = ["OpenAIChat"]

JSON = Mapping[str, Any]


class OpenAIChat(OpenAIErrors, Forgetful):
    """`POST /v1/chat/completions`."""

    name = "openai_chat"
    path = "/v1/chat/completions"
    count_path = None

    def check(self, body: JSON, endpoint: Endpoint, *, counting: bool) -> Violation | None:  # noqa: ARG002 - this API counts nothing
        """The first rule that the request breaks, or None."""
        return check_openai_chat(body, endpoint=endpoint)

    def view(self, body: JSON) -> ModelView:
        """What the model is shown."""
        names: dict[str, str] = {}
        tools = [tool["function"] for tool in body.get("tools") or () if "function" in tool]
        late = [tool["function"] for tool in brought_by(body["messages"]) if "function" in tool]
        shown = _allowed(tools, body.get("tool_choice"))
        return ModelView(
            dialect=self.name,
            model=body["model"],
            tools=(
                *(_visible(tool) for tool in shown),
                *(replace(_visible(tool), is_late=True) for tool in late),
            ),
            tool_choice=_tool_choice(body.get("tool_choice")),
            messages=tuple(_message(message, names) for message in body["messages"]),
        )

    def counted(self, tokens: int) -> JSON:
        """Never asked for: the API has no count."""
        return {"input_tokens": tokens}

    def complete(self, answer: Answer) -> JSON:
        """The `ChatCompletion` of a reply."""
        message: dict[str, Any] = {
            "role": "assistant",
            "content": answer.text or (None if answer.calls else ""),
            "refusal": None,
            "annotations": [],
        }
        if answer.thinking is not None:
            message |= _reasoning(answer, answer.thinking)
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
        """The reply as chunks; the usage comes last, where it was asked for."""
        with_usage = bool((answer.body.get("stream_options") or {}).get("include_usage"))
        for delta in _deltas(answer):
            yield _chunk(answer, delta, None, with_usage=with_usage)
        yield _chunk(answer, {}, _finish_reason(answer), with_usage=with_usage)
        if with_usage:
            last = {**_envelope(answer, "chat.completion.chunk"), "choices": []}
            yield StreamEvent(data=dumped({**last, "usage": _usage(answer)}))
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


def _reasoning(answer: Answer, text: str) -> dict[str, Any]:
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
        yield _reasoning(answer, piece)
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
    return StreamEvent(data=dumped(chunk), in_tool_call=in_tool_call)


def _tool_choice(choice: str | JSON | None) -> str:
    if isinstance(choice, Mapping):
        if "function" in choice:
            return f"tool:{choice['function']['name']}"
        mode = choice.get("allowed_tools", {}).get("mode", "auto")
        return "any" if mode == "required" else "auto"
    return {"required": "any", "none": "none"}.get(choice or "auto", "auto")


def _allowed(tools: list[JSON], choice: str | JSON | None) -> list[JSON]:
    if not isinstance(choice, Mapping) or "allowed_tools" not in choice:
        return tools
    allowed = {
        tool["function"]["name"]
        for tool in choice["allowed_tools"]["tools"]
        if tool["type"] == "function"
    }
    return [tool for tool in tools if tool["name"] in allowed]


def _message(message: JSON, names: dict[str, str]) -> ViewMessage:
    """One message; `names` gathers the names of the calls for their results."""
    role = message["role"]
    text = _text(message.get("content"))
    if role == "tool":
        call_id = message["tool_call_id"]
        result = ViewResult(call_id=call_id, name=names.get(call_id, ""), text=text)
        return ViewMessage(role="user", results=(result,))
    calls = tuple(
        ViewCall(
            id=call["id"],
            name=call["function"]["name"],
            arguments=read_arguments(call["function"]["arguments"]),
        )
        for call in message.get("tool_calls") or ()
        if "function" in call
    )
    names.update((call.id, call.name) for call in calls)
    if role == "assistant":
        return ViewMessage(role="assistant", text=text, calls=calls)
    brings = tuple(tool["function"]["name"] for tool in message.get("tools") or ())
    return ViewMessage(role="user" if role == "user" else "system", text=text, brings=brings)


def _visible(function: JSON) -> VisibleTool:
    return VisibleTool(
        name=function["name"],
        description=function.get("description") or "",
        parameters=function.get("parameters") or {},
    )


def _text(content: str | list[JSON] | None) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or () if part.get("type") == "text")
