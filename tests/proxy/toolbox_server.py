"""An MCP server of 61 tools, or TOOLBOX_COUNT, on standard input and output.

Run: python tests/proxy/toolbox_server.py
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from tool_search import tool_from_function
from tool_search.sources.toolbox import TOOLBOX

COUNT = int(os.environ.get("TOOLBOX_COUNT", "61"))
_ALL = {each.tool.name: each for each in map(tool_from_function, TOOLBOX)}
_NAMES = ["count_words", *(name for name in _ALL if name != "count_words")]


def chosen() -> dict[str, Any]:
    """Return the functions by name; more than there are have a number behind the name."""
    found = {}
    for number in range(COUNT):
        turn, place = divmod(number, len(_NAMES))
        name = _NAMES[place]
        found[name if turn == 0 else f"{name}_{turn}"] = _ALL[name]
    return found


TOOLS = chosen()


def listed(name: str, tool: Any) -> dict[str, Any]:
    """Return a tool as `tools/list` has it."""
    schema = dict(tool.parameters) or {"type": "object", "properties": {}}
    return {"name": name, "description": tool.description, "inputSchema": schema}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request."""
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "toolbox", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [listed(name, each.tool) for name, each in TOOLS.items()]}
    if method == "tools/call":
        said = str(TOOLS[params["name"]].function(**params["arguments"]))
        return {"content": [{"type": "text", "text": said}]}
    return {}


def main() -> None:
    """Answer the requests on standard input, one a line."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = answer(message["method"], message.get("params") or {})
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
