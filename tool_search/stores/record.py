"""The state of a conversation as plain JSON, for a store and a restart.

Records are in files and services that other programs reach. A value of another shape than
`ConversationRecord.to_dict` writes is refused with its place, before it is used. Unknown
keys are passed over: records of one version number differ in additions alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.history import native_problem
from tool_search.core.conversation.record import (
    BegunCall,
    ConversationState,
    KeyedTurn,
    Omission,
    OmissionReason,
    ShadowTurn,
    ThinkingRecord,
)
from tool_search.core.conversation.synthetic_searches import InsertionPoint
from tool_search.core.discoveries import (
    Discovery,
    DiscoveryWay,
    Mode,
    ModeDecision,
    ModeReason,
    ToolOrderRecord,
)
from tool_search.core.messages import (
    ContentPart,
    ImagePart,
    Message,
    NativeReply,
    Role,
    TextPart,
    ToolCall,
    plain_text,
)
from tool_search.core.settings import SchemaMode
from tool_search.core.values.json import compact_json, plain_copy
from tool_search.errors import CatalogError, UnreadableRecordError
from tool_search.i18n import Language

__all__ = [
    "ConversationRecord",
    "discovery_from_dict",
    "exported_history",
    "message_from_dict",
    "message_to_dict",
]

VERSION = 1
"""Of records. Another number is another shape, which older versions cannot read."""


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
            _check_version(content)
            record: ConversationRecord = _check(_RECORD, content)
            _check_pairs(record.history)
            for omission in record.omissions:
                _check_omission(omission, record.history)
        except (ValueError, CatalogError) as exc:
            raise UnreadableRecordError(str(exc)) from exc
        return record


def discovery_from_dict(content: Mapping[str, Any]) -> Discovery:
    """Return a discovery; `Tool` itself checks its definition.

    Raises:
        ValueError: It has another shape.
    """
    discovery: Discovery = _check(_DISCOVERY, content)
    return discovery


def exported_history(conversation: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return the messages of an exported conversation, for `ToolSearchSession.adopt_history`.

    Args:
        conversation: One of the `conversations` in a file of `tool-search forget --export`.

    Raises:
        UnreadableRecordError: It has no history, or one that this version cannot read.
    """
    history = conversation.get("history", [])
    try:
        messages: tuple[Message, ...] = _check(_HISTORY, history)
        _check_pairs(messages)
    except ValueError as exc:
        key = conversation.get("key")
        raise UnreadableRecordError(f"the exported conversation {key!r}: {exc}") from exc
    return messages


def _shadow_to_dict(turn: ShadowTurn) -> dict[str, Any]:
    return {"message": turn.message, "offered": list(turn.offered)}


def _turn_to_dict(turn: KeyedTurn) -> dict[str, Any]:
    calls = {call_id: call._asdict() for call_id, call in turn.calls.items()}
    done = None if turn.done is None else dict(turn.done)
    return {
        "key": turn.key, "message": turn.message, "at": turn.at, "calls": calls, "done": done,
    }  # fmt: skip


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


def _omission_to_dict(omission: Omission) -> dict[str, Any]:
    return {
        "endpoint": omission.endpoint,
        "turns_before": omission.turns_before,
        "results_before": omission.results_before,
        "opening": [message_to_dict(message) for message in omission.opening],
        "contents": [{"place": n, "why": why} for n, why in omission.contents.items()],
    }


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


_MAX_PROBLEMS = 3
_Count = Annotated[int, Field(ge=0)]
_T = TypeVar("_T")
# JSON has lists where a value has tuples.
_Many = Annotated[tuple[_T, ...], Field(strict=False)]


def _making(make: Callable[..., object]) -> AfterValidator:
    """Make a value of a checked shape, whose fields are its arguments."""
    return AfterValidator(lambda shape: make(**dict(shape)))


def _reading(read: Callable[[Any], object]) -> WrapValidator:
    """Read a value from the JSON as it was written, after a check of its shape."""

    def check_and_read(content: Any, check: ValidatorFunctionWrapHandler) -> object:
        check(content)
        return read(content)

    return WrapValidator(check_and_read)


