"""A tool set for one folder: files, search, notebooks, a shell, web pages, a todo list.

>>> import tempfile
>>> from tool_search.sources.workspace import workspace_tools
>>> with tempfile.TemporaryDirectory() as folder:
...     tools = workspace_tools(folder)
>>> [item.tool.name for item in tools][:3]
['read_file', 'edit_file', 'multi_edit_file']

The tools have the names and limits of Kode's. Tools that change files, run commands or reach
the network need permission: without a rule that allows them, and without a bot that asks, they
are denied. The limits of the shell are in `shell.py`. The extra `workspace` adds `.gitignore`
and a faster grep.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection

from tool_search.runner.execution import ExecutableTool
from tool_search.sources.workspace.commands import ANY_COMMAND, READ_ONLY_COMMANDS
from tool_search.sources.workspace.editing import EditDesk, editing_tools
from tool_search.sources.workspace.finding import finding_tools
from tool_search.sources.workspace.notebooks import notebook_tools
from tool_search.sources.workspace.reading import reading_tools
from tool_search.sources.workspace.shell import ShellOptions, shell_tools
from tool_search.sources.workspace.texts import ReadFiles
from tool_search.sources.workspace.thinking import RunSubAgent, SubAgentTask, thinking_tools
from tool_search.sources.workspace.web import FetchOptions, WebHit, WebSearch, web_tools
from tool_search.sources.workspace.workspace import PROTECTED, Limits, Workspace, WorkspaceError

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
    """Return the workspace tools for one folder.

    Args:
        folder: The workspace.
        limits: Limits on reading, showing and writing.
        protected: Names that are read but never written, at any depth.
        shell: Options of the shell with its allowed commands; None: no shell.
        fetch: Options of web pages.
        web_search: A search of the web; None: the tool answers that there is none.
        sub_agent: Runs a task with the tools that only read; None: no tool for tasks.

    Raises:
        ConfigurationError: The folder does not exist, or the system cannot confine tools
            to it.
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
