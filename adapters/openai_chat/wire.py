"""Requests in OpenAI's Chat Completions format; no other module writes its fields.

Needs no SDK. Sources: OpenAI, "Chat Completions API" and its OpenAPI document;
"Function calling"; "Structured outputs" (`strict`: no schema is changed for it);
DeepSeek, "Thinking mode" (`reasoning_content` of every reply with calls goes back, Kimi
alike); OpenRouter, "Reasoning tokens" (`reasoning_details` go back unchanged); Google,
"OpenAI compatibility" (`extra_content` of a call); Moonshot AI, "Dynamic tool loading"
(tools in a system message). What other vendors refuse is in `providers/known.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any, Unpack

from tool_search.adapters.openai_chat.turns import is_written, ordered_messages
from tool_search.adapters.wire.requests import (
    RequestOptions,
    definitions_in,
    encoded_body,
    encoded_messages,
    request_object,
    result_text,
    result_texts,
    settled_count,
    user_content,
    with_extra_body,
)
from tool_search.adapters.wire.schemas import (
    is_strict,
    sent_description,
    sent_schema,
    sent_schema_json,
    sent_under,
)
from tool_search.adapters.wire.values import arguments_json, text_of
from tool_search.core.catalog.naming import NameRule, wire_id, wire_name
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import (
    ContentPart,
    DeclaredTool,
    ImagePart,
    Message,
    RequestPlan,
    ToolCall,
    ToolList,
)
from tool_search.core.profiles import ProviderProfile
from tool_search.core.services import SearchResult
from tool_search.core.settings import DefinitionsRole
from tool_search.core.values.json import compact_json
from tool_search.i18n import text
from tool_search.providers.known import OWN_HOSTS

__all__ = ["REASONING_FIELDS", "encode", "encode_result", "encode_tools", "to_wire"]

REASONING_FIELDS = ("reasoning_details", "reasoning_content", "reasoning")
"""The fields of reasoning, the most exact first; one of them is kept of a reply."""

# Name of a call that the model left without one: a request with an empty name is refused.
_NAMELESS = "unnamed"
# The effort that kimi-cli states (1616) if a gateway wants one with `reasoning_content`.
_EFFORT = "high"


def to_wire(
    plan: RequestPlan, profile: ProviderProfile, **options: Unpack[RequestOptions]
) -> dict[str, Any]:
    """Return the request as a JSON object; see `RequestOptions` for the options."""
    return request_object(encode, plan, profile, options)


def encode(plan: RequestPlan, profile: ProviderProfile, **options: Unpack[RequestOptions]) -> bytes:
    """Return `to_wire` as JSON in UTF-8; parts that later requests repeat are written once."""
    tools = encode_tools(plan.tools, profile) if plan.tools else None
    if profile.states_effort:
        # The effort is stated if any message has reasoning, so all messages are needed.
        whole = _body(plan, profile, options)
        return encoded_body(whole, tools)
    write = partial(_messages, plan, profile)
    settled = settled_count(plan, is_written=is_written)
    messages = encoded_messages(
        plan,
        (profile, plan.strategy, plan.system),
        write,
        settled=settled,
        rest=write(plan.messages[settled:], settled),
    )
    later = replace(plan, messages=())
    body = _body(later, profile, options)
    return encoded_body(body, tools, messages=messages)


def encode_tools(tools: ToolList, profile: ProviderProfile) -> bytes:
    """Return the `tools` of a request as JSON in UTF-8; each list is written once."""
    key = f"openai_chat/{sent_under(profile)}"
    return tools.encoded(key, partial(_tool_json, profile=profile))


def encode_result(result: SearchResult, profile: ProviderProfile) -> str:
    """Return the `content` of a search's tool message: JSON text."""
    return result_text(result, profile)


def _tool_json(entry: DeclaredTool, profile: ProviderProfile) -> str:
    tool = entry.tool
    name = wire_name(tool.name, profile.name_rule)
    description = compact_json(sent_description(tool, profile))
    described = f'"description":{description},' if tool.description else ""
    strict = profile.takes_strict and is_strict(sent_schema(tool, profile))
    more = ',"strict":true' if strict else ""
    schema = sent_schema_json(tool, profile)
    function = f'{{"name":"{name}",{described}"parameters":{schema}{more}}}'
    return f'{{"type":"function","function":{function}}}'


def _body(
    plan: RequestPlan,
    profile: ProviderProfile,
    options: RequestOptions,
) -> dict[str, Any]:
    body: dict[str, Any] = {"model": profile.model}
    if options.get("stream", True):
        body["stream"] = True
        if profile.takes_stream_options:
            body["stream_options"] = {"include_usage": True}
    if profile.max_output_tokens is not None:
        # OpenAI's reasoning models refuse the older name; other services do not know the newer.
        is_vendors = profile.origin.startswith(f"openai_chat:{OWN_HOSTS['openai_chat']}/")
        limit = "max_completion_tokens" if is_vendors else "max_tokens"
        body[limit] = profile.max_output_tokens
    if plan.tools and plan.tool_use == "none":
        body["tool_choice"] = "none"
    body["messages"] = messages = _messages(plan, profile, plan.messages)
    if profile.states_effort and any(m.get("reasoning_content") for m in messages):
        body["reasoning_effort"] = _EFFORT
    if plan.tools and not profile.reasons_with_tools:
        body["reasoning_effort"] = "none"
    return with_extra_body(body, options)


