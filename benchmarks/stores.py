"""Measure the cost of keeping a conversation: by its length, by `synchronous`, and to erase it.

Run: python benchmarks/stores.py [--folder DIR]

A turn is a user's message, a search, its result and an answer of 600 characters, saved as
the runner saves it. The median of the turns about each number; CPU time of the process,
store's thread included, for what must not grow, and time by the clock for the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from tool_search import (
    ConversationRecord,
    Message,
    SQLiteStore,
    Tool,
    ToolCall,
    ToolCatalog,
    ToolSearchConfig,
    ToolSearchSession,
    profile_for,
)
from tool_search.stores.sqlite.file import Synchronous

LEVELS: tuple[Synchronous, ...] = ("full", "normal", "off")
TURNS = (5, 50, 200, 800)
AROUND = 5
SIZES_MB = (1, 10, 100)
_TEXT = "An answer of some length, as people give them. " * 13


def first_record() -> ConversationRecord:
    """Return a conversation with a hundred tools and no messages."""
    tools = [Tool(name=f"tool_{n:03}", description=f"Does thing {n}.") for n in range(100)]
    config = ToolSearchConfig(tool_schema_mode="tool_search")
    session = ToolSearchSession(ToolCatalog(tools), config=config)
    session.begin_turn("Hello", profile=profile_for("openai_chat", "gpt-5.4"))
    return session.record()


def one_turn(number: int) -> tuple[Message, ...]:
    """Return the messages of one turn."""
    call = ToolCall(id=f"c{number}", name="tool_search", arguments='{"query": "thing"}')
    return (
        Message(role="user", content=f"Question {number}"),
        Message(role="assistant", tool_calls=(call,)),
        Message(role="tool", tool_call_id=call.id, name=call.name, content=_TEXT),
        Message(role="assistant", content=_TEXT),
    )


async def turns(folder: Path, level: Synchronous) -> dict[int, tuple[float, float]]:
    """CPU and clock milliseconds of a save, by the number of the turn."""
    taken: dict[int, tuple[float, float]] = {}
    record, revision = first_record(), None
    async with SQLiteStore(folder / f"{level}.db", synchronous=level) as store:
        for number in range(1, max(TURNS) + AROUND):
            record = replace(record, history=(*record.history, *one_turn(number)))
            cpu, clock = time.process_time(), time.perf_counter()
            await store.save_over("c", record, expected=revision, new=number)
            ended = (time.process_time() - cpu, time.perf_counter() - clock)
            taken[number] = (1000 * ended[0], 1000 * ended[1])
            revision = number
    return {
        n: (
            statistics.median(taken[m][0] for m in range(max(n - AROUND, 2), n + AROUND)),
            statistics.median(taken[m][1] for m in range(max(n - AROUND, 2), n + AROUND)),
        )
        for n in TURNS
    }


async def erasing(folder: Path, megabytes: int) -> float:
    """Seconds until no byte of one conversation is left in a file of this size."""
    record = first_record()
    turn = tuple(message for n in range(10) for message in one_turn(n))
    path = folder / f"{megabytes}.db"
    async with SQLiteStore(path, synchronous="off") as store:
        number = 0
        while not path.exists() or path.stat().st_size < megabytes * 1e6:
            for _ in range(50):
                number += 1
                await store.save(f"c{number}", replace(record, history=turn))
        began = time.perf_counter()
        await store.forget_conversations("c1")
        return time.perf_counter() - began


def main() -> None:
    """Measures, and prints one table after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="On the disk that is meant.")
    chosen = parser.parse_args().folder
    with tempfile.TemporaryDirectory(dir=chosen) as made:
        folder = Path(made)
        print("| synchronous | turn | CPU ms | clock ms |\n|---|--:|--:|--:|")
        for level in LEVELS:
            for number, (cpu, clock) in asyncio.run(turns(folder, level)).items():
                print(f"| {level} | {number} | {cpu:.2f} | {clock:.2f} |")
        print("\n| file, MB | seconds to erase a conversation |\n|--:|--:|")
        for megabytes in SIZES_MB:
            print(f"| {megabytes} | {asyncio.run(erasing(folder, megabytes)):.2f} |")


if __name__ == "__main__":
    main()
