"""Tool search in a loop on google-genai, with the demo's 196 tools.

google-genai has no place for a plug-in: its automatic loop takes one list of tools for all
requests. So the loop is written here, and a `ToolView` says what each request declares.

Runs without a key: a server on this computer plays Gemini. With `--live` and GEMINI_API_KEY it
asks the real one.

Run: pip install . google-genai && python examples/frameworks/with_google_genai.py
"""

import asyncio
import inspect
import sys
from collections.abc import Awaitable
from typing import Any

from google import genai
from google.genai import types

from tool_search import Tool, ToolSearch, ToolView, append_instructions
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing.gemini import GeminiServer

FUNCTIONS = {function.__name__: function for function in TOOLBOX}


def declaration(tool: Tool) -> types.FunctionDeclaration:
    """Return a tool as Gemini takes it."""
    schema = dict(tool.parameters) or {"type": "object", "properties": {}}
    return types.FunctionDeclaration(
        name=tool.name, description=tool.description, parameters_json_schema=schema
    )


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result


def call(view: ToolView, name: str, arguments: dict[str, object]) -> dict[str, object]:
    """Return the response to a call: of a search, or of a function."""
    if name == view.search_tool_name:
        return {"result": view.search(arguments).to_json()}
    try:
        result = FUNCTIONS[name](**arguments)
        if inspect.isawaitable(result):  # a bot in an event loop has `client.aio`, and awaits it
            result = asyncio.run(_awaited(result))
    except (KeyError, TypeError, ValueError) as exc:
        view.returned(name, failed=True)
        return {"error": repr(exc)}
    view.returned(name)  # the search that led to the function has taught something
    return {"result": result}


def ask(client: genai.Client, view: ToolView, contents: list[types.Content]) -> str:
    """Return the answer to the last question; `contents` grows by the calls and the answer."""
    while True:
        declared = [declaration(entry.tool) for entry in view.tools()]
        reply = client.models.generate_content(
            model="gemini-3-flash",
            contents=list(contents),
            config=types.GenerateContentConfig(
                system_instruction=append_instructions("Be brief.", view),
                tools=[types.Tool(function_declarations=declared)],
                automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            ),
        )
        said = reply.candidates[0].content if reply.candidates else None
        if said is None:
            return ""
        contents.append(said)  # with its thought signatures, which Gemini wants back
        if not reply.function_calls:
            return reply.text or ""
        parts = [
            types.Part(
                function_response=types.FunctionResponse(
                    id=each.id,
                    name=each.name,
                    response=call(view, each.name or "", each.args or {}),
                )
            )
            for each in reply.function_calls
        ]
        contents.append(types.Content(role="user", parts=parts))


def main(client: genai.Client) -> None:
    """Ask twice: the second turn goes on with what was found, and searches nothing."""
    search, contents, found = ToolSearch(TOOLBOX), list[types.Content](), tuple[str, ...]()
    for text in ("to be or not to be", "all the world's a stage"):
        question = f'Count the words of "{text}".'
        contents.append(types.Content(role="user", parts=[types.Part(text=question)]))
        view = search.view(found)
        print(ask(client, view, contents))
        found = view.found  # with `contents`, all that the bot keeps
        search.learn_now(view)
    print("found:", ", ".join(found))


if __name__ == "__main__":
    if "--live" in sys.argv:
        main(genai.Client())
    else:
        with GeminiServer() as server:
            options = types.HttpOptions(base_url=server.base_url)
            main(genai.Client(api_key="none", http_options=options))
            for number, names in enumerate(server.declared, 1):
                print(f"request {number}: {len(names)} of {len(TOOLBOX)} tools")
            print("refused:", server.violations)
