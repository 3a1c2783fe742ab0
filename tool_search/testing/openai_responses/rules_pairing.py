"""OpenAI Responses' rules for calls, outputs and reasoning in `input`.

Two rules are ours, because the service is not known to be as strict: a call's
namespace must exist in the request, and a call has one output.

Source: recorded errors (`Missing namespace`, `Duplicate item`); GitHub issues that
quote the service (continue 8933 and 10092, sub2api 1885); dust 31323 on which tools
are in the default namespace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_search.testing.openai_responses.rules_messages import kind_of
from tool_search.testing.openai_responses.rules_tools import namespaces_of
from tool_search.testing.violations import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tool_search.testing.violations import Violation

    JSON = Mapping[str, Any]

__all__ = ["call_violations"]

_CALLS = {"function_call": "function call", "tool_search_call": "tool search call"}
_OUTPUTS = {
    "function_call_output": ("function_call", "function call output"),
    "tool_search_output": ("tool_search_call", "tool search output"),
}
_NO_ANSWER = ("message", "function_call_output", "tool_search_output", "additional_tools")


def call_violations(
    items: list[JSON], tools: list[JSON], *, knows_all: bool
) -> Iterator[Violation]:
    """Yield the violations of a list of well-shaped items.

    Args:
        items: The input.
        tools: The request's own tools.
        knows_all: True if the request has the whole conversation.
    """
    yield from _duplicates(items)
    yield from _find_lone_reasoning(items)
    yield from _pair(items, knows_all=knows_all)
    yield from _namespaces(items, tools, knows_all=knows_all)


def _duplicates(items: list[JSON]) -> Iterator[Violation]:
    seen: set[str] = set()
    for item in items:
        name = item.get("id")
        if name is not None and name in seen:
            yield invalid(
                f"Duplicate item found with id {name}. Remove duplicate items from your input and "
                "try again.",
                param="input",
            )
        if name is not None:
            seen.add(name)


def _find_lone_reasoning(items: list[JSON]) -> Iterator[Violation]:
    """Yield reasoning that no call, message or further reasoning follows."""
    for index, item in enumerate(items):
        if kind_of(item) != "reasoning":
            continue
        after = items[index + 1] if index + 1 < len(items) else None
        answers = after is not None and (
            kind_of(after) not in _NO_ANSWER or after.get("role") == "assistant"
        )
        if not answers:
            yield invalid(
                f"Item '{item.get('id')}' of type 'reasoning' was provided without its required "
                "following item.",
                param="input",
            )


def _pair(items: list[JSON], *, knows_all: bool) -> Iterator[Violation]:
    """Yield the violations of calls and outputs: each call has one output after it.

    A hosted search needs no output; a function's output is accepted for it.
    """
    waiting: dict[tuple[str, str], None] = {}
    answered: set[tuple[str, str]] = set()
    hosted: set[str] = set()
    for index, item in enumerate(items):
        kind = kind_of(item)
        if item.get("execution", "server") == "server" and kind.startswith("tool_search_"):
            # Recorded (gpt-5.6): histories of other clients answer these as functions.
            hosted |= {item[key] for key in ("call_id", "id") if item.get(key) is not None}
            continue
        if kind in _CALLS:
            call = (kind, item["call_id"])
            if call in waiting:
                yield _repeated_ids(index, item["call_id"])
            waiting[call] = None
        elif kind in _OUTPUTS:
            call = (_OUTPUTS[kind][0], item["call_id"])
            if call in waiting or (call not in answered and _answers(call, hosted)):
                waiting.pop(call, None)
                answered.add(call)
            elif call in answered:
                yield _repeated_ids(index, item["call_id"])
            elif knows_all:
                yield invalid(
                    f"No tool call found for {_OUTPUTS[kind][1]} with call_id {item['call_id']}.",
                    param="input",
                )
    for kind, name in waiting:
        yield invalid(f"No tool output found for {_CALLS[kind]} {name}.", param="input")


def _answers(call: tuple[str, str], hosted: set[str]) -> bool:
    """True if a function's output answers one of the service's own searches."""
    kind, name = call
    return kind == "function_call" and name in hosted


def _repeated_ids(index: int, call: str) -> Violation:
    return invalid(f"Duplicate value for 'call_id' of '{call}'.", param=f"input[{index}].call_id")


def _namespaces(items: list[JSON], tools: list[JSON], *, knows_all: bool) -> Iterator[Violation]:
    """Yield calls that do not name the namespace of their tool."""
    if not knows_all:
        return
    homes = namespaces_of(tools, items)
    for index, item in enumerate(items):
        if kind_of(item) != "function_call":
            continue
        name, namespace = item["name"], item.get("namespace")
        known = homes.get(name, set())
        if namespace is None and known and None not in known:
            yield invalid(
                f"Missing namespace for function_call '{name}'. It does not exist in the default "
                "namespace. Round-trip the model's function_call item with its namespace field "
                "included.",
                param=f"input[{index}].namespace",
            )
        if namespace is not None and namespace not in known:
            yield invalid(
                f"Unknown namespace '{namespace}' for function_call '{name}': no tool of this "
                "request is in it.",
                param=f"input[{index}].namespace",
            )
