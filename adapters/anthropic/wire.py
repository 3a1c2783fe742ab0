"""Requests in Anthropic's Messages format; no other module writes its fields.

Needs no SDK. Sources: Anthropic, "Messages API"; "Tool search tool" (`defer_loading`,
`tool_reference`, custom tool search); "Prompt caching" (`cache_control`, at most four
breakpoints); "Extended thinking" (blocks go back unchanged); `MessageCreateParams` of
the anthropic SDK.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Unpack
from urllib.parse import unquote_to_bytes

from tool_search.adapters.anthropic.reply import EMPTY_TEXT, THINKING
from tool_search.adapters.wire.requests import (
    RequestOptions,
    encoded_body,
    encoded_messages,
    refers,
    request_object,
    result_text,
    settled_count,
    with_extra_body,
)
from tool_search.adapters.wire.schemas import sent_description, sent_schema_json, sent_under
from tool_search.adapters.wire.values import arguments_object
from tool_search.core.catalog.naming import NameRule, wire_id, wire_name
from tool_search.core.messages import (
    ContentPart,
    DeclaredTool,
    ImagePart,
    Message,
    ReferencePart,
    RequestPlan,
    TextPart,
    ToolCall,
    ToolList,
)
from tool_search.core.profiles import ProviderProfile
from tool_search.core.services import SearchResult
from tool_search.core.values.json import compact_json
from tool_search.providers.prompt_cache import CachePlan, cache_plan, marked_tool

__all__ = ["MAX_TOKENS", "encode", "encode_result", "encode_tools", "to_wire"]

MAX_TOKENS = 32_000
"""Limit of a reply's tokens for an unknown model; the field is required."""

_BREAKPOINT = {"type": "ephemeral"}


def to_wire(
    plan: RequestPlan, profile: ProviderProfile, **options: Unpack[RequestOptions]
) -> dict[str, Any]:
    """Return the request as a JSON object; see `RequestOptions` for the options."""
    return request_object(encode, plan, profile, options)


def encode(plan: RequestPlan, profile: ProviderProfile, **options: Unpack[RequestOptions]) -> bytes:
    """Return `to_wire` as JSON in UTF-8; parts that later requests repeat are written once."""
    marked = _marked_messages(plan, profile, options)
    settled = settled_count(
        plan, marked=marked, is_written=lambda said: bool(_blocks(said, profile))
    )
    write = partial(_messages, profile, marked)
    rest = write(plan.messages[settled:], settled)
    body = _body(plan, profile, rest, options)
    messages = encoded_messages(plan, profile, write, settled=settled, rest=rest)
    tools = encode_tools(plan.tools, profile) if plan.tools else None
    return encoded_body(body, tools, messages=messages)


def encode_tools(tools: ToolList, profile: ProviderProfile) -> bytes:
    """Return the `tools` of a request as JSON in UTF-8; each list is written once."""
    key = f"anthropic/{sent_under(profile)}/{profile.cache == 'explicit'}"
    marked = _marked_tool(tools, profile)
    return tools.encoded(key, partial(_tool_json, profile=profile, marked=marked))


def encode_result(result: SearchResult, profile: ProviderProfile) -> str | list[dict[str, Any]]:
    """Return the `content` of a search's `tool_result`.

    With the strategy `claude`, `tool_reference` blocks, each of which must name a tool that
    the request declares; JSON text if nothing was found, and with any other strategy.
    """
    if not refers(result, profile):
        return result_text(result, profile)
    return _references([ReferencePart(result.names)], profile.name_rule)


def _marked_tool(tools: ToolList, profile: ProviderProfile) -> DeclaredTool | None:
    index = marked_tool(tools, profile)
    return None if index is None else tools[index]


def _tool_json(
    entry: DeclaredTool, *, profile: ProviderProfile, marked: DeclaredTool | None
) -> str:
    tool = entry.tool
    name = wire_name(tool.name, profile.name_rule)
    description = compact_json(sent_description(tool, profile))
    described = f'"description":{description},' if tool.description else ""
    more = ""
    if entry.deferred:
        more = ',"defer_loading":true'
    elif entry is marked:
        more = f',"cache_control":{compact_json(_BREAKPOINT)}'
    return f'{{"name":"{name}",{described}"input_schema":{sent_schema_json(tool, profile)}{more}}}'


