"""`tool-search forget`: erases what was learned, and conversations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tool_search.cli.store_file import ConfigOption, StoreOption, store_file
from tool_search.errors import ConfigurationError
from tool_search.stores import SQLiteStore

__all__ = ["forget_command"]


def forget_command(
    *,
    config: ConfigOption = None,
    store: StoreOption = None,
    learned: Annotated[
        bool, typer.Option("--learned", help="Everything that searches have taught.")
    ] = False,
    tool: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="What they taught of this tool; repeatable."),
    ] = None,
    conversation: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="The conversation of this key; repeatable."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All that was learned, and all conversations.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Erase what was learned, or conversations, and say what that was.

    A bot that is running goes on with the conversations it has in memory.
    """
    if not (learned or tool or conversation or everything):
        raise ConfigurationError("say what to forget: --learned, --tool, --conversation or --all")
    path = store_file(config, store)
    tools: list[str | None] = [None] if learned or everything else [*(tool or ())]
    keys: list[str | None] = [None] if everything else [*(conversation or ())]
    erased = asyncio.run(_erase(path, tools, keys)) if path.exists() else (0, 0)
    if as_json:
        content = {"store": str(path), "evidence": erased[0], "conversations": erased[1]}
        typer.echo(json.dumps(content, ensure_ascii=False))
        return
    said = []
    if tools:
        said.append(f"{erased[0]} entries of what was learned")
    if keys:
        said.append(f"{erased[1]} conversations")
    typer.echo(f"erased {' and '.join(said)}: {path}")


async def _erase(
    path: Path, tools: Sequence[str | None], keys: Sequence[str | None]
) -> tuple[int, int]:
    async with SQLiteStore(path) as store:
        evidence = [await store.forget_evidence(name) for name in tools]
        conversations = [await store.forget_conversations(key) for key in keys]
    return sum(evidence), sum(conversations)
