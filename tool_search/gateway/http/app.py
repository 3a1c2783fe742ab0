"""The gateway over HTTP: sessions, single requests, tokens, and `/health`.

Source: mcp 2.3 `server/streamable_http_manager.py`, `server/transport_security.py`.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
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
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tool_search.errors import ConfigurationError
from tool_search.gateway.config import TransportSettings
from tool_search.gateway.http.bare import BareRequests
from tool_search.gateway.http.sessions import SESSION_HEADER, OpenSessions
from tool_search.inspector.access import Access
from tool_search.inspector.app import InspectorApp, inspector_routes
from tool_search.inspector.recorder import Recorder
from tool_search.values.json import read_json

__all__ = ["build_app"]

_MAX_BODY_BYTES = 4 * 1024 * 1024
_MAX_SESSIONS = 1_000
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
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
        health: Returns the content of `/health`; with `last_lines`, for who has a token.
        opened: Opens the gateway for the time that the application runs.
        recorder: The requests for the inspector; None: there is no page.

    Raises:
        ConfigurationError: The host is reached from other machines, and there are no tokens.
    """
    tokens = _tokens(settings)
    if settings.host not in _LOOPBACK and not tokens:
        raise ConfigurationError(
            f"transport.host is {settings.host!r}, which other machines reach: set "
            "transport.tokens_env to an environment variable with the tokens of clients, or use "
            "127.0.0.1"
        )
    manager, endpoint = _endpoint(settings, server, bare)
    guarded = _Tokens(endpoint, tokens) if tokens else endpoint

    def lifespan(_: Starlette) -> AbstractAsyncContextManager[None]:
        return _running(opened, manager)

    async def answer_health(request: Request) -> Response:
        return JSONResponse(dict(health(last_lines=bool(_token_in(request, tokens)))))

    inspector = [] if recorder is None else inspector_routes(_inspector(recorder, tokens))
    return Starlette(
        routes=[
            Route("/health", answer_health, methods=["GET"]),
            Route(settings.path, endpoint=_App(guarded)),
            *inspector,
        ],
        middleware=_cors(settings.cors),
        lifespan=lifespan,
    )


def _endpoint(settings: TransportSettings, server: Any, bare: BareRequests) -> tuple[Any, ASGIApp]:
    """Return the manager of sessions, and the endpoint with its checks."""
    security = _security(settings)
    manager = StreamableHTTPSessionManager(
        app=server,
        security_settings=security,
        max_request_body_size=_MAX_BODY_BYTES,
        max_sessions=_MAX_SESSIONS,
    )
    inner = _Endpoint(manager, bare, TransportSecurityMiddleware(security))
    return manager, RequestBodyLimitMiddleware(inner, _MAX_BODY_BYTES)


def _cors(origins: Sequence[str]) -> list[Middleware]:
    """Return what lets pages of these origins ask."""
    if not origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST", "DELETE", "OPTIONS"],
            allow_headers=["*"],
            expose_headers=["Mcp-Session-Id"],
        )
    ]


def _inspector(recorder: Recorder, tokens: tuple[bytes, ...]) -> InspectorApp:
    return InspectorApp(recorder, Access(tokens))


@asynccontextmanager
async def _running(
    opened: Callable[[], AbstractAsyncContextManager[object]], manager: Any
) -> AsyncGenerator[None, None]:
    async with opened(), manager.run():
        yield


class _App:
    """An ASGI application that Starlette does not take for a function of requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


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
        tokens: The tokens.
    """

    def __init__(self, app: ASGIApp, tokens: tuple[bytes, ...]) -> None:
        self._app = app
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        token = _token_in(Request(scope), self._tokens)
        if not token:
            response = JSONResponse(
                {"error": "a bearer token is needed: Authorization: Bearer TOKEN"},
                401,
                headers={"WWW-Authenticate": "Bearer"},
            )
            await response(scope, receive, send)
            return
        name = hashlib.sha256(token).hexdigest()[:16]
        user = AuthenticatedUser(AccessToken(token=name, client_id=name, scopes=[]))
        await self._app({**scope, "user": user}, receive, send)


def _token_in(request: Request, tokens: tuple[bytes, ...]) -> bytes:
    """Return the token of a request; empty if it has none of these."""
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    token = given.strip().encode("utf-8", "replace") if kind.lower() == "bearer" else b""
    # All are compared, so that the time does not say which one was nearest.
    matches = [hmac.compare_digest(token, each) for each in tokens]
    return token if any(matches) else b""


def _tokens(settings: TransportSettings) -> tuple[bytes, ...]:
    name = settings.tokens_env
    if name is None:
        return ()
    written = os.environ.get(name, "")
    tokens = tuple(each.strip().encode() for each in written.split(",") if each.strip())
    if not tokens:
        raise ConfigurationError(
            f"transport.tokens_env: the environment variable {name!r} is empty; set it to the "
            "tokens of clients, separated by commas"
        )
    return tokens


def _security(settings: TransportSettings) -> TransportSecuritySettings:
    """Return the hosts and origins of requests; a page of the web must not reach the gateway."""
    if settings.host not in _LOOPBACK or "*" in settings.cors:
        # Tokens protect it, or the operator lets every page in.
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    names = ("127.0.0.1", "localhost", "[::1]")
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*(f"{name}:*" for name in names), *names],
        allowed_origins=[*(f"http://{name}:*" for name in names), *settings.cors],
    )
