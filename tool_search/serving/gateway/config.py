"""The settings of a gateway: servers, search, transport, permissions and middleware."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from tool_search.config.conversation import LearningSettings
from tool_search.config.limits import LimitSettings
from tool_search.config.mcp import MCPServerSettings, checked_names
from tool_search.config.permissions import PermissionSettings
from tool_search.config.settings import Settings
from tool_search.config.stores import StoreSettings
from tool_search.i18n import LANGUAGES
from tool_search.serving.gateway.exposure import ExposureMode, ExposureSettings
from tool_search.serving.gateway.middleware import (
    ClientMiddleware,
    Enricher,
    MiddlewareEntry,
    ToolFilter,
    made_client,
    made_proxy,
)
from tool_search.serving.inspector.settings import InspectorSettings

__all__ = ["GatewayConfig", "GatewayToolSearch", "MiddlewareSettings", "TransportSettings"]

_Count = Annotated[int, Field(ge=0, le=100_000)]


class GatewayToolSearch(Settings):
    """The `tool_search` section.

    Attributes:
        enabled: False for every tool and no search.
        maxToolsLimit: More tools than this are searched; 0: every tool and no search.
        searchThreshold: The lowest relevance of a hit, from 0 to 1.
        toolSelectionOrder: The choice of the tools that fill the list: `server_priority`,
            `alphabetical`, `random`; an unknown one is passed over.
        exposure: The change of the list by a search: `add`, `replace` or `keep`.
        maxResults: The most hits of a search, never more than `maxToolsLimit`.
        always_loaded_tools: Tools that are always shown: names, `server:*`, or globs.
        fill: False if only `always_loaded_tools` are shown before a search.
        engine: The search engine, as in a bot's `search.engine`.
        learning: The learning of searches from later calls.
        language: The language of the gateway's own tools; `auto` is English.
        debug: True for one log record of each search.
    """

    model_config = ConfigDict(validate_default=False)

    enabled: bool = True
    max_tools_limit: _Count = Field(default=50, alias="maxToolsLimit")
    search_threshold: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = Field(
        default=0.1, alias="searchThreshold"
    )
    tool_selection_order: tuple[str, ...] = Field(
        default=("server_priority",), alias="toolSelectionOrder"
    )
    exposure: ExposureMode = "add"
    max_results: Annotated[int, Field(ge=1, le=100_000)] = Field(default=10, alias="maxResults")
    always_loaded_tools: tuple[str, ...] = ()
    fill: bool = True
    engine: Annotated[str, Field(min_length=1, max_length=100)] = "bm25"
    learning: LearningSettings = LearningSettings()
    language: str = "auto"
    debug: bool = False

    @field_validator("language")
    @classmethod
    def _is_known(cls, value: str) -> str:
        if value not in ("auto", *LANGUAGES):
            raise ValueError(f"must be auto, {', '.join(LANGUAGES)}")
        return value

    @property
    def shown(self) -> ExposureSettings:
        """The settings that decide about the list of a client."""
        return ExposureSettings(
            enabled=self.enabled,
            max_tools_limit=self.max_tools_limit,
            order=self.tool_selection_order,
            mode=self.exposure,
            max_results=self.max_results,
            always_loaded=self.always_loaded_tools,
            fill=self.fill,
        )


class TransportSettings(Settings):
    """The `transport` section, or the word `stdio` or `http` alone.

    Attributes:
        type: `stdio` for one client that starts the gateway, `http` for many.
        host: The address; beyond this machine it needs tokens.
        port: The port; 0 for a free one.
        path: The path of the MCP endpoint.
        tokens_env: The environment variable with the tokens of clients, separated by commas;
            null: every client of this machine is served.
        hosts: Globs of further names under which clients reach it, such as that of a reverse
            proxy. Empty: this machine's names; beyond this machine, where tokens guard it, any.
        cors: Origins of web pages that may ask; `*` for all.
        shutdown_timeout_s: Seconds that servers and clients have to end.
    """

    type: Literal["stdio", "http"] = "stdio"
    host: Annotated[str, Field(min_length=1, max_length=255)] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8080
    path: Annotated[str, Field(pattern=r"^/[^\s?#]*$")] = "/mcp"
    tokens_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    hosts: tuple[str, ...] = ()
    cors: tuple[str, ...] = ()
    shutdown_timeout_s: Annotated[float, Field(gt=0, le=300, allow_inf_nan=False)] = 5.0

    @model_validator(mode="before")
    @classmethod
    def _from_word(cls, value: Any) -> Any:
        return {"type": value} if isinstance(value, str) else value


class _ClientLists(Settings):
    default: tuple[MiddlewareEntry, ...] = ()
    servers: Mapping[str, tuple[MiddlewareEntry, ...]] = Field(default_factory=dict)

    @field_validator("servers", mode="before")
    @classmethod
    def _lists(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {key: tuple(one) if isinstance(one, list) else one for key, one in value.items()}


class MiddlewareSettings(Settings):
    """The `middleware` section: steps around lists and calls, as MCProxy has them.

    Attributes:
        proxy: Steps over all servers: `description_enricher`, `tool_filter`, `tool_search`.
        client: Steps of servers: `default`, and `servers` with lists that replace it:
            `logging`, `tool_filter`, `security`.
    """

    proxy: tuple[MiddlewareEntry, ...] = ()
    client: _ClientLists = _ClientLists()

    @model_validator(mode="after")
    def _can_be_made(self) -> MiddlewareSettings:
        made_proxy(self.proxy)
        for entries in (self.client.default, *self.client.servers.values()):
            made_client(entries)
        return self

    @property
    def of_all(self) -> tuple[Enricher | ToolFilter, ...]:
        """The steps over all servers that are enabled, in order."""
        return made_proxy(self.proxy)

    def of_server(self, server: str) -> tuple[ClientMiddleware, ...]:
        """Return the enabled steps of a server, in order."""
        return made_client(self.client.servers.get(server, self.client.default))


class GatewayConfig(Settings):
    """The settings of a gateway.

    Attributes:
        mcpServers: The servers by name, in the order of the file.
        tool_search: What clients are shown, and searches.
        transport: How clients connect.
        permissions: The rules of every call and search, as in a bot's configuration.
        middleware: Steps around lists and calls.
        store: The file with what searches teach; null: one in the user's data folder for the
            command, and memory for a `Gateway` in Python.
        registry: True if clients get the tools of a registry, which search and run all others.
        inspector: The page at `/inspector` over HTTP that shows searches and calls.
        limits: The bounds of what servers send.
    """

    # An entry of a server holds tokens and keys.
    model_config = ConfigDict(hide_input_in_errors=True)

    mcp_servers: Mapping[str, MCPServerSettings] = Field(default_factory=dict, alias="mcpServers")
    tool_search: GatewayToolSearch = GatewayToolSearch()
    transport: TransportSettings = TransportSettings()
    permissions: PermissionSettings = PermissionSettings()
    middleware: MiddlewareSettings = MiddlewareSettings()
    store: StoreSettings | None = None
    registry: bool = False
    inspector: InspectorSettings = InspectorSettings()
    limits: LimitSettings = LimitSettings()

    @field_validator("mcp_servers")
    @classmethod
    def _servers_are_named(
        cls, value: Mapping[str, MCPServerSettings]
    ) -> Mapping[str, MCPServerSettings]:
        return checked_names(value)
