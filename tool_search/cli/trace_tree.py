"""A trace as a tree in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.text import Text
from rich.tree import Tree

__all__ = ["trees"]

_LONGEST = 70
_STYLES = {"finished": "green", "failed": "red", "denied": "yellow", "cancelled": "yellow"}


def trees(turns: Iterable[Mapping[str, Any]]) -> Iterator[Tree]:
    """A tree a turn: its requests, their calls, the calls' steps."""
    for turn in turns:
        tree = Tree(Text.assemble(("user ", "bold cyan"), turn["user"]))
        for number, request in enumerate(turn["requests"], 1):
            branch = tree.add(_request(number, request))
            for call in request["calls"]:
                _add_call(branch, call)
        if "answer" in turn:
            tree.add(Text.assemble(("answer ", "bold green"), turn["answer"]))
        yield tree


def _request(number: int, request: Mapping[str, Any]) -> Text:
    head = f"request {number} {request['provider']}, {request['strategy']} "
    line = Text.assemble((head, "bold"), (_milliseconds(request["duration_s"]), "dim"))
    if "failed" in request:
        line.append(f" failed: {_cut(request['failed'])}", style="yellow")
    return line


def _add_call(branch: Tree, call: Mapping[str, Any]) -> None:
    outcome = call["outcome"]
    line = Text.assemble(
        f"{call['tool']} {_cut(call['arguments'])} ",
        (f"{outcome} ", _STYLES[outcome]),
        (_milliseconds(call["duration_s"]), "dim"),
    )
    node = branch.add(line)
    for said in call.get("said", ()):
        node.add(Text(_cut(said), style="dim italic"))
    if "found" in call:
        node.add(Text(f"found {', '.join(call['found'])}", style="cyan"))
    for step in call["steps"]:
        node.add(Text(f"{step['name']} {_milliseconds(step['duration_s'])}", style="dim"))


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
