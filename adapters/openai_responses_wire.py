"""Requests in OpenAI's Responses format: the only place that writes their fields.

Needs no SDK. Sources: OpenAI, "Responses API" and its OpenAPI document; "Tool search"
(`tool_search_call`, `tool_search_output`, `additional_tools`, namespaces); "Reasoning
models" (encrypted reasoning goes back with the reply it belongs to); "Conversation
state" (`store`, `previous_response_id`). Ids of items are left out, reasoning's
excepted: the service looks ids up, and with `store: false` finds none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tool_search.adapters.arguments import arguments_json, arguments_object
from tool_search.adapters.late_tools import late_tools
from tool_search.adapters.openai_responses_tools import (
    ToolHomes,
    definitions,
    encode_tools,
    wire_tools,
)
from tool_search.adapters.wire_values import list_of, mapping_of, text_of
from tool_search.catalog import Tool
from tool_search.messages import (
    ContentPart,
    ImagePart,
    Message,
    ReferencePart,
    RequestPlan,
    TextPart,
    ToolCall,
)
from tool_search.names import wire_id, wire_name
from tool_search.profiles import ProviderProfile
from tool_search.schema import compact_json

__all__ = ["KEPT_REPLY", "brought_by", "encode", "encode_tools", "history_digest", "to_wire"]

KEPT_REPLY = "kept_reply"
"""The type of our own block beside a reply's: its id at the service, and a digest of
the history it answered."""

_ENCRYPTED_REASONING = "reasoning.encrypted_content"
# What stands for a name that a model left empty: no request may have one.
_NAMELESS = "unnamed"


def to_wire(
    plan: RequestPlan,
    profile: ProviderProfile,
    *,
    stream: bool = True,
    extra_body: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The request as a JSON object.

    Args:
        plan: What to ask.
        profile: Whom.
        stream: Whether the reply shall come piece by piece.
        extra_body: More fields, in place of ours where both name one; a null
            takes a field away.
    """
    body = _without_tools(plan, profile, stream=stream, extra_body=extra_body)
    if not plan.tools:
        return body
    return {"tools": wire_tools(plan.tools, profile), **body}


def encode(
    plan: RequestPlan,
    profile: ProviderProfile,
    *,
    stream: bool = True,
    extra_body: Mapping[str, Any] | None = None,
) -> bytes:
    """The same as `to_wire`, as JSON in UTF-8, with the bytes of the tools made once."""
    body = _without_tools(plan, profile, stream=stream, extra_body=extra_body)
    encoded = compact_json(body).encode("utf-8", "replace")
    if not plan.tools:
        return encoded
    return b'{"tools":%b,%b' % (encode_tools(plan.tools, profile), encoded[1:])


def history_digest(plan: RequestPlan, profile: ProviderProfile) -> str:
    """Of all that a request's reply answers, however much of it was sent."""
    items = _Input(plan, profile)
    items.write()
    return _digest(items.items)


def _digest(items: Sequence[Mapping[str, Any]]) -> str:
    encoded = compact_json(items).encode("utf-8", "replace")
    return hashlib.sha256(encoded).hexdigest()[:32]


def _without_tools(
    plan: RequestPlan,
    profile: ProviderProfile,
    *,
    stream: bool,
    extra_body: Mapping[str, Any] | None,
) -> dict[str, Any]:
    body: dict[str, Any] = {"model": profile.model}
    if stream:
        body["stream"] = True
    body["store"] = profile.keeps_replies
    if profile.gives_reasoning:
        body["include"] = [_ENCRYPTED_REASONING]
    if plan.tools and plan.tool_use == "none":
        body["tool_choice"] = "none"
    if plan.system.strip():
        body["instructions"] = plan.system
    items = _Input(plan, profile)
    items.write()
    previous = items.kept if profile.keeps_replies else None
    if previous is not None:
        body["previous_response_id"] = previous.id
    body["input"] = items.items[previous.end :] if previous else items.items
    merged = {**body, **(extra_body or {})}
    return {key: value for key, value in merged.items() if value is not None}


