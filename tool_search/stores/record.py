"""The state of a conversation as plain JSON, for a store and a restart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from tool_search.core.catalog.naming import Source
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.history import native_problem
from tool_search.core.conversation.record import (
    BegunCall,
    ConversationState,
    KeyedTurn,
    Omission,
    ShadowTurn,
)
from tool_search.core.conversation.synthetic_searches import InsertionPoint
from tool_search.core.conversation.thinking import ThinkingRecord
from tool_search.core.discovery.modes import ModeDecision
from tool_search.core.discovery.state import Discovery
from tool_search.core.discovery.tool_order import ToolOrderRecord
from tool_search.core.messages import (
    ContentPart,
    ImagePart,
    Message,
    NativeReply,
    TextPart,
    ToolCall,
    plain_text,
)
from tool_search.core.settings import SchemaMode
from tool_search.core.values.json import compact_json
from tool_search.errors import CatalogError, UnreadableRecordError
from tool_search.stores.record_shape import VERSION, check_history, check_record

__all__ = [
    "ConversationRecord",
    "exported_history",
    "message_from_dict",
    "message_to_dict",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRecord(ConversationState):
    """Everything that a conversation needs to go on after a restart, for a store to write.

    `ConversationState` says what it has.
    """

    @classmethod
    def of(cls, state: ConversationState) -> ConversationRecord:
        """Return a state as a record."""
        return cls(**{each.name: getattr(state, each.name) for each in fields(state)})

    def to_dict(self) -> dict[str, Any]:
        """Return the record as a JSON object."""
        return {
            "version": VERSION,
            "language": self.language,
            "mode": self.decision.mode,
            "reason": self.decision.reason,
            "search_tool": self.search_tool.to_dict(),
            "roster": {
                "order": list(self.tool_order.catalog_order),
                "ledger": list(self.tool_order.declared_order),
                "core": list(self.tool_order.core),
                "catalog": self.tool_order.catalog,
                "shown": dict(self.tool_order.shown),
                **_sources_to_dict(self.tool_order),
            },
            "discoveries": [
                {"tool": entry.tool.to_dict(), "via": entry.via} for entry in self.discoveries
            ],
            "anchors": [
                {
                    "fingerprint": point.fingerprint,
                    "ordinal": point.ordinal,
                    "messages": [message_to_dict(message) for message in point.messages],
                    **({"after": True} if point.is_after else {}),
                }
                for point in self.insertion_points
            ],
            "history": [message_to_dict(message) for message in self.history],
            "thinking": asdict(self.thinking),
            "left_out": dict(self.left_out),
            "configured": self.configured,
            "listing": self.listing,
            "former_search_names": list(self.former_search_names),
            "omissions": list(map(_omission_to_dict, self.omissions)),
            **({"shadow": [_shadow_to_dict(turn) for turn in self.shadow]} if self.shadow else {}),
            **({"turns": list(map(_turn_to_dict, self.turns))} if self.turns else {}),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ConversationRecord:
        """Return the record that `to_dict` wrote.

        Raises:
            UnreadableRecordError: It was tampered with, or is of a later version.
        """
        try:
            check_record(content)
            return cls._of_checked(content)
        except (ValueError, CatalogError) as exc:
            raise UnreadableRecordError(str(exc)) from exc

    @classmethod
    def _of_checked(cls, content: Mapping[str, Any]) -> ConversationRecord:
        order = content["roster"]
        return cls(
            language=content["language"],
            decision=ModeDecision(mode=content["mode"], reason=content["reason"]),
            search_tool=Tool.from_dict(content["search_tool"]),
            tool_order=ToolOrderRecord(
                catalog_order=tuple(order["order"]),
                declared_order=tuple(order["ledger"]),
                core=tuple(order["core"]),
                catalog=order["catalog"],
                shown=order["shown"],
                sources=_sources_from_dict(order),
                former={name: (of[0], of[1]) for name, of in order.get("former", {}).items()},
            ),
            discoveries=tuple(
                Discovery(tool=Tool.from_dict(entry["tool"]), via=entry["via"])
                for entry in content["discoveries"]
            ),
            insertion_points=tuple(
                InsertionPoint(
                    fingerprint=point["fingerprint"],
                    ordinal=point["ordinal"],
                    messages=tuple(map(message_from_dict, point["messages"])),
                    is_after=point.get("after", False),
                )
                for point in content["anchors"]
            ),
            history=tuple(map(message_from_dict, content["history"])),
            thinking=ThinkingRecord(
                holds_from=content["thinking"]["holds_from"],
                messages=content["thinking"]["messages"],
                digest=content["thinking"]["digest"],
            ),
            left_out=content.get("left_out", {}),
            configured=_configured(content),
            listing=content.get("listing", ""),
            former_search_names=tuple(content.get("former_search_names", ())),
            omissions=tuple(map(_omission_from_dict, content.get("omissions", ()))),
            shadow=tuple(
                ShadowTurn(turn["message"], tuple(turn["offered"]))
                for turn in content.get("shadow", ())
            ),
            turns=tuple(map(_turn_from_dict, content.get("turns", ()))),
        )


def exported_history(conversation: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return the messages of an exported conversation, for `ToolSearchSession.adopt_history`.

    Args:
        conversation: One of the `conversations` in a file of `tool-search forget --export`.

    Raises:
        UnreadableRecordError: It has no history, or one that this version cannot read.
    """
    history = conversation.get("history", [])
    try:
        check_history(history)
        return tuple(map(message_from_dict, history))
    except ValueError as exc:
        key = conversation.get("key")
        raise UnreadableRecordError(f"the exported conversation {key!r}: {exc}") from exc


