"""`tool-search demo`: the main job, end to end, without a key."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext
from typing import Annotated

import typer

from tool_search.cli.demo.conversation import Demo, UserTurn, prepared_demo
from tool_search.cli.demo.screen import DemoScreen
from tool_search.cli.demo.script import TURNS
from tool_search.cli.demo.trace import Trace
from tool_search.cli.exits import result_console, side_console
from tool_search.cli.options import JsonOption
from tool_search.cli.terminal.language import spoken
from tool_search.cli.terminal.lines import cut
from tool_search.runner.events import RunnerEvent

__all__ = ["demo_command"]


def demo_command(
    *,
    live: Annotated[
        bool, typer.Option("--live", help="Use real providers, with the keys in the environment.")
    ] = False,
    with_trace: Annotated[
        bool | None,
        typer.Option(
            "--trace/--no-trace",
            help="Show each call with its steps and durations, as a tree; a terminal gets it "
            "anyway.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a conversation that finds its tools and survives its provider."""
    if as_json:
        demo, trace, _ = asyncio.run(_run(live=live))
        traced = {"trace": trace.to_json()} if with_trace else {}
        typer.echo(json.dumps({**demo.to_dict(), **traced}, ensure_ascii=False))
        return
    console = result_console()
    demo, trace, events = asyncio.run(_run(live=live, shows_progress=True))
    screen = DemoScreen(console, demo)
    screen.show_result()
    screen.show_opening(is_live=live)
    if console.is_terminal if with_trace is None else with_trace:
        screen.show_trees(trace.to_json())
    else:
        screen.show_events(events)
    screen.show_requests()
    screen.show_result()


async def _run(
    *, live: bool, shows_progress: bool = False
) -> tuple[Demo, Trace, list[UserTurn | RunnerEvent]]:
    """Run the conversation; return it with its events. Progress is shown at a terminal."""
    side = side_console()
    # Beside the spinner.
    cells = side.width - 2
    status = side.status(cut(spoken("demo.preparing"), cells)) if shows_progress else None
    seen: list[UserTurn | RunnerEvent] = []
    with status or nullcontext():
        async with prepared_demo(live=live) as (demo, events):
            trace = Trace(demo.ledger)
            turns = 0
            async for event in events:
                trace.note(event)
                seen.append(event)
                if isinstance(event, UserTurn):
                    turns += 1
                    if status is not None:
                        line = spoken("demo.progress", turn=turns, turns=len(TURNS))
                        status.update(cut(line, cells))
    return demo, trace, seen
