"""Tool search inside an agent loop of your own: the session plans, you send.

Runs without a key: the stand-in server plays the provider.

Run: python examples/03_own_loop.py
"""

import asyncio

from openai import AsyncOpenAI

from tool_search import (
    CallResult,
    RunCall,
    ToolCatalog,
    ToolSearchSession,
    profile_for,
    tool_from_function,
)
from tool_search.adapters.openai_chat import from_wire, to_wire
from tool_search.demo.toolbox import TOOLBOX
from tool_search.testing import KeywordModel, StandInServer

TOOLS = {item.tool.name: item for item in map(tool_from_function, TOOLBOX)}


async def main() -> None:
    """One turn: search, call, answer."""
    profile = profile_for("openai_chat", "gpt-5.4")
    session = ToolSearchSession(ToolCatalog(item.tool for item in TOOLS.values()))
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
                    decision = session.decide(call)
                    if isinstance(decision, RunCall):
                        value = TOOLS[decision.tool.name].function(**decision.arguments)
                        session.commit([CallResult(decision=decision, content=str(value))])
                    else:
                        session.commit([CallResult(decision=decision, content=decision.content)])


if __name__ == "__main__":
    asyncio.run(main())
