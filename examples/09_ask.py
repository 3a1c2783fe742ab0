"""A bot in ten lines: a configuration, a question, an answer.

Runs without a key: the stand-in server plays the provider. With a file, it is
`open_bot("bot.yaml")`.

Run: python examples/09_ask.py
"""

import asyncio

from tool_search import NoAnswerError, open_bot
from tool_search.testing import KeywordModel, StandInServer


async def main() -> None:
    """Two questions of one conversation."""
    with StandInServer(model=KeywordModel()) as server:
        local = {
            "id": "local",
            "type": "openai-chat",
            "model": "qwen3",
            "base_url": server.openai_base_url,
            "api_key_env": None,
        }
        config = {
            "providers": [local],
            "tools": ["tool_search.sources.toolbox"],
            "store": {"type": "memory"},
        }
        async with open_bot(config) as bot:
            for question in (
                'Count the words of "to be or not to be".',
                'Count the words of "tool search".',
            ):
                try:
                    print(f"{question}\n  {await bot.ask(question)}")
                except NoAnswerError as error:
                    print(f"{question}\n  {error.text}")


if __name__ == "__main__":
    asyncio.run(main())
