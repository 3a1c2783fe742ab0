"""Snapshots of requests, events, answers and rankings, to compare one commit with another.

Run::

    python benchmarks/wire_snapshot.py write FOLDER [--only PART]...
    python benchmarks/wire_snapshot.py compare FOLDER [--only PART]... [--renamed OLD NEW]...

Fixed conversations are played on the stand-in server, and everything that depends on a port, a
time or an order of sets is left out, so that two runs on one commit are equal. A folder has:

- `bodies/`: each request of a conversation, byte for byte; `vendors.txt` has requests for
  services whose address decides their form, `schemas-*` drawn schemas as services are
  sent them, and `astrbot-*` the tools and histories that AstrBot is given;
- `events/`: the events of each turn, with their fields but no durations;
- `words/`: the English texts of events for operators, and the causes of a change of provider;
- `answers/`: results of calls as the history keeps them, and answers to many searches;
- `rankings/`: names and scores for committed queries, by set and engine.

`compare` plays everything again, prints the first difference of each file that differs, and ends
with 1. `--renamed` reads a text of the older events and words as its new spelling, as
`--renamed Warning RunnerWarning`; the other parts are compared as they are. `--only` plays the
conversations and writes the other files whose names contain a text: `vendors`, `schemas`,
`astrbot`, `search`, `rankings`.

The script imports only names that callers may rely on. To look at another commit, copy it there
with its folder `snapshot/`. Engines `semantic` and `hybrid` rank with an embedder of its own,
since the one that the extra `semantic` installs is not everywhere.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile, zip_longest
from pathlib import Path

# The library of this checkout, whatever is installed: another one would make a wrong snapshot.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from snapshot.astrbot import write_astrbot
from snapshot.conversations import cases
from snapshot.files import SnapshotError
from snapshot.rankings import write_rankings
from snapshot.sessions import write_answers, write_schemas, write_vendors
from snapshot.stage import play

import tool_search
from tool_search.testing import StandInServer

PARTS = ("bodies", "events", "words", "answers", "rankings")
_RESPELLED = ("events", "words")

_SHOWN_CHARS = 60
_OFFLINE: Mapping[str, Callable[[Path], None]] = {
    "vendors": write_vendors,
    "schemas": write_schemas,
    "astrbot": write_astrbot,
    "search": write_answers,
    "rankings": write_rankings,
}
"""The writers that need no server, by the text that `--only` chooses them with."""


def write_snapshot(target: Path, *, only: Sequence[str] = ()) -> int:
    """Write a snapshot into an empty folder; return the number of conversations.

    Raises:
        SnapshotError: The folder is not empty, or a conversation did not go as it should.
    """
    if target.exists() and any(target.iterdir()):
        raise SnapshotError(f"{str(target)!r} is not empty; name a new folder, or remove it first")
    for part in PARTS:
        (target / part).mkdir(parents=True, exist_ok=True)
    chosen = [case for case in cases() if _is_chosen(case.name, only)]

    async def play_all() -> None:
        with StandInServer() as server:
            for case in chosen:
                await play(case, server, target)

    asyncio.run(play_all())
    for name, write in _OFFLINE.items():
        if _is_chosen(name, only):
            write(target)
    return len(chosen)


def differences(
    older: Path, newer: Path, *, renamed: Mapping[str, str], only: Sequence[str] = ()
) -> list[str]:
    """Return a report on each file that differs, or that only one of two snapshots has.

    Raises:
        SnapshotError: The older folder has no snapshot.
    """
    if not (older / PARTS[0]).is_dir():
        raise SnapshotError(f"{str(older)!r} has no snapshot; write one with: write {older}")
    # A part of a snapshot lacks files that the whole has.
    paths = _files(newer) | (_files(older) if not only else set())
    reports = []
    for path in sorted(paths, key=lambda path: (PARTS.index(path.parts[0]), path)):
        known, made = older / path, newer / path
        if not known.exists() or not made.exists():
            reports.append(f"{path}: only in the {'newer' if made.exists() else 'older'} snapshot")
            continue
        old, new = known.read_bytes(), made.read_bytes()
        if path.parts[0] in _RESPELLED:
            old = _respelled(old, renamed)
        if old != new:
            reports.append(f"{path}: {_first_difference(old, new)}")
    return reports


def _is_chosen(name: str, only: Sequence[str]) -> bool:
    return not only or any(text in name for text in only)


def _files(folder: Path) -> set[Path]:
    """Return the files of a snapshot, relative to its folder."""
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


def _respelled(content: bytes, renamed: Mapping[str, str]) -> bytes:
    """Return JSON with whole texts and keys in their new spelling."""
    for old, new in renamed.items():
        content = content.replace(_spelling(old), _spelling(new))
    return content


def _spelling(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode()


def _first_difference(old: bytes, new: bytes) -> str:
    """Return the first line that differs, from shortly before the place."""
    pairs = zip_longest(old.split(b"\n"), new.split(b"\n"), fillvalue=b"")
    number, (left, right) = next(
        (number, pair) for number, pair in enumerate(pairs, 1) if pair[0] != pair[1]
    )
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))
    place = sum(1 for _ in alike)
    start = max(0, place - _SHOWN_CHARS)
    shown = [
        line[start : place + _SHOWN_CHARS].decode("utf-8", "replace") for line in (left, right)
    ]
    return f"line {number}, byte {place + 1}\n  - {shown[0]!r}\n  + {shown[1]!r}"


def _compare(options: argparse.Namespace) -> int:
    older: Path = options.folder
    with tempfile.TemporaryDirectory() as folder:
        newer = Path(folder)
        played = write_snapshot(newer, only=options.only)
        reports = differences(older, newer, renamed=dict(options.renamed or ()), only=options.only)
        counts = _counts(newer)
    if reports:
        print("\n".join(reports))
        print(f"{len(reports)} files differ from {older}")
        return 1
    print(f"equal to {older}: {played} conversations, {counts}")
    return 0


def _counts(folder: Path) -> str:
    return ", ".join(f"{sum(1 for _ in (folder / part).iterdir())} {part}" for part in PARTS)


def main() -> int:
    """Write a snapshot or compare with one; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("write", "compare"):
        command = commands.add_parser(name)
        command.add_argument("folder", type=Path)
        command.add_argument("--only", action="append", default=[], metavar="PART")
        if name == "compare":
            command.add_argument("--renamed", nargs=2, action="append", metavar=("OLD", "NEW"))
    options = parser.parse_args()
    # Faults are meant to happen here, and the library logs them.
    logging.disable(logging.CRITICAL)
    print(f"library: {Path(str(tool_search.__file__)).parent}", file=sys.stderr)
    start = time.perf_counter()
    try:
        if options.command == "compare":
            return _compare(options)
        played = write_snapshot(options.folder, only=options.only)
    except SnapshotError as exc:
        print(f"wire_snapshot: {exc}", file=sys.stderr)
        return 2
    took = time.perf_counter() - start
    print(f"{options.folder}: {played} conversations, {_counts(options.folder)} in {took:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
