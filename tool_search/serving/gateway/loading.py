"""Reads the configuration of a gateway: its own form in YAML or JSON, or MCProxy's file.

Source: MCProxy's example configuration: `mcpServers`, `httpServer`, `middleware`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tool_search.config.loading import read_yaml, validated
from tool_search.core.values.json import shown, unique_keys
from tool_search.errors import ConfigurationError
from tool_search.serving.gateway.config import GatewayConfig

__all__ = ["gateway_config", "is_mcproxy_file", "load_gateway_config"]

_Path = tuple[str | int, ...]
_OWN = ("tool_search", "transport", "permissions", "store", "registry")
_MCPROXY = ("mcpServers", "httpServer", "middleware")
_HTTP = ("host", "port", "corsEnabled", "corsOrigins", "shutdownTimeout", "middleware")
_SEARCH_KEYS = ("enabled", "maxToolsLimit", "searchThreshold", "toolSelectionOrder")
_USUAL_LIMIT = 50


def load_gateway_config(path: str | os.PathLike[str]) -> GatewayConfig:
    """Return the settings in a YAML or JSON file.

    Raises:
        ConfigurationError: The file cannot be read or parsed, a key is unknown or repeated,
            or a value is not allowed; the error has the key, and the line of YAML.
    """
    source = Path(path)
    content, lines = _read_file(source)
    return _config(content, lines, str(source))


def gateway_config(content: Mapping[str, Any]) -> GatewayConfig:
    """Return the settings in a mapping of the form that a file has.

    Raises:
        ConfigurationError: A key is unknown or a value is not allowed.
    """
    if not isinstance(content, Mapping):
        raise ConfigurationError(f"a configuration must be a mapping, not {shown(content)}")
    return _config(content, {}, "configuration")


def is_mcproxy_file(content: Mapping[Any, Any]) -> bool:
    """True if a configuration is MCProxy's: it has a section of its own, and none of ours."""
    has_own = any(key in content for key in _OWN)
    return not has_own and ("httpServer" in content or "middleware" in content)


def _read_file(source: Path) -> tuple[Mapping[Any, Any], Mapping[_Path, int]]:
    try:
        return read_yaml(source)
    except ConfigurationError:
        # YAML refuses tabs, with which people indent JSON.
        try:
            written = source.read_text(encoding="utf-8-sig")
            content = json.loads(written, object_pairs_hook=unique_keys)
        except (OSError, ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise
        return content, {}


def _config(content: Mapping[Any, Any], lines: Mapping[_Path, int], source: str) -> GatewayConfig:
    arranged = dict(content)
    if is_mcproxy_file(content):
        arranged = _from_mcproxy(content, source)
    elif "httpServer" in content:
        own = ", ".join(key for key in _OWN if key in content)
        raise ConfigurationError(
            f"{source}: httpServer belongs to MCProxy's form of a file, and {own} to ours; "
            "write transport: {type: http, host, port} instead of httpServer"
        )
    return validated(GatewayConfig, arranged, lines, Path(source), is_arranged=False)


def _from_mcproxy(content: Mapping[Any, Any], source: str) -> dict[str, Any]:
    """Return the content of MCProxy's file in our own form."""
    _check_keys(content, _MCPROXY, "", source)
    http = _section(content, "httpServer", source)
    _check_keys(http, _HTTP, "httpServer.", source)
    if "middleware" in http and "middleware" in content:
        raise ConfigurationError(
            f"{source}: middleware is there twice, at the top and in httpServer; keep one"
        )
    middleware = dict(_section({**content, **http}, "middleware", source))
    search, rest = _search_of(middleware, source)
    return {
        "mcpServers": content.get("mcpServers", {}),
        "tool_search": search,
        "transport": _transport_of(http),
        "middleware": {**middleware, "proxy": rest} if "proxy" in middleware else middleware,
    }


def _transport_of(http: Mapping[str, Any]) -> dict[str, Any]:
    """Return our section `transport`; MCProxy serves HTTP."""
    found: dict[str, Any] = {"type": "http"}
    found.update((key, http[key]) for key in ("host", "port") if key in http)
    if "shutdownTimeout" in http:
        seconds = http["shutdownTimeout"]
        found["shutdown_timeout_s"] = float(seconds) if type(seconds) is int else seconds
    if http.get("corsEnabled"):
        found["cors"] = http.get("corsOrigins", ["*"])
    return found


def _search_of(middleware: Mapping[str, Any], source: str) -> tuple[dict[str, Any], list[Any]]:
    """Return our section `tool_search`, and the other proxy middleware."""
    entries = middleware.get("proxy", [])
    if not isinstance(entries, list):
        raise ConfigurationError(f"{source}: middleware.proxy must be a list, not {shown(entries)}")
    rest = [entry for entry in entries if not _is_search(entry)]
    found = [entry for entry in entries if _is_search(entry) and entry.get("enabled", True)]
    if len(found) > 1:
        raise ConfigurationError(f"{source}: middleware.proxy has tool_search twice; keep one")
    # Without the middleware, or with it disabled, MCProxy shows everything.
    config = _section(found[0], "config", f"{source}: tool_search") if found else {"enabled": False}
    _check_keys(config, _SEARCH_KEYS, "tool_search.config.", source)
    limit = config.get("maxToolsLimit", _USUAL_LIMIT)
    has_limit = type(limit) is int and limit > 0
    return {**config, "exposure": "replace", **({"maxResults": limit} if has_limit else {})}, rest


def _is_search(entry: object) -> bool:
    return isinstance(entry, Mapping) and entry.get("type") == "tool_search"


def _section(content: Mapping[Any, Any], key: str, source: str) -> Mapping[str, Any]:
    value = content.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{source}: {key} must hold keys and values, not {shown(value)}")
    return value


def _check_keys(content: Mapping[Any, Any], known: Iterable[str], place: str, source: str) -> None:
    unknown = [key for key in content if key not in known]
    if unknown:
        raise ConfigurationError(
            f"{source}: {place}{unknown[0]} is unknown; known here: {', '.join(known)}"
        )
