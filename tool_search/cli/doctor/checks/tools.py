"""The bot's own tools, and what is wrong with definitions before any search."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tool_search.bot import imported_from, tools_from_modules
from tool_search.catalog.schema.declared import REFUSED_AT_TOP, declared_schema
from tool_search.cli.doctor.examined import Examined
from tool_search.cli.doctor.findings import Finding, KeyPath
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import NAME_RULES, wire_name
from tool_search.core.catalog.tool import Tool
from tool_search.core.discoveries import tool_tokens
from tool_search.core.exports import current_name
from tool_search.errors import (
    ConfigurationError,
    DuplicateToolError,
    InvalidToolError,
    SessionError,
)
from tool_search.runner.session.session import ToolSearchSession

__all__ = ["OwnTools", "check_definitions", "check_tools", "load_tools"]

# A definition this large costs more than twenty usual ones, in every request that shows it.
_LARGE_TOKENS = 2_000
_MAX_DETAILS = 3
_log = logging.getLogger("tool_search")


@dataclass(slots=True)
class OwnTools:
    """The tools of the modules that a configuration names.

    Attributes:
        tools: The tools.
        origins: The setting that each comes from, by its name.
        findings: What is wrong with the modules.
    """

    tools: list[Tool] = field(default_factory=list)
    origins: dict[str, KeyPath] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def load_tools(modules: Sequence[str], source: Path) -> OwnTools:
    """Import the modules of a configuration, each for itself."""
    own = OwnTools()
    for index, name in enumerate(modules):
        path: KeyPath = ("tools", index)
        if (current := current_name(name)) is not None:
            own.findings.append(
                Finding(
                    code="module_moved",
                    path=path,
                    values={"module": name, "current": current},
                    wrong=name,
                    instead=current,
                )
            )
        try:
            with imported_from(source), _quiet():
                found = tools_from_modules([current or name])
        except DuplicateToolError as exc:
            own.findings.append(Finding(code="tool_twice", path=path, values={"problem": str(exc)}))
        except (ConfigurationError, InvalidToolError) as exc:
            values = {"module": name, "problem": str(exc)}
            own.findings.append(Finding(code="module_failed", path=path, values=values))
        else:
            own.findings += _take(own, path, [item.tool for item in found])
    return own


@contextmanager
def _quiet() -> Iterator[None]:
    # A moved module is a finding, and no line of the log besides.
    level = _log.level
    _log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        _log.setLevel(level)


def _take(own: OwnTools, path: KeyPath, tools: Iterable[Tool]) -> Iterator[Finding]:
    """Take tools in, and yield a finding for each whose name another module's tool has."""
    for tool in tools:
        if tool.name in own.origins:
            problem = f"two tools have the name {tool.name!r}"
            yield Finding(code="tool_twice", path=path, values={"problem": problem})
            continue
        own.tools.append(tool)
        own.origins[tool.name] = path


def check_tools(bot: Examined) -> Iterator[Finding]:
    """Yield what is wrong with the choice of tools, and with their definitions."""
    settings = bot.settings
    named = settings.tools or settings.mcp_servers or bot.file.lacks("tools", "mcpServers")
    if not named and not bot.catalog:
        yield Finding(code="tools_missing")
    try:
        ToolSearchSession(bot.catalog, config=settings.tool_search, max_tools=bot.max_tools)
    except SessionError as exc:
        yield Finding(
            code="tool_unsearchable",
            path=("tool_search", "search_tool_name"),
            values={"problem": str(exc)},
        )
    yield from check_definitions(bot.catalog, bot.origins)


def check_definitions(catalog: ToolCatalog, origins: Mapping[str, KeyPath]) -> Iterator[Finding]:
    """Yield the names and schemas that some provider refuses as they are, and large ones."""
    for tool in catalog.active:
        path, name = origins.get(tool.name, ()), tool.source[1]
        sent = {rule: wire_name(tool.name, rule) for rule in NAME_RULES}
        changed = next((each for each in sent.values() if each != tool.name), None)
        if changed is not None:
            values = {"tool": name, "sent": changed}
            yield Finding(code="name_changed", path=path, values=values)
        changes = list(_changes(tool))
        if changes:
            listed = "; ".join(changes[:_MAX_DETAILS])
            yield Finding(
                code="schema_changed",
                path=path,
                values={
                    "tool": name,
                    "count": len(changes) + declared_schema(tool).more_changes,
                    "changes": listed,
                },
            )
        tokens = tool_tokens(tool)
        if tokens > _LARGE_TOKENS:
            yield Finding(
                code="definition_large", path=path, values={"tool": name, "tokens": tokens}
            )


def _changes(tool: Tool) -> Iterator[str]:
    """Yield what is sent in another form than it is written, because some provider refuses it."""
    for key in REFUSED_AT_TOP:
        if key in tool.parameters:
            yield f"/ {key} at the top is merged into one object"
    for each in declared_schema(tool).changes:
        yield f"{each.place or '/'} {each.detail}"
