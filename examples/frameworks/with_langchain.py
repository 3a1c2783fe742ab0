"""Tool search in a LangChain agent, with the demo's 196 tools.

Runs without a key: the stand-in server plays the provider. With `--live` and OPENAI_API_KEY
it asks the real one.

Run: pip install '.[langchain]' langchain-openai && python examples/frameworks/with_langchain.py
"""

import sys

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tool_search.adapters.langchain import ToolSearchMiddleware
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import KeywordModel, StandInServer

QUESTION = 'Count the words of "to be or not to be".'


def ask(model: ChatOpenAI) -> None:
    """Ask an agent that has every tool of the demo."""
    agent = create_agent(model, tools=list(TOOLBOX), middleware=[ToolSearchMiddleware()])
    state = agent.invoke({"messages": [HumanMessage(QUESTION)]})
    print(state["messages"][-1].content)
    print("found:", ", ".join(state["discovered"]))


if "--live" in sys.argv:
    ask(ChatOpenAI(model="gpt-5.4"))
else:
    with StandInServer(model=KeywordModel()) as server:
        ask(ChatOpenAI(model="gpt-5.4", base_url=server.openai_base_url, api_key=SecretStr("none")))
        for number, request in enumerate(server.requests, 1):
            print(f"request {number}: {len(request.tool_names)} of {len(TOOLBOX)} tools")
