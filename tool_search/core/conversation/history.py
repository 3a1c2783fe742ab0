"""Functions of a neutral history: its calls, results and searches."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import get_args

from tool_search.core.catalog.naming import unique_id
from tool_search.core.messages import (
    ImagePart,
    Message,
    NativeReply,
    ReferencePart,
    Role,
    TextPart,
    ToolCall,
)
from tool_search.core.services import SearchResult
from tool_search.core.settings import Dialect
from tool_search.core.values.json import compact_json, shown
from tool_search.errors import SessionError

__all__ = [
    "CallPlace",
    "MessageLog",
    "checked",
    "native_problem",
    "pair_results",
    "results_in_place",
    "results_of_calls",
    "search_results",
    "unanswered_calls",
    "visible_names",
    "with_own_ids",
    "with_searches_named",
    "without_blocks",
]


# A history of another client pairs its calls and results in its own way: two replies in a row
# with both results after them, a user's message before a result, an id that comes back in
# every reply, no id at all. A result that has a call is never lost to any of these.


# It is in no list of tools; craft-agents 449, ControlFlow 107.
_WRAPPERS = ("multi_tool_use.parallel", "multi_tool_use_parallel")

CallPlace = tuple[int, int]
"""The index of a message, and that of a call in it."""


def results_of_calls(history: Sequence[Message]) -> dict[CallPlace, int]:
    """Return the index of each call's result; a call without one is not in it.

    Exact ids are matched first, in the whole history: a result answers the newest call of
    its id that has no result yet, and within the replies in a row that this call is in, the
    oldest. A result before its call counts if nothing else in the history has its id.

    The other results follow. A result without an id answers the oldest unanswered call of
    the last replies in a row, one of its name if it has a name. A result whose id no call
    has answers the oldest of them that has no id.
    """
    found = _match_ids(history)
    _match_without_ids(history, found)
    return found


def results_in_place(history: Sequence[Message]) -> tuple[Message, ...]:
    """Return the history with each result directly after its call's reply, in call order.

    A result gets its call's name and id. One that answers no call stays in its place.
    """
    found = results_of_calls(history)
    moved = set(found.values())
    placed: list[Message] = []
    for index, message in enumerate(history):
        if index in moved:
            continue
        placed.append(message)
        for number, call in enumerate(message.tool_calls):
            result = found.get((index, number))
            if result is not None:
                placed.append(replace(history[result], name=call.name, tool_call_id=call.id))
    return tuple(placed)


@dataclass(slots=True)
class _UnansweredCalls:
    """Calls without a result, oldest first, by the run of replies that they are in."""

    runs: list[tuple[int, deque[CallPlace]]] = field(default_factory=list)

    def add(self, run: int, place: CallPlace) -> None:
        if not self.runs or self.runs[-1][0] != run:
            self.runs.append((run, deque()))
        self.runs[-1][1].append(place)

    def take(self, found: Mapping[CallPlace, int], run: int | None = None) -> CallPlace | None:
        """Take the oldest call of the newest run; None if that is not the run asked for."""
        while self.runs:
            newest, places = self.runs[-1]
            if run is not None and newest != run:
                return None
            while places:
                place = places.popleft()
                if place not in found:
                    return place
            self.runs.pop()
        return None


def _match_ids(history: Sequence[Message]) -> dict[CallPlace, int]:
    """Return the index of each call's result that has the call's id."""
    asked = Counter(call.id for message in history for call in message.tool_calls)
    found: dict[CallPlace, int] = {}
    waiting: defaultdict[str, _UnansweredCalls] = defaultdict(_UnansweredCalls)
    early: defaultdict[str, list[int]] = defaultdict(list)
    for index, run, message in _with_runs(history):
        call_id = message.tool_call_id
        if message.role == "tool" and call_id:
            place = waiting[call_id].take(found)
            if place is None:
                early[call_id].append(index)
            else:
                found[place] = index
        for place, call in _calls_of(index, message):
            waiting[call.id].add(run, place)
    for call_id, indexes in early.items():
        if len(indexes) == 1 and asked[call_id] == 1:
            place = waiting[call_id].take(found)
            if place is not None:
                found[place] = indexes[0]
    return found


def _match_without_ids(history: Sequence[Message], found: dict[CallPlace, int]) -> None:
    """Add the results that have no id, or one that no call has."""
    asked = {call.id for message in history for call in message.tool_calls if call.id}
    by_name: defaultdict[str, _UnansweredCalls] = defaultdict(_UnansweredCalls)
    without_id, waiting = _UnansweredCalls(), _UnansweredCalls()
    for index, run, message in _with_runs(history):
        for place, call in _calls_of(index, message):
            if place not in found:
                by_name[call.name].add(run, place)
                waiting.add(run, place)
                if not call.id:
                    without_id.add(run, place)
        if message.role != "tool" or message.tool_call_id in asked:
            continue
        if message.tool_call_id:
            answered = without_id.take(found, run)
        else:
            named = by_name[message.name].take(found, run) if message.name else None
            answered = named or without_id.take(found) or waiting.take(found, run)
        if answered is not None:
            found[answered] = index


def _with_runs(history: Iterable[Message]) -> Iterator[tuple[int, int, Message]]:
    """Yield each message with its index and the number of the last replies in a row."""
    run, in_run = 0, False
    for index, message in enumerate(history):
        is_reply = message.role == "assistant"
        run += is_reply and not in_run
        in_run = is_reply
        yield index, run, message


def _calls_of(index: int, message: Message) -> Iterator[tuple[CallPlace, ToolCall]]:
    if message.role == "assistant":
        for number, call in enumerate(message.tool_calls):
            yield (index, number), call


def checked(history: Iterable[Message]) -> tuple[Message, ...]:
    """Return the messages of a history whose author is not known.

    Raises:
        SessionError: One is not a message, or has a value of a wrong type in it.
    """
    messages = tuple(history)
    for index, message in enumerate(messages):
        problem = _problem(message)
        if problem:
            raise SessionError(
                f"message {index} of the history: {problem}; read the messages of an API "
                "with history_from_wire of its adapter"
            )
    return messages


def _problem(message: object) -> str:
    """Return why a value is not a valid message; empty if it is one."""
    if not isinstance(message, Message):
        return f"it is {shown(message)}, not a Message"
    if message.role not in get_args(Role):
        return f"role must be one of {', '.join(get_args(Role))}, not {shown(message.role)}"
    for name in ("tool_call_id", "name"):
        value = getattr(message, name)
        if not isinstance(value, str | None):
            return f"{name} must be text or None, not {shown(value)}"
    return (
        _content_problem(message.content)
        or _calls_problem(message.tool_calls)
        or native_problem(message.native)
    )


def _content_problem(content: object) -> str:
    if isinstance(content, str):
        return ""
    if not isinstance(content, tuple | list):
        return f"content must be text or parts, not {shown(content)}"
    for part in content:
        value = getattr(part, "url" if isinstance(part, ImagePart) else "text", None)
        if not isinstance(part, ReferencePart) and not isinstance(value, str):
            return f"a part of its content is {shown(part)}, which is not a part or has no text"
    return ""


def _calls_problem(calls: object) -> str:
    if not isinstance(calls, tuple | list):
        return f"tool_calls must be a tuple of calls, not {shown(calls)}"
    for call in calls:
        for name in ("id", "name", "arguments"):
            value = getattr(call, name, None)
            if not isinstance(value, str):
                return f"{name} of a call must be text, not {shown(value)}"
    return ""


# Types that only one dialect's blocks have; the blocks of Chat replies have none.
_BLOCK_TYPES: dict[str, frozenset[str]] = {
    "anthropic": frozenset({"text", "thinking", "redacted_thinking", "tool_use"}),
    "openai_responses": frozenset({"message", "reasoning", "function_call", "tool_search_call"}),
}


def native_problem(native: object) -> str:
    """Return why native blocks cannot be sent back to their origin; empty if they can."""
    if native is None:
        return ""
    if not isinstance(native, NativeReply) or not isinstance(native.origin, str):
        return f"native must be a NativeReply with an origin or None, not {shown(native)}"
    blocks = native.blocks
    if not isinstance(blocks, tuple | list) or not all(isinstance(b, Mapping) for b in blocks):
        return f"the blocks of its native reply must be JSON objects, not {shown(blocks)}"
    dialect = native.origin.partition(":")[0]
    if dialect not in get_args(Dialect):
        return ""
    others = {t for each, types in _BLOCK_TYPES.items() if each != dialect for t in types}
    for block in blocks:
        kind = block.get("type")
        if kind in others or isinstance(kind, str) != (dialect in _BLOCK_TYPES):
            return (
                f"its origin is {native.origin!r}, but {shown(block)} is not a block of that "
                "dialect; give the origin of the provider that wrote the reply"
            )
    return ""


def search_results(history: Iterable[Message], search_tool_name: str) -> list[SearchResult]:
    """Return the search results that a history shows, in order."""
    found = (
        SearchResult.from_json(message.text)
        for message in history
        if message.role == "tool" and message.name == search_tool_name
    )
    return [result for result in found if result is not None]


def visible_names(history: Iterable[Message], search_tool_name: str) -> frozenset[str]:
    """Return the tools that a search result in the history introduces."""
    results = search_results(history, search_tool_name)
    return frozenset(name for result in results for name in result.names)


def with_searches_named(
    history: Iterable[Message], former: Container[str], name: str
) -> list[Message]:
    """Return a history whose searches under former names are under the current one.

    A call counts as a search if its result is one: a call that was only meant as a search
    stays as it is.

    Args:
        history: The messages.
        former: Names that the search tool had.
        name: The name that it has.
    """
    messages = list(history)
    searches = {
        message.tool_call_id
        for message in messages
        if message.role == "tool"
        and message.name in former
        and SearchResult.from_json(message.text) is not None
    }
    if not searches:
        return messages

    def renamed(message: Message) -> Message:
        if message.role == "tool":
            return replace(message, name=name) if message.tool_call_id in searches else message
        # A search through `call_tool` is a call of that.
        found = [call.id in searches and call.name in former for call in message.tool_calls]
        if not any(found):
            return message
        both = zip(message.tool_calls, found, strict=True)
        return replace(
            message, tool_calls=tuple(replace(c, name=name) if f else c for c, f in both)
        )

    return [renamed(message) for message in messages]


def unanswered_calls(history: Sequence[Message]) -> tuple[ToolCall, ...]:
    """Return the calls of the last assistant message that have no result yet, in order."""
    answered = set()
    for message in reversed(history):
        if message.role == "tool":
            answered.add(message.tool_call_id)
        elif message.role == "assistant":
            return tuple(call for call in message.tool_calls if call.id not in answered)
        else:
            break
    return ()


def pair_results(history: Iterable[Message], *, answer: str) -> tuple[Message, ...]:
    """Return a history of another client's with each call answered once, right after it.

    Results that answer no call are left out, later ones of a call too; a call
    without a result gets an error result with the text `answer`. Ids that come
    twice are numbered, and a result has its call's name, which many bots leave
    out. Messages without content are left out: providers refuse them.
    """
    messages = list(history)
    found = results_of_calls(messages)
    kept: list[Message] = []
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    for index, message in enumerate(messages):
        if message.role == "tool" or _is_empty(message):
            continue
        calls = _with_own_ids(message.tool_calls, taken, numbers)
        kept.append(_with_calls(message, calls))
        for number, call in enumerate(calls):
            place = found.get((index, number))
            missing = Message(role="tool", content=answer, is_error=True)
            result = missing if place is None else messages[place]
            kept.append(replace(result, tool_call_id=call.id, name=call.name))
    return tuple(kept)


def with_own_ids(reply: Message, taken: AbstractSet[str]) -> Message:
    """Return a reply, each of its calls under an id of its own.

    Its own blocks are left out if they name an id that had to change. A call of several calls,
    as GPT writes it at times, is read as those.

    Args:
        reply: The reply as a provider gave it.
        taken: The ids of the calls before it.
    """
    if any(call.name in _WRAPPERS for call in reply.tool_calls):
        calls = tuple(inner for call in reply.tool_calls for inner in _unwrap(call))
        reply = replace(reply, tool_calls=calls, native=None)
    ids = {call.id for call in reply.tool_calls}
    if len(ids) == len(reply.tool_calls) and ids.isdisjoint(taken) and "" not in ids:
        return reply
    return _with_calls(reply, _with_own_ids(reply.tool_calls, set(taken), {}))


def _unwrap(call: ToolCall) -> Iterator[ToolCall]:
    """Yield the calls in a call of GPT's wrapper, or the call itself."""
    uses = (call.parsed_arguments() or {}).get("tool_uses") if call.name in _WRAPPERS else None
    named = [use for use in uses if isinstance(use, Mapping)] if isinstance(uses, list) else []
    for number, use in enumerate(named):
        name = str(use.get("recipient_name", "")).removeprefix("functions.")
        arguments = compact_json(use.get("parameters") or {})
        yield replace(call, id=f"{call.id}_{number}", name=name, arguments=arguments)
    if not named:
        yield call


