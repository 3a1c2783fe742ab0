"""Tool search in a pydantic-ai agent, with the demo's 196 tools.

Runs without a key: the stand-in server plays the provider. With `--live` and OPENAI_API_KEY
it asks the real one.

Run: pip install '.[pydantic-ai]' 'pydantic-ai-slim[openai]'
     python examples/frameworks/with_pydantic_ai.py
"""

import sys

from pydantic_ai import Agent, Tool
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tool_search.adapters.pydantic_ai import RankedToolSearch
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import ModelCall, ModelReply, ScriptedModel, StandInServer

QUESTION = 'Count the words of "to be or not to be".'
# The replies of the stand-in: a search in Chinese, a call of what it found, an answer.
REPLIES = ScriptedModel(
    [
        ModelReply(calls=(ModelCall(name="search_tools", arguments={"queries": ["统计字数"]}),)),
        ModelReply(
            calls=(ModelCall(name="count_words", arguments={"text": "to be or not to be"}),)
        ),
        lambda view: ModelReply(text=view.results[-1].text),
    ]
)


def ask(model: OpenAIChatModel) -> None:
    """Ask an agent that has every tool of the demo."""
    tools = [Tool[None](function, defer_loading=True) for function in TOOLBOX]
    agent = Agent(model, tools=tools, capabilities=[RankedToolSearch()])
    print(agent.run_sync(QUESTION).output)


if "--live" in sys.argv:
    ask(OpenAIChatModel("gpt-5.4"))
else:
    with StandInServer(model=REPLIES) as server:
        provider = OpenAIProvider(base_url=server.openai_base_url, api_key="none")
        ask(OpenAIChatModel("gpt-5.4", provider=provider))
        for number, request in enumerate(server.requests, 1):
            print(f"request {number}: {len(request.tool_names)} of {len(TOOLBOX)} tools")
