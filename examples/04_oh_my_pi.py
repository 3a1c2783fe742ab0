"""oh-my-pi's tool discovery inside an agent loop of your own.

Runs without a key or a model: the calls of a model are written here.

Run: python examples/04_oh_my_pi.py
"""

import json

from tool_search import Tool
from tool_search.adapters.compat.oh_my_pi.surface import DiscoverySettings, ToolDiscovery

TOOLS = [
    Tool(name="read", kind="builtin", description="Reads a file."),
    Tool(name="lsp", kind="builtin", description="Asks the language server."),
    *(
        Tool(name=f"mcp__github_{name}", kind="mcp", server="github", description=description)
        for name, description in (
            ("create_issue", "Opens an issue in a repository."),
            ("list_issues", "Lists the issues of a repository."),
            ("merge_pull_request", "Merges a pull request."),
        )
    ),
]


def main() -> None:
    """Show one session: its tools, a search, its tools after it, and its record."""
    settings = DiscoverySettings.from_mapping({"tools": {"discoveryMode": "all"}})
    discovery = ToolDiscovery(TOOLS, settings=settings)
    print("shown:", ", ".join(tool.name for tool in discovery.active_tools()))
    answer = discovery.call({"query": "open an issue", "limit": 1})
    print("the model reads:", answer.content)
    print("shown:", ", ".join(tool.name for tool in discovery.active_tools()))
    print("to keep:", json.dumps(discovery.to_dict()))


if __name__ == "__main__":
    main()
