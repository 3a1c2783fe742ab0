"""`tool-search gateway`: MCP servers, searchable, as one MCP server."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tool_search.cli.start.serving import serve_until_interrupted, take_address
from tool_search.cli.terminal.language import wrong_use
from tool_search.config.stores import StoreSettings
from tool_search.errors import ConfigurationError
from tool_search.serving.gateway.config import GatewayConfig, TransportSettings
from tool_search.serving.gateway.loading import load_gateway_config
from tool_search.stores.opening import open_store

if TYPE_CHECKING:
    from tool_search.serving.gateway.gateway import Gateway

__all__ = ["gateway_command"]

_MISSING = (
    "tool-search gateway needs {name}: "
    "pip install 'tool-search-middleware[gateway]'; in a clone: pip install '.[gateway]'"
)


def gateway_command(
    *,
    config: Annotated[
        Path,
        typer.Option(metavar="FILE", help="The gateway's settings, YAML or JSON; MCProxy's fit."),
    ],
    http: Annotated[
        str | None,
        typer.Option(metavar="[HOST:]PORT", help="Serve HTTP there, whatever the file says."),
    ] = None,
) -> None:
    """Offer the tools of MCP servers to any MCP client: a few at once, the rest by search.

    Without HTTP, the client that starts the gateway talks to it over standard input and output.
    """
    settings = _with_address(load_gateway_config(config), http)
    try:
        from tool_search.serving.gateway.gateway import Gateway  # noqa: PLC0415  # of the extra gateway

        store = open_store(settings.store or StoreSettings(), config)
        gateway = Gateway(settings, store=store)
    except ImportError as exc:
        raise ConfigurationError(_problem(exc)) from exc
    # Standard output belongs to the protocol.
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(name)s %(message)s"
    )
    for name in ("httpx", "httpx2", "mcp"):
        logging.getLogger(name).setLevel(logging.WARNING)
    if settings.transport.type == "http":
        _serve_http(gateway, settings.transport)
    else:
        asyncio.run(_serve_stdio(gateway))


def _problem(exc: ImportError) -> str:
    return _MISSING.format(name=exc.name) if exc.name else str(exc)


def _with_address(settings: GatewayConfig, http: str | None) -> GatewayConfig:
    if http is None:
        return settings
    host, _, port = http.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65_535:  # TCP's last port
        raise wrong_use("use.http", value=repr(http))
    update = {"type": "http", "port": int(port), **({"host": host.strip("[]")} if host else {})}
    content = {**settings.transport.model_dump(), **update}
    transport = TransportSettings.model_validate(content)
    return settings.model_copy(update={"transport": transport})


def _serve_http(gateway: Gateway, settings: TransportSettings) -> None:
    app = gateway.asgi()
    sockets, port = take_address(settings.host, settings.port)
    address = f"http://{settings.host}:{port}{settings.path}"
    logging.getLogger(__name__).info("the gateway is at %s", address)
    close_s = max(1, int(settings.shutdown_timeout_s))
    serve_until_interrupted(app, sockets, close_s=close_s)


async def _serve_stdio(gateway: Gateway) -> None:
    """Serve until the client closes standard input, or a signal ends it."""
    serving = asyncio.current_task()
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError):  # on Windows
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, lambda: serving and serving.cancel())
    with suppress(asyncio.CancelledError):
        await gateway.serve_stdio()
