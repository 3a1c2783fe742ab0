"""Reads the configuration of a gateway: its own form in YAML or JSON, or MCProxy's file.

Source: MCProxy's example configuration: `mcpServers`, `httpServer`, `middleware`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from tool_search.config.loading import read_yaml
from tool_search.errors import ConfigurationError
from tool_search.gateway.config import GatewayConfig
from tool_search.values.json import shown

__all__ = ["gateway_config", "is_mcproxy_file", "load_gateway_config"]

_Path = tuple[str | int, ...]
_OWN = ("tool_search", "transport", "permissions", "store", "registry")
_MCPROXY = ("mcpServers", "httpServer", "middleware")
_HTTP = ("host", "port", "corsEnabled", "corsOrigins", "shutdownTimeout", "middleware")
_SEARCH_KEYS = ("enabled", "maxToolsLimit", "searchThreshold", "toolSelectionOrder")
_USUAL_LIMIT = 50
_MAX_PROBLEMS = 10


def load_gateway_config(path: str | os.PathLike[str]) -> GatewayConfig:
    """Return the settings in a YAML or JSON file.

    Raises:
        ConfigurationError: The file cannot be read or parsed, a key is unknown or repeated,
            or a value is not allowed; the error has the key, and the line of YAML.
    """
    source = Path(path)
    content, lines = _read(source)
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


def _read(source: Path) -> tuple[Mapping[Any, Any], Mapping[_Path, int]]:
    try:
        return read_yaml(source)
    except ConfigurationError:
        # YAML refuses tabs, with which people indent JSON.
        try:
            content = json.loads(source.read_text(encoding="utf-8-sig"), object_pairs_hook=_once)
        except (OSError, ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise
        return content, {}


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; raise if it has a key twice."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} is there twice")
        found[key] = value
    return found


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
    try:
        return GatewayConfig.model_validate(arranged)
    except ValidationError as exc:
        problems = [_problem(error, lines) for error in exc.errors(include_url=False)]
        more = len(problems) - _MAX_PROBLEMS
        rest = [f"and {more} more"] if more > 0 else []
        raise ConfigurationError(
            "\n".join(f"{source}{problem}" for problem in [*problems[:_MAX_PROBLEMS], *rest])
        ) from exc


def _problem(error: Any, lines: Mapping[_Path, int]) -> str:
    location: _Path = tuple(error["loc"])
    places = (location[:size] for size in range(len(location), 0, -1))
    line = next((lines[place] for place in places if place in lines), None)
    where = f", line {line}: " if line is not None else ": "
    key = ".".join(map(str, location)) or "the file"
    if error["type"] == "extra_forbidden":
        return f"{where}{key} is unknown; known here: {', '.join(_known_keys(location[:-1]))}"
    if error["type"] == "missing":
        return f"{where}{key} is missing"
    message = error["msg"].removeprefix("Value error, ").replace("valid tuple", "list")
    message = re.sub(
        r"valid dictionary( or instance of \w+)?", "section of keys and values", message
    )
    given = list(error["input"]) if isinstance(error["input"], tuple) else error["input"]
    # A value below a server's name may be a key.
    value = "" if location[:1] == ("mcpServers",) else f" is {shown(given)}"
    return f"{where}{key}{value}: {message[:1].lower()}{message[1:]}"


def _known_keys(location: _Path) -> list[str]:
    """Return the keys of the section at a place."""
    model: Any = GatewayConfig
    for before, step in zip(("", *location), location, strict=False):
        if before == "mcpServers":  # a name of the user's
            continue
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        field = fields.get(str(step))
        inner = _model_in(field.annotation) if field is not None else model
        if inner is None:
            return []
        model = inner
    return sorted(field.alias or name for name, field in model.model_fields.items())


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model in a type such as `tuple[Model, ...]`, or None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_in(part) for part in get_args(annotation))
    return next((model for model in found if model is not None), None)


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
