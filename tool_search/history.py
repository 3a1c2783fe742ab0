"""Questions about a neutral history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tool_search.messages import Message, ToolCall
from tool_search.search.result import SearchResult

__all__ = ["open_calls", "paired", "search_results", "visible_names"]


def search_results(history: Iterable[Message], search_tool_name: str) -> list[SearchResult]:
    """The search results a history shows, in order."""
    found = (
        SearchResult.from_json(message.text)
        for message in history
        if message.role == "tool" and message.name == search_tool_name
    )
    return [result for result in found if result is not None]


def visible_names(history: Iterable[Message], search_tool_name: str) -> frozenset[str]:
    """The tools that a search result in the history introduces."""
    results = search_results(history, search_tool_name)
    return frozenset(name for result in results for name in result.names)


def open_calls(history: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The calls of the last assistant message that no result answers yet, in order."""
    answered = set()
    for message in reversed(history):
        if message.role == "tool":
            answered.add(message.tool_call_id)
        elif message.role == "assistant":
            return tuple(call for call in message.tool_calls if call.id not in answered)
        else:
            break
    return ()


def paired(history: Iterable[Message], *, answer: str) -> tuple[Message, ...]:
    """A history of someone else's with each call answered once, right behind it.

    Results that answer no call are left out, later ones of a call too; a call
    without a result gets an error result with the text `answer`. Empty assistant
    messages are left out: providers refuse them.
    """
    messages = list(history)
    kept: list[Message] = []
    for index, message in enumerate(messages):
        if message.role == "tool":
            continue
        if message.role == "assistant" and not (message.text.strip() or message.tool_calls):
            continue
        kept.append(message)
        if message.tool_calls:
            results = _results_behind(messages, index)
            kept.extend(
                results.get(call.id)
                or Message(
                    role="tool", tool_call_id=call.id, name=call.name, content=answer, is_error=True
                )
                for call in message.tool_calls
            )
    return tuple(kept)


def _results_behind(messages: Sequence[Message], index: int) -> dict[str | None, Message]:
    found: dict[str | None, Message] = {}
    for message in messages[index + 1 :]:
        if message.role == "assistant" and message.tool_calls:
            break
        if message.role == "tool":
            found.setdefault(message.tool_call_id, message)
    return found
