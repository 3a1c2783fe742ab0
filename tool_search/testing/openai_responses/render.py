"""OpenAI Responses: the dialect, and replies as the service writes them.

Source: the recorded replies of OpenAI models, and the types of the openai SDK
(`Response`, `ResponseStreamEvent`). The ids of a search call differ between its
first and its last event, as recorded; the last one is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tool_search.testing.openai_chat.errors import CREATED, OpenAIErrors
from tool_search.testing.openai_responses.hosted_search import hosted_search
from tool_search.testing.openai_responses.memory import conversation_of, recall, remember
from tool_search.testing.openai_responses.rules import check_openai_responses
from tool_search.testing.openai_responses.rules_tools import loaded_by
from tool_search.testing.openai_responses.view import items_of, view_of
from tool_search.testing.server.dialect import StreamEvent, dump_json, parsed_arguments, pieces

if TYPE_CHECKING:
    from tool_search.testing.server.dialect import Answer, AnswerCall
    from tool_search.testing.server.endpoint import Endpoint
    from tool_search.testing.server.memory import ReplyMemory
    from tool_search.testing.view import ModelView
    from tool_search.testing.violations import Violation

__all__ = ["OpenAIResponses"]

JSON = Mapping[str, Any]

_OPENED_FIELDS: dict[str, dict[str, Any]] = {
    "message": {"content": []},
    "function_call": {"arguments": ""},
    "tool_search_call": {"arguments": {}},
    "tool_search_output": {},
    "reasoning": {"summary": []},
}


class OpenAIResponses(OpenAIErrors):
    """`POST /v1/responses` and `/v1/responses/input_tokens`."""

    name = "openai_responses"
    path = "/v1/responses"
    count_path = "/v1/responses/input_tokens"

    def recall(self, body: JSON, memory: ReplyMemory) -> JSON | Violation:
        """Return the request after the reply that it names, or a violation."""
        return recall(body, memory)

    def remember(self, answer: Answer, memory: ReplyMemory) -> None:
        """Keep the conversation, unless the request has `store: false`; a named one always."""
        name = conversation_of(answer.body)
        if name is not None:
            memory.keep_named(name, [*items_of(answer.conversation), *_output(answer)])
        if answer.body.get("store", True) is not False:
            remember(_reply_id(answer), answer.conversation, _output(answer), memory)

    def check(self, body: JSON, endpoint: Endpoint, *, counting: bool) -> Violation | None:  # noqa: ARG002 - both paths take the same
        """Return the first rule that the request breaks, or None."""
        return check_openai_responses(body, endpoint=endpoint)

    def view(self, body: JSON) -> ModelView:
        """Return the model's view of a request."""
        return view_of(body)

    def run_search(
        self, conversation: JSON, arguments: JSON, *, made: str
    ) -> tuple[JSON, tuple[JSON, ...]]:
        """Return the conversation after a hosted search, and the two items of it."""
        return hosted_search(conversation, arguments, made=made)

    def count_body(self, tokens: int) -> JSON:
        """Return the body of a token count."""
        return {"object": "response.input_tokens", "input_tokens": tokens}

    def complete(self, answer: Answer) -> JSON:
        """Return the `Response` of a reply."""
        return _response(answer, _output(answer), done=True)

    def stream(self, answer: Answer) -> Iterator[StreamEvent]:
        """Yield the reply as numbered events, one item after the other."""
        for number, event in enumerate(_events(answer)):
            yield StreamEvent(
                name=event["type"],
                data=dump_json({**event, "sequence_number": number}),
                in_tool_call=event["type"] == "response.function_call_arguments.delta",
            )

    def error_event(self, violation: Violation, request_id: str) -> StreamEvent:
        """Return the `error` event of a stream."""
        body = {"type": "error", **self.error_body(violation, request_id)}
        return StreamEvent(name="error", data=dump_json(body))


def _events(answer: Answer) -> Iterator[dict[str, Any]]:
    opened = _response(answer, [], done=False)
    yield {"type": "response.created", "response": opened}
    yield {"type": "response.in_progress", "response": opened}
    output = _output(answer)
    for index, item in enumerate(output):
        yield from _item_events(index, item)
    response = _response(answer, output, done=True)
    yield {"type": f"response.{response['status']}", "response": response}


def _reply_id(answer: Answer) -> str:
    return f"resp_{answer.digest[:40]}"


def _response(answer: Answer, output: list[dict[str, Any]], *, done: bool) -> dict[str, Any]:
    body = answer.body
    cut = answer.stop_reason if answer.stop_reason != "refusal" else None
    status = "incomplete" if cut else "completed"
    return {
        "id": _reply_id(answer),
        "object": "response",
        "created_at": CREATED,
        "status": status if done else "in_progress",
        "background": False,
        "completed_at": CREATED if done and not cut else None,
        "error": None,
        "incomplete_details": {"reason": cut} if done and cut else None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "max_tool_calls": None,
        "metadata": body.get("metadata") or {},
        "model": body["model"],
        "output": output,
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": body.get("previous_response_id"),
        "prompt_cache_key": body.get("prompt_cache_key"),
        "reasoning": body.get("reasoning") or {"effort": "none", "summary": None},
        "service_tier": "default",
        "store": body.get("store", True),
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": _echo_tools(answer.conversation),
        "top_p": 0.98,
        "truncation": "disabled",
        "usage": _usage(answer) if done else None,
        "user": None,
    }


