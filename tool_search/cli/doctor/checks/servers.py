"""Checks of `mcpServers` that need no request."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from tool_search.cli.doctor.checks.providers import is_local
from tool_search.cli.doctor.examined import Examined
from tool_search.cli.doctor.findings import Finding
from tool_search.config.mcp import MCPServerSettings
from tool_search.errors import ConfigurationError
from tool_search.sources.variables import expand

__all__ = ["check_servers", "unreadable"]


def check_servers(bot: Examined) -> Iterator[Finding]:
    """Yield what would keep a server from being reached, or would give a secret away."""
    servers = bot.settings.mcp_servers
    enabled = {name: each for name, each in servers.items() if not each.disabled}
    if enabled and find_spec("mcp") is None:
        yield Finding(code="sdk_missing", path=("mcpServers",))
    for name, settings in enabled.items():
        yield from _check_server(name, settings, bot)


def unreadable(settings: MCPServerSettings, environment: Mapping[str, str]) -> str:
    """Return the variable that an entry lacks; empty if it can be read."""
    try:
        for key in ("command", "args", "env", "cwd", "url", "headers", "authorization_token"):
            expand(getattr(settings, key), environment, place=key)
    except ConfigurationError as exc:
        return str(exc)
    return ""


def _check_place(name: str, settings: MCPServerSettings, bot: Examined) -> Iterator[Finding]:
    """Yield an address or a folder that no server can have, and a secret in an address."""
    path = ("mcpServers", name)
    address = urlsplit(expand(settings.url, bot.environment, place="url"))
    if settings.url and (address.scheme not in ("http", "https") or not address.hostname):
        problem = "its url must begin with http:// or https://, and name a host"
        values = {"server": name, "problem": problem}
        yield Finding(code="server_unusable", path=(*path, "url"), values=values)
    password = urlsplit(settings.url).password
    # What a variable brings is not in the file.
    if password and "${" not in password:
        yield Finding(code="server_secret", path=(*path, "url"), values={"server": name})
    folder = expand(settings.cwd, bot.environment, place="cwd")
    # Another process may have another working folder, and nobody replaces a tilde.
    if (Path(folder).is_absolute() or folder.startswith("~")) and not Path(folder).is_dir():
        values = {"server": name, "problem": f"its folder {folder!r} does not exist"}
        yield Finding(code="server_unusable", path=(*path, "cwd"), values=values)


def _check_server(name: str, settings: MCPServerSettings, bot: Examined) -> Iterator[Finding]:
    path = ("mcpServers", name)
    if problem := unreadable(settings, bot.environment):
        values = {"server": name, "problem": problem}
        yield Finding(code="server_variable_missing", path=path, values=values)
        return
    yield from _check_place(name, settings, bot)
    command = expand(settings.command, bot.environment, place="command")
    search_path = settings.env.get("PATH", bot.environment.get("PATH"))
    if command and shutil.which(command, path=search_path) is None:
        yield Finding(
            code="server_command_missing",
            path=(*path, "command"),
            values={"server": name, "command": command},
        )
    address = urlsplit(expand(settings.url, bot.environment, place="url"))
    has_secret = bool(settings.authorization_token or settings.headers or settings.oauth)
    if address.scheme == "http" and has_secret and not is_local(address.hostname or ""):
        yield Finding(
            code="server_plain",
            path=(*path, "url"),
            values={"server": name, "host": address.hostname},
        )
