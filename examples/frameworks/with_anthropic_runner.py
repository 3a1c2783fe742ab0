"""Tool search in the anthropic SDK's tool runner, with the demo's 196 tools.

Runs without a key: the stand-in server plays the provider. With `--live` and ANTHROPIC_API_KEY
it asks the real one.

Run: pip install '.[anthropic]' && python examples/frameworks/with_anthropic_runner.py
"""

import sys

from anthropic import Anthropic

from tool_search.adapters.anthropic_runner import searchable
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import KeywordModel, StandInServer

QUESTION = 'Count the words of "to be or not to be".'


def ask(client: Anthropic) -> None:
    """Ask with a runner that has every tool of the demo."""
    tools = searchable(TOOLBOX)
    runner = client.beta.messages.tool_runner(
        model="claude-sonnet-4-6",
        max_tokens=1_000,
        messages=[{"role": "user", "content": QUESTION}],
        tools=tools,
    )
    for message in runner:
        for block in message.content:
            print(block.text if block.type == "text" else f"{block.type}: {block.to_dict()}")
    print("found:", ", ".join(tools.view.found))


if "--live" in sys.argv:
    ask(Anthropic())
else:
    with (
        StandInServer(model=KeywordModel()) as server,
        Anthropic(base_url=server.anthropic_base_url, api_key="none") as client,
    ):
        ask(client)
        tools = server.requests[0].body["tools"]
        print(sum("defer_loading" in tool for tool in tools), "of", len(tools), "are deferred")
