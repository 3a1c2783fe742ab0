"""The gateway on the low-level server of the official SDK, for all versions of the protocol.

Source: mcp 2.3 `server/lowlevel/server.py`, `server/connection.py`, `server/subscriptions.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

try:
    import mcp
    from mcp import types
except ImportError as exc:
    raise ImportError(
        "tool_search.serving.gateway needs mcp 2 or later: "
        "pip install 'tool-search-middleware[gateway]'; in a clone: pip install '.[gateway]'"
    ) from exc

if not hasattr(mcp, "Client"):
    raise ImportError(
        "tool_search.serving.gateway needs mcp 2 or later, and an older one is installed: "
        "pip install 'tool-search-middleware[gateway]'; in a clone: pip install '.[gateway]'"
    )

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

import tool_search
from tool_search.core.values.clean_text import clean_line
from tool_search.core.values.json import compact_json
from tool_search.i18n import text
from tool_search.serving.gateway.calls import RefusedRequestError, error_content
from tool_search.serving.gateway.clients import GatewayClient
from tool_search.serving.gateway.passing import PassedRequests
from tool_search.serving.gateway.service import GatewayService
from tool_search.sources.base import CLIENT_CAPABILITIES, WHOLE_LIST, ListKind

__all__ = ["SERVER_NAME", "GatewayServer"]

SERVER_NAME = "tool-search-gateway"
_KEY = "tool_search"
_MAX_MESSAGE_CHARS = 1_000
# Each result of 2026-07-28 says so; the SDK leaves it out for older versions.
_COMPLETE = {"resultType": "complete"}
# A list that grows must not be kept by a client.
_UNCACHED = {**_COMPLETE, "ttlMs": 0, "cacheScope": "private"}
_MORE = ("inputResponses", "requestState")
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
# What a server may ask for in the answer to a call.
_ASKED_FOR = ("elicitation", "sampling", "roots")
_MAX_CAPABILITY_CHARS = 2_000
_MAX_WATCHED = 1_000


_CHANGED: dict[ListKind, ServerEvent] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}


class _Listeners:
    """The subscriptions of one client, on versions without a session."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.handler = ListenHandler(self.bus)

    async def send(self, kind: ListKind) -> None:
        """Report a list to the client."""
        await self.bus.publish(_CHANGED[kind])


@dataclass(frozen=True, slots=True)
class _Update:
    """Reports a resource to the subscriptions of one client; equal for the same address."""

    listeners: _Listeners
    uri: str
    send_later: Callable[[Callable[[], Awaitable[None]]], None]

    def __call__(self, _: str) -> None:
        # The subscribed address: a stream has no others.
        self.send_later(partial(self.listeners.bus.publish, ResourceUpdated(self.uri)))


class _Server(Server[Any]):
    """A server that says in every handshake that its lists change."""

    def create_initialization_options(self, *_: Any, **more: Any) -> Any:
        """Return the options of a handshake."""
        return super().create_initialization_options(
            NotificationOptions(tools_changed=True, prompts_changed=True, resources_changed=True),
            **more,
        )


