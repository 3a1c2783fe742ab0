"""OpenAI Chat Completions' rules for calls and their results.

The service's own spelling "preceeding" is kept.

Source: Function calling; GitHub issues that quote the service's texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_search.testing.violations import Violation, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    JSON = Mapping[str, Any]

__all__ = ["pairing_violations"]


def pairing_violations(messages: list[JSON]) -> Iterator[Violation]:
    """Yield the violations of the order of calls and results.

    Results come directly after their call, each once.
    """
    waiting: list[str] = []
    answered: set[str] = set()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            call = message["tool_call_id"]
            if call in waiting:
                waiting.remove(call)
                answered.add(call)
                continue
            yield _orphan(index, call, duplicate=call in answered)
        if waiting:
            yield _refuse_unanswered(index, waiting)
        answered = set()
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        if len(set(waiting)) < len(waiting):
            yield invalid(
                f"Invalid 'messages[{index}].tool_calls': the ids must be unique.",
                param=f"messages[{index}].tool_calls",
                code="invalid_value",
            )
    if waiting:
        yield _refuse_unanswered(len(messages), waiting)


def _orphan(index: int, call: str, *, duplicate: bool) -> Violation:
    if duplicate:
        return invalid(
            f"Duplicate value for 'tool_call_id' of '{call}'", param=f"messages.[{index}]"
        )
    return invalid(
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
        "with 'tool_calls'.",
        param=f"messages.[{index}].role",
    )


def _refuse_unanswered(index: int, waiting: list[str]) -> Violation:
    return invalid(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: "
        + ", ".join(waiting),
        param=f"messages.[{index}].role",
    )