def _with_calls(reply: Message, calls: tuple[ToolCall, ...]) -> Message:
    """Return a reply with its calls under other ids, without blocks that name the old ones."""
    if calls == reply.tool_calls:
        return reply
    changed = {
        given.id for given, own in zip(reply.tool_calls, calls, strict=True) if given.id != own.id
    }
    native = reply.native
    if native is not None and _mentions(native.blocks, changed):
        native = None
    return replace(reply, tool_calls=calls, native=native)


def _mentions(value: object, ids: Collection[str]) -> bool:
    """True if one of the ids is a value anywhere in a block."""
    if isinstance(value, str):
        return value in ids
    if isinstance(value, Mapping):
        return any(_mentions(inner, ids) for inner in value.values())
    return isinstance(value, list | tuple) and any(_mentions(inner, ids) for inner in value)


def without_blocks(history: Iterable[Message], origin: str) -> Iterator[Message]:
    """Yield a history without the own blocks of replies from one origin; their text stays.

    Documents in a user's message or a result belong to no reply, and stay.
    """
    for message in history:
        native = message.native if message.role == "assistant" else None
        own = native is not None and native.origin == origin
        yield replace(message, native=None) if own else message


def _is_empty(message: Message) -> bool:
    has_pictures = not isinstance(message.content, str) and any(
        not isinstance(part, TextPart) for part in message.content
    )
    return not (message.text.strip() or message.tool_calls or has_pictures)