class GatewayServer:
    """The handlers of requests, and the clients that send them.

    Args:
        service: Lists, searches and calls.
        passed: Prompts, resources and completions.

    Attributes:
        sdk: The server of the SDK.
    """

    def __init__(self, service: GatewayService, passed: PassedRequests) -> None:
        self._service = service
        self._passed = passed
        self.sdk: Any = _Server(
            SERVER_NAME,
            version=tool_search.__version__,
            get_tool_input_schema=service.input_schema,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_completion=self._complete,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=self._follow_changes,
        )

    # -- clients -----------------------------------------------------------------------------------

    def client_of(self, ctx: Any) -> GatewayClient:
        """Return the client that sent a request."""
        service = self._service
        user = user_of(getattr(ctx.request, "scope", None) or {})
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return self._session(ctx.session._connection, user)  # noqa: SLF001  # the session of the handshake is not public
        if ctx.request is None:
            client = service.clients.of_process(service.offer)
        elif user is not None:
            client = service.clients.of_user(user, service.offer)
        else:
            client = service.clients.others(service.offer)
        if client.listeners is None:
            client.listeners = _Listeners()
            client.notify = client.listeners.send
        return client

    def _session(self, connection: Any, user: str | None) -> GatewayClient:
        known: GatewayClient | None = connection.state.get(_KEY)
        if known is not None:
            return known
        clients = self._service.clients
        client = clients.open_session(self._service.offer, user=user)
        client.notify = partial(_send, connection)
        connection.state[_KEY] = client
        connection.exit_stack.callback(clients.close, client)
        return client

    # -- tools -------------------------------------------------------------------------------------

    async def _list_tools(self, ctx: Any, params: Any) -> dict[str, Any]:
        client = self.client_of(ctx)
        cursor = params.cursor if params is not None else None
        try:
            if _wants_whole(ctx):
                # Off the event loop, which 10,000 definitions would hold.
                page = partial(self._service.list_page, client, cursor, whole=True)
                tools, after = await asyncio.to_thread(page)
            else:
                tools, after = self._service.list_page(client, cursor)
        except RefusedRequestError as exc:
            raise _as_sdk(exc) from exc
        return {"tools": tools, **({"nextCursor": after} if after else {}), **_UNCACHED}

    async def _call_tool(self, ctx: Any, params: Any) -> dict[str, Any]:
        client = self.client_of(ctx)
        raw = dict(ctx.params or {})
        wants = ctx.meta is not None and ctx.meta.get("progress_token") is not None
        try:
            answer = await self._service.call_tool(
                client,
                params.name,
                params.arguments or {},
                on_progress=ctx.session.report_progress if wants else None,
                more={key: raw[key] for key in _MORE if key in raw} | _capabilities(ctx, raw),
            )
        except RefusedRequestError as exc:
            if exc.kind == "failed":
                return _fail(clean_line(str(exc), _MAX_MESSAGE_CHARS))
            raise _as_sdk(exc) from exc
        if answer.list_changed:
            await self._tell(ctx, client)
        if "inputRequests" in answer.content and not _is_modern(ctx):
            language = self._service.language
            return _fail(text("call.needs_input", language, name=params.name))
        return {**_COMPLETE, **answer.content}

    async def _tell(self, ctx: Any, client: GatewayClient) -> None:
        """Send the message that a search changed the list, before the answer of the search."""
        if _is_modern(ctx):
            await client.listeners.send("tools")
        else:
            await ctx.session.send_notification(
                types.ToolListChangedNotification(), related_request_id=ctx.request_id
            )

    # -- the rest ----------------------------------------------------------------------------------

    async def _list_prompts(self, ctx: Any, _: Any) -> dict[str, Any]:
        self.client_of(ctx)  # who has read a list hears of its changes
        return {"prompts": await self._passed.list_prompts(), **_UNCACHED}

    async def _get_prompt(self, ctx: Any, _: Any) -> dict[str, Any]:
        return await self._pass(ctx, self._passed.get_prompt)

    async def _list_resources(self, ctx: Any, _: Any) -> dict[str, Any]:
        self.client_of(ctx)
        return {"resources": await self._passed.list_resources(), **_UNCACHED}

    async def _list_templates(self, ctx: Any, _: Any) -> dict[str, Any]:
        self.client_of(ctx)
        found = await self._passed.list_resource_templates()
        return {"resourceTemplates": found, **_UNCACHED}

    async def _read_resource(self, ctx: Any, _: Any) -> dict[str, Any]:
        return {**_UNCACHED, **await self._pass(ctx, self._passed.read_resource)}

    async def _complete(self, ctx: Any, _: Any) -> dict[str, Any]:
        return await self._pass(ctx, self._passed.complete)

    async def _pass(self, ctx: Any, send: Callable[[Any], Any]) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = await send(ctx.params or {})
        except RefusedRequestError as exc:
            raise _as_sdk(exc) from exc
        return {**_COMPLETE, **answer}

    # -- subscriptions to resources ----------------------------------------------------------------

    async def _subscribe(self, ctx: Any, params: Any) -> dict[str, Any]:
        client, uri, connection = self.client_of(ctx), str(params.uri), ctx.session._connection  # noqa: SLF001  # as in `client_of`
        if uri in client.watched:
            return _COMPLETE
        if len(client.watched) >= _MAX_WATCHED:
            problem = f"a session has at most {_MAX_WATCHED:,} subscriptions to resources"
            raise MCPError(code=types.INVALID_PARAMS, message=problem)

        def tell(updated: str) -> None:
            self._service.send_later(partial(connection.send_resource_updated, updated))

        try:
            end = await self._passed.watch(uri, tell)
        except RefusedRequestError as exc:
            raise _as_sdk(exc) from exc
        if client.is_closed or uri in client.watched:
            end()
        else:
            client.watched[uri] = end
        return _COMPLETE

    async def _unsubscribe(self, ctx: Any, params: Any) -> dict[str, Any]:
        end = self.client_of(ctx).watched.pop(str(params.uri), None)
        if end is not None:
            end()
        return _COMPLETE

    async def _follow_changes(self, ctx: Any, params: Any) -> Any:
        listeners, ends = self.client_of(ctx).listeners, []
        asked = params.notifications.resource_subscriptions or ()
        watched = []
        try:
            servers = await self._passed.servers_of(list(dict.fromkeys(asked))[:_MAX_WATCHED])
            for uri in servers:
                # The answer names what is reported; the rest is not.
                with suppress(RefusedRequestError):
                    update = _Update(listeners, uri, self._service.send_later)
                    ends.append(await self._passed.watch(uri, update, servers=servers[uri]))
                    watched.append(uri)
            kinds = params.notifications.model_copy(
                update={"resource_subscriptions": watched or None}
            )
            return await listeners.handler(ctx, params.model_copy(update={"notifications": kinds}))
        finally:
            for end in ends:
                end()


