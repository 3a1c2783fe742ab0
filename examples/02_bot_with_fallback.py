"""A bot on Claude that goes on with an OpenAI model if Claude fails.

Run: ANTHROPIC_API_KEY=... OPENAI_API_KEY=... python examples/02_bot_with_fallback.py
"""

import asyncio

from tool_search import Bot, Done, ProviderSwitched, TextDelta
from tool_search.sources.toolbox import TOOLBOX


async def main() -> None:
    """One question, answered with a tool that the model finds itself."""
    async with Bot(["anthropic:claude-sonnet-4-6", "openai:gpt-5.4"], tools=TOOLBOX) as bot:
        async for event in bot.run("How many miles are 42.195 km?", conversation="me"):
            if isinstance(event, TextDelta):
                print(event.text, end="", flush=True)
            elif isinstance(event, ProviderSwitched):
                print(f"\n({event.from_provider} failed: {event.cause})")
            elif isinstance(event, Done):
                print(f"\n({event.provider}, {event.usage.input_tokens} tokens read)")


if __name__ == "__main__":
    asyncio.run(main())
