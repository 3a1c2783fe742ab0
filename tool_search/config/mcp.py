"""The `mcpServers` section: MCP servers, as people have them for other clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, SecretStr, field_validator, model_validator

from tool_search.config.settings import Settings

__all__ = ["MCPOAuthSettings", "MCPServerSettings", "MCPServers", "MCPTransport", "checked_names"]

MCPTransport = Literal["stdio", "http", "sse"]
_MAX_NAME_CHARS = 100
# Spellings of other clients, and keys of theirs that say what runs without a question.
_TRANSPORTS: dict[str, MCPTransport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamablehttp": "http",
    "sse": "sse",
}
_OTHER_KEYS = {"serverUrl": "url", "transport": "type"}
_IGNORED_KEYS = ("autoApprove", "alwaysAllow")


class MCPOAuthSettings(Settings):
    """The `oauth` section of a server that a person lets the bot use.

    Attributes:
        scope: The scopes, separated by spaces; empty: those that the server names.
        clientId: The id of a client that is registered already; empty: the bot registers.
        clientSecret: The secret of that client.
        callbackPort: The port on this machine to which the browser returns.
        tokens: The file of the tokens, which only its owner may read; empty: a file in the
            user's data folder.
    """

    # An address or a secret that is wrong must not be printed.
    model_config = ConfigDict(hide_input_in_errors=True)

    scope: str = ""
    client_id: str = Field(default="", alias="clientId")
    client_secret: str = Field(default="", alias="clientSecret", repr=False)
    callback_port: Annotated[int, Field(ge=1, le=65_535)] = Field(
        default=41_763, alias="callbackPort"
    )
    tokens: str = ""


class MCPServerSettings(Settings):
    """One entry of `mcpServers`; a value may hold `${VAR}`, `${VAR:-default}` or `${env:VAR}`.

    `serverUrl` is another name of `url`, and `transport` of `type`. `autoApprove` and
    `alwaysAllow` are taken and grant nothing: the section `permissions` decides.

    Attributes:
        command: The program of a server that runs as a child process.
        args: Its arguments.
        env: Its environment variables. Of this process it gets PATH, HOME and the like, so
            that it never sees the bot's keys.
        cwd: Its working folder.
        url: The address of a server on the network.
        type: The transport: `stdio`, `http` (or `streamable-http`) or `sse`; empty: `stdio`
            for a command, `http` for a url.
        headers: HTTP headers of every request.
        authorizationToken: A bearer token, with or without the word Bearer before it.
        oauth: The OAuth client, or true for its defaults.
        timeout: Seconds for a call, and for connecting with the list of tools.
        disabled: True if the server is not used.
    """

    model_config = ConfigDict(hide_input_in_errors=True)

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = Field(default_factory=dict, repr=False)
    cwd: str = ""
    url: str = Field(default="", repr=False)
    type: Literal["stdio", "http", "sse", ""] = ""
    headers: Mapping[str, str] = Field(default_factory=dict, repr=False)
    authorization_token: str = Field(default="", alias="authorizationToken", repr=False)
    oauth: MCPOAuthSettings | None = None
    timeout: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 60.0
    disabled: bool = False

    @model_validator(mode="before")
    @classmethod
    def _as_other_clients_write(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        content = {key: item for key, item in value.items() if key not in _IGNORED_KEYS}
        for other, key in _OTHER_KEYS.items():
            if other in content:
                if key in content:
                    raise ValueError(f"has both {key} and {other}, which mean the same; keep one")
                content[key] = content.pop(other)
        return content

    @field_validator("type", mode="before")
    @classmethod
    def _known_transport(cls, value: Any) -> Any:
        plain = value.replace("_", "-").lower() if isinstance(value, str) else value
        return _TRANSPORTS.get(plain, value) if isinstance(plain, str) else value

    @field_validator("oauth", mode="before")
    @classmethod
    def _switched_on(cls, value: Any) -> Any:
        if isinstance(value, bool):
            return MCPOAuthSettings() if value else None
        return value

    @model_validator(mode="after")
    def _is_one_server(self) -> MCPServerSettings:
        if bool(self.command) == bool(self.url):
            both = "both a command and a url" if self.command else "neither a command nor a url"
            raise ValueError(f"has {both}; a server has one of the two")
        if self.command and self.type not in ("", "stdio"):
            raise ValueError(
                f"type {self.type!r} is for servers with a url, and this has a command"
            )
        if self.url and self.type == "stdio":
            raise ValueError("type 'stdio' is for servers with a command, and this has a url")
        return self

    @property
    def transport(self) -> MCPTransport:
        """The transport that the entry means."""
        return self.type or ("stdio" if self.command else "http")

    @property
    def token(self) -> SecretStr:
        """The bearer token without the word before it."""
        return SecretStr(self.authorization_token.strip().removeprefix("Bearer ").strip())


class MCPServers(Settings):
    """The content of a file of MCP servers: `mcpServers`, and nothing else that is read.

    Attributes:
        mcpServers: The servers by name, in the order of the file.
    """

    model_config = ConfigDict(hide_input_in_errors=True)

    mcp_servers: Mapping[str, MCPServerSettings] = Field(default_factory=dict, alias="mcpServers")

    @field_validator("mcp_servers")
    @classmethod
    def _name(cls, value: Mapping[str, MCPServerSettings]) -> Mapping[str, MCPServerSettings]:
        return checked_names(value)


def checked_names(value: Mapping[str, MCPServerSettings]) -> Mapping[str, MCPServerSettings]:
    """Return the servers if each has a name that can be shown.

    Raises:
        ValueError: A name is empty, too long, or has characters that cannot be printed.
    """
    for name in value:
        if not name.strip() or len(name) > _MAX_NAME_CHARS or not name.isprintable():
            raise ValueError(
                f"the name {name[:_MAX_NAME_CHARS]!r} of a server must have 1 to "
                f"{_MAX_NAME_CHARS} printable characters"
            )
    return value
