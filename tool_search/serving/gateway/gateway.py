"""A gateway: one MCP server over many, with search."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from tool_search.core.catalog.tool import Tool
from tool_search.core.values.aside import close
from tool_search.core.values.json import shown
from tool_search.errors import ConfigurationError, SessionError
from tool_search.runner.execution import FunctionExecutor, ToolExecutor
from tool_search.serving.gateway.calls import GatewayCalls
from tool_search.serving.gateway.config import GatewayConfig
from tool_search.serving.gateway.loading import gateway_config, load_gateway_config
from tool_search.serving.gateway.offer import OfferBuilder
from tool_search.serving.gateway.service import GatewayService, ListsTools, language_of_gateway
from tool_search.serving.inspector.mcp_calls import McpRecords
from tool_search.sources.registry import ChangeNotifier, RegistryFront, ToolRegistry
from tool_search.stores.base import EvidenceStore
from tool_search.stores.opening import open_store

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = ["Gateway"]

_log = logging.getLogger(__name__)


class Gateway:
    """An MCP server that offers the tools of many servers, searchable, to any MCP client.

    ::

        gateway = Gateway(load_gateway_config("gateway.yaml"))
        uvicorn.run(gateway.asgi())          # or: await gateway.serve_stdio()

    Args:
        config: The settings: from `load_gateway_config`, a mapping, or a file's path.
        source: The tools, instead of those of `mcpServers`: an `MCPSource`, a `ToolRegistry`,
            or anything with `tools`, `executor` and `subscribe`. One with a block (`async with`)
            that is not open yet is opened, and closed with the gateway.
        store: The store of what searches teach; it is closed with the gateway. None: that of
            the settings, or memory of this object.

    Raises:
        ConfigurationError: The settings are wrong.
        ImportError: The SDK is not installed, or older than 2.
    """

    def __init__(
        self,
        config: GatewayConfig | Mapping[str, Any] | str | os.PathLike[str],
        *,
        source: ListsTools | None = None,
        store: EvidenceStore | None = None,
    ) -> None:
        # The SDK is imported here, so that the settings can be read without it.
        from tool_search.serving.gateway.passing import PassedRequests  # noqa: PLC0415
        from tool_search.serving.gateway.server import GatewayServer  # noqa: PLC0415

        self.config = _config(config)
        if source is None:
            _warn_of_names(self.config)
        self._source: Any = _mcp_source(self.config) if source is None else source
        _check_source(self._source)
        self._front = _Front(self.config, self._source) if self.config.registry else None
        if store is None and self.config.store is not None:
            store = open_store(self.config.store)
        self._store: Any = store
        inspector = self.config.inspector
        self._records = McpRecords(inspector) if inspector.enabled else None
        settings = self.config if self._front is None else _of_front(self.config)
        self._service = GatewayService(
            settings, self._front or self._source, store=store, records=self._records
        )
        self._passed = PassedRequests(self._source)
        self._server = GatewayServer(self._service, self._passed)
        self._is_open = False

    def health(self, *, last_lines: bool = False) -> dict[str, Any]:
        """Return the content of `/health`: the state of the gateway and of each server.

        Args:
            last_lines: True to add what a failed server wrote to standard error, which may
                hold data of its clients: for the operator alone.
        """
        servers = {
            each.server: {
                "state": each.state,
                "tools": each.tools,
                "protocol": each.protocol,
                "error": each.error,
                **({"last_lines": each.last_lines} if last_lines and each.last_lines else {}),
            }
            for each in getattr(self._source, "status", ())
        }
        return {
            "status": "healthy",
            "tools": len(self._service.offer.offered) if self._is_open else 0,
            "sessions": len(self._service.clients),
            "servers": servers,
        }

    def asgi(self) -> Starlette:
        """Return the gateway as an ASGI application.

        Raises:
            ConfigurationError: Other machines reach it, and there are no tokens.
        """
        from tool_search.serving.gateway.http.app import build_app  # noqa: PLC0415
        from tool_search.serving.gateway.http.bare import BareRequests  # noqa: PLC0415
        from tool_search.serving.gateway.server import SERVER_NAME, user_of  # noqa: PLC0415

        bare = BareRequests(self._service, self._passed, server_name=SERVER_NAME, user_of=user_of)
        return build_app(
            self.config.transport,
            server=self._server.sdk,
            bare=bare,
            health=self.health,
            opened=self.opened,
            recorder=self._records.recorder if self._records else None,
        )

    async def serve_stdio(self) -> None:
        """Serve one client over standard input and output, until it closes them."""
        from mcp.server.stdio import stdio_server  # noqa: PLC0415

        options = self._server.sdk.create_initialization_options()
        async with self.opened(), stdio_server() as (read, write):
            await self._server.sdk.run(read, write, options)

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Gateway, None]:
        """Open the gateway: its servers are connected, and closed at the end.

        `asgi` and `serve_stdio` open it themselves.

        Raises:
            SessionError: It is open already.
        """
        if self._is_open:
            raise SessionError("the gateway is open already; open it once")
        async with AsyncExitStack() as stack:
            stack.push_async_callback(close, self._store)
            if self._records is not None:
                stack.push_async_callback(asyncio.to_thread, self._records.close)
            await self._open_source(stack)
            stack.push_async_callback(self._service.aclose)
            await self._service.start()
            stack.callback(self._passed.follow(self._service.notify_all))
            if self._front is not None:
                await stack.enter_async_context(self._front.followed(self._service.notify_all))
            self._is_open = True
            try:
                yield self
            finally:
                self._is_open = False

    async def _open_source(self, stack: AsyncExitStack) -> None:
        enter = getattr(self._source, "__aenter__", None)
        if enter is None:
            return
        # Who opened it closes it.
        with suppress(SessionError):
            await enter()
            stack.push_async_callback(self._close_source)

    async def _close_source(self) -> None:
        """Close the servers within the time that the settings give."""
        seconds = self.config.transport.shutdown_timeout_s
        try:
            async with asyncio.timeout(seconds):
                await self._source.__aexit__(None, None, None)
        except TimeoutError:
            _log.warning("gateway_shutdown: servers did not end within %g seconds", seconds)


class _Front:
    """The tools of a registry's front, as a source: they list, search and run all others.

    Args:
        config: The settings: permissions and middleware hold for the tools behind the front.
        source: A registry, or a source whose tools are kept in one.
    """

    def __init__(self, config: GatewayConfig, source: Any) -> None:
        is_registry = isinstance(source, ToolRegistry)
        self._registry = source if is_registry else ToolRegistry(strict=False)
        self._followed = None if is_registry else _Filtered(config, source)
        options = GatewayCalls(source, config).options
        language = language_of_gateway(config)
        front = RegistryFront(self._registry, language=language, options=options)
        tools = front.tools
        self.tools = tuple(item.tool for item in tools)
        self.executor: ToolExecutor = FunctionExecutor(tools)

    def subscribe(self, _: object) -> Callable[[], None]:
        """Return at once: the five tools stay as they are."""
        return lambda: None

    @asynccontextmanager
    async def followed(self, notify: Callable[[], None]) -> AsyncGenerator[None, None]:
        """Keep the registry current, and let clients know of its changes."""

        async def send() -> None:
            notify()

        stop: Callable[[], None] = lambda: None  # noqa: E731  # a registry keeps itself current
        if self._followed is not None:
            stop = await asyncio.to_thread(self._registry.follow, self._followed)
        try:
            async with ChangeNotifier(self._registry, send):
                yield
        finally:
            stop()


def _of_front(config: GatewayConfig) -> GatewayConfig:
    """Return settings under which the front's tools are all listed, and may be called.

    Rules and middleware hold for the tools behind the front.
    """
    search = config.tool_search.model_copy(update={"enabled": False})
    nothing = GatewayConfig()
    update = {
        "tool_search": search,
        "permissions": nothing.permissions,
        "middleware": nothing.middleware,
    }
    return config.model_copy(update=update)


class _Filtered:
    """A source without the tools that the middleware leaves out.

    Args:
        config: The settings.
        source: The source.
    """

    def __init__(self, config: GatewayConfig, source: Any) -> None:
        self._builder = OfferBuilder(config, permitted=lambda catalog: catalog, with_output=False)
        self._source = source

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(tool for tool in self._source.tools if self._builder.admits(tool))

    @property
    def executor(self) -> ToolExecutor:
        executor: ToolExecutor = self._source.executor
        return executor

    def subscribe(self, callback: Callable[[Any], object]) -> Callable[[], None]:
        unsubscribe: Callable[[], None] = self._source.subscribe(callback)
        return unsubscribe


def _config(given: GatewayConfig | Mapping[str, Any] | str | os.PathLike[str]) -> GatewayConfig:
    if isinstance(given, GatewayConfig):
        return given
    if isinstance(given, Mapping):
        return gateway_config(given)
    if isinstance(given, str | os.PathLike):
        return load_gateway_config(given)
    raise ConfigurationError(
        f"config must be a GatewayConfig, such as load_gateway_config('gateway.yaml'), not "
        f"{shown(given)}"
    )


def _mcp_source(config: GatewayConfig) -> Any:
    from tool_search.adapters.mcp import MCPSource  # noqa: PLC0415

    servers = {name: entry.model_dump(by_alias=True) for name, entry in config.mcp_servers.items()}
    return MCPSource(servers, limits=config.limits)


def _warn_of_names(config: GatewayConfig) -> None:
    """Log what the settings say about servers that they do not have."""
    if not config.mcp_servers:
        _log.warning("gateway_servers: mcpServers is empty, so the gateway has no tools")
    for name in config.middleware.client.servers:
        if name not in config.mcp_servers:
            known = ", ".join(map(repr, config.mcp_servers)) or "none"
            _log.warning(
                "gateway_middleware: middleware.client.servers has a list for %r, which is not a "
                "server of mcpServers; there are: %s",
                name,
                known,
            )


def _check_source(source: object) -> None:
    missing = [name for name in ("tools", "executor", "subscribe") if not hasattr(source, name)]
    if missing:
        raise ConfigurationError(
            f"source must have tools, executor and subscribe, as MCPSource has; {shown(source)} "
            f"has not: {', '.join(missing)}"
        )
