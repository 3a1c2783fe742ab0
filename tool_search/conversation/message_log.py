"""The history of one conversation, with its indexes kept as it grows.

A turn asks a history many questions: which ids are taken, which calls wait for a result,
which tools a search has shown. Each answer is kept up to date message by message, so that
the two hundredth turn asks them at the price of the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from tool_search.messages import Message, ToolCall
from tool_search.search.index.protocol import SearchResult

__all__ = ["MessageLog"]


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