def _body(
    plan: RequestPlan,
    profile: ProviderProfile,
    messages: Sequence[Mapping[str, Any]],
    options: RequestOptions,
) -> dict[str, Any]:
    caches = _caches(plan, profile, options)
    body: dict[str, Any] = {
        "model": profile.model,
        "max_tokens": profile.max_output_tokens or MAX_TOKENS,
    }
    if options.get("stream", True):
        body["stream"] = True
    if plan.tools and plan.tool_use == "none":
        body["tool_choice"] = {"type": "none"}
    if plan.system.strip():
        block = {"type": "text", "text": plan.system, "cache_control": _BREAKPOINT}
        body["system"] = [block] if caches.system else plan.system
    body["messages"] = messages
    merged = with_extra_body(body, options)
    if _is_begun_without_thinking(messages, merged.get("thinking")):
        merged["thinking"] = {"type": "disabled"}
    return merged


def _caches(plan: RequestPlan, profile: ProviderProfile, options: RequestOptions) -> CachePlan:
    # A mark at the top is one more: the service then marks the last block itself.
    extra = options.get("extra_body") or {}
    return cache_plan(plan, profile, reserved=extra.get("cache_control") is not None)


def _marked_messages(
    plan: RequestPlan, profile: ProviderProfile, options: RequestOptions
) -> frozenset[int]:
    return frozenset(_caches(plan, profile, options).messages)


def _is_begun_without_thinking(messages: Sequence[Mapping[str, Any]], thinking: object) -> bool:
    """True if thinking with a budget would be refused: another model began the turn's calls.

    The last reply then does not begin with thinking, and the service wants thinking disabled
    until the calls are answered. Adaptive thinking has no such rule.
    """
    if not isinstance(thinking, Mapping) or thinking.get("type") != "enabled":
        return False
    if len(messages) < 2 or messages[-2]["role"] != "assistant":
        return False
    answers = any(block["type"] == "tool_result" for block in messages[-1]["content"])
    return answers and messages[-2]["content"][0]["type"] not in THINKING


@dataclass(slots=True)
class _Turn:
    """A message on the wire; results of calls come before everything else."""

    role: str
    results: list[dict[str, Any]] = field(default_factory=list)
    rest: list[dict[str, Any]] = field(default_factory=list)


def _messages(
    profile: ProviderProfile, marked: frozenset[int], history: Sequence[Message], start: int = 0
) -> list[dict[str, Any]]:
    """Write consecutive messages of a plan, the first of which has this index."""
    turns: list[_Turn] = []
    for index, message in enumerate(history, start):
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, profile)
        if index in marked:
            blocks = _with_breakpoint(blocks)
        if not blocks:
            continue
        if not turns or turns[-1].role != role:
            turns.append(_Turn(role))
        for block in blocks:
            is_result = block["type"] == "tool_result"
            (turns[-1].results if is_result else turns[-1].rest).append(block)
    if start == 0 and (not turns or turns[0].role != "user"):
        turns.insert(0, _Turn("user", rest=[{"type": "text", "text": EMPTY_TEXT}]))
    return [{"role": turn.role, "content": [*turn.results, *turn.rest]} for turn in turns]


