"""Checks that a JSON value is the record of a conversation.

Records are in files and services that other programs reach. A value of another shape than
`ConversationRecord.to_dict` writes is refused with its place, before it is used. Unknown
keys are passed over: records of one version number differ in additions alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from tool_search.core.conversation.record import OmissionReason
from tool_search.core.discovery.modes import Mode, ModeReason
from tool_search.core.discovery.state import DiscoveryWay
from tool_search.core.messages import Role
from tool_search.core.settings import SchemaMode
from tool_search.core.values.json import plain_copy
from tool_search.i18n import Language

__all__ = ["VERSION", "check_discovery", "check_history", "check_record"]

VERSION = 1
"""Of records. Another number is another shape, which older versions cannot read."""

_MAX_PROBLEMS = 3
_Count = Annotated[int, Field(ge=0)]


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


class _Discovery(_Shape):
    tool: _Definition
    via: DiscoveryWay


class _InsertionPoint(_Shape):
    fingerprint: str
    ordinal: _Count
    messages: list[_Message]
    after: bool = False


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
    opening: list[_Message]
    contents: list[_LeftOutContent]


class _ShadowTurn(_Shape):
    message: str
    offered: list[str]


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
    calls: dict[str, _BegunCall]
    done: _Answer | None


class _Record(_Shape):
    language: Language
    mode: Mode
    reason: ModeReason
    search_tool: _Definition
    roster: _ToolOrder
    discoveries: list[_Discovery]
    anchors: list[_InsertionPoint]
    history: list[_Message]
    thinking: _Thinking
    left_out: dict[str, str] = {}
    configured: SchemaMode | None = None
    listing: str = ""
    former_search_names: list[str] = []
    omissions: list[_Omission] = []
    shadow: list[_ShadowTurn] = []
    turns: list[_KeyedTurn] = []


_RECORD = TypeAdapter(_Record)
_DISCOVERY = TypeAdapter(_Discovery)
_HISTORY = TypeAdapter(list[_Message])


def check_record(content: object) -> None:
    """Check that a JSON value has the shape of a record.

    Raises:
        ValueError: It has another; names the places.
    """
    version = content.get("version", VERSION) if isinstance(content, Mapping) else VERSION
    if version != VERSION or isinstance(version, bool):
        raise ValueError(
            f"it is of version {version!r}, known is {VERSION}; update the library to read it"
        )
    record: _Record = _checked(_RECORD, content)
    for place, message in enumerate(record.history):
        if message.native is not None:
            _check_blocks(message.native, f"history.{place}.native")
    _check_pairs(record.history)
    for omission in record.omissions:
        _check_omission(omission, record.history)


def check_history(content: object) -> None:
    """Check that a JSON value has the shape of a history.

    Raises:
        ValueError: It has another; names the places.
    """
    messages: list[_Message] = _checked(_HISTORY, content)
    for place, message in enumerate(messages):
        if message.native is not None:
            _check_blocks(message.native, f"history.{place}.native")
    _check_pairs(messages)


def check_discovery(content: object) -> None:
    """Check that a JSON value has the shape of a discovery; `Tool` itself checks the rest.

    Raises:
        ValueError: It has another.
    """
    _checked(_DISCOVERY, content)


def _checked(adapter: TypeAdapter[Any], content: object) -> Any:
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


def _check_blocks(native: _Native, place: str) -> None:
    try:
        plain_copy(native.blocks)
    except (TypeError, ValueError) as exc:
        raise ValueError(f"{place}: {exc}") from exc


def _check_omission(omission: _Omission, history: Sequence[_Message]) -> None:
    """Check that requests begin with a message of the user's, and pairs stay together."""
    _check_pairs(omission.opening)
    place = omission.turns_before
    if place and (place > len(history) or not omission.opening):
        raise ValueError(f"omissions: {place} messages and no opening, or more than there are")
    if 0 < place < len(history) and history[place].role == "tool":
        raise ValueError(f"omissions: history.{place} is a result whose call is left out")
    indexes = [omission.results_before - 1, *(entry.place for entry in omission.contents)]
    if max(indexes) >= len(history):
        raise ValueError(f"omissions: it speaks of history.{max(indexes)}, which is not there")


def _check_pairs(history: Sequence[_Message]) -> None:
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