@dataclass(frozen=True, slots=True)
class _KeptReply:
    """A reply that the service keeps, with all before it; behind `end` nothing is known there."""

    id: str
    end: int


@dataclass(slots=True)
class _Input:
    """The items of a request, written message by message.

    Attributes:
        plan: What is asked.
        profile: Who is asked.
        items: What is written.
        kept: The last reply that the service keeps, where the history is still its own.
    """

    plan: RequestPlan
    profile: ProviderProfile
    items: list[dict[str, Any]] = field(default_factory=list)
    kept: _KeptReply | None = None
    _homes: ToolHomes = field(init=False)
    _search: str | None = field(init=False)
    _searches: set[str] = field(default_factory=set)
    _hosted: dict[str, list[str]] = field(default_factory=dict)
    _late: list[Tool] = field(default_factory=list)
    _told: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._homes = ToolHomes(self.plan, self.profile)
        searches = (entry.tool.name for entry in self.plan.tools if entry.is_search)
        self._search = next(searches, None)
        for message in self.plan.messages:
            if message.native is not None and message.native.told and self._native(message):
                self._told.add(message.native.told)

    def write(self) -> None:
        """All messages, in order."""
        for message in self.plan.messages:
            if self._is_told(message):
                continue
            if message.role == "tool":
                self._result(message)
                continue
            # Behind all results of a reply: nothing comes between them.
            self._flush()
            if message.role == "user":
                self.items.append({"role": "user", "content": _content(message.content)})
            else:
                self._reply(message)
        self._flush()

    def _is_told(self, message: Message) -> bool:
        """Whether a message says what the service's own items behind it say."""
        return message.tool_call_id in self._told or any(
            call.id in self._told for call in message.tool_calls
        )

    def _flush(self) -> None:
        self._bring(self._late)
        self._late = []

    def _bring(self, tools: Sequence[Tool]) -> None:
        if tools:
            brought = definitions(tools, self.profile, deferred=False)
            self.items.append({"type": "additional_tools", "role": "developer", "tools": brought})

    def _reply(self, message: Message) -> None:
        for call in message.tool_calls:
            if call.name == self._search:
                self._searches.add(wire_id(call.id))
        native = self._native(message)
        for namespace, name in brought_by(native or ()):
            self._hosted.setdefault(name, []).append(namespace)
        late = late_tools(message)
        self._bring([t for t in late if self._wire_name(t.name) not in self._hosted])
        start = len(self.items)
        if native is None:
            if message.text.strip():
                self.items.append({"role": "assistant", "content": message.text})
            self.items.extend(map(self._call, message.tool_calls))
            return
        own = [block for block in native if block["type"] != KEPT_REPLY]
        names = {wire_id(call.id): call.name for call in message.tool_calls}
        sent = [self._sent_back(block, names) for block in own]
        self.items.extend(sent)
        # Also into one: what was called unknown may have come since, with its server.
        moved = any(
            a.get("namespace") != b.get("namespace") for a, b in zip(own, sent, strict=True)
        )
        for block in native:
            if (
                block["type"] == KEPT_REPLY
                and not moved
                and block["input"] == _digest(self.items[:start])
            ):
                self.kept = _KeptReply(text_of(block["id"]), len(self.items))

    def _native(self, message: Message) -> Sequence[Mapping[str, Any]] | None:
        """The reply's own items, where they still say what the message does."""
        if message.native is None or message.native.origin != self.profile.origin:
            return None
        if not self.profile.returns_reasoning:
            return None
        blocks = message.native.blocks
        if self._search is None and any(b["type"].startswith("tool_search") for b in blocks):
            return None
        written = [
            (wire_id(text_of(block["call_id"])), block["type"] == "tool_search_call")
            for block in blocks
            if _is_call(block)
        ]
        # A search that was a function when it was called is one of the service's own now.
        called = [(wire_id(call.id), call.name == self._search) for call in message.tool_calls]
        return blocks if written == called else None

    def _sent_back(self, block: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
        """An item as it came, under an id that the format allows and in a namespace it has.

        Args:
            block: The item.
            names: The names of the reply's calls, by id: that of the search may be another
                than when it was called.
        """
        if not _is_call(block):
            return dict(block)
        item = {**block, "call_id": wire_id(block["call_id"])}
        if block["type"] != "function_call":
            return item
        # A model may invent a name that no request takes.
        item["name"] = name = self._wire_name(names.get(item["call_id"]) or _NAMELESS)
        namespace = self._namespace(name, given=item.pop("namespace", None))
        return item if namespace is None else {**item, "namespace": namespace}

    def _namespace(self, name: str, *, given: str | None = None) -> str | None:
        """Where the request has a tool: declared, brought by us, or by the service's search."""
        if self._homes.is_plain(name):
            return None
        brought = self._hosted.get(name)
        if brought:
            return given if given in brought else brought[-1]
        return self._homes.namespace(name)

    def _wire_name(self, name: str) -> str:
        return wire_name(name, self.profile.name_rule)

    def _call(self, call: ToolCall) -> dict[str, Any]:
        if call.name == self._search:
            return {
                "type": "tool_search_call",
                "execution": "client",
                "call_id": wire_id(call.id),
                "status": "completed",
                "arguments": arguments_object(call),
            }
        name = self._wire_name(call.name or _NAMELESS)
        item = {
            "type": "function_call",
            "call_id": wire_id(call.id),
            "name": name,
            "arguments": arguments_json(call),
        }
        namespace = self._namespace(name)
        return item if namespace is None else {**item, "namespace": namespace}

    def _result(self, message: Message) -> None:
        call_id, tools = wire_id(message.tool_call_id or ""), late_tools(message)
        if call_id in self._searches:
            self.items.append(
                {
                    "type": "tool_search_output",
                    "execution": "client",
                    "call_id": call_id,
                    "status": "completed",
                    "tools": definitions(tools, self.profile, deferred=True),
                }
            )
            return
        self._late.extend(tools)
        content = message.content
        if not isinstance(content, str) and any(isinstance(part, ImagePart) for part in content):
            output = _content(content)
        else:
            output = "\n".join(_result_texts(content, self.profile))
        self.items.append({"type": "function_call_output", "call_id": call_id, "output": output})


def _is_call(block: Mapping[str, Any]) -> bool:
    """Whether an item is a call that we answer."""
    kind = block["type"]
    return kind == "function_call" or (
        kind == "tool_search_call" and block.get("execution") == "client"
    )


def brought_by(items: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """The functions that the service's own searches brought in, behind their namespaces."""
    for item in items:
        if item.get("type") != "tool_search_output":
            continue
        for tool in map(mapping_of, list_of(item.get("tools"))):
            own = text_of(tool.get("name"))
            members = list_of(tool.get("tools")) if tool.get("type") == "namespace" else [tool]
            names = (text_of(mapping_of(member).get("name")) for member in members)
            yield from ((own, name) for name in names if name)


def _result_texts(content: str | Iterable[ContentPart], profile: ProviderProfile) -> Iterator[str]:
    parts = (TextPart(content),) if isinstance(content, str) else content
    for part in parts:
        if isinstance(part, TextPart):
            yield part.text
        elif isinstance(part, ReferencePart) and not part.tools:
            yield compact_json([wire_name(name, profile.name_rule) for name in part.names])


def _content(content: str | Sequence[ContentPart]) -> str | list[dict[str, Any]]:
    """A user's text, or parts where there are pictures among them."""
    if isinstance(content, str):
        return content
    if not any(isinstance(part, ImagePart) for part in content):
        return "\n".join(part.text for part in content if isinstance(part, TextPart))
    wire: list[dict[str, Any]] = []
    for part in content:
        if isinstance(part, ImagePart):
            wire.append({"type": "input_image", "image_url": part.url, "detail": "auto"})
        elif isinstance(part, TextPart) and part.text:
            wire.append({"type": "input_text", "text": part.text})
    return wire
