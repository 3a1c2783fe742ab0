"""`tool-search forget`: export and erase what was learned, conversations and grants."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tool_search.cli.exits import say, tell
from tool_search.cli.options import ConfigOption, JsonOption, PrefixOption, StoreOption
from tool_search.cli.stores import ChosenStore, choose_store
from tool_search.cli.terminal.language import clauses, enumerated, spoken, wrong_use
from tool_search.core.values.json import encodable
from tool_search.errors import StoreError
from tool_search.stores import SQLiteStore
from tool_search.stores.conversations import Erased, Export, Selection

__all__ = [
    "forget_command",
    "write_export",
]


# The export is whole on the disk before anything is erased, or it does not exist.
def write_export(path: Path, store: str, parts: Mapping[str, Iterable[Mapping[str, Any]]]) -> None:
    """Write a new JSON file, readable by its owner alone, one entry a line.

    Raises:
        ConfigurationError: The file exists already, or its folder does not.
        StoreError: The file cannot be written; it is removed.
    """
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as exc:
        raise wrong_use("use.export", path=path, cause=exc.strerror) from exc
    try:
        with os.fdopen(file, "w", encoding="utf-8") as written:
            written.writelines(_lines(store, parts))
            written.flush()
            # This file will be the only copy.
            os.fsync(written.fileno())
    except BaseException as exc:
        path.unlink(missing_ok=True)
        if not isinstance(exc, OSError):
            raise
        raise StoreError(
            f"--export {path} cannot be written ({exc}); nothing was erased", fault="disk_full"
        ) from exc


def _lines(store: str, parts: Mapping[str, Iterable[Mapping[str, Any]]]) -> Iterator[str]:
    yield f'{{"store": {_encode(store)}'
    for kind, entries in parts.items():
        yield f",\n{_encode(kind)}: ["
        separator = "\n"
        for entry in entries:
            yield f"{separator}{_encode(entry)}"
            separator = ",\n"
        yield "\n]"
    yield "}\n"


def _encode(value: object) -> str:
    return encodable(json.dumps(value, ensure_ascii=False))


_LearnedOption = Annotated[
    bool, typer.Option("--learned", help="Erase everything that searches have taught.")
]
_ToolOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Erase what searches taught about this tool; repeatable."),
]
_ConversationOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY",
        help="Erase the conversation of this key, its grants and what it taught; repeatable.",
    ),
]
_UserOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="Erase the grants of this user and what they taught; repeatable."
    ),
]
_AllOption = Annotated[
    bool,
    typer.Option("--all", help="Erase everything that was learned, all grants and conversations."),
]
_ExportOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write a copy to this new JSON file before erasing."),
]


def forget_command(
    *,
    config: ConfigOption = None,
    store: StoreOption = None,
    prefix: PrefixOption = None,
    learned: _LearnedOption = False,
    tool: _ToolOption = None,
    conversation: _ConversationOption = None,
    user: _UserOption = None,
    everything: _AllOption = False,
    export: _ExportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Erase what was learned, conversations or grants, and print the counts.

    Nothing of it is left in the store's file, or in the files of Redis. A running bot starts
    such a conversation again; its current turn is not kept.
    """
    if not (learned or tool or conversation or user or everything):
        raise wrong_use("use.nothing_to_forget")
    place = choose_store(config, store, prefix)
    selection = Selection(
        conversations=None if everything else tuple(conversation or ()),
        tools=None if learned or everything else tuple(tool or ()),
        users=None if everything else tuple(user or ()),
    )
    write = None if export is None else partial(write_export, export, place.name)
    if not place.is_missing:
        erased = asyncio.run(_erase(place, selection, write))
    else:
        erased = Erased(0, 0, 0)
        if write is not None:
            write({"conversations": (), "grants": (), "evidence": ()})
    if as_json:
        typer.echo(json.dumps(_as_object(place, erased, export), ensure_ascii=False))
    else:
        tell(_as_line(place.name, erased, selection, export))


async def _erase(place: ChosenStore, selection: Selection, export: Export | None) -> Erased:
    if isinstance(place.store, SQLiteStore):
        async with place.store as file:
            return await file.erase(selection, export=export)
    async with place.store as redis:
        erased = await redis.erase(selection, export=export)
        left = await redis.rewrite_files()
    if left:
        say(spoken("forget.files_left", files=left))
    return erased


def _as_object(place: ChosenStore, erased: Erased, export: Path | None) -> dict[str, Any]:
    exported = {} if export is None else {"exported": str(export)}
    return {**place.to_dict(), **erased._asdict(), **exported}


def _as_line(name: str, erased: Erased, selection: Selection, export: Path | None) -> str:
    parts = []
    if selection.tools != () or erased.evidence:
        parts.append(spoken("forget.evidence", count=erased.evidence))
    if selection.conversations != ():
        parts.append(spoken("forget.conversations", count=erased.conversations))
    if selection.users != () or erased.grants:
        parts.append(spoken("forget.grants", count=erased.grants))
    *first, last = parts
    listed = spoken("forget.and", first=enumerated(first), last=last) if first else last
    line = spoken("forget.erased", listed=listed, file=name)
    if export is None:
        return line
    return clauses(line, spoken("forget.exported", file=export))