def _echo_tools(body: JSON) -> list[JSON]:
    """Return the request's tools as the service repeats them: loaded ones last, wrapped."""
    brought: dict[str, list[JSON]] = {}
    for namespace, function in loaded_by(items_of(body)):
        plain = {key: function[key] for key in function if key != "defer_loading"}
        brought.setdefault(namespace or function["name"], []).append(plain)
    kept = [tool for tool in body.get("tools") or () if tool.get("name") not in brought]
    kept.sort(key=lambda tool: str(tool["type"]) == "tool_search")
    wrapped = [
        {
            "type": "namespace",
            "name": name,
            "description": functions[0].get("description") or "",
            "tools": functions,
        }
        for name, functions in brought.items()
    ]
    return [*kept, *wrapped]


def _usage(answer: Answer) -> JSON:
    usage = answer.usage
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_written,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    }


def _output(answer: Answer) -> list[dict[str, Any]]:
    """Return the reply's items: hosted searches, reasoning, the text, the calls."""
    items: list[dict[str, Any]] = [dict(item) for item in answer.searches]
    if answer.thinking is not None:
        items.append(_render_reasoning(answer, answer.thinking))
    if answer.text or not answer.calls:
        items.append(_message(answer))
    items += [_call(answer, index, call) for index, call in enumerate(answer.calls)]
    return items


def _render_reasoning(answer: Answer, thinking: str) -> dict[str, Any]:
    item: dict[str, Any] = {
        "id": f"rs_{answer.digest[:40]}",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": thinking}],
    }
    if "reasoning.encrypted_content" in (answer.body.get("include") or ()):
        item["encrypted_content"] = f"standin:{answer.digest}"
    return item


def _message(answer: Answer) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "refusal", "refusal": answer.text}
    if answer.stop_reason != "refusal":
        part = {"type": "output_text", "annotations": [], "logprobs": [], "text": answer.text}
    return {
        "id": f"msg_{answer.digest[:40]}",
        "type": "message",
        "status": "completed",
        "content": [part] if answer.text else [],
        "phase": "commentary" if answer.calls else "final_answer",
        "role": "assistant",
    }


def _call(answer: Answer, index: int, call: AnswerCall) -> dict[str, Any]:
    made = f"{answer.digest[:20]}{index:02d}"
    if call.is_search:
        return {
            "id": f"tsc_{made}",
            "type": "tool_search_call",
            "status": "completed",
            "arguments": parsed_arguments(call.arguments),
            "call_id": f"call_{made}",
            "execution": "client",
        }
    is_cut = answer.stop_reason is not None and isinstance(parsed_arguments(call.arguments), str)
    item = {
        "id": f"fc_{made}",
        "type": "function_call",
        "status": "incomplete" if is_cut else "completed",
        "arguments": call.arguments,
        "call_id": f"call_{made}",
        "name": call.name,
    }
    return item if call.namespace is None else {**item, "namespace": call.namespace}


def _item_events(index: int, item: JSON) -> Iterator[dict[str, Any]]:
    """Yield the opening, parts and end of one item; a search call has no parts."""
    kind = item["type"]
    opened = {**item, **_OPENED_FIELDS[kind]}
    if "status" in item:
        opened["status"] = "in_progress"
    if kind == "tool_search_call" and item["call_id"]:
        opened["call_id"] = f"{item['call_id']}_opening"
    yield {"type": "response.output_item.added", "output_index": index, "item": opened}
    place = {"item_id": item["id"], "output_index": index}
    if kind == "message":
        yield from _text_events(item, place)
    elif kind == "function_call":
        yield from _argument_events(item, place)
    elif kind == "reasoning":
        yield from _summary_events(item, place)
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _text_events(item: JSON, place: JSON) -> Iterator[dict[str, Any]]:
    for number, part in enumerate(item["content"]):
        here = {**place, "content_index": number}
        refuses = part["type"] == "refusal"
        extra: dict[str, Any] = {} if refuses else {"logprobs": []}
        key = "refusal" if refuses else "text"
        prefix = "response.refusal" if refuses else "response.output_text"
        started = {"type": "response.content_part.added", "part": {**part, key: ""}}
        yield {**started, **here}
        for piece in pieces(part[key]):
            yield {"type": f"{prefix}.delta", "delta": piece, **extra, **here}
        yield {"type": f"{prefix}.done", key: part[key], **extra, **here}
        yield {"type": "response.content_part.done", "part": part, **here}


def _argument_events(item: JSON, place: JSON) -> Iterator[dict[str, Any]]:
    prefix = "response.function_call_arguments"
    for piece in pieces(item["arguments"]):
        yield {"type": f"{prefix}.delta", "delta": piece, **place}
    yield {"type": f"{prefix}.done", "arguments": item["arguments"], **place}


def _summary_events(item: JSON, place: JSON) -> Iterator[dict[str, Any]]:
    prefix = "response.reasoning_summary"
    for number, part in enumerate(item["summary"]):
        here = {**place, "summary_index": number}
        yield {"type": f"{prefix}_part.added", "part": {**part, "text": ""}, **here}
        for piece in pieces(part["text"]):
            yield {"type": f"{prefix}_text.delta", "delta": piece, **here}
        yield {"type": f"{prefix}_text.done", "text": part["text"], **here}
        yield {"type": f"{prefix}_part.done", "part": part, **here}
