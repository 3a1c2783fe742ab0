"""`tool-search demo`: the main job, end to end, without a key."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from tool_search.cli.exits import result_console
from tool_search.cli.options import JsonOption
from tool_search.demo.accounting import Ledger
from tool_search.demo.conversation import Demo, UserTurn, prepared_demo
from tool_search.demo.trace import Trace
from tool_search.events import (
    Done,
    ProviderSwitched,
    RunnerEvent,
    RunnerWarning,
    ToolCallStarted,
    ToolFinished,
    ToolsDiscovered,
)

__all__ = [
    "demo_command",
    "trees",
]


_MAX_LABEL_CHARS = 70
_STYLES = {"finished": "green", "failed": "red", "denied": "yellow", "cancelled": "yellow"}


def trees(turns: Iterable[Mapping[str, Any]]) -> Iterator[Tree]:
    """Yield a tree for each turn: its requests, their calls, the calls' steps."""
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
        line.append(f" failed: {_shorten(request['failed'])}", style="yellow")
    return line


def _add_call(branch: Tree, call: Mapping[str, Any]) -> None:
    outcome = call["outcome"]
    line = Text.assemble(
        f"{call['tool']} {_shorten(call['arguments'])} ",
        (f"{outcome} ", _STYLES[outcome]),
        (_milliseconds(call["duration_s"]), "dim"),
    )
    node = branch.add(line)
    for said in call.get("said", ()):
        node.add(Text(_shorten(said), style="dim italic"))
    if "found" in call:
        node.add(Text(f"found {', '.join(call['found'])}", style="cyan"))
    for step in call["steps"]:
        node.add(Text(f"{step['name']} {_milliseconds(step['duration_s'])}", style="dim"))


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_LABEL_CHARS else f"{line[: _MAX_LABEL_CHARS - 1]}…"


_MAX_CHARS = 110


def demo_command(
    *,
    live: Annotated[
        bool, typer.Option("--live", help="Use real providers, with the keys in the environment.")
    ] = False,
    with_trace: Annotated[
        bool,
        typer.Option("--trace", help="Show each call with its steps and durations, as a tree."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a conversation that finds its tools and survives its provider."""
    console = None if as_json else result_console()
    demo, trace = asyncio.run(_run(console, live=live, with_trace=with_trace))
    if as_json:
        traced = {"trace": trace.to_json()} if with_trace else {}
        typer.echo(json.dumps({**demo.to_dict(), **traced}, ensure_ascii=False))


async def _run(console: Console | None, *, live: bool, with_trace: bool) -> tuple[Demo, Trace]:
    async with prepared_demo(live=live) as (demo, events):
        trace = Trace(demo.ledger)
        if console is not None:
            _print_opening(console, demo.ledger, live=live)
        async for event in events:
            trace.note(event)
            if console is not None and not with_trace:
                _print_event(console, event)
        if console is not None and with_trace:
            for tree in trees(trace.to_json()):
                console.print()
                console.print(tree)
        if console is not None:
            _print_figures(console, demo)
    return demo, trace


def _print_opening(console: Console, ledger: Ledger, *, live: bool) -> None:
    where = "real providers" if live else "the stand-in server on loopback"
    console.print(
        f"A bot with {len(ledger.catalog)} tools on {where}. The threshold of auto mode is 25, "
        "so it searches."
    )


def _print_event(console: Console, event: UserTurn | RunnerEvent) -> None:
    if isinstance(event, UserTurn):
        console.print()
        console.print(Text.assemble(("user   ", "bold cyan"), event.text))
    elif isinstance(event, Done):
        speaker = f"{event.provider:<6} "
        console.print(Text.assemble((speaker, "bold green"), event.answer))
    elif isinstance(event, ProviderSwitched):
        broken = (
            f" {event.discarded_text!r} was already shown, and is void."
            if (event.discarded_text)
            else ""
        )
        console.print(
            Text(
                f"       ! {event.from_provider} -> {event.to_provider}: {event.cause}.{broken}",
                style="yellow",
            )
        )
    else:
        line = _line(event)
        if line:
            console.print(Text(f"       {line}", style="dim"))


def _line(event: RunnerEvent) -> str | None:
    if isinstance(event, ToolCallStarted):
        return _cut(f"> {event.tool} {event.call.arguments}")
    if isinstance(event, ToolFinished):
        return _cut(f"< {event.content}")
    if isinstance(event, ToolsDiscovered):
        return f"+ {', '.join(event.names)}"
    return f"! {event.message}" if isinstance(event, RunnerWarning) else None


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS - 1]}…"


def _print_figures(console: Console, demo: Demo) -> None:
    table = Table(title="Requests (tokens are estimated)", title_justify="left")
    for heading in ("#", "provider", "strategy"):
        table.add_column(heading)
    for heading in ("tools sent", "shown", "tokens", "in full mode", "prefix kept"):
        table.add_column(heading, justify="right")
    for number, request in enumerate(demo.ledger.requests, 1):
        kept = "-" if request.prefix_kept is None else f"{request.prefix_kept:.0%}"
        table.add_row(
            str(number),
            request.provider,
            request.strategy,
            str(request.tools_declared),
            str(request.tools_loaded),
            f"{request.tokens:,}",
            f"{request.full_tokens:,}",
            kept,
        )
    console.print()
    console.print(table)
    ledger = demo.ledger
    spent = sum(request.tokens for request in ledger.requests)
    full = sum(request.full_tokens for request in ledger.requests)
    carried = ", ".join(demo.carried_over) or "nothing"
    console.print(
        f"saving {ledger.saving:.2f}: {spent:,} tokens instead of {full:,} in "
        f"{len(ledger.requests)} requests; {len(demo.discovered)} of {len(ledger.catalog)} tools "
        f"discovered; called after the switch without another search: {carried}"
    )