def _shadow_to_dict(turn: ShadowTurn) -> dict[str, Any]:
    return {"message": turn.message, "offered": list(turn.offered)}


def _turn_to_dict(turn: KeyedTurn) -> dict[str, Any]:
    calls = {call_id: call._asdict() for call_id, call in turn.calls.items()}
    done = None if turn.done is None else dict(turn.done)
    return {
        "key": turn.key, "message": turn.message, "at": turn.at, "calls": calls, "done": done,
    }  # fmt: skip


def _turn_from_dict(content: Mapping[str, Any]) -> KeyedTurn:
    return KeyedTurn(
        key=content["key"],
        message=content["message"],
        at=content["at"],
        calls={
            call_id: BegunCall(call["tool"], call["key"], call["has_ended"])
            for call_id, call in content["calls"].items()
        },
        done=content["done"],
    )


def _configured(content: Mapping[str, Any]) -> SchemaMode | None:
    """Return the configured mode; in records of earlier versions the reason implies it."""
    if "configured" not in content and content["reason"] != "configured":
        return None
    configured: SchemaMode | None = content.get("configured", content["mode"])
    return configured


_OWN, _NOBODY = -1, -2  # the operator's own tools, and names of the library's


def _sources_to_dict(order: ToolOrderRecord) -> dict[str, Any]:
    """Return the sources of the tools of `order`: servers once, a number for each tool."""
    if order.sources is None:
        return {}
    sources = [order.sources.get(name) for name in order.catalog_order]
    servers = sorted({of[0] for of in sources if of is not None and of[0] is not None})
    numbers: dict[str | None, int] = {None: _OWN}
    numbers |= {server: number for number, server in enumerate(servers)}
    content: dict[str, Any] = {
        "servers": servers,
        "server_of": [_NOBODY if of is None else numbers[of[0]] for of in sources],
    }
    listed = {name: of[1] for name, of in order.sources.items() if of[1] != name}
    if listed:
        content["listed_names"] = listed
    if order.former:
        content["former"] = {name: list(source) for name, source in order.former.items()}
    return content


