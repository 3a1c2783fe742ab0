"""Serve an ASGI application on an address of this machine, which is taken before it is shown."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any

import typer

from tool_search.cli.terminal.language import wrong_use

__all__ = ["serve_until_interrupted", "take_address"]


def take_address(host: str, port: int) -> tuple[list[socket.socket], int]:
    """Bind an address, and return its sockets and its port.

    Args:
        host: A name or an address; a name may have several.
        port: The port; 0 is any free one.
    """
    sockets: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, address in dict.fromkeys(found):
            at = (address[0], port, *address[2:])
            sockets.append(socket.create_server(at, family=family))
            port = int(sockets[0].getsockname()[1])
    except OSError as exc:
        for one in sockets:
            one.close()
        raise wrong_use(
            "use.address", address=_format_address(host, port), cause=exc.strerror or str(exc)
        ) from exc
    return sockets, port


def _format_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def serve_until_interrupted(app: Any, sockets: list[socket.socket], *, close_s: int) -> None:
    """Serve an application on sockets, until a signal ends the process.

    Args:
        app: The ASGI application.
        sockets: The sockets of `take_address`.
        close_s: Seconds for open connections, once a signal came.
    """
    import uvicorn  # noqa: PLC0415  # of the extras proxy and gateway

    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=close_s)
    server = uvicorn.Server(config)
    with suppress(KeyboardInterrupt):  # which uvicorn raises after it has closed
        server.run(sockets=sockets)
    if not server.started:
        raise typer.Exit(1)  # uvicorn has said why
