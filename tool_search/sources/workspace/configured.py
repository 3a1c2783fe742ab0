"""The workspace tools for `bot.yaml`: `tools: ["tool_search.sources.workspace.configured"]`.

Settings come from the environment:

- `TOOL_SEARCH_WORKSPACE`: the folder; required.
- `TOOL_SEARCH_WORKSPACE_COMMANDS`: allowed commands of the shell, separated by commas; without
  it there is no shell.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tool_search.errors import ConfigurationError
from tool_search.runner.execution import ExecutableTool
from tool_search.sources.workspace import ShellOptions, workspace_tools

__all__ = ["tools_from_environment"]

_FOLDER = "TOOL_SEARCH_WORKSPACE"
_COMMANDS = "TOOL_SEARCH_WORKSPACE_COMMANDS"


def tools_from_environment(environment: Mapping[str, str]) -> tuple[ExecutableTool, ...]:
    """Return the tools that an environment configures.

    Raises:
        ConfigurationError: The environment names no folder.
    """
    folder = environment.get(_FOLDER, "").strip()
    if not folder:
        raise ConfigurationError(
            f"{_FOLDER} is not set: it must name the folder that the workspace tools may use"
        )
    commands = [one.strip() for one in environment.get(_COMMANDS, "").split(",") if one.strip()]
    return workspace_tools(folder, shell=ShellOptions(commands=commands) if commands else None)


def __getattr__(name: str) -> Any:
    """Return `TOOLS`, made on first use: an import must not need the environment."""
    if name == "TOOLS":
        return tools_from_environment(os.environ)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
