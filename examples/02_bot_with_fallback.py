"""A bot on Claude that goes on with an OpenAI model when Claude fails.

Run: ANTHROPIC_API_KEY=... OPENAI_API_KEY=... python examples/02_bot_with_fallback.py
"""

import asyncio

from tool_search import Done, ProviderConfig, TextDelta, ToolSearchRunner
from tool_search.adapters import build_provider
from tool_search.demo.toolbox import TOOLBOX

PROVIDERS = [
    ProviderConfig(id="claude", type="anthropic", model="claude-sonnet-4-6"),
    ProviderConfig(id="gpt", type="openai_chat", model="gpt-5.4"),
]


async def main() -> None:
    """One question, answered with a tool that the model finds itself."""
    providers = {
        config.id: build_provider(config, api_key=config.api_key(), fallbacks=True)
        for config in PROVIDERS
    }
    runner = ToolSearchRunner(providers=providers, tools=TOOLBOX)
    async for event in runner.run("How many miles are 42.195 km?", conversation="me"):
        if isinstance(event, TextDelta):
            print(event.text, end="", flush=True)
        elif isinstance(event, Done):
            print(f"\n({event.provider}, {event.usage.input_tokens} tokens read)")
    for provider in providers.values():
        await provider.aclose()


if __name__ == "__main__":
    asyncio.run(main())
