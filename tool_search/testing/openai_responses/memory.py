"""References of a Responses request to kept replies and items.

Source: OpenAI, Conversation state and "Create a model response" (`conversation`: its items
are before the input, input and output are added to it); GitHub issues that quote the
service (bifrost 2441, continue 9101 and 11994, vercel/ai 7543, openai-agents-python 1789).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_search.testing.openai_responses.view import items_of
from tool_search.testing.violations import Violation, invalid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tool_search.testing.server.memory import ReplyMemory

    JSON = Mapping[str, Any]

__all__ = ["conversation_of", "recall", "remember"]


def conversation_of(body: JSON) -> str | None:
    """Return the id of the conversation that a request names; None: it names none."""
    named = body.get("conversation")
    name = named.get("id") if isinstance(named, dict) else named
    return None if name is None else str(name)


def recall(body: JSON, memory: ReplyMemory) -> JSON | Violation:
    """Return the request after the conversation that it continues, or a violation."""
    before: Sequence[JSON] = ()
    name = conversation_of(body)
    if name is not None:
        kept = memory.named(name)
        if kept is None:
            return _not_found(f"Conversation with id '{name}' not found.")
        before = kept
    previous = body.get("previous_response_id")
    if previous is not None:
        found = memory.conversation(previous)
        if found is None:
            return invalid(
                f"Previous response with id '{previous}' not found.",
                param="previous_response_id",
                code="previous_response_not_found",
            )
        before = found
    items: list[JSON] = []
    for item in items_of(body):
        known = _resolve_item(item, memory)
        if isinstance(known, Violation):
            return known
        items.append(known)
    unreasoned = _without_its_reasoning([*before, *items], memory)
    if unreasoned is not None:
        return unreasoned
    if previous is None and name is None and items == list(items_of(body)):
        return body
    kept_by_service = ("previous_response_id", "conversation")
    rest = {key: value for key, value in body.items() if key not in kept_by_service}
    return {**rest, "input": [*before, *items]}


def remember(reply: str, conversation: JSON, output: Sequence[JSON], memory: ReplyMemory) -> None:
    """Keep a conversation with its last reply."""
    memory.keep(reply, [*items_of(conversation), *output])


def _resolve_item(item: JSON, memory: ReplyMemory) -> JSON | Violation:
    """Return the item of a reference; reasoning that is not sent in full must be kept too."""
    name = item.get("id")
    bare = item.get("type") == "reasoning" and name and not item.get("encrypted_content")
    if item.get("type") != "item_reference" and not bare:
        return item
    known = memory.item(str(name))
    if known is not None:
        return known
    return _not_found(
        f"Item with id '{name}' not found. Items are not persisted when `store` is set to "
        "false. Try again with `store` set to true, or remove this item from your input.",
        param="input",
    )


def _not_found(message: str, *, param: str | None = None) -> Violation:
    return Violation(status=404, error_type="invalid_request_error", message=message, param=param)


def _without_its_reasoning(items: Sequence[JSON], memory: ReplyMemory) -> Violation | None:
    """Return the violation of an item that is sent back without its reasoning, or None."""
    given = {item.get("id") for item in items}
    for item in items:
        name = item.get("id")
        needed = memory.reasoning_of(name) if name else None
        if needed is not None and needed not in given:
            return invalid(
                f"Item '{name}' of type '{item.get('type', 'message')}' was provided without its "
                f"required 'reasoning' item: '{needed}'.",
                param="input",
            )
    return None
