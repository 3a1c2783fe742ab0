"""Synthetic searches: they show discoveries in a history without a search of the model.

A history that was compacted, imported, or re-read after a restart may no longer
show what was discovered. Then a search that shows it is inserted, once, before
the user's next message, so that all later requests repeat it unchanged. Anthropic
accepts such a search as its own ("Tool search tool", "Custom tool search
implementation"): a made-up call with references as its result. Tools that are loaded for a
user's message without a search of the model are shown in the same way, after the message.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.history import with_searches_named
from tool_search.core.messages import Message, ToolCall
from tool_search.core.services import SearchMatch, SearchResult, clean_match
from tool_search.core.values.json import compact_json
from tool_search.i18n import Language, text

__all__ = ["InsertionPoint", "SyntheticSearches"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertionPoint:
    """The place of a synthetic search in a history that the bot owns.

    Attributes:
        fingerprint: The fingerprint of the user's message next to it.
        ordinal: The number of equal user messages before that one.
        messages: The search: its call and its result.
        is_after: True if the search follows the message.
    """

    fingerprint: str
    ordinal: int
    messages: tuple[Message, ...]
    is_after: bool = False


class SyntheticSearches:
    """The synthetic searches of one conversation, each with its place.

    Args:
        search_tool_name: The tool that they call.
        points: Searches that were inserted earlier.
        former: Earlier names of the search tool in the conversation.
    """

    def __init__(
        self,
        search_tool_name: str,
        points: Iterable[InsertionPoint] = (),
        former: Iterable[str] = (),
    ) -> None:
        self._search_tool_name = search_tool_name
        self._points = list(points)
        self._former = tuple(former)

    @property
    def former(self) -> tuple[str, ...]:
        """Earlier names of the search tool, oldest first."""
        return self._former

    def rename(self, name: str) -> None:
        """Give the search tool another name; `renamed` then reads the old ones."""
        names = dict.fromkeys((*self._former, self._search_tool_name))
        self._former = tuple(each for each in names if each != name)
        self._search_tool_name = name
        self._points = [
            replace(point, messages=tuple(self.renamed(point.messages))) for point in self._points
        ]

    def renamed(self, history: Iterable[Message], *, taken: Container[str] = ()) -> list[Message]:
        """Return a history with its searches under the search tool's current name.

        Args:
            history: The messages.
            taken: Names of tools, one of which may have a former name of the search tool.
        """
        former = [name for name in self._former if name not in taken]
        return with_searches_named(history, former, self._search_tool_name)

    @property
    def insertion_points(self) -> tuple[InsertionPoint, ...]:
        """The searches with their places, oldest first."""
        return tuple(self._points)

    def write(
        self,
        tools: Sequence[Tool],
        *,
        before: Message,
        history: Sequence[Message],
        total_tools: int,
        language: Language,
    ) -> tuple[Message, ...]:
        """Return a new search that shows these tools, and remember its place.

        Args:
            tools: The tools to show, oldest discovery first.
            before: The user's message that will follow it.
            history: The messages before that message; if none is the user's, a fixed line of
                the user's comes first, since no conversation begins with a call.
            total_tools: The number of deferred tools that everybody may call.
            language: The language of the opening line.
        """
        messages = self._search_messages(tools, place=len(history), total_tools=total_tools)
        if not _has_user(history):
            messages = (_opening_line(language), *messages)
        self._points.append(_point_at(before, history, messages))
        return messages

    def write_after(
        self,
        tools: Sequence[Tool],
        history: Sequence[Message],
        *,
        place: int,
        total_tools: int,
        prefix: str,
    ) -> tuple[Message, ...]:
        """Return a new search that shows these tools at the end of a history.

        Its place is remembered if it follows the user's last message, or an earlier search
        that does. After calls of the model it has none: in a history without those calls the
        tools are shown anew.

        Args:
            tools: The tools to show, best first.
            history: The messages.
            place: The index of the user's last message.
            total_tools: The number of deferred tools that everybody may call.
            prefix: The beginning of the call's id.
        """
        messages = self._search_messages(
            tools, place=len(history), total_tools=total_tools, prefix=prefix
        )
        since = tuple(history[place + 1 :])
        point = _point_at(history[place], history[:place], (*since, *messages))
        point = replace(point, is_after=True)
        earlier = replace(point, messages=since)
        if earlier in self._points:
            self._points.remove(earlier)
        elif since:
            return messages
        self._points.append(point)
        return messages

    def opening(
        self, tools: Sequence[Tool], *, place: int, total_tools: int, language: Language
    ) -> tuple[Message, ...]:
        """Return the messages in place of turns that requests leave out: a line, and their tools.

        Args:
            tools: The discoveries that the rest of the history does not show.
            place: The index of the first message that is sent.
            total_tools: The number of deferred tools that everybody may call.
            language: The language of the line.
        """
        line = Message(role="user", content=text("left_out.turns", language))
        if not tools:
            return (line,)
        return (line, *self._search_messages(tools, place=place, total_tools=total_tools))

    def take_back(self, history: Sequence[Message], place: int) -> int:
        """Forget the searches next to a message, and return the index at which they began."""
        first = place
        for point in reversed(self.insertion_points):
            start = place + 1 if point.is_after else place - len(point.messages)
            end = start + len(point.messages)
            if start >= 0 and tuple(history[start:end]) == point.messages:
                self._points.remove(point)
                first = min(first, start)
        return first

    def as_search(
        self, reply: Message, found: Sequence[Tool], *, place: int, total_tools: int
    ) -> tuple[Message, ...]:
        """Return a reply, after a search that shows what its provider's own search found.

        Args:
            reply: The reply; its own blocks show the same to their provider.
            found: The tools that the search found and the history does not show yet.
            place: The number of messages before the reply.
            total_tools: The number of deferred tools that everybody may call.
        """
        if reply.native is None or not found:
            return (reply,)
        messages = self._search_messages(found, place=place, total_tools=total_tools)
        native = replace(reply.native, found=(), told=messages[0].tool_calls[0].id)
        return (*messages, replace(reply, native=native))

    def restored(self, history: Iterable[Message], language: Language) -> list[Message]:
        """Return a bot's own history with the searches back at their places.

        A search without a place is forgotten: its tools will be shown anew. One that now
        comes first gets an opening line, as in `write`, and so does a call of the model's:
        services refuse a history that begins with it.
        """
        messages = list(history)
        shown = {call.id for message in messages for call in message.tool_calls}
        places = {(a.fingerprint, a.ordinal, a.is_after): a for a in self._points}
        seen: Counter[str] = Counter()
        found: list[InsertionPoint] = []
        whole: list[Message] = []
        for message in messages:
            if message.role != "user":
                whole.append(message)
                continue
            fingerprint = _fingerprint(message)
            key = fingerprint, seen[fingerprint]
            seen[fingerprint] += 1
            before, after = places.get((*key, False)), places.get((*key, True))
            if before is not None and not _has_user(whole) and before.messages[0].role != "user":
                opened = (_opening_line(language), *before.messages)
                before = replace(before, messages=opened)
            found.extend(point for point in (before, after) if point is not None)
            whole.extend(_find_missing(before, shown))
            whole.append(message)
            whole.extend(_find_missing(after, shown))
        self._points = found
        if whole and whole[0].tool_calls:
            whole.insert(0, Message(role="user", content=text("left_out.turns", language)))
        return whole

    def _search_messages(
        self,
        tools: Sequence[Tool],
        *,
        place: int,
        total_tools: int,
        prefix: str = "restored",
    ) -> tuple[Message, ...]:
        query = f"select:{','.join(tool.name for tool in tools)}"
        digest = hashlib.sha256(f"{place}:{query}".encode("utf-8", "replace")).hexdigest()
        call = ToolCall(
            id=f"{prefix}_{digest[:16]}",
            name=self._search_tool_name,
            arguments=compact_json({"query": query}),
        )
        matches = tuple(
            clean_match(
                SearchMatch(name=tool.name, description=tool.description, server=tool.server)
            )
            for tool in tools
        )
        result = SearchResult(
            query=query, matches=matches, total_found=len(tools), total_tools=total_tools
        )
        return (
            Message(role="assistant", tool_calls=(call,)),
            Message(role="tool", tool_call_id=call.id, name=call.name, content=result.to_json()),
        )


def _point_at(
    message: Message, earlier: Iterable[Message], search: tuple[Message, ...]
) -> InsertionPoint:
    """Return the place of a search before a user's message, with the messages before that."""
    fingerprint = _fingerprint(message)
    equal = sum(m.role == "user" and _fingerprint(m) == fingerprint for m in earlier)
    return InsertionPoint(fingerprint=fingerprint, ordinal=equal, messages=search)


def _find_missing(point: InsertionPoint | None, shown: Container[str]) -> tuple[Message, ...]:
    """Return the messages of a search, unless the history has its call already."""
    if point is None or any(call.id in shown for m in point.messages for call in m.tool_calls):
        return ()
    return point.messages


def _has_user(history: Iterable[Message]) -> bool:
    return any(message.role == "user" for message in history)


def _opening_line(language: Language) -> Message:
    """Return the user's line before a search that comes first: no history begins with a call."""
    return Message(role="user", content=text("restored.user", language))


def _fingerprint(message: Message) -> str:
    return hashlib.sha256(message.text.encode("utf-8", "replace")).hexdigest()[:16]
