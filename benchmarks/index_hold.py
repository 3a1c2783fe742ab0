"""Measure how long the event loop is held while 10,000 tools are indexed and 50 search.

Run: python benchmarks/index_hold.py [--tools 10000] [--conversations 50]

Fifty conversations of a runner search one catalog; meanwhile the catalog is replaced by
another one, which is indexed. A hold is the processor time of one callback of the loop's
thread, with Python's garbage collection apart, as benchmarks/load.py measures it.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator

from load import Holds

from tool_search import (
    Done,
    ExecutableTool,
    Message,
    RequestPlan,
    Tool,
    ToolCall,
    ToolSearchRunner,
    profile_for,
)
from tool_search.providers.base import ReplyEnd, ReplyEvent, Usage


class Model:
    """A provider without a network, which searches once a turn and then answers."""

    def __init__(self) -> None:
        self.profile = profile_for("openai_chat", "gpt-5.4")

    async def stream(self, plan: RequestPlan) -> AsyncIterator[ReplyEvent]:
        """Yield a search, or the answer after it."""
        await asyncio.sleep(0.005)
        if plan.messages[-1].role == "tool":
            message = Message(role="assistant", content="found")
        else:
            call = ToolCall(
                id="c1", name="tool_search", arguments='{"query": "gadget 17 of steel"}'
            )
            message = Message(role="assistant", tool_calls=(call,))
        reason = "calls" if message.tool_calls else "answer"
        yield ReplyEnd(message=message, stop_reason=reason, usage=Usage())  # type: ignore[arg-type]


def catalog(count: int, label: str) -> list[ExecutableTool]:
    """Return tools with two parameters and some text."""
    return [
        ExecutableTool(
            tool=Tool(
                name=f"{label}_{n}",
                description=f"Makes the gadget {n} of steel, number {n % 97}, for {label}.",
                parameters={
                    "type": "object",
                    "properties": {
                        "size": {"type": "integer", "description": f"Size of the gadget {n}."},
                        "city": {"type": "string", "description": "The city to send it to."},
                    },
                },
            ),
            function=lambda **_: "ok",
        )
        for n in range(count)
    ]


async def measured(tools: int, conversations: int) -> tuple[Holds, int]:
    """Return the holds, and the number of turns that were answered."""
    runner = ToolSearchRunner(providers={"p": Model()}, tools=catalog(tools, "first"))
    second, holds, answered = catalog(tools, "second"), Holds(), 0

    async def turns(number: int) -> None:
        nonlocal answered
        async for event in runner.run("Go", conversation=f"c{number}"):
            answered += isinstance(event, Done)

    with holds.watched():
        await asyncio.gather(*map(turns, range(conversations)))
    during = Holds()
    # Tools are listed in a thread, as a bot that reads a server's list would do it.
    await asyncio.to_thread(runner.replace_tools, second)
    with during.watched():
        await asyncio.gather(*map(turns, range(conversations)))
    await runner.aclose()
    holds.longest += during.longest
    holds.longest_collection = max(holds.longest_collection, during.longest_collection)
    return holds, answered


def main() -> None:
    """Print the longest holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=int, default=10_000)
    parser.add_argument("--conversations", type=int, default=50)
    options = parser.parse_args()
    holds, answered = asyncio.run(measured(options.tools, options.conversations))
    longest = sorted(holds.longest, reverse=True)[:5]
    print(f"{answered} turns; longest holds of the event loop, ms of processor time:")
    for seconds, handle in longest:
        print(f"  {1e3 * seconds:6.1f}  {handle}")
    print(f"garbage collection: {1e3 * holds.longest_collection:.1f} ms at the longest")


if __name__ == "__main__":
    main()
