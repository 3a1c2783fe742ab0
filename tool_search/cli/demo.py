"""`tool-search demo`: the main job, end to end, without a key."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tool_search.cli.terminal import result_console
from tool_search.cli.trace_tree import trees
from tool_search.demo.accounting import Ledger
from tool_search.demo.conversation import Demo, UserTurn, prepared_demo
from tool_search.demo.trace import Trace
from tool_search.events import (
    Done,
    ProviderSwitched,
    RunnerEvent,
    ToolCallStarted,
    ToolFinished,
    ToolsDiscovered,
    Warning,
)

__all__ = ["demo_command"]

_LONGEST = 110


def demo_command(
    *,
    live: Annotated[
        bool, typer.Option("--live", help="Real providers, with the keys in the environment.")
    ] = False,
    with_trace: Annotated[
        bool, typer.Option("--trace", help="Each call with its steps and durations, as a tree.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="The figures as one JSON object.")
    ] = False,
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
    return f"! {event.message}" if isinstance(event, Warning) else None


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


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
