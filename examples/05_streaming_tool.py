"""A tool that says how far it is and shows pieces of its result before the rest.

No key, no network. Run: python examples/05_streaming_tool.py
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from tool_search import CallRunner, ToolCall, ToolContext, ToolFinished
from tool_search.runner.events import ToolOutputDelta, ToolProgress
from tool_search.runner.execution import CallOutputDelta, CallProgress


async def translate(text: str) -> AsyncIterator[CallProgress | CallOutputDelta | dict[str, str]]:
    """Translate a text into capitals, word by word.

    Args:
        text: The text to translate.
    """
    words = []
    for number, word in enumerate(text.split(), 1):
        await asyncio.sleep(0.05)
        words.append(word.upper())
        yield CallProgress(f"{number} words")
        yield CallOutputDelta(f"{words[-1]} ")
    yield {"translation": " ".join(words)}  # the first other item is the result


async def main() -> None:
    """A model's call, as any agent loop may have it run."""
    runner = CallRunner([translate])
    context = ToolContext(conversation="demo", language="en-US")
    call = ToolCall(id="1", name="translate", arguments='{"text": "to be or not to be"}')
    async for event in runner.run([call], context):
        if isinstance(event, ToolProgress):
            print(f"       {event.message}")
        elif isinstance(event, ToolOutputDelta):
            print(f"     + {event.content}")
        elif isinstance(event, ToolFinished):
            print(f"{event.outcome} in {event.duration_s:.2f} s: {event.content}")


if __name__ == "__main__":
    asyncio.run(main())
