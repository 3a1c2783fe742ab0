"""The gateway over HTTP: sessions, single requests, tokens, and `/health`.

Source: mcp 2.3 `server/streamable_http_manager.py`, `server/transport_security.py`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import (
    RequestBodyLimitMiddleware,
    TransportSecurityMiddleware,
    TransportSecuritySettings,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, request_response
from starlette.types import ASGIApp, Receive, Scope, Send

from tool_search.core.values.json import read_json
from tool_search.serving.door import (
    Access,
    Guarded,
    cors_middleware,
)
from tool_search.serving.gateway.config import TransportSettings
from tool_search.serving.gateway.http.bare import BareRequests
from tool_search.serving.gateway.http.sessions import SESSION_HEADER, OpenSessions
from tool_search.serving.inspector.app import InspectorApp, inspector_routes
from tool_search.serving.inspector.recorder import Recorder

__all__ = ["build_app"]

_MAX_BODY_BYTES = 4 * 1024 * 1024
_MAX_SESSIONS = 1_000
_BODY_TIMEOUT_S = 60.0
# The door has seen the host and the origin; the SDK checks the type of the content alone.
_SECURITY = TransportSecuritySettings(enable_dns_rebinding_protection=False)
_VERSION = "mcp-protocol-version"


def build_app(
    settings: TransportSettings,
    *,
    server: Any,
    bare: BareRequests,
    health: Callable[..., Mapping[str, Any]],
    opened: Callable[[], AbstractAsyncContextManager[object]],
    recorder: Recorder | None = None,
) -> Starlette:
    """Return the gateway as an ASGI application.

    Args:
        settings: The address, the tokens and the origins.
        server: The server of the SDK.
        bare: Answers requests without a session.
        health: Returns the content of `/health`; with `last_lines`, for who has the only
            token.
        opened: Opens the gateway for the time that the application runs.
        recorder: The requests for the inspector; None: there is no page.

    Raises:
        ConfigurationError: The host is reached from other machines, and there are no tokens.
    """
    access = Access.of(
        "transport", settings.host, settings.tokens_env, hosts=settings.hosts, cors=settings.cors
    )
    manager, endpoint = _endpoint(server, bare)

    def guarded(app: ASGIApp) -> Guarded:
        return Guarded(app, access, body_timeout_s=_BODY_TIMEOUT_S)

    def lifespan(_: Starlette) -> AbstractAsyncContextManager[None]:
        return _find_running(opened, manager)

    async def answer_health(request: Request) -> Response:
        # Of two clients neither reads what a server wrote about the other.
        is_alone = access.client(request.headers, ("authorization",)) and len(access.tokens) == 1
        return JSONResponse(dict(health(last_lines=bool(is_alone))))

    inspector = [] if recorder is None else inspector_routes(InspectorApp(recorder, access))
    return Starlette(
        routes=[
            Route("/health", guarded(request_response(answer_health)), methods=["GET"]),
            Route(settings.path, guarded(_Tokens(endpoint, access) if access.tokens else endpoint)),
            *inspector,
        ],
        middleware=cors_middleware(access),
        lifespan=lifespan,
    )


def _endpoint(server: Any, bare: BareRequests) -> tuple[Any, ASGIApp]:
    """Return the manager of sessions, and the endpoint with its checks."""
    manager = StreamableHTTPSessionManager(
        app=server,
        security_settings=_SECURITY,
        max_request_body_size=_MAX_BODY_BYTES,
        max_sessions=_MAX_SESSIONS,
    )
    inner = _Endpoint(manager, bare, TransportSecurityMiddleware(_SECURITY))
    return manager, RequestBodyLimitMiddleware(inner, _MAX_BODY_BYTES)


@asynccontextmanager
async def _find_running(
    opened: Callable[[], AbstractAsyncContextManager[object]], manager: Any
) -> AsyncGenerator[None, None]:
    async with opened(), manager.run():
        yield


class _Endpoint:
    """The endpoint of the protocol: sessions and their like, or single requests."""

    def __init__(self, manager: Any, bare: BareRequests, security: Any) -> None:
        self._manager = manager
        self._sessions = OpenSessions(manager, _MAX_SESSIONS)
        self._bare = bare
        self._security = security

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        headers = request.headers
        if SESSION_HEADER in headers:
            await self._sessions.answer(scope, receive, send)
            return
        if headers.get(_VERSION) in MODERN_PROTOCOL_VERSIONS:
            await self._manager.handle_request(scope, receive, send)
            return
        if request.method != "POST":
            response = Response(status_code=405, headers={"Allow": "POST"})
            await response(scope, receive, send)
            return
        body = await request.body()
        replay = _Replay(body, receive)
        if _opens_session(headers.get("accept", ""), body):
            await self._sessions.open(scope, replay, send)
            return
        request = Request(scope, replay)
        refusal = await self._security.validate_request(request, is_post=True)
        answer = refusal if refusal is not None else await self._bare.answer(request)
        await answer(scope, replay, send)


class _Replay:
    """Gives a body that was read to whoever reads it next."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Any:
        body, self._body = self._body, None
        if body is None:
            return await self._receive()
        return {"type": "http.request", "body": body, "more_body": False}


def _opens_session(accept: str, body: bytes) -> bool:
    """Return True for the handshake of a client that keeps a session."""
    if "text/event-stream" not in accept or b"initialize" not in body:
        return False
    try:
        content = read_json(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("method") == "initialize"


class _Tokens:
    """Lets clients in by their bearer tokens.

    Args:
        app: The application.
        access: The tokens.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = self._access.client(Request(scope).headers, ("authorization",))
        if name is None:
            response = JSONResponse(
                {"error": "a bearer token is needed: Authorization: Bearer TOKEN"},
                401,
                headers={"WWW-Authenticate": "Bearer"},
            )
            await response(scope, receive, send)
            return
        user = AuthenticatedUser(AccessToken(token=name, client_id=name, scopes=[]))
        await self._app({**scope, "user": user}, receive, send)
