"""Requests in OpenAI's Responses format; no other module writes their fields.

Needs no SDK. Sources: OpenAI, "Responses API" and its OpenAPI document; "Tool search"
(`tool_search_call`, `tool_search_output`, `additional_tools`, namespaces); "Reasoning
models" (encrypted reasoning goes back with its reply); "Conversation
state" (`store`, `previous_response_id`). Ids of items are left out, reasoning's
excepted: the service looks ids up, and with `store: false` finds none.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

from tool_search.adapters.openai_responses.parts import functions_in, is_call
from tool_search.adapters.openai_responses.tools import ToolNamespaces, definitions, encode_tools
from tool_search.adapters.wire.requests import (
    RequestOptions,
    WrittenHistory,
    definitions_in,
    encoded_body,
    request_object,
    result_texts,
    settled_count,
    user_content,
    with_extra_body,
)
from tool_search.adapters.wire.values import arguments_json, arguments_object, text_of
from tool_search.core.catalog.naming import wire_id, wire_name
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import (
    ContentPart,
    ImagePart,
    Message,
    ReferencePart,
    RequestPlan,
    TextPart,
    ToolCall,
)
from tool_search.core.profiles import ProviderProfile
from tool_search.core.values.json import json_bytes

__all__ = ["KEPT_REPLY", "encode", "encode_tools", "history_digest", "loaded_by", "to_wire"]

KEPT_REPLY = "kept_reply"
"""The type of a block of ours in a kept reply: the reply's id at the service, and a digest of
the history that it answered."""

_ENCRYPTED_REASONING = "reasoning.encrypted_content"
# Name of a call that the model left without one: a request with an empty name is refused.
_is_name = re.compile(r"[a-zA-Z0-9_-]{1,64}").fullmatch
_NAMELESS = "unnamed"
# Azure OpenAI and OpenAI: `string_above_max_length`; openclaw 84774, copilot-cli 3594.
_MAX_ID = 64


def to_wire(
    plan: RequestPlan, profile: ProviderProfile, **options: Unpack[RequestOptions]
) -> dict[str, Any]:
    """Return the request as a JSON object; see `RequestOptions` for the options."""
    return request_object(encode, plan, profile, options)


def encode(plan: RequestPlan, profile: ProviderProfile, **options: Unpack[RequestOptions]) -> bytes:
    """Return `to_wire` as JSON in UTF-8; parts that later requests repeat are written once."""
    written, rest = _write_input(plan, profile)
    previous = rest.kept if profile.keeps_replies else None
    body = _body(plan, profile, previous, options)
    tools = encode_tools(plan.tools, profile) if plan.tools else None
    if previous is None:
        items = written.with_rest(rest.items)
    else:
        # The service has what is before the end of the reply that it keeps.
        rest = rest if previous.end >= rest.settled else _whole_input(plan, profile)
        items = WrittenHistory().with_rest(rest.items[previous.end - rest.settled :])
    return encoded_body(body, tools, input=items)


def history_digest(plan: RequestPlan, profile: ProviderProfile) -> str:
    """Return the digest of the history that a reply answers, sent or kept by the service."""
    _, rest = _write_input(plan, profile)
    return rest.digest_through(len(rest.items))


def _body(
    plan: RequestPlan,
    profile: ProviderProfile,
    previous: _KeptReply | None,
    options: RequestOptions,
) -> dict[str, Any]:
    body: dict[str, Any] = {"model": profile.model}
    if options.get("stream", True):
        body["stream"] = True
    if profile.max_output_tokens is not None:
        body["max_output_tokens"] = profile.max_output_tokens
    body["store"] = profile.keeps_replies
    if profile.gives_reasoning:
        body["include"] = [_ENCRYPTED_REASONING]
    if plan.tools and plan.tool_use == "none":
        body["tool_choice"] = "none"
    if plan.system.strip():
        body["instructions"] = plan.system
    if previous is not None:
        body["previous_response_id"] = previous.id
    body["input"] = ()
    return with_extra_body(body, options)


@dataclass(frozen=True, slots=True)
class _KeptReply:
    """A reply that the service keeps, with all items before the index `end`."""

    id: str
    end: int


class _Digest:
    """A digest of the items written so far, as a JSON array."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256(b"[")
        self.count = 0

    def add(self, items: Iterable[Mapping[str, Any]]) -> None:
        for item in items:
            self._hash.update(b",%b" % json_bytes(item) if self.count else json_bytes(item))
            self.count += 1

    def value(self) -> str:
        whole = self._hash.copy()
        whole.update(b"]")
        return whole.hexdigest()[:32]

    def fork(self) -> _Digest:
        other = copy(self)
        other._hash = self._hash.copy()  # noqa: SLF001  # its copy
        return other


@dataclass(slots=True)
class _Input:
    """The items of a request, written message by message.

    Attributes:
        profile: The model that is asked.
        namespaces: The namespaces of the tools that the request declares.
        items: The written items that `drain` has not returned.
        kept: The last reply that the service keeps, if the history is still the same.
        looked_up: Wire names of the functions whose namespace was looked up.
        call_ids: The ids of calls and results that were written.
        settled: The number of items that `drain` has returned.
    """

    profile: ProviderProfile
    namespaces: ToolNamespaces
    _search: str | None
    items: list[dict[str, Any]] = field(default_factory=list)
    kept: _KeptReply | None = None
    looked_up: set[str] = field(default_factory=set)
    call_ids: set[str] = field(default_factory=set)
    settled: int = 0
    _digest: _Digest = field(default_factory=_Digest)
    _searches: set[str] = field(default_factory=set)
    _hosted: dict[str, list[str]] = field(default_factory=dict)
    _pending_tools: list[Tool] = field(default_factory=list)
    _pending_notes: list[str] = field(default_factory=list)
    _pending_pictures: list[ContentPart] = field(default_factory=list)
    _repeated: frozenset[str] = frozenset()

    @classmethod
    def begin(
        cls, plan: RequestPlan, messages: Iterable[Message], profile: ProviderProfile
    ) -> _Input:
        """Return an empty input with the tools of a plan and of these messages."""
        searches = (entry.tool.name for entry in plan.tools if entry.is_search)
        namespaces = ToolNamespaces(plan.tools, profile).extended(messages)
        return cls(profile, namespaces, next(searches, None))

    def can_precede(self, messages: Sequence[Message]) -> bool:
        """True if the written items stay the same when these messages follow."""
        namespaces = self.namespaces.extended(messages)
        repeated = self._repeated_by(messages)
        return self.call_ids.isdisjoint(repeated) and namespaces.agrees(
            self.namespaces, self.looked_up
        )

    def fork(self, messages: Iterable[Message]) -> _Input:
        """Return an input that continues with messages; this one does not change."""
        return replace(
            self,
            namespaces=self.namespaces.extended(messages),
            items=[],
            looked_up=set(),
            call_ids=set(),
            _digest=self._digest.fork(),
            _searches=set(self._searches),
            _hosted={name: list(found) for name, found in self._hosted.items()},
            _pending_tools=list(self._pending_tools),
            _pending_notes=list(self._pending_notes),
            _pending_pictures=list(self._pending_pictures),
        )

    def drain(self) -> list[dict[str, Any]]:
        """Return the items written since the last call of this method."""
        self.digest_through(len(self.items))
        settled, self.items = self.items, []
        self.settled += len(settled)
        return settled

    def digest_through(self, end: int) -> str:
        """Return the digest of everything written before an index of `items`."""
        self._digest.add(self.items[self._digest.count - self.settled : end])
        return self._digest.value()

    def write(self, messages: Sequence[Message]) -> None:
        """Write messages, in order."""
        self._repeated |= self._repeated_by(messages)
        for message in messages:
            self.call_ids.update(call.id for call in message.tool_calls)
            self.call_ids.add(message.tool_call_id or "")
            if self._is_repeated(message):
                continue
            if message.role == "tool":
                self._result(message)
                continue
            # After all results of a reply: the service refuses items between them.
            self._flush()
            if message.role == "user":
                self.items.append({"role": "user", "content": _content(message.content)})
            else:
                self._reply(message)
        self._flush()

    def _repeated_by(self, messages: Iterable[Message]) -> frozenset[str]:
        """Return the ids of searches that the service's own items contain too."""
        own = (m.native for m in messages if m.native and m.native.told and self._native(m))
        return frozenset(native.told for native in own)

    def _is_repeated(self, message: Message) -> bool:
        """True if the service's own items after a message repeat it."""
        return message.tool_call_id in self._repeated or any(
            call.id in self._repeated for call in message.tool_calls
        )

    def _flush(self) -> None:
        self._add_tools(self._pending_tools)
        self.items.extend({"role": "developer", "content": note} for note in self._pending_notes)
        if self._pending_pictures:
            self.items.append({"role": "user", "content": _content(self._pending_pictures)})
        self._pending_tools, self._pending_notes, self._pending_pictures = [], [], []

    def _add_tools(self, tools: Sequence[Tool]) -> None:
        if tools:
            wire = definitions(tools, self.profile, deferred=False, among=self.namespaces.tools)
            self.items.append({"type": "additional_tools", "role": "developer", "tools": wire})

    def _reply(self, message: Message) -> None:
        for call in message.tool_calls:
            if call.name == self._search:
                self._searches.add(wire_id(call.id))
        native = self._native(message)
        for namespace, name in loaded_by(native or ()):
            self._hosted.setdefault(name, []).append(namespace)
        late = definitions_in(message)
        self._add_tools([t for t in late if self._wire_name(t.name) not in self._hosted])
        start = len(self.items)
        if native is None:
            self._think(message)
            if message.text.strip():
                self.items.append({"role": "assistant", "content": message.text})
            self.items.extend(map(self._call, message.tool_calls))
            return
        own = [block for block in native if block["type"] != KEPT_REPLY]
        if not any(block["type"] == "reasoning" and block.get("content") for block in own):
            self._think(message)
        names = {wire_id(call.id): call.name for call in message.tool_calls}
        sent = [self._item_to_send(block, names) for block in own]
        self.items.extend(sent)
        # Also into a namespace: a tool that was unknown may have been added since, with a server.
        moved = any(
            a.get("namespace") != b.get("namespace") for a, b in zip(own, sent, strict=True)
        )
        for block in native:
            if block["type"] != KEPT_REPLY or moved or not self.profile.keeps_replies:
                continue
            if block["input"] == self.digest_through(start):
                self.kept = _KeptReply(text_of(block["id"]), self.settled + len(self.items))

    def _think(self, message: Message) -> None:
        """Write the item that some services want before a reply without reasoning of theirs."""
        missing = self.profile.missing_reasoning
        if missing and (message.tool_calls or message.text.strip()):
            content = [{"type": "reasoning_text", "text": missing}]
            self.items.append({"type": "reasoning", "summary": [], "content": content})

    def _native(self, message: Message) -> Sequence[Mapping[str, Any]] | None:
        """Return the reply's own items, if their calls are still those of the message."""
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
            if is_call(block)
        ]
        # A search that was a function when it was called is one of the service's own now.
        called = [(wire_id(call.id), call.name == self._search) for call in message.tool_calls]
        return blocks if written == called else None

    def _item_to_send(self, block: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
        """Return an item with an id that the format allows and its current namespace.

        Args:
            block: The item.
            names: The names of the reply's calls, by id; the search tool may have had
                another name when it was called.
        """
        if not is_call(block):
            # Copilot and Codex's backend refuse the long ids that they give to reasoning.
            has_long_id = block["type"] == "reasoning" and len(text_of(block.get("id"))) > _MAX_ID
            return {key: block[key] for key in block if not (has_long_id and key == "id")}
        item = {**block, "call_id": wire_id(block["call_id"])}
        if block["type"] != "function_call":
            return item
        item["name"] = name = self._name_of(block, names.get(item["call_id"], ""))
        namespace = self._namespace(name, given=item.pop("namespace", None))
        return item if namespace is None else {**item, "namespace": namespace}

    def _name_of(self, block: Mapping[str, Any], called: str) -> str:
        """Return the wire name of a call that came from the service.

        A call of an unknown tool keeps its name, which may since have become the wire name of
        a tool. A model may also invent a name that every request with it is refused for.
        """
        written = text_of(block.get("name"))
        if written == called and _is_name(written):
            return written
        return self._wire_name(called or _NAMELESS)

    def _namespace(self, name: str, *, given: str | None = None) -> str | None:
        """Return the namespace of a tool; None for the default one.

        A tool is declared by the list, by a message, or by the service's own search.
        """
        self.looked_up.add(name)
        if self.namespaces.is_plain(name):
            return None
        loaded = self._hosted.get(name)
        if loaded:
            return given if given in loaded else loaded[-1]
        return self.namespaces.namespace(name)

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
        call_id, tools = wire_id(message.tool_call_id or ""), definitions_in(message)
        if call_id in self._searches:
            self.items.append(
                {
                    "type": "tool_search_output",
                    "execution": "client",
                    "call_id": call_id,
                    "status": "completed",
                    "tools": definitions(
                        tools, self.profile, deferred=True, among=self.namespaces.tools
                    ),
                }
            )
            # The output has no text: the other text of a result follows it.
            self._pending_notes.extend(_notes(message))
            return
        self._pending_tools.extend(tools)
        content = message.content
        parts = () if isinstance(content, str) else content
        pictures = [part for part in parts if isinstance(part, ImagePart)]
        if pictures and self.profile.takes_result_pictures:
            output = _content(content)
        else:
            output = "\n".join(result_texts(content, self.profile.name_rule))
            self._pending_pictures += pictures
        self.items.append({"type": "function_call_output", "call_id": call_id, "output": output})


class _WrittenInput(WrittenHistory):
    """The items of earlier turns in JSON, and the state that later items depend on.

    Args:
        source: The input that writes them.
    """

    def __init__(self, source: _Input) -> None:
        super().__init__()
        self.source = source

    def precedes(self, messages: tuple[Message, ...]) -> bool:
        """True if these messages continue the written ones and change none of their items."""
        new = messages[len(self.messages) :]
        return super().precedes(messages) and self.source.can_precede(new)

    def write(self, messages: Sequence[Message], _start: int) -> list[dict[str, Any]]:
        """Return the items of messages that are not written yet."""
        self.source.namespaces = self.source.namespaces.extended(messages).flat()
        self.source.write(messages)
        return self.source.drain()


def _write_input(plan: RequestPlan, profile: ProviderProfile) -> tuple[WrittenHistory, _Input]:
    """Return the items of earlier turns, and the input with the others."""
    settled = settled_count(plan)
    if not settled:
        return WrittenHistory(), _whole_input(plan, profile)
    beginning, present = plan.messages[:settled], plan.messages[settled:]
    key = (profile, plan.strategy, plan.tools.fingerprint)
    written = plan.kept.get(_WrittenInput, key)
    if written is None or not written.precedes(beginning):
        written = plan.kept.put(key, _WrittenInput(_Input.begin(plan, beginning, profile)))
    written.extend(beginning, written.write)
    if written.source.can_precede(present):
        rest = written.source.fork(present)
        rest.write(present)
        return written, rest
    # The present turn changes items of earlier turns.
    return WrittenHistory(), _whole_input(plan, profile)


def _whole_input(plan: RequestPlan, profile: ProviderProfile) -> _Input:
    whole = _Input.begin(plan, plan.messages, profile)
    whole.write(plan.messages)
    return whole


def _notes(message: Message) -> Iterator[str]:
    """Yield the text of a search result besides its definitions."""
    parts = () if isinstance(message.content, str) else message.content
    if any(isinstance(part, ReferencePart) for part in parts):
        yield from (part.text for part in parts if isinstance(part, TextPart))


def loaded_by(items: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the namespace and the name of each function that the service's searches loaded."""
    for item in items:
        if item.get("type") == "tool_search_output":
            for namespace, function in functions_in(item.get("tools")):
                name = text_of(function.get("name"))
                if name:
                    yield (name if namespace is None else namespace), name


def _content(content: str | Sequence[ContentPart]) -> str | list[Mapping[str, Any]]:
    return user_content(
        content,
        text_type="input_text",
        picture=lambda url: {"type": "input_image", "image_url": url, "detail": "auto"},
    )