def _with_breakpoint(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the blocks with a cache breakpoint on the last one that may have it."""
    for index in range(len(blocks) - 1, -1, -1):
        if blocks[index]["type"] not in THINKING:
            block = {**blocks[index], "cache_control": _BREAKPOINT}
            return [*blocks[:index], block, *blocks[index + 1 :]]
    return blocks


def _blocks(message: Message, profile: ProviderProfile) -> list[dict[str, Any]]:
    is_own = message.native is not None and message.native.origin == profile.origin
    own = message.native.blocks if message.native is not None and is_own else ()
    if message.role == "tool":
        return _result(message, profile, own)
    parts = _parts(message.content)
    if message.role == "user":
        return [dict(block) for block in own] or parts or [{"type": "text", "text": EMPTY_TEXT}]
    native = _native(message, own if profile.returns_reasoning else (), profile.name_rule)
    if native and _call_ids(native) == [wire_id(call.id) for call in message.tool_calls]:
        return [*_missing_thinking(native, profile), *native]
    blocks = [*parts, *(_call(call, profile.name_rule) for call in message.tool_calls)]
    return [*_missing_thinking(blocks, profile), *blocks]


def _missing_thinking(
    blocks: Sequence[Mapping[str, Any]], profile: ProviderProfile
) -> Iterator[dict[str, Any]]:
    """Yield the thinking that a compatible endpoint wants before calls, if it wants any."""
    kinds = {block["type"] for block in blocks}
    if profile.missing_reasoning is not None and "tool_use" in kinds and not kinds & THINKING:
        yield {"type": "thinking", "thinking": profile.missing_reasoning, "signature": ""}


def _native(
    message: Message, blocks: Iterable[Mapping[str, Any]], rule: NameRule
) -> list[dict[str, Any]]:
    """Return a reply's own blocks with the ids and names of calls that the message has.

    The name in a block may be one that the format does not allow, or an earlier name of the
    search tool.
    """
    names = {
        wire_id(call.id): wire_name(call.name or EMPTY_TEXT, rule) for call in message.tool_calls
    }
    return [_with_wire_name(b, names) if b["type"] == "tool_use" else dict(b) for b in blocks]


def _with_wire_name(block: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    call_id = wire_id(block["id"])
    return {**block, "id": call_id, "name": names.get(call_id, EMPTY_TEXT)}


def _call_ids(blocks: Iterable[Mapping[str, Any]]) -> list[str]:
    return [block["id"] for block in blocks if block["type"] == "tool_use"]


def _call(call: ToolCall, rule: NameRule) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": wire_id(call.id),
        "name": wire_name(call.name or EMPTY_TEXT, rule),
        "input": arguments_object(call),
    }


def _result(
    message: Message, profile: ProviderProfile, own: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return a call's result; references are alone in it, and other text follows it.

    Args:
        message: The result.
        profile: The service.
        own: The content in the service's form, if it has more than text and pictures.
    """
    result: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": wire_id(message.tool_call_id or ""),
    }
    if profile.message_rules != "alternating":
        result["is_error"] = message.is_error
    parts = (TextPart(message.content),) if isinstance(message.content, str) else message.content
    references = _references(parts, profile.name_rule)
    if message.is_error:
        # An error takes text alone.
        texts = [compact_json([r["tool_name"] for r in references])] if references else []
        result["content"] = "\n".join([*texts, message.text]).strip() or EMPTY_TEXT
        return [result]
    texts_and_images = _parts(parts)
    given = [dict(block) for block in own]
    result["content"] = references or given or texts_and_images or EMPTY_TEXT
    return [result, *(texts_and_images if references else ())]


def _references(parts: Iterable[ContentPart], rule: NameRule) -> list[dict[str, Any]]:
    names = [name for part in parts if isinstance(part, ReferencePart) for name in part.names]
    return [{"type": "tool_reference", "tool_name": wire_name(name, rule)} for name in names]


def _parts(content: str | Sequence[ContentPart]) -> list[dict[str, Any]]:
    """Return text and pictures as blocks; blank text is left out, since it is refused."""
    parts = (TextPart(content),) if isinstance(content, str) else content
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, ImagePart):
            blocks.append({"type": "image", "source": _image_source(part.url)})
        elif isinstance(part, TextPart) and part.text.strip():
            blocks.append({"type": "text", "text": part.text})
    return blocks


def _image_source(url: str) -> dict[str, Any]:
    """Return the source of a picture: its address, or its bytes in Base64 (RFC 2397)."""
    if not url.startswith("data:"):
        return {"type": "url", "url": url}
    head, _, data = url.removeprefix("data:").partition(",")
    kind, *options = head.split(";")
    if "base64" not in options:
        data = base64.b64encode(unquote_to_bytes(data)).decode("ascii")
    return {"type": "base64", "media_type": kind or "image/png", "data": data}