class _Shape(BaseModel):
    model_config = ConfigDict(strict=True)


class _Definition(_Shape):
    name: str
    active: bool = True
    always_load: bool = False


class _Function(_Shape):
    name: str
    arguments: str


class _Call(_Shape):
    id: str
    function: _Function


class _Address(_Shape):
    url: str


class _Text(_Shape):
    type: Literal["text"]
    text: str


class _Image(_Shape):
    type: Literal["image_url"]
    image_url: _Address


class _Native(_Shape):
    origin: str
    blocks: list[dict[str, Any]]
    told: str = ""


_Part = Annotated[_Text | _Image, Field(discriminator="type")]


class _Message(_Shape):
    role: Role
    content: str | list[_Part]
    tool_calls: list[_Call] = []
    tool_call_id: str | None = None
    name: str | None = None
    is_error: bool = False
    native: _Native | None = None
    turn: str = ""


def _read_messages(contents: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    for place, content in enumerate(contents):
        native = content.get("native")
        if native is not None:
            try:
                plain_copy(native["blocks"])
            except (TypeError, ValueError) as exc:
                raise ValueError(f"{place}.native: {exc}") from exc
    return tuple(map(message_from_dict, contents))


# Read together: a call for each message would cost more than its check.
_Messages = Annotated[list[_Message], _reading(_read_messages)]
_ReadTool = Annotated[_Definition, _reading(Tool.from_dict)]


class _Discovery(_Shape):
    tool: _ReadTool
    via: DiscoveryWay


class _InsertionPoint(_Shape):
    fingerprint: str
    ordinal: _Count
    messages: _Messages
    is_after: bool = Field(default=False, alias="after")


class _ToolOrder(_Shape):
    order: list[str]
    ledger: list[str]
    core: list[str]
    catalog: str
    shown: dict[str, str]
    servers: list[str] = []
    server_of: list[int] | None = None
    listed_names: dict[str, str] = {}
    former: dict[str, Annotated[list[str | None], Field(min_length=2, max_length=2)]] = {}

    @model_validator(mode="after")
    def _has_a_server_for_each_name(self) -> Self:
        numbers = self.server_of
        if numbers is None:
            return self
        if len(numbers) != len(self.order):
            raise ValueError(f"server_of has {len(numbers)} entries, order {len(self.order)}")
        if not all(-2 <= number < len(self.servers) for number in numbers):
            raise ValueError(f"server_of names one that is not among {len(self.servers)} servers")
        return self

    def value(self) -> ToolOrderRecord:
        """Return the order that was written."""
        owners = zip(self.order, self.server_of or (), strict=self.server_of is not None)
        sources = {
            name: (
                None if number == _OWN else self.servers[number],
                self.listed_names.get(name, name),
            )
            for name, number in owners
            if number != _NOBODY
        }
        return ToolOrderRecord(
            catalog_order=tuple(self.order),
            declared_order=tuple(self.ledger),
            core=tuple(self.core),
            catalog=self.catalog,
            shown=self.shown,
            sources=None if self.server_of is None else sources,
            former={name: (server, str(listed)) for name, (server, listed) in self.former.items()},
        )


class _Thinking(_Shape):
    holds_from: _Count
    messages: _Count
    digest: str


class _LeftOutContent(_Shape):
    place: _Count
    why: OmissionReason


class _Omission(_Shape):
    endpoint: str
    turns_before: _Count
    results_before: _Count
    opening: _Messages
    contents: list[_LeftOutContent]

    def value(self) -> Omission:
        """Return the omission that was written."""
        contents = {each.place: each.why for each in self.contents}
        return Omission(**{**dict(self), "contents": contents})


class _ShadowTurn(_Shape):
    message: str
    offered: _Many[str]


class _Answer(_Shape):
    answer: str
    provider: str
    steps: _Count
    usage: dict[str, _Count]
    stop_reason: str


class _BegunCall(_Shape):
    tool: str
    key: str
    has_ended: bool


class _KeyedTurn(_Shape):
    key: str
    message: str
    at: float
    calls: dict[str, Annotated[_BegunCall, _making(BegunCall)]]
    done: Annotated[_Answer | None, _reading(lambda content: content)]


class _Record(_Shape):
    language: Language
    mode: Mode
    reason: ModeReason
    search_tool: _ReadTool
    tool_order: Annotated[_ToolOrder, AfterValidator(_ToolOrder.value)] = Field(alias="roster")
    discoveries: _Many[Annotated[_Discovery, _making(Discovery)]]
    insertion_points: _Many[Annotated[_InsertionPoint, _making(InsertionPoint)]] = Field(
        alias="anchors"
    )
    history: _Messages
    thinking: Annotated[_Thinking, _making(ThinkingRecord)]
    left_out: dict[str, str] = {}
    configured: SchemaMode | None = None
    listing: str = ""
    former_search_names: _Many[str] = ()
    omissions: _Many[Annotated[_Omission, AfterValidator(_Omission.value)]] = ()
    shadow: _Many[Annotated[_ShadowTurn, _making(ShadowTurn)]] = ()
    turns: _Many[Annotated[_KeyedTurn, _making(KeyedTurn)]] = ()

    def value(self) -> ConversationRecord:
        """Return the record that was written."""
        fields = dict(self)
        mode, reason = fields.pop("mode"), fields.pop("reason")
        # In records of earlier versions the reason implies the configured mode.
        if "configured" not in self.model_fields_set and reason == "configured":
            fields["configured"] = mode
        return ConversationRecord(decision=ModeDecision(mode=mode, reason=reason), **fields)


_RECORD = TypeAdapter(Annotated[_Record, AfterValidator(_Record.value)])
_DISCOVERY = TypeAdapter(Annotated[_Discovery, _making(Discovery)])
_HISTORY = TypeAdapter(_Messages)


def _check_version(content: object) -> None:
    version = content.get("version", VERSION) if isinstance(content, Mapping) else VERSION
    if version != VERSION or isinstance(version, bool):
        raise ValueError(
            f"it is of version {version!r}, known is {VERSION}; update the library to read it"
        )


def _check(adapter: TypeAdapter[Any], content: object) -> Any:
    try:
        return adapter.validate_python(content)
    except ValidationError as exc:
        errors = exc.errors(include_url=False, include_context=False, include_input=False)
        problems = [
            f"{'.'.join(map(str, error['loc'])) or 'it'}: {error['msg'][:1].lower()}"
            f"{error['msg'][1:]}"
            for error in errors[:_MAX_PROBLEMS]
        ]
        more = f"; and {len(errors) - _MAX_PROBLEMS} more" if len(errors) > _MAX_PROBLEMS else ""
        raise ValueError("; ".join(problems) + more) from exc


def _check_omission(omission: Omission, history: Sequence[Message]) -> None:
    """Check that requests begin with a message of the user's, and pairs stay together."""
    _check_pairs(omission.opening)
    place = omission.turns_before
    if place and (place > len(history) or not omission.opening):
        raise ValueError(f"omissions: {place} messages and no opening, or more than there are")
    if 0 < place < len(history) and history[place].role == "tool":
        raise ValueError(f"omissions: history.{place} is a result whose call is left out")
    indexes = [omission.results_before - 1, *omission.contents]
    if max(indexes) >= len(history):
        raise ValueError(f"omissions: it speaks of history.{max(indexes)}, which is not there")


def _check_pairs(history: Sequence[Message]) -> None:
    """Check that each call has one result right after the calls: providers want it so."""
    waiting: set[str] = set()
    for place, message in enumerate(history):
        if message.role == "tool":
            if message.tool_call_id not in waiting:
                raise ValueError(f"history.{place}: it is the result of no call before it")
            waiting.remove(message.tool_call_id)
            continue
        if waiting:
            raise ValueError(f"history.{place}: a call before it has no result")
        waiting = {call.id for call in message.tool_calls}
        if waiting and (message.role != "assistant" or len(waiting) < len(message.tool_calls)):
            raise ValueError(f"history.{place}: its calls are no assistant's, or share an id")
    if waiting:
        raise ValueError("history: its last calls have no results")
