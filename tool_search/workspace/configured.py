"""The same for `bot.yaml`: `tools: ["tool_search.workspace.configured"]`.

The environment says what may be used, and without it nothing is:

- `TOOL_SEARCH_WORKSPACE`: the folder.
- `TOOL_SEARCH_WORKSPACE_COMMANDS`: what a shell may run, separated by commas; without it
  there is no shell.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tool_search.errors import ConfigurationError
from tool_search.execution import ExecutableTool
from tool_search.workspace import ShellOptions, workspace_tools

__all__ = ["tools_from_environment"]

_FOLDER = "TOOL_SEARCH_WORKSPACE"
_COMMANDS = "TOOL_SEARCH_WORKSPACE_COMMANDS"


def tools_from_environment(environment: Mapping[str, str]) -> tuple[ExecutableTool, ...]:
    """The tools that an environment allows.

    Raises:
        ConfigurationError: It names no folder.
    """
    folder = environment.get(_FOLDER, "").strip()
    if not folder:
        raise ConfigurationError(
            f"{_FOLDER} is not set: it must name the folder that the workspace tools may use"
        )
    commands = [one.strip() for one in environment.get(_COMMANDS, "").split(",") if one.strip()]
    return workspace_tools(folder, shell=ShellOptions(commands=commands) if commands else None)


def __getattr__(name: str) -> Any:
    """`TOOLS`, made when a configuration asks for it."""
    if name == "TOOLS":
        return tools_from_environment(os.environ)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
