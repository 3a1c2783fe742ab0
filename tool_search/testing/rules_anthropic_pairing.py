"""Anthropic's rules for what must follow what: calls, results, system messages.

Source: Anthropic, Tool use ("Handle tool calls"); recorded errors; GitHub
issues claude-code 8210, 64383, pydantic-ai 5143, anthropic-sdk-python 1325.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_search.testing.rules_anthropic_tools import SEARCH_TOOL_NAMES
from tool_search.testing.violations import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tool_search.testing.violations import Violation

    JSON = Mapping[str, Any]

__all__ = ["pairing_violations"]


def pairing_violations(messages: list[JSON]) -> Iterator[Violation]:
    """What is wrong with the order of well-shaped messages."""
    yield from _unique_ids(messages)
    for index, message in enumerate(messages):
        before = messages[index - 1] if index else None
        after = messages[index + 1] if index + 1 < len(messages) else None
        if message["role"] == "user":
            yield from _results(index, message, before)
        elif message["role"] == "assistant":
            yield from _uses(index, message, after)
        else:
            yield from _system(index, before)
    yield from _server_searches(messages)


def _blocks(message: JSON | None, kind: str | None = None) -> list[JSON]:
    if message is None or isinstance(message["content"], str):
        return []
    return [block for block in message["content"] if kind in (None, block["type"])]


def _unique_ids(messages: list[JSON]) -> Iterator[Violation]:
    """Within one message only: a recorded history that repeats ids in others is accepted."""
    for index, message in enumerate(messages):
        seen: set[str] = set()
        for place, block in enumerate(_blocks(message)):
            if block["type"] not in ("tool_use", "server_tool_use"):
                continue
            if block["id"] in seen:
                yield invalid(f"messages.{index}.content.{place}: `tool_use` ids must be unique")
            seen.add(block["id"])


def _uses(index: int, message: JSON, after: JSON | None) -> Iterator[Violation]:
    """Each call needs its result among the first blocks of the next message."""
    calls = [block["id"] for block in _blocks(message, "tool_use")]
    answered: set[str] = set()
    for block in _blocks(after):
        if block["type"] != "tool_result":
            break
        answered.add(block["tool_use_id"])
    missing = [call for call in calls if call not in answered]
    if missing:
        yield invalid(
            f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately "
            f"after: {', '.join(missing)}. Each `tool_use` block must have a corresponding "
            "`tool_result` block in the next message."
        )


def _results(index: int, message: JSON, before: JSON | None) -> Iterator[Violation]:
    called = {block["id"] for block in _blocks(before, "tool_use")}
    answered: set[str] = set()
    for place, block in enumerate(_blocks(message)):
        if block["type"] != "tool_result":
            continue
        call = block["tool_use_id"]
        where = f"messages.{index}.content.{place}"
        if call not in called:
            yield invalid(
                f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {call}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous "
                "message."
            )
        if call in answered:
            yield invalid(
                f"{where}: each tool_use must have a single result. Found multiple `tool_result` "
                f"blocks with id: {call}"
            )
        answered.add(call)


def _system(index: int, before: JSON | None) -> Iterator[Violation]:
    """A system message follows a user turn, or an assistant turn of server results."""
    if before is None:
        return
    ended = _blocks(before)[-1:] if before["role"] == "assistant" else []
    if before["role"] == "assistant" and not (ended and ended[0]["type"].endswith("_tool_result")):
        yield invalid(
            f"messages.{index}: a `system` message must follow a `user` message or an `assistant` "
            "message that ends with a server tool result"
        )


def _server_searches(messages: list[JSON]) -> Iterator[Violation]:
    """Each server search needs its result: in its message, or first in the next reply.

    The second form is what the service itself sends when it was interrupted by
    a client tool call of the same reply.
    """
    waiting: dict[str, tuple[int, str]] = {}
    for index, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        earlier = dict(waiting)
        leading = True
        for place, block in enumerate(_blocks(message)):
            if block["type"] == "server_tool_use" and block["name"] in SEARCH_TOOL_NAMES:
                waiting[block["id"]] = (index, block["name"])
            leading = leading and block["type"] == "tool_search_tool_result"
            if block["type"] != "tool_search_tool_result":
                continue
            call = block["tool_use_id"]
            if call not in waiting:
                yield _orphan(f"messages.{index}.content.{place}", call)
            elif leading or call not in earlier:
                del waiting[call]
        is_last = index == len(messages) - 1
        interrupted = is_last or bool(_blocks(message, "tool_use"))
        for call, (asked, name) in waiting.items():
            if call in earlier or not interrupted:
                yield _unanswered(asked, name, call)


def _orphan(where: str, call: str) -> Violation:
    kind = "tool_search_tool_result"
    return invalid(
        f"{where}: unexpected `tool_use_id` found in `{kind}` blocks: {call}. Each `{kind}` block "
        "must have a corresponding `server_tool_use` block before it."
    )


def _unanswered(index: int, name: str, call: str) -> Violation:
    return invalid(
        f"messages.{index}: `{name}` tool use with id `{call}` was found without a corresponding "
        f"`{name}_tool_result` block"
    )
