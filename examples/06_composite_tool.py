"""A tool made of other tools, one of which keeps something for each conversation.

Each inner call is checked, permitted and timed like one of the model's own.
No key, no network. Run: python examples/06_composite_tool.py
"""

from __future__ import annotations

import asyncio

from tool_search import CallRunner, ToolCall, ToolCallError, ToolContext, stateful_tool


def translate(text: str) -> dict[str, str]:
    """Translate a text into capitals.

    Args:
        text: The text to translate.
    """
    if not text:
        raise ValueError("there is nothing to translate")
    return {"translation": text.upper()}


class Notes:
    """Keeps notes, each conversation its own."""

    def __init__(self, context: ToolContext) -> None:
        self._conversation = context.conversation
        self._notes: list[str] = []

    def __call__(self, note: str) -> str:
        """Takes a note and says how many there are."""
        self._notes.append(note)
        return f"{len(self._notes)} notes"

    def close(self) -> None:
        """Called when the conversation is forgotten, or the bot ends."""
        print(f"the notes of {self._conversation} are put away")


async def translate_and_note(text: str, context: ToolContext) -> str:
    """Translate a text and keep it.

    Args:
        text: The text to translate.
        context: The context of the call; the model does not see it.
    """
    try:
        translated = await context.call("translate", text=text)
    except ToolCallError as exc:
        return f"nothing was kept: {exc}"
    kept = await context.call("notes", note=translated["translation"])
    return f"{translated['translation']} ({kept})"


async def main() -> None:
    """Two calls of a model's; the first one's arguments have a comma too many."""
    runner = CallRunner([translate, stateful_tool(Notes, name="notes"), translate_and_note])
    context = ToolContext(conversation="demo", language="en-US")
    calls = [
        ToolCall(id="1", name="translate_and_note", arguments='{"text": "that is the question",}'),
        ToolCall(id="2", name="translate_and_note", arguments='{"text": ""}'),
    ]
    for result in await runner.results(calls, context):
        print(f"{result.outcome}: {result.content}")
    await runner.aclose()


if __name__ == "__main__":
    asyncio.run(main())
