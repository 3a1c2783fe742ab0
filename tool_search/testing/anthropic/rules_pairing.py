"""Anthropic's rules for the order of calls, results and system messages.

The service merges neighbours of one role before it reads them: the results of two
replies in a row may come together after both, or in several messages of the user's.

Source: Anthropic, Tool use ("Handle tool calls"); recorded errors and accepted
requests; GitHub issues claude-code 8210, 64383, pydantic-ai 5143, anthropic-sdk-python
1325.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tool_search.testing.anthropic.rules_tools import SEARCH_TOOL_NAMES
from tool_search.testing.violations import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tool_search.testing.violations import Violation

    JSON = Mapping[str, Any]

__all__ = ["pairing_violations"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """A content block, and its position in the request."""

    message: int
    place: int
    content: JSON

    @property
    def kind(self) -> str:
        return str(self.content["type"])

    @property
    def where(self) -> str:
        return f"messages.{self.message}.content.{self.place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """Neighbouring messages of one role, as the service merges them."""

    role: str
    first: int
    blocks: tuple[_Block, ...]

    def of_kind(self, kind: str) -> list[_Block]:
        return [block for block in self.blocks if block.kind == kind]


def pairing_violations(messages: list[JSON]) -> Iterator[Violation]:
    """Yield the violations of the order of well-shaped messages."""
    turns = list(_turns(messages))
    yield from _unique_ids(turns)
    for index, turn in enumerate(turns):
        before = turns[index - 1] if index else None
        after = turns[index + 1] if index + 1 < len(turns) else None
        if turn.role == "user":
            yield from _results(turn, before)
        elif turn.role == "assistant":
            yield from _uses(turn, after)
        else:
            yield from _system(turn, before)
    yield from _server_searches(turns)


def _turns(messages: list[JSON]) -> Iterator[_Turn]:
    for role, group in groupby(enumerate(messages), key=lambda entry: str(entry[1]["role"])):
        listed = list(group)
        blocks = (block for index, message in listed for block in _blocks(index, message))
        yield _Turn(role=role, first=listed[0][0], blocks=tuple(blocks))


def _blocks(index: int, message: JSON) -> Iterator[_Block]:
    content = message["content"]
    listed = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for place, block in enumerate(listed):
        yield _Block(message=index, place=place, content=block)


def _unique_ids(turns: list[_Turn]) -> Iterator[Violation]:
    """Yield ids that repeat in one turn; a recorded history with repeats in others is accepted."""
    for turn in turns:
        seen: set[str] = set()
        for block in turn.blocks:
            if block.kind not in ("tool_use", "server_tool_use"):
                continue
            if block.content["id"] in seen:
                yield invalid(f"{block.where}: `tool_use` ids must be unique")
            seen.add(block.content["id"])


def _uses(turn: _Turn, after: _Turn | None) -> Iterator[Violation]:
    """Yield calls without a result among the first blocks of the user's next turn."""
    answered: set[str] = set()
    for block in after.blocks if after is not None else ():
        if block.kind != "tool_result":
            break
        answered.add(block.content["tool_use_id"])
    missing = [b for b in turn.of_kind("tool_use") if b.content["id"] not in answered]
    if missing:
        calls = ", ".join(block.content["id"] for block in missing)
        yield invalid(
            f"messages.{missing[0].message}: `tool_use` ids were found without `tool_result` "
            f"blocks immediately after: {calls}. Each `tool_use` block must have a corresponding "
            "`tool_result` block in the next message."
        )


def _results(turn: _Turn, before: _Turn | None) -> Iterator[Violation]:
    called = {block.content["id"] for block in before.of_kind("tool_use")} if before else set()
    answered: set[str] = set()
    for block in turn.of_kind("tool_result"):
        call = block.content["tool_use_id"]
        if call not in called:
            yield invalid(
                f"{block.where}: unexpected `tool_use_id` found in `tool_result` blocks: {call}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the "
                "previous message."
            )
        if call in answered:
            yield invalid(
                f"{block.where}: each tool_use must have a single result. Found multiple "
                f"`tool_result` blocks with id: {call}"
            )
        answered.add(call)


def _system(turn: _Turn, before: _Turn | None) -> Iterator[Violation]:
    """Yield system messages that follow neither a user turn nor server results."""
    if before is None or before.role != "assistant":
        return
    if not (before.blocks and before.blocks[-1].kind.endswith("_tool_result")):
        yield invalid(
            f"messages.{turn.first}: a `system` message must follow a `user` message or an "
            "`assistant` message that ends with a server tool result"
        )


def _server_searches(turns: list[_Turn]) -> Iterator[Violation]:
    """Yield server searches without a result in their turn or first in the next reply.

    The service itself sends the second form if a client tool call of the same reply
    interrupted it.
    """
    waiting: dict[str, tuple[int, str]] = {}
    for turn in turns:
        if turn.role != "assistant":
            continue
        earlier = dict(waiting)
        leading = True
        for block in turn.blocks:
            if block.kind == "server_tool_use" and block.content["name"] in SEARCH_TOOL_NAMES:
                waiting[block.content["id"]] = (block.message, block.content["name"])
            leading = leading and block.kind == "tool_search_tool_result"
            if block.kind != "tool_search_tool_result":
                continue
            call = block.content["tool_use_id"]
            if call not in waiting:
                yield _orphan(block.where, call)
            elif leading or call not in earlier:
                del waiting[call]
        interrupted = turn is turns[-1] or bool(turn.of_kind("tool_use"))
        for call, (asked, name) in waiting.items():
            if call in earlier or not interrupted:
                yield _refuse_unanswered(asked, name, call)


def _orphan(where: str, call: str) -> Violation:
    kind = "tool_search_tool_result"
    return invalid(
        f"{where}: unexpected `tool_use_id` found in `{kind}` blocks: {call}. Each `{kind}` block "
        "must have a corresponding `server_tool_use` block before it."
    )


def _refuse_unanswered(index: int, name: str, call: str) -> Violation:
    return invalid(
        f"messages.{index}: `{name}` tool use with id `{call}` was found without a corresponding "
        f"`{name}_tool_result` block"
    )
