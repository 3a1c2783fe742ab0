"""The proxy as an ASGI application."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx2
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Message, Scope
from starlette.websockets import WebSocket

from tool_search.adapters.sdk.failures import ReplyFailedError
from tool_search.adapters.wire.incoming import TooLargeError
from tool_search.config.providers import Dialect
from tool_search.errors import ConfigurationError
from tool_search.inspector.access import TOKEN_HEADER, Access
from tool_search.inspector.app import InspectorApp, inspector_routes
from tool_search.proxy.inspection import Inspection
from tool_search.proxy.report import CLIENT_LEFT, Report
from tool_search.proxy.service import ProxyReply, ProxyService
from tool_search.proxy.settings import ProxyConfig, UpstreamSettings, checked_config
from tool_search.values.asgi import until_disconnect

__all__ = ["TOKEN_HEADER", "ToolSearchProxy"]

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
_UNSUPPORTED_DATA = 1003
_log = logging.getLogger(__name__)


class ToolSearchProxy:
    """Tool search for any client that can be given a base URL.

    ::

        proxy = ToolSearchProxy(load_proxy_config("proxy.yaml"))
        uvicorn.run(proxy.asgi())

    Args:
        config: The settings: from `load_proxy_config`, a mapping, or a file's path.
        observe: Takes a report of each request with tools when it ends.

    Attributes:
        config: The settings.
        service: The requests.
        inspection: The records for the page; None: it is not enabled.

    Raises:
        ConfigurationError: The settings are wrong, or the environment variable of
            `listen.tokens_env` is empty.
    """

    def __init__(
        self,
        config: ProxyConfig | Mapping[str, Any] | str | os.PathLike[str],
        *,
        observe: Callable[[Report], None] = lambda _report: None,
    ) -> None:
        self.config = config = checked_config(config)
        self.inspection = Inspection(config) if config.inspector.enabled else None
        self._observe = observe
        begin = self.inspection.begin if self.inspection else lambda _report: None
        self.service = ProxyService(config, begin=begin, observe=self._report)
        self._tokens = _tokens(config)

    def asgi(self) -> Starlette:
        """Return the application."""
        return Starlette(
            routes=[
                *self._inspector(),
                Route("/{path:path}", self._answer, methods=_METHODS),
                WebSocketRoute("/{path:path}", _refuse_socket),
            ],
            lifespan=self._lifespan,
        )

    def _inspector(self) -> list[BaseRoute]:
        if self.inspection is None:
            return []
        access = Access(self._tokens)
        return inspector_routes(InspectorApp(self.inspection.recorder, access))

    def _report(self, report: Report) -> None:
        if self.inspection is not None:
            self.inspection.observe(report)
        self._observe(report)

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        yield
        await self.close()

    async def close(self) -> None:
        """Close connections and files; the requests that have ended are in the log."""
        await self.service.close()
        if self.inspection is not None:
            await asyncio.to_thread(self.inspection.close)

    async def _answer(self, request: Request) -> Response:
        try:
            return await self._answered(request)
        except ClientDisconnect:  # before the end of its own request
            return Response(status_code=CLIENT_LEFT)

    async def _answered(self, request: Request) -> Response:
        path, raw_path = _paths(request.scope)
        if not self._may_enter(request.headers):
            return JSONResponse({"error": {"message": f"a token is needed: {TOKEN_HEADER}"}}, 401)
        headers = httpx2.Headers(request.headers.raw)
        dialect = self.service.dialect_of(path) if request.method == "POST" else None
        if dialect is None:
            return await self._forward(request, raw_path, headers)
        raw = await _body(request, self.config.listen.max_body_bytes)
        if raw is None:
            message = f"the request is longer than {self.config.listen.max_body_bytes} bytes"
            return JSONResponse(dialect.error_body(413, message), 413)
        reply = await until_disconnect(
            request.receive, self.service.answer(path, raw, headers, request.url.query)
        )
        return _response(reply) if reply is not None else Response(status_code=CLIENT_LEFT)

    async def _forward(self, request: Request, path: str, headers: httpx2.Headers) -> Response:
        """Pass any other request on, both ways in bytes."""
        speaks: Dialect | None = "anthropic" if "anthropic-version" in headers else None
        upstreams = self.service.upstreams
        upstream = upstreams.choose(speaks, "") or upstreams.choose(None, "")
        if upstream is None:
            return JSONResponse({"error": {"message": "there is no upstream"}}, 502)
        upload = _Upload(request)
        work = self._forwarded(upstream, request, path, headers=headers, content=upload.content)
        try:
            reply = await until_disconnect(upload.receive, work)
        except (httpx2.HTTPError, ReplyFailedError, TooLargeError) as exc:
            _log.warning("upstream %s: %s", upstream.id, type(exc).__name__)
            message = f"the provider failed ({type(exc).__name__})"
            return JSONResponse({"error": {"message": message}}, 502)
        return _response(reply) if reply is not None else Response(status_code=CLIENT_LEFT)

    async def _forwarded(
        self,
        upstream: UpstreamSettings,
        request: Request,
        path: str,
        *,
        headers: httpx2.Headers,
        content: AsyncIterator[bytes] | None,
    ) -> ProxyReply:
        method, query = request.method, request.url.query
        return await self.service.stored(
            upstream, method, path, headers=headers, query=query
        ) or await self.service.forward(
            upstream, method, path, headers=headers, content=content, query=query
        )

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


class _Upload:
    """The body of a request, as it is read, and the client's leaving after it.

    Args:
        request: The request.

    Attributes:
        content: The pieces of the body; None: there is none.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._is_read = asyncio.Event()
        has_body = "content-length" in request.headers or "transfer-encoding" in request.headers
        self.content = self._pieces() if has_body else None
        if not has_body:
            self._is_read.set()

    async def _pieces(self) -> AsyncIterator[bytes]:
        async for piece in self._request.stream():
            yield piece
        self._is_read.set()

    async def receive(self) -> Message:
        """Return the server's next message after the body."""
        await self._is_read.wait()
        return await self._request.receive()


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


def _paths(scope: Scope) -> tuple[str, str]:
    """Return the path under the place of the application, decoded and percent-encoded."""
    path, root = str(scope["path"]), str(scope.get("root_path") or "")
    raw = (scope.get("raw_path") or quote(path).encode()).decode("latin-1")
    if root and path.startswith(root):
        return path.removeprefix(root) or "/", raw.removeprefix(quote(root)) or "/"
    return path, raw


def _response(reply: ProxyReply) -> Response:
    response: Response
    if isinstance(reply.content, bytes):
        response = Response(reply.content, reply.status)
    else:
        response = StreamingResponse(reply.content, reply.status)
    response.raw_headers += [(name.lower(), value) for name, value in reply.headers.raw]
    return response


async def _refuse_socket(socket: WebSocket) -> None:
    await socket.accept()
    await socket.close(_UNSUPPORTED_DATA, "WebSocket is not supported; use HTTP")