def _with_own_ids(
    calls: Iterable[ToolCall], taken: set[str], numbers: dict[str, int]
) -> tuple[ToolCall, ...]:
    """Return the calls, each under an id that no other call of the history has."""
    own = []
    for call in calls:
        own.append(replace(call, id=unique_id(call.id, taken, numbers)))
        taken.add(own[-1].id)
    return tuple(own)


# The history of one conversation, with its indexes kept as it grows.
#
# A turn asks a history many questions: which ids are taken, which calls wait for a result,
# which tools a search has shown. Each answer is kept up to date message by message, so that
# the two hundredth turn asks them at the price of the first.


class MessageLog:
    """The messages of one conversation, oldest first.

    Args:
        messages: The messages so far.
        search_tool_name: The tool whose results show tools.
    """

    def __init__(self, messages: Iterable[Message] = (), *, search_tool_name: str) -> None:
        self._search_tool_name = search_tool_name
        self._messages: list[Message] = []
        self._whole: tuple[Message, ...] | None = None
        self._call_ids: set[str] = set()
        self._shown_tools: set[str] = set()
        self._waiting: dict[str, ToolCall] = {}
        self._last_user: int | None = None
        self.replace(messages)

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole history; the same tuple until it changes."""
        if self._whole is None:
            self._whole = tuple(self._messages)
        return self._whole

    @property
    def last(self) -> Message:
        """The message at the end; the history has one."""
        return self._messages[-1]

    @property
    def call_ids(self) -> AbstractSet[str]:
        """The ids of all calls."""
        return self._call_ids

    @property
    def shown_tools(self) -> AbstractSet[str]:
        """The tools that a search result in the history introduces."""
        return self._shown_tools

    @property
    def last_user(self) -> int | None:
        """The index of the user's last message."""
        return self._last_user

    @property
    def unanswered_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the last reply that have no result yet, in order."""
        return tuple(self._waiting.values())

    def awaits(self, call_id: str) -> bool:
        """True if a call of the last reply has this id and no result yet."""
        return call_id in self._waiting

    def append(self, message: Message) -> None:
        """Add a message at the end."""
        if message.role == "tool":
            self._waiting.pop(message.tool_call_id or "", None)
        else:
            self._waiting = {call.id: call for call in message.tool_calls}
        if message.role == "user":
            self._last_user = len(self._messages)
        self._messages.append(message)
        self._whole = None
        self._note(message)

    def insert(self, place: int, messages: Iterable[Message]) -> None:
        """Add calls with their results before a message."""
        new = list(messages)
        self._messages[place:place] = new
        self._whole = None
        if self._last_user is not None and place <= self._last_user:
            self._last_user += len(new)
        for message in new:
            self._note(message)

    def rename_search(self, name: str, messages: Iterable[Message]) -> None:
        """Go on with a history whose searches are under another name."""
        self._search_tool_name = name
        self.replace(messages)

    def replace(self, messages: Iterable[Message]) -> None:
        """Go on with another history."""
        self._messages, self._whole = [], None
        self._call_ids, self._shown_tools = set(), set()
        self._waiting, self._last_user = {}, None
        for message in messages:
            self.append(message)

    def _note(self, message: Message) -> None:
        self._call_ids.update(call.id for call in message.tool_calls)
        if message.role == "tool" and message.name == self._search_tool_name:
            result = SearchResult.from_json(message.text)
            self._shown_tools.update(result.names if result else ())
