"""Tool search inside an agent loop of your own: the session plans, you send.

Runs without a key: the stand-in server plays the provider.

Run: python examples/03_own_loop.py
"""

import asyncio

from openai import AsyncOpenAI

from tool_search import ToolSearchSession, profile_for
from tool_search.adapters.openai_chat import from_wire, to_wire
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import KeywordModel, StandInServer


async def main() -> None:
    """One turn: search, call, answer."""
    profile = profile_for("openai-chat", "gpt-5.4")
    session = ToolSearchSession(tools=TOOLBOX)
    session.begin_turn('Count the words of "to be or not to be".', profile=profile)
    with StandInServer(model=KeywordModel()) as server:
        async with AsyncOpenAI(base_url=server.openai_base_url, api_key="unused") as client:
            while True:
                plan = session.plan(profile)
                print(f"-> {len(plan.tools)} tools: {', '.join(plan.tools.names)}")
                reply = await client.chat.completions.create(**to_wire(plan, profile, stream=False))
                calls = session.accept(from_wire(reply.model_dump(), plan, profile).message)
                if not calls:
                    print(session.history[-1].text)
                    return
                for call in calls:
                    # To execute a call yourself, use `decide` and `commit` instead.
                    result = await session.run(call)
                    print(f"   {call.name}: {result.content[:60]}")


if __name__ == "__main__":
    asyncio.run(main())
