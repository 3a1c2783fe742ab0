"""Entries of MCP servers, read from a file or from the JSON that people have."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tool_search.config.loading import read_yaml, validated
from tool_search.config.mcp import MCPServers, MCPServerSettings
from tool_search.errors import ConfigurationError

__all__ = ["load_servers", "servers_from_mapping"]

_SECTION = "mcpServers"


def load_servers(path: str | os.PathLike[str]) -> Mapping[str, MCPServerSettings]:
    """Return the section `mcpServers` of a JSON or YAML file; other sections are not read.

    Raises:
        ConfigurationError: The file cannot be read or parsed, has no `mcpServers`, or an
            entry is wrong; the error has the line and the key.
    """
    source = Path(path)
    content, lines = _content(source)
    if _SECTION not in content:
        raise ConfigurationError(f"{source}: has no {_SECTION}; write {_EXAMPLE}")
    section = {_SECTION: content[_SECTION]}
    return validated(MCPServers, section, lines, source).mcp_servers


def _content(source: Path) -> tuple[Mapping[Any, Any], Mapping[tuple[str | int, ...], int]]:
    try:
        return read_yaml(source)
    except ConfigurationError:
        # YAML refuses tabs, with which people indent JSON.
        try:
            content = json.loads(source.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise
        return content, {}


def servers_from_mapping(content: Mapping[str, Any]) -> Mapping[str, MCPServerSettings]:
    """Return the servers of `{"mcpServers": {...}}`, or of the inner mapping alone.

    Raises:
        ConfigurationError: A key is unknown or a value is not allowed.
    """
    if not isinstance(content, Mapping):
        raise ConfigurationError(
            f"servers must be the {_SECTION} of a configuration, such as {_EXAMPLE}, "
            f"not {type(content).__name__}"
        )
    section = content.get(_SECTION, content)
    settings = {
        name: entry for name, entry in _items(section) if isinstance(entry, MCPServerSettings)
    }
    rest = {name: entry for name, entry in _items(section) if name not in settings}
    found = validated(MCPServers, {_SECTION: rest}, {}, Path("configuration")).mcp_servers
    return {name: settings.get(name) or found[name] for name, _ in _items(section)}


def _items(section: object) -> list[tuple[str, Any]]:
    if not isinstance(section, Mapping):
        raise ConfigurationError(
            f"{_SECTION} must hold servers by name, such as {_EXAMPLE}, not {section!r}"
        )
    return [(str(name), entry) for name, entry in section.items()]


_EXAMPLE = '{"mcpServers": {"time": {"command": "mcp-server-time"}}}'
