"""The parts of AstrBot's inside that this adapter uses, in one table.

AstrBot has no extension point for the lists of tools, and whoever relies on its inside has to
notice when it moves. Each row says where a part was read, and what is lost without it. AstrBot is
loaded with the first check.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

__all__ = [
    "HOOKED",
    "PICTURE_CHOICE",
    "READ",
    "Part",
    "has_own_tool_search",
    "is_there",
    "missing_parts",
]

_READ_IN = "4.29.3"
_OLDEST = 4, 18
_SOURCES = "astrbot.core.provider.sources"
_MANAGER = "astrbot.core.provider.func_tool_manager"
_NO_CLAUDE = "Claude gets filtered lists in place of its own tool search"
_NO_NAMES = "models of services that keep a tool's name for themselves, such as Grok, do not answer"
_NO_OPENAI = "OpenAI's Responses get filtered lists in place of their own tool search"
_NO_AGENTS = "subagents and scheduled tasks get every tool"
_NO_MCP = "tools of MCP servers count as AstrBot's own, and are always sent"
_NO_PERMISSIONS = "every user finds tools for administrators; AstrBot refuses the calls"
_NO_SET = "the bot has its full tool set"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of AstrBot's inside.

    Attributes:
        module: The module.
        name: The name in it: a class, or a class and its attribute.
        loss: The loss without it.
        sets: An attribute that the class's `__init__` sets, if that is what is read.
        since: The first release that has it, as far as releases were read.
        read_in: The release in which it was read.
    """

    module: str
    name: str
    loss: str
    sets: str = ""
    since: tuple[int, int] = _OLDEST
    read_in: str = _READ_IN

    def __str__(self) -> str:
        return f"{self.name}{f' ({self.sets})' if self.sets else ''}"


HOOKED = (
    Part(
        module=f"{_SOURCES}.anthropic_source", name="ProviderAnthropic.text_chat", loss=_NO_CLAUDE
    ),
    Part(
        module=f"{_SOURCES}.anthropic_source",
        name="ProviderAnthropic.text_chat_stream",
        loss=_NO_CLAUDE,
    ),
    *(
        Part(
            module=f"{_SOURCES}.openai_source",
            name=f"ProviderOpenAIOfficial.{method}",
            loss=_NO_NAMES,
        )
        for method in ("_query", "_query_stream")
    ),
    Part(
        module=f"{_SOURCES}.openai_responses_source",
        name="ProviderOpenAIResponses._query",
        loss=_NO_OPENAI,
        since=(4, 26),
    ),
    Part(
        module=f"{_SOURCES}.openai_responses_source",
        name="ProviderOpenAIResponses._query_stream",
        loss=_NO_OPENAI,
        since=(4, 26),
    ),
    Part(
        module=f"{_SOURCES}.openai_responses_source",
        name="ProviderOpenAIResponses._parse_response",
        loss=_NO_OPENAI,
        since=(4, 26),
    ),
    Part(
        module="astrbot.core.agent.runners.tool_loop_agent_runner",
        name="ToolLoopAgentRunner.reset",
        loss=_NO_AGENTS,
    ),
)
"""The methods that are wrapped."""

PICTURE_CHOICE = Part(
    module="astrbot.core.astr_main_agent",
    name="_select_image_chat_provider",
    loss="for a picture, the default provider decides, whichever is asked",
    since=(4, 26),
)
"""AstrBot's choice of a fallback that reads pictures; 4.25 asks the default provider."""
READ = (
    PICTURE_CHOICE,
    Part(
        module=_MANAGER, name="_PermissionGuardedTool", sets="_wrapped", loss=_NO_MCP, since=(4, 26)
    ),
    Part(
        module=_MANAGER,
        name="FunctionToolManager._default_permission",
        loss=_NO_PERMISSIONS,
        since=(4, 26),
    ),
    Part(
        module=_MANAGER,
        name="FunctionToolManager.is_builtin_tool",
        loss="AstrBot's own tools are known by their classes alone",
        since=(4, 25),
    ),
    Part(module="astrbot.core.agent.mcp_client", name="MCPTool", loss=_NO_MCP),
    Part(
        module="astrbot.core.agent.handoff",
        name="HandoffTool",
        loss="handoffs to subagents have to be searched",
    ),
    Part(
        module="astrbot.core.cron.events",
        name="CronMessageEvent",
        loss="the setting cover_subagents decides on scheduled tasks",
        since=(4, 20),
    ),
    Part(module="astrbot.core.agent.tool", name="ToolSet.openai_schema", loss=_NO_SET),
    Part(module="astrbot.core.agent.tool", name="ToolSet.anthropic_schema", loss=_NO_SET),
    Part(module="astrbot.core.agent.tool", name="ToolSet.google_schema", loss=_NO_SET),
    Part(module="astrbot.core.agent.tool", name="ToolSet.get_light_tool_set", loss=_NO_SET),
    Part(module="astrbot.core.agent.tool", name="ToolSet.get_param_only_tool_set", loss=_NO_SET),
    Part(
        module="astrbot.core.astr_agent_tool_exec",
        name="FunctionToolExecutor.execute",
        loss="calls of tools that were not searched for fail",
    ),
    Part(
        module="astrbot.core.star.session_plugin_manager",
        name="SessionPluginManager.is_plugin_enabled_for_session",
        loss="the plugin works where the WebUI has switched it off",
    ),
    Part(
        module="astrbot.core.star.star",
        name="star_map",
        loss="tools of plugins are no groups",
    ),
)
"""The parts that are read, by name."""


def is_there(part: Part) -> bool:
    """Return True if this AstrBot has a part."""
    try:
        _look_up(part)
    except (ImportError, AttributeError):
        return False
    return True


def missing_parts(parts: Iterable[Part] = READ) -> Iterator[tuple[Part, str]]:
    """Yield the parts that this AstrBot lacks and its release should have, with the cause."""
    version = _version() or _OLDEST
    for part in parts:
        try:
            _look_up(part)
        except (ImportError, AttributeError) as exc:
            if version >= part.since:
                yield part, str(exc)


def has_own_tool_search(is_builtin: Any = None) -> bool:
    """Return True if AstrBot has brought a tool search of its own.

    Args:
        is_builtin: AstrBot's answer if a name is that of a tool of its own; None if it has none.
    """
    if callable(is_builtin) and is_builtin("tool_search"):
        return True
    try:
        described = vars(import_module("astrbot.core.config.default"))
    except ImportError:
        return False
    return any(
        "tool_search" in (setting.get("options") or ())
        for name, content in described.items()
        if name.startswith("CONFIG_METADATA")
        for setting in _settings_named(content, "tool_schema_mode")
    )


def _settings_named(content: Any, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the descriptions of a setting anywhere in AstrBot's own."""
    for key, value in content.items() if isinstance(content, Mapping) else ():
        if isinstance(value, Mapping):
            if str(key).rpartition(".")[2] == name:
                yield value
            yield from _settings_named(value, name)


def _look_up(part: Part) -> None:
    found: Any = import_module(part.module)
    for step in part.name.split("."):
        found = getattr(found, step)
    if part.sets and part.sets not in found.__init__.__code__.co_names:
        raise AttributeError(f"{part.name} sets no {part.sets!r}")


def _version() -> tuple[int, int] | None:
    """Return the first two numbers of AstrBot's release; None if it says none."""
    try:
        written = str(import_module("astrbot.core.config.default").VERSION)
    except (ImportError, AttributeError):
        return None
    numbers = re.match(r"v?(\d+)\.(\d+)", written)
    return (int(numbers[1]), int(numbers[2])) if numbers else None