def _sources_from_dict(content: Mapping[str, Any]) -> dict[str, Source] | None:
    if content.get("server_of") is None:
        return None
    servers, listed = content.get("servers", ()), content.get("listed_names", {})
    return {
        name: (None if number == _OWN else servers[number], listed.get(name, name))
        for name, number in zip(content["order"], content["server_of"], strict=True)
        if number != _NOBODY
    }


def _omission_to_dict(omission: Omission) -> dict[str, Any]:
    return {
        "endpoint": omission.endpoint,
        "turns_before": omission.turns_before,
        "results_before": omission.results_before,
        "opening": [message_to_dict(message) for message in omission.opening],
        "contents": [{"place": n, "why": why} for n, why in omission.contents.items()],
    }


def _omission_from_dict(content: Mapping[str, Any]) -> Omission:
    return Omission(
        endpoint=content["endpoint"],
        turns_before=content["turns_before"],
        results_before=content["results_before"],
        opening=tuple(map(message_from_dict, content["opening"])),
        contents={entry["place"]: entry["why"] for entry in content["contents"]},
    )


def message_to_dict(message: Message) -> dict[str, Any]:
    """Return a message in the neutral form: an OpenAI Chat message under canonical names.

    `is_error`, `is_cut` and `native` are additions of ours; a bot may drop them.
    """
    content: dict[str, Any] = {"role": message.role, "content": _content_to_json(message.content)}
    if message.tool_calls:
        content["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
                **({"is_cut": True} if call.is_cut else {}),
            }
            for call in message.tool_calls
        ]
    if message.role == "tool":
        content["tool_call_id"] = message.tool_call_id
        content["name"] = message.name
    if message.is_error:
        content["is_error"] = True
    if message.native is not None:
        content["native"] = {
            "origin": message.native.origin,
            "blocks": [dict(block) for block in message.native.blocks],
            **({"told": message.native.told} if message.native.told else {}),
        }
    if message.turn:
        content["turn"] = message.turn
    return content


def message_from_dict(content: Mapping[str, Any]) -> Message:
    """Return the message that `message_to_dict` wrote, or an OpenAI Chat message of these roles."""
    native = content.get("native")
    return Message(
        role=content["role"],
        content=_content_from_json(content.get("content")),
        tool_calls=tuple(
            ToolCall(
                id=call["id"],
                name=call["function"]["name"],
                arguments=_arguments_text(call["function"].get("arguments")),
                is_cut=bool(call.get("is_cut")),
            )
            for call in content.get("tool_calls") or ()
        ),
        tool_call_id=content.get("tool_call_id"),
        name=content.get("name"),
        is_error=bool(content.get("is_error")),
        native=_native_from_dict(native) if native else None,
        turn=content.get("turn", ""),
    )


def _native_from_dict(native: Mapping[str, Any]) -> NativeReply | None:
    blocks = tuple(native["blocks"])
    reply = NativeReply(native["origin"], blocks, told=native.get("told", ""))
    # Records of earlier versions may hold blocks under another dialect's origin, which no
    # request can carry. The message says the same without them.
    return None if native_problem(reply) else reply


def _arguments_text(arguments: object) -> str:
    """Return a call's arguments as text; some bots keep them as an object."""
    if isinstance(arguments, str):
        return arguments or "{}"
    return compact_json(arguments or {})


def _content_to_json(content: str | Sequence[ContentPart]) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    return [
        {"type": "image_url", "image_url": {"url": part.url}}
        if isinstance(part, ImagePart)
        else {"type": "text", "text": plain_text((part,))}
        for part in content
    ]


def _content_from_json(content: Any) -> str | tuple[ContentPart, ...]:
    if content is None or isinstance(content, str):
        return content or ""
    parts: list[ContentPart] = []
    for part in content:
        if isinstance(part, str):
            parts.append(TextPart(part))
        elif part.get("type") == "image_url":
            image = part["image_url"]
            parts.append(ImagePart(image if isinstance(image, str) else image["url"]))
        elif isinstance(part.get("text"), str):
            parts.append(TextPart(part["text"]))
    return tuple(parts)