def _messages(
    plan: RequestPlan, profile: ProviderProfile, history: Sequence[Message], start: int = 0
) -> list[dict[str, Any]]:
    """Write consecutive messages of a plan, the first of which has this index."""
    messages: list[dict[str, Any]] = []
    if start == 0 and plan.system.strip():
        messages.append({"role": "system", "content": plan.system})
    role = plan.facts.definitions_role if plan.facts.sends_definitions_in_messages else None
    pending: list[Tool] = []
    for message in ordered_messages(history, profile):
        if message.role == "tool":
            messages.append(_result(message, profile))
            pending += definitions_in(message)
            continue
        # After all results of a reply: services refuse a message between them.
        messages.extend(_tools_message(pending, role, profile))
        pending = []
        if message.role == "user":
            messages.append({"role": "user", "content": _content(message.content)})
        else:
            messages.extend(_tools_message(definitions_in(message), role, profile))
            messages.append(_reply(message, profile))
    return [*messages, *_tools_message(pending, role, profile)]


def _tools_message(
    tools: Sequence[Tool], role: DefinitionsRole | None, profile: ProviderProfile
) -> Iterator[dict[str, Any]]:
    """Yield the message that declares tools from its place on; it must not have `content`."""
    if tools and role is not None:
        functions = [json.loads(_tool_json(DeclaredTool(tool), profile)) for tool in tools]
        yield {"role": role, "tools": functions}


def _reply(message: Message, profile: ProviderProfile) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": "assistant", "content": message.text or profile.empty_content}
    native = message.native
    is_own = native is not None and native.origin == profile.origin and native.blocks
    own: Mapping[str, Any] = native.blocks[0] if native is not None and is_own else {}
    wire |= _reasoning(own, profile, has_calls=bool(message.tool_calls))
    if message.tool_calls:
        extras = own.get("extra_content") or _missing_extras(profile)
        wire["tool_calls"] = [
            _call(call, profile.name_rule, extra)
            for call, extra in zip_longest(message.tool_calls, extras[: len(message.tool_calls)])
        ]
    return wire


def _missing_extras(profile: ProviderProfile) -> Sequence[object]:
    """Return the signature of a foreign reply's first call: of parallel ones Google signs that."""
    signature = profile.missing_signature
    return () if signature is None else ({"google": {"thought_signature": signature}},)


def _reasoning(
    own: Mapping[str, Any], profile: ProviderProfile, *, has_calls: bool
) -> dict[str, Any]:
    """Return the fields of a reply's reasoning, the same in every request that has the reply."""
    if not profile.returns_reasoning:
        return {}
    fields = {name: own[name] for name in REASONING_FIELDS if name in own}
    missing = profile.missing_reasoning
    is_wanted = has_calls or profile.reasoning_in_answers
    if not is_wanted or missing is None or "reasoning_content" in fields:
        return fields
    # A service that asked for `reasoning_content` when it had another field wants that one.
    if not fields or missing:
        fields["reasoning_content"] = text_of(fields.get("reasoning")) or missing
    return fields


def _call(call: ToolCall, rule: NameRule, extra: object) -> dict[str, Any]:
    wire: dict[str, Any] = {
        "id": wire_id(call.id),
        "type": "function",
        "function": {
            "name": wire_name(call.name or _NAMELESS, rule),
            "arguments": arguments_json(call),
        },
    }
    return {**wire, "extra_content": extra} if extra else wire


def _result(message: Message, profile: ProviderProfile) -> dict[str, Any]:
    """Return a call's result; its content is a string, since many endpoints refuse parts."""
    rule = profile.name_rule
    content = "\n".join(result_texts(message.content, rule))
    parts = () if isinstance(message.content, str) else message.content
    pictures = sum(isinstance(part, ImagePart) for part in parts)
    if pictures and not content.strip():
        # From a history of another client: results of ours describe their pictures.
        content = text("call.pictures", "en-US", count=pictures)
    wire = {"role": "tool", "tool_call_id": wire_id(message.tool_call_id or ""), "content": content}
    if profile.names_results:
        wire["name"] = wire_name(message.name or _NAMELESS, rule)
    return wire


def _content(content: str | Sequence[ContentPart]) -> str | list[Mapping[str, Any]]:
    return user_content(
        content,
        text_type="text",
        picture=lambda url: {"type": "image_url", "image_url": {"url": url}},
    )
