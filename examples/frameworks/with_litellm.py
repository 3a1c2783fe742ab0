"""Tool search in LiteLLM's proxy, asked by a bot that sends it all 196 tools of the demo.

Runs without a key: the stand-in server plays the provider. With `--live` and OPENAI_API_KEY
the proxy asks the real one.

Run: pip install '.[litellm]' && python examples/frameworks/with_litellm.py
"""

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from openai import OpenAI

from tool_search import tool_from_function
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import KeywordModel, StandInServer

QUESTION = 'Count the words of "to be or not to be".'
KEY = f"sk-{secrets.token_hex(16)}"
CONFIG = """
model_list:
  - model_name: gpt-5.4
    litellm_params: {{model: openai/gpt-5.4, {provider}}}
litellm_settings:
  callbacks: ["tool_search.adapters.litellm.handler"]
general_settings: {{master_key: {key}}}
"""


@contextmanager
def proxy(provider: str) -> Iterator[str]:
    """Run the proxy with the adapter in its YAML; yield its address."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "litellm.yaml")
        file.write_text(CONFIG.format(provider=provider, key=KEY), encoding="utf-8")
        command = [str(Path(sys.executable).parent / "litellm"), "--config", str(file)]
        with Path(folder, "log.txt").open("w", encoding="utf-8") as log:
            running = subprocess.Popen(  # noqa: S603  # LiteLLM's own command
                [*command, "--host", "127.0.0.1", "--port", str(port)],
                env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
                stdout=log,
                stderr=log,
            )
            try:
                while running.poll() is None:
                    try:
                        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/liveliness"):
                            break
                    except OSError:
                        time.sleep(0.5)
                yield f"http://127.0.0.1:{port}/v1"
            finally:
                running.terminate()
                running.wait(20)


def ask(client: OpenAI) -> None:
    """Ask as any bot does: it declares every tool, and runs what is called."""
    functions = {made.tool.name: made for made in map(tool_from_function, TOOLBOX)}
    tools: list[Any] = []
    for name, made in functions.items():
        parameters = dict(made.tool.parameters) or {"type": "object", "properties": {}}
        function = {"name": name, "description": made.tool.description, "parameters": parameters}
        tools.append({"type": "function", "function": function})
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    while True:
        reply = client.chat.completions.create(model="gpt-5.4", messages=messages, tools=tools)
        said: Any = reply.choices[0].message
        messages.append({"role": "assistant", "content": said.content})
        if not said.tool_calls:
            print(said.content)
            return
        messages[-1]["tool_calls"] = [call.to_dict() for call in said.tool_calls]
        for call in said.tool_calls:
            print("the client sees a call of", call.function.name)
            arguments = json.loads(call.function.arguments)
            result = str(functions[call.function.name].function(**arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


if __name__ == "__main__":
    if "--live" in sys.argv:
        with proxy("api_key: os.environ/OPENAI_API_KEY") as address:
            ask(OpenAI(base_url=address, api_key=KEY))
    else:
        with StandInServer(model=KeywordModel()) as server:
            with proxy(f'api_base: "{server.openai_base_url}", api_key: none') as address:
                ask(OpenAI(base_url=address, api_key=KEY))
            for number, request in enumerate(server.requests, 1):
                print(f"request {number}: {len(request.tool_names)} of {len(TOOLBOX)} tools")
