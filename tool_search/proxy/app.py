"""The proxy as an ASGI application."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from tool_search.config.providers import Dialect
from tool_search.errors import ConfigurationError
from tool_search.proxy.report import Report
from tool_search.proxy.service import ProxyReply, ProxyService
from tool_search.proxy.settings import ProxyConfig

__all__ = ["TOKEN_HEADER", "ToolSearchProxy"]

TOKEN_HEADER = "x-tool-search-token"  # noqa: S105  # the name of a header
"""The header with a client's token, if its key is the provider's."""

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
_CLOSED = 499
_UNSUPPORTED_DATA = 1003
_log = logging.getLogger(__name__)


class ToolSearchProxy:
    """Tool search for any client that can be given a base URL.

    ::

        proxy = ToolSearchProxy(load_proxy_config("proxy.yaml"))
        uvicorn.run(proxy.asgi())

    Args:
        config: The settings.
        observe: Takes a report of each request with tools when it ends.

    Raises:
        ConfigurationError: The environment variable of `listen.tokens_env` is empty.
    """

    def __init__(
        self, config: ProxyConfig, *, observe: Callable[[Report], None] = lambda _report: None
    ) -> None:
        self.config = config
        self.service = ProxyService(config, observe=observe)
        self._tokens = _tokens(config)

    def asgi(self) -> Starlette:
        """Return the application."""
        return Starlette(
            routes=[
                Route("/{path:path}", self._answer, methods=_METHODS),
                WebSocketRoute("/{path:path}", _refuse_socket),
            ],
            lifespan=self._lifespan,
        )

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        yield
        await self.service.close()

    async def _answer(self, request: Request) -> Response:
        path = request.url.path
        if not self._may_enter(request.headers):
            return JSONResponse({"error": {"message": f"a token is needed: {TOKEN_HEADER}"}}, 401)
        headers = {k: v for k, v in request.headers.items() if k != TOKEN_HEADER}
        dialect = self.service.dialect_of(path) if request.method == "POST" else None
        if dialect is None:
            return await self._forward(request, headers)
        raw = await _body(request, self.config.listen.max_body_bytes)
        if raw is None:
            message = f"the request is longer than {self.config.listen.max_body_bytes} bytes"
            return JSONResponse(dialect.error_body(413, message), 413)
        reply = await _until_disconnect(
            request, self.service.answer(path, raw, headers, request.url.query)
        )
        return _response(reply) if reply is not None else Response(status_code=_CLOSED)

    async def _forward(self, request: Request, headers: Mapping[str, str]) -> Response:
        """Pass any other request on, both ways in bytes."""
        speaks: Dialect | None = "anthropic" if "anthropic-version" in headers else None
        upstreams = self.service.upstreams
        upstream = upstreams.choose(speaks, "") or upstreams.choose(None, "")
        if upstream is None:
            return JSONResponse({"error": {"message": "there is no upstream"}}, 502)
        has_body = "content-length" in headers or "transfer-encoding" in headers
        try:
            reply = await self.service.forward(
                upstream,
                request.method,
                request.url.path,
                headers=headers,
                content=request.stream() if has_body else None,
                query=request.url.query,
            )
        except httpx2.HTTPError as exc:
            _log.warning("upstream %s: %s", upstream.id, type(exc).__name__)
            message = f"the provider failed ({type(exc).__name__})"
            return JSONResponse({"error": {"message": message}}, 502)
        return _response(reply)

    def _may_enter(self, headers: Mapping[str, str]) -> bool:
        if not self._tokens:
            return True
        given = [headers.get(TOKEN_HEADER, "")]
        if all(upstream.api_key_env for upstream in self.config.upstreams):
            given += [headers.get("authorization", "").removeprefix("Bearer ")]
            given += [headers.get("x-api-key", "")]
        return any(
            hmac.compare_digest(each.encode(), token) for each in given for token in self._tokens
        )


def _tokens(config: ProxyConfig) -> tuple[bytes, ...]:
    name = config.listen.tokens_env
    if name is None:
        return ()
    tokens = tuple(t.strip().encode() for t in os.environ.get(name, "").split(",") if t.strip())
    if not tokens:
        raise ConfigurationError(
            f"listen.tokens_env: the environment variable {name!r} is empty; set it to the "
            "tokens of clients, separated by commas"
        )
    return tokens


async def _body(request: Request, most: int) -> bytes | None:
    """Return the body of a request; None if it is too long."""
    pieces, size = list[bytes](), 0
    async for piece in request.stream():
        size += len(piece)
        if size > most:
            return None
        pieces.append(piece)
    return b"".join(pieces)


async def _until_disconnect(
    request: Request, work: Coroutine[Any, Any, ProxyReply]
) -> ProxyReply | None:
    """Return a reply; None if the client went away, and the work is cancelled."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        return await task if task.done() else None
    finally:
        for each in (task, gone):
            each.cancel()
            with suppress(asyncio.CancelledError, ClientDisconnect):
                await each


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _response(reply: ProxyReply) -> Response:
    if isinstance(reply.content, bytes):
        return Response(reply.content, reply.status, reply.headers)
    return StreamingResponse(reply.content, reply.status, reply.headers)


async def _refuse_socket(socket: WebSocket) -> None:
    await socket.accept()
    await socket.close(_UNSUPPORTED_DATA, "WebSocket is not supported; use HTTP")
