"""OpenAI Chat Completions: what the model is shown, and replies as the service writes them.

Source: the recorded replies of OpenAI models, and the types of the openai SDK
(`ChatCompletion`, `ChatCompletionChunk`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tool_search.testing.dialect import StreamEvent, pieces
from tool_search.testing.rules_openai_chat import check_openai_chat
from tool_search.testing.view import ModelView, ViewCall, ViewMessage, ViewResult, VisibleTool
from tool_search.testing.violations import Violation, invalid

if TYPE_CHECKING:
    from tool_search.testing.dialect import Answer
    from tool_search.testing.endpoint import Endpoint

__all__ = ["OpenAIChat"]

JSON = Mapping[str, Any]

# No clock: the same request gets the same bytes.
_CREATED = 1_767_225_600

# Source: OpenAI, Error codes. What is not in its list has the generic text.
_DOCUMENTED: dict[int, tuple[str, str, str | None]] = {
    401: ("invalid_request_error", "Incorrect API key provided.", "invalid_api_key"),
    403: (
        "request_forbidden",
        "Country, region, or territory not supported",
        "unsupported_country_region_territory",
    ),
    404: ("invalid_request_error", "The model does not exist.", "model_not_found"),
    408: ("invalid_request_error", "Request timed out.", None),
    409: ("invalid_request_error", "The resource was updated by another request.", None),
    413: ("invalid_request_error", "Request too large.", None),
    429: ("requests", "Rate limit reached for requests.", "rate_limit_exceeded"),
    500: ("server_error", "The server had an error while processing your request.", None),
    503: (
        "service_unavailable_error",
        "The engine is currently overloaded, please try again later.",
        None,
    ),
}


class OpenAIChat:
    """`POST /v1/chat/completions`."""

    name = "openai_chat"
    path = "/v1/chat/completions"
    count_path = None

    def check_headers(self, headers: Mapping[str, str]) -> Violation | None:
        """A bearer key is required, any value will do."""
        if headers.get("authorization"):
            return None
        return Violation(
            status=401,
            error_type="invalid_request_error",
            message=(
                "You didn't provide an API key. You need to provide your API key in an "
                "Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
            ),
        )

    def check(self, body: JSON, endpoint: Endpoint, *, counting: bool) -> Violation | None:  # noqa: ARG002 - this API counts nothing
        """The first rule that the request breaks, or None."""
        return check_openai_chat(body, endpoint=endpoint)

    def unreadable(self, reason: str) -> Violation:
        """The answer to a body that is not a JSON object."""
        return invalid(
            "We could not parse the JSON body of your request. (HINT: This likely means you "
            f"aren't using your HTTP library correctly. {reason})"
        )

    def view(self, body: JSON) -> ModelView:
        """What the model is shown."""
        names: dict[str, str] = {}
        tools = [tool["function"] for tool in body.get("tools") or () if "function" in tool]
        return ModelView(
            dialect=self.name,
            model=body["model"],
            tools=tuple(
                VisibleTool(
                    name=tool["name"],
                    description=tool.get("description") or "",
                    parameters=tool.get("parameters") or {},
                )
                for tool in _allowed(tools, body.get("tool_choice"))
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
            message["reasoning_content"] = answer.thinking
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
            yield StreamEvent(data=_dumped({**last, "usage": _usage(answer)}))
        yield StreamEvent(data="[DONE]")

    def documented(self, status: int) -> Violation:
        """The error that OpenAI documents for a status."""
        fallback = "server_error" if status >= 500 else "invalid_request_error"
        error_type, message, code = _DOCUMENTED.get(status, (fallback, f"Error {status}", None))
        return Violation(status=status, error_type=error_type, message=message, code=code)

    def error_body(self, violation: Violation, request_id: str) -> JSON:  # noqa: ARG002 - it travels in a header
        """An error object."""
        return {
            "error": {
                "message": violation.message,
                "type": violation.error_type,
                "param": violation.param,
                "code": violation.code,
            }
        }

    def error_event(self, violation: Violation, request_id: str) -> StreamEvent:
        """The error as an event of a stream."""
        return StreamEvent(data=_dumped(self.error_body(violation, request_id)))

    def headers(self, request_id: str) -> Mapping[str, str]:
        """The headers of every answer."""
        return {"x-request-id": request_id}


def _dumped(data: JSON) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _envelope(answer: Answer, kind: str = "chat.completion") -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{answer.digest[20:40]}",
        "object": kind,
        "created": _CREATED,
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


def _call_id(answer: Answer, index: int) -> str:
    return f"call_{answer.digest[:20]}{index:02d}"


def _deltas(answer: Answer) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": None if answer.calls else "", "refusal": None}
    for piece in pieces(answer.thinking or ""):
        yield {"reasoning_content": piece}
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
    return StreamEvent(data=_dumped(chunk), in_tool_call=in_tool_call)


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
            arguments=_arguments(call["function"]["arguments"]),
        )
        for call in message.get("tool_calls") or ()
        if "function" in call
    )
    names.update((call.id, call.name) for call in calls)
    if role == "assistant":
        return ViewMessage(role="assistant", text=text, calls=calls)
    return ViewMessage(role="user" if role == "user" else "system", text=text)


def _text(content: str | list[JSON] | None) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or () if part.get("type") == "text")


def _arguments(text: str) -> JSON:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