def _wants_whole(ctx: Any) -> bool:
    """True if the client reads the catalog, such as `tool-search search --mcp`."""
    meta = (ctx.params or {}).get("_meta")
    return isinstance(meta, Mapping) and meta.get(WHOLE_LIST) is True


def _capabilities(ctx: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the client can be asked for in an answer, for the server."""
    meta = params.get("_meta")
    given = meta.get(_CAPABILITIES) if isinstance(meta, Mapping) else None
    if not _is_modern(ctx) or not isinstance(given, Mapping):
        return {}
    found = {key: given[key] for key in _ASKED_FOR if isinstance(given.get(key), Mapping)}
    if not found or len(compact_json(found)) > _MAX_CAPABILITY_CHARS:
        return {}
    return {"_meta": {CLIENT_CAPABILITIES: found}}


async def _send(connection: Any, kind: ListKind) -> None:
    """Report a list to the session of a handshake."""
    await connection.notify(f"notifications/{kind}/list_changed", None)


def user_of(scope: Any) -> str | None:
    """Return the authenticated client of a request, or None."""
    user = scope.get("user")
    return user.access_token.client_id if isinstance(user, AuthenticatedUser) else None


def _is_modern(ctx: Any) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def _fail(message: str) -> dict[str, Any]:
    return {**_COMPLETE, **error_content(message)}


def _as_sdk(exc: RefusedRequestError) -> Exception:
    if exc.kind == "failed":
        code = types.INTERNAL_ERROR if exc.code is None else exc.code
    else:
        code = types.INVALID_PARAMS
    error: Exception = MCPError(code=code, message=clean_line(str(exc), _MAX_MESSAGE_CHARS))
    return error
