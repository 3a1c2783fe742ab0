"""Kode's tools in a workspace: off unless asked for, and kept to one folder.

>>> import tempfile
>>> from tool_search.workspace import workspace_tools
>>> with tempfile.TemporaryDirectory() as folder:
...     tools = workspace_tools(folder)
>>> [item.tool.name for item in tools][:3]
['read_file', 'edit_file', 'multi_edit_file']

What changes something, runs something or goes out needs the user's permission: without
a rule that allows it, and without a bot that asks, it is refused. What the shell does not
hold is said in `shell.py`. The extra `workspace` brings `.gitignore` and a faster grep.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection

from tool_search.execution import ExecutableTool
from tool_search.workspace.commands import ANY_COMMAND, READ_ONLY_COMMANDS
from tool_search.workspace.editing import EditDesk, editing_tools
from tool_search.workspace.finding import finding_tools
from tool_search.workspace.notebooks import notebook_tools
from tool_search.workspace.reading import reading_tools
from tool_search.workspace.shell import ShellOptions, shell_tools
from tool_search.workspace.texts import ReadFiles
from tool_search.workspace.thinking import RunSubAgent, SubAgentTask, thinking_tools
from tool_search.workspace.web import FetchOptions, WebHit, WebSearch, web_tools
from tool_search.workspace.workspace import PROTECTED, Limits, Workspace, WorkspaceError

__all__ = [
    "ANY_COMMAND",
    "PROTECTED",
    "READ_ONLY_COMMANDS",
    "FetchOptions",
    "Limits",
    "RunSubAgent",
    "ShellOptions",
    "SubAgentTask",
    "WebHit",
    "WebSearch",
    "WorkspaceError",
    "workspace_tools",
]


def workspace_tools(
    folder: str | os.PathLike[str],
    *,
    limits: Limits | None = None,
    protected: Collection[str] = PROTECTED,
    shell: ShellOptions | None = None,
    fetch: FetchOptions | None = None,
    web_search: WebSearch | None = None,
    sub_agent: RunSubAgent | None = None,
) -> tuple[ExecutableTool, ...]:
    """Kode's tools, for one folder.

    Args:
        folder: The workspace.
        limits: How much is read, shown and written.
        protected: Names that are read but never written, at any depth.
        shell: Allows a shell, and what it may run; without it there is none.
        fetch: How web pages are read.
        web_search: What searches the web; without it the tool says that nothing does.
        sub_agent: Runs a task with the tools that only read; without it there is no
            tool for that.

    Raises:
        ConfigurationError: There is no such folder, or the system cannot confine tools to it.
    """
    workspace, seen = Workspace(folder, limits=limits, protected=protected), ReadFiles()
    desk = EditDesk(workspace, seen, threading.Lock())
    tools = (
        *reading_tools(workspace, seen),
        *editing_tools(desk),
        *notebook_tools(desk),
        *finding_tools(workspace),
        *(shell_tools(workspace, shell) if shell is not None else ()),
        *web_tools(fetch or FetchOptions(), web_search),
    )
    return (*tools, *thinking_tools(tools, sub_agent))
