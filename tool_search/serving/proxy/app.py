"""The proxy as an ASGI application."""

from __future__ import annotations

import asyncio
import json
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
from starlette.routing import BaseRoute, Route, WebSocketRoute, request_response
from starlette.types import Message, Scope
from starlette.websockets import WebSocket

from tool_search.adapters.sdk.failures import ReplyFailedError
from tool_search.adapters.wire.incoming import TooLargeError
from tool_search.core.settings import Dialect
from tool_search.serving.door import (
    TOKEN_HEADER,
    Access,
    Guarded,
    cors_middleware,
    until_disconnect,
)
from tool_search.serving.inspector.app import InspectorApp, inspector_routes
from tool_search.serving.proxy.addresses import is_canonical, is_listed
from tool_search.serving.proxy.inspection import Inspection
from tool_search.serving.proxy.report import CLIENT_LEFT, Report
from tool_search.serving.proxy.service import ProxyService
from tool_search.serving.proxy.settings import ProxyConfig, UpstreamSettings, checked_config
from tool_search.serving.proxy.stored import Asked, asked_in
from tool_search.serving.proxy.upstreams import ProxyReply

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
        on = config.listen
        self._access = Access.of("listen", on.host, on.tokens_env, hosts=on.hosts, cors=on.cors)

    def asgi(self) -> Starlette:
        """Return the application."""
        answer = Guarded(
            request_response(self._answer),
            self._access,
            body_timeout_s=self.config.listen.body_timeout_s,
        )
        return Starlette(
            routes=[
                *self._inspector(),
                Route("/{path:path}", answer, methods=_METHODS),
                WebSocketRoute("/{path:path}", _refuse_socket),
            ],
            middleware=cors_middleware(self._access),
            lifespan=self._lifespan,
        )

    def _inspector(self) -> list[BaseRoute]:
        if self.inspection is None:
            return []
        return inspector_routes(InspectorApp(self.inspection.recorder, self._access))

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
            return await self._answer_client(request)
        except ClientDisconnect:  # before the end of its own request
            return Response(status_code=CLIENT_LEFT)

    async def _answer_client(self, request: Request) -> Response:
        path, raw_path = _paths(request.scope)
        if not is_canonical(path, raw_path):
            return _error(400, f"not every server reads the path {raw_path[:200]!r} alike")
        headers = httpx2.Headers(request.headers.raw)
        client = self._access.client(headers, self._token_headers) or ""
        if not client and self._access.tokens:
            return _error(401, f"a token is needed: {TOKEN_HEADER}")
        dialect = self.service.dialect_of(path) if request.method == "POST" else None
        if dialect is None:
            return await self._forward(request, path, raw_path, headers=headers, client=client)
        raw = await _body(request, self.config.listen.max_body_bytes)
        if raw is None:
            message = f"the request is longer than {self.config.listen.max_body_bytes} bytes"
            return JSONResponse(dialect.error_body(413, message), 413)
        work = self.service.answer(path, raw, headers, request.url.query, client)
        reply = await until_disconnect(request.receive, work)
        return _response(reply) if reply is not None else Response(status_code=CLIENT_LEFT)

    @property
    def _token_headers(self) -> tuple[str, ...]:
        """The headers in which a client may have its token."""
        has_keys = all(upstream.api_key_env for upstream in self.config.upstreams)
        return (TOKEN_HEADER, "authorization", "x-api-key") if has_keys else (TOKEN_HEADER,)

    async def _forward(
        self, request: Request, path: str, raw_path: str, *, headers: httpx2.Headers, client: str
    ) -> Response:
        """Pass any other request on, both ways in bytes."""
        speaks: Dialect | None = "anthropic" if "anthropic-version" in headers else None
        upstreams = self.service.upstreams
        upstream = upstreams.choose(speaks, "") or upstreams.choose(None, "")
        if upstream is None:
            return _error(502, "there is no upstream")
        upload = _Upload(request)
        content: bytes | AsyncIterator[bytes] | None = upload.content
        if upstream.api_key_env is not None:
            checked = await self._check(request, path, upload, speaks, client=client)
            if isinstance(checked, Response):
                return checked
            upstream, content = checked
        work = self._forward_to(
            upstream, request, raw_path, headers=headers, content=content, client=client
        )
        try:
            reply = await until_disconnect(upload.receive, work)
        except (httpx2.HTTPError, ReplyFailedError, TooLargeError) as exc:
            _log.warning("upstream %s: %s", upstream.id, type(exc).__name__)
            return _error(502, f"the provider failed ({type(exc).__name__})")
        return _response(reply) if reply is not None else Response(status_code=CLIENT_LEFT)

    async def _check(
        self,
        request: Request,
        path: str,
        upload: _Upload,
        speaks: Dialect | None,
        *,
        client: str,
    ) -> tuple[UpstreamSettings, bytes | AsyncIterator[bytes] | None] | Response:
        """Return where a request goes that gets the proxy's own key, and its body; or a refusal."""
        listen, method, upstreams = self.config.listen, request.method, self.service.upstreams
        is_own = is_listed(method, path)
        if not is_own and not is_listed(method, path, listen.routes):
            name = json.dumps(f"{method} {path}")
            message = f"the proxy's key is not for {name}; set listen.routes: [{name}] to allow it"
            return _error(403, message)
        content: bytes | AsyncIterator[bytes] | None = upload.content
        asked: Asked | None = Asked()
        is_upload = is_own and method == "POST" and path.endswith("/files")
        if content is not None and not is_upload:
            content = await _body(request, listen.max_body_bytes, upload.content)
            if content is None:
                return _error(413, f"the request is longer than {listen.max_body_bytes} bytes")
            read = await asked_in(content)
            # A form, such as a recording, goes on as it is where the operator allowed the path.
            asked = read if read is not None or is_own else Asked()
        models = [] if asked is None else sorted(asked.models)
        # The models of a batch are in a file.
        models += [""] if method == "POST" and path.endswith("/batches") and not models else []
        model = models[0] if models else ""
        upstream = upstreams.choose(speaks, model) or upstreams.choose(None, model)
        if upstream is None:
            return _error(404, f"no upstream has the model {model!r}")
        if upstream.api_key_env is None:
            return upstream, content
        kept = self.service.kept
        owner = kept.owner_on(upstream, client)
        refused = await kept.refusal(upstream, owner, path, asked, *models)
        return _error(*refused) if refused else (upstream, content)

    async def _forward_to(
        self,
        upstream: UpstreamSettings,
        request: Request,
        path: str,
        *,
        headers: httpx2.Headers,
        content: bytes | AsyncIterator[bytes] | None,
        client: str,
    ) -> ProxyReply:
        kept = self.service.kept
        return await kept.answer(
            upstream,
            request.method,
            path,
            headers=headers,
            content=content,
            query=request.url.query,
            owner=kept.owner_on(upstream, client),
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


async def _body(
    request: Request, most: int, content: AsyncIterator[bytes] | None = None
) -> bytes | None:
    """Return the body of a request; None if it is too long."""
    pieces, size = list[bytes](), 0
    async for piece in content or request.stream():
        size += len(piece)
        if size > most:
            return None
        pieces.append(piece)
    return b"".join(pieces)


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": {"message": message}}, status)


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
    # Which pages may read a reply is this server's to say, not the provider's.
    response.raw_headers += [
        (name.lower(), value)
        for name, value in reply.headers.raw
        if not name.lower().startswith(b"access-control-")
    ]
    return response


async def _refuse_socket(socket: WebSocket) -> None:
    await socket.accept()
    await socket.close(_UNSUPPORTED_DATA, "WebSocket is not supported; use HTTP")
