"""An MCP server of 61 tools on standard input and output, for command-line clients.

Run: python tests/proxy/toolbox_server.py
"""

from __future__ import annotations

import json
import sys
from typing import Any

from tool_search import tool_from_function
from tool_search.demo.toolbox import TOOLBOX

COUNT = 61
_ALL = [tool_from_function(function) for function in TOOLBOX]
_FIRST = [each for each in _ALL if each.tool.name == "count_words"]
TOOLS = {t.tool.name: t for t in [*_FIRST, *_ALL][:COUNT]}
if len(TOOLS) < COUNT:
    TOOLS = {t.tool.name: t for t in [*_FIRST, *_ALL][: COUNT + 1]}


def listed(tool: Any) -> dict[str, Any]:
    """Return a tool as `tools/list` has it."""
    schema = dict(tool.parameters) or {"type": "object", "properties": {}}
    return {"name": tool.name, "description": tool.description, "inputSchema": schema}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request."""
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "toolbox", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [listed(each.tool) for each in TOOLS.values()]}
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
