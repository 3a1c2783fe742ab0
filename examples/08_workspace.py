"""Kode's tools in a folder: confined to it, and asking before they change something.

Runs without a key or a model: the calls of a model are written here.

Run: python examples/08_workspace.py
"""

import asyncio
import json
import tempfile
from pathlib import Path

from tool_search import CallOptions, CallRunner, ToolCall, ToolContext
from tool_search.runner.execution import PermissionRequest, Permissions
from tool_search.sources.workspace import ShellOptions, SubAgentTask, workspace_tools

CALLS = [
    ("edit_file", {"file_path": "greet.py", "old_string": "Hello", "new_string": "Hi"}),
    ("read_file", {"file_path": "greet.py"}),
    ("edit_file", {"file_path": "greet.py", "old_string": "Hello", "new_string": "Hi"}),
    ("read_file", {"file_path": "../secret.txt"}),
    ("bash", {"command": "cd docs && ls"}),
    ("bash", {"command": "pwd; rm -rf ."}),
    ("task", {"description": "find greetings", "prompt": "Which files greet?"}),
]


async def ask(request: PermissionRequest) -> bool:
    """Allow each request, and print it."""
    print(f"   the user allows {request.tool.name}")
    return True


async def sub_agent(task: SubAgentTask) -> str:
    """Take the place of a loop with its own model, which may only read."""
    found = await task.call("grep", pattern="Hi|Hello")
    return f"{task.prompt} {found}"


async def main() -> None:
    """A few calls, one after the other, in one conversation."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder)
        (workspace / "docs").mkdir()
        (workspace / "docs" / "notes.md").write_text("Nothing yet.\n")
        (workspace / "greet.py").write_text('print("Hello")\n')
        tools = workspace_tools(
            workspace, shell=ShellOptions(commands=["cd", "ls", "pwd"]), sub_agent=sub_agent
        )
        runner = CallRunner(tools, options=CallOptions(permissions=Permissions(ask=ask)))
        context = ToolContext(conversation="example", language="en-US")
        for number, (name, arguments) in enumerate(CALLS):
            print(f">> {name} {json.dumps(arguments)}")
            call = ToolCall(id=str(number), name=name, arguments=json.dumps(arguments))
            (finished,) = await runner.results([call], context)
            print(f"<< {finished.outcome}: {finished.content}")
        await runner.aclose()


if __name__ == "__main__":
    asyncio.run(main())
