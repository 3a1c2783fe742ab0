"""One session with a server, the same on SDK 1.26 (handshake alone) and 2.x.

Requests and results pass as JSON objects: the SDK's types differ between its versions, and
one wrong definition would refuse a whole list.

Source: mcp 1.26 `client/session.py`, mcp 2.3 `client/client.py`, `client/session.py`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Protocol

try:
    import anyio
    import mcp
    from mcp import types
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared.message import SessionMessage
except ImportError as exc:
    raise ImportError(
        "tool_search.adapters.mcp needs mcp 1.26 or later: "
        "pip install 'tool-search-middleware[mcp]'; in a clone: pip install '.[mcp]'"
    ) from exc

from pydantic import BaseModel, ConfigDict, ValidationError

import tool_search
from tool_search.adapters.mcp.half_characters import HalfCharacters
from tool_search.adapters.wire.incoming import LARGE_BYTES, TooLargeError, parse_json
from tool_search.config.limits import LimitSettings
from tool_search.sources.base import (
    CLIENT_CAPABILITIES,
    LIST_KINDS,
    METHOD_NOT_FOUND,
    WHOLE_LIST,
    ListKind,
)

__all__ = [
    "CONNECTION_CLOSED",
    "HAS_SESSIONLESS",
    "HEADER_MISMATCH",
    "Message",
    "NotSentError",
    "Progress",
    "RefusedError",
    "Session",
    "Transport",
    "open_session",
    "parse_message",
    "refusal_of",
    "set_definitions_aside",
    "sse_client",
    "streamable_http_client",
    "with_capabilities",
    "written_message",
]

HAS_SESSIONLESS = hasattr(mcp, "Client")
"""True on SDK 2.x, which knows the protocol versions without a session."""

CONNECTION_CLOSED = -32_000
_INTERNAL_ERROR = -32_603
_LIST_CHANGED: dict[str, ListKind] = {
    f"notifications/{kind}/list_changed": kind for kind in LIST_KINDS
}
_UPDATED = "notifications/resources/updated"
_CANCELLED = "notifications/cancelled"
# The protocol's key in the `_meta` of each request, on versions without a session.
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
# The parameters of a subscription on the versions without a session.
_FILTERS: dict[ListKind, str] = {kind: f"{kind}_list_changed" for kind in LIST_KINDS}
# Under this key of a result's `_meta`, the definitions as the server wrote them.
_ASIDE = "tool_search/definitions"
_WHOLE = "tool_search/whole"
_HEADER_MARK = "x-mcp-header"
_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,18}|"[\w-]{1,100}")')
_METHOD = re.compile(rb'"method"\s*:')
_HEAD_BYTES = 200
_MAX_PAGES = 1_000
_MAX_LEVELS = 100

if HAS_SESSIONLESS:
    from mcp.client.subscriptions import (
        ListenNotSupportedError,
        PromptsListChanged,
        ResourcesListChanged,
        SubscriptionLost,
        ToolsListChanged,
    )
    from mcp.shared.exceptions import MCPError

    _CHANGED: dict[object, ListKind] = {
        ToolsListChanged(): "tools",
        PromptsListChanged(): "prompts",
        ResourcesListChanged(): "resources",
    }
    _LISTEN_ERRORS: tuple[type[Exception], ...] = (SubscriptionLost, TimeoutError, MCPError)
    HEADER_MISMATCH = types.jsonrpc.HEADER_MISMATCH
else:
    from mcp.shared.exceptions import McpError as MCPError

    HEADER_MISMATCH = -32_020

Message = Any
"""A `SessionMessage` of the SDK."""

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
Transport = AbstractAsyncContextManager[Any]
"""A transport of the SDK: it gives a stream to read messages from and one to write to."""


class RefusedError(Exception):
    """A request that the server answered with a JSON-RPC error.

    Attributes:
        code: The JSON-RPC code.
        data: Its further facts.
    """

    def __init__(self, message: str, *, code: int, data: object) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class NotSentError(Exception):
    """A request that has not reached the server, so that it can be sent again."""


class _Answer(BaseModel):
    """A result with all its keys, whatever they are."""

    model_config = ConfigDict(extra="allow")


class _Whole(str):
    """A large result, in the `_meta` of a small one: the SDK would validate each part of it.

    A text, since SDK 2.x writes each result as JSON to compare it with the protocol.
    """

    __slots__ = ("result",)
    result: dict[str, Any]


class _Request(types.Request[Any, Any]):  # type: ignore[misc]
    """A request of any method."""

    method: str
    params: Any = None


class _Notification(types.Notification[Any, Any]):  # type: ignore[misc]
    """A notification of any method."""

    method: str
    params: Any = None


class _SDKSession(Protocol):
    """The methods of the SDK's session that both versions have."""

    async def send_request(self, request: Any, result_type: Any, **options: Any) -> Any: ...
    async def send_notification(self, notification: Any) -> None: ...
    async def list_tools(self, *, params: Any = None) -> Any: ...


class Session:
    """An open session with one server; any task may use it.

    Args:
        inner: The SDK's session.
        client: The SDK's client; None on SDK 1.x.
        protocol: The version of the protocol that was agreed on.
        capabilities: The server's capabilities, as JSON.

    Attributes:
        inner: The SDK's session, for what this class does not have.
        protocol: The version of the protocol.
        capabilities: The server's capabilities, as JSON.
    """

    def __init__(
        self, inner: _SDKSession, client: Any, protocol: str, capabilities: Mapping[str, Any]
    ) -> None:
        self.inner = inner
        self.protocol = protocol
        self.capabilities = capabilities
        self._client = client
        self._tasks: set[asyncio.Task[None]] = set()

    async def request(
        self, method: str, params: Mapping[str, Any] | None, *, on_progress: Progress | None = None
    ) -> dict[str, Any]:
        """Return the result of a request; a cancelled one is cancelled at the server too.

        Raises:
            RefusedError: The server answered with an error.
            NotSentError: The connection was closed before the request was sent.
            ValueError: The answer does not have the form of the protocol.
        """
        request = _Request(method=method, params=dict(params or {}))
        # SDK 1.x sends no cancellation; the id of a request is the counter before it.
        number = None if HAS_SESSIONLESS else getattr(self.inner, "_request_id", None)
        try:
            answer = await self.inner.send_request(request, _Answer, progress_callback=on_progress)
        except MCPError as exc:
            raise _name_refusal(exc) from exc
        except ValidationError as exc:
            problem = exc.errors(include_url=False, include_input=False)[0]
            raise ValueError(
                f"the answer is not valid: {problem['loc']}: {problem['msg']}"
            ) from exc
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as exc:
            raise NotSentError("the connection is closed") from exc
        except asyncio.CancelledError:
            if number is not None:
                self._send_later(_Notification(method=_CANCELLED, params={"requestId": number}))
            raise
        # What came as JSON: writing it again would take 250 ms for 14 MB.
        result = dict(answer.model_extra or {})
        meta = result.get("_meta")
        whole = meta.get(_WHOLE) if isinstance(meta, dict) else None
        return whole.result if isinstance(whole, _Whole) else result

    async def list_tools(self, *, whole: bool = False) -> list[Any]:
        """Return the definitions of every page, as the server wrote them.

        Args:
            whole: True if a gateway of this library lists the tools too that it hides.

        Raises:
            RefusedError: The server answered with an error.
            NotSentError: The connection is closed.
            ValueError: A page does not have the form of the protocol, or pages do not end.
        """
        found: list[Any] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await self._page(cursor, whole=whole)
            found += (page.meta or {}).get(_ASIDE, ())
            after = page.next_cursor if HAS_SESSIONLESS else page.nextCursor
            if not after:
                return found
            if after == cursor:
                raise ValueError(f"the list of tools repeats its cursor {after[:60]!r}")
            cursor = after
        raise ValueError(f"the list of tools has more than {_MAX_PAGES} pages")

    async def _page(self, cursor: str | None, *, whole: bool) -> Any:
        content: dict[str, Any] = {"cursor": cursor} if cursor else {}
        if whole:
            content["_meta"] = {WHOLE_LIST: True}
        params = types.PaginatedRequestParams.model_validate(content) if content else None
        try:
            return await self.inner.list_tools(params=params)
        except MCPError as exc:
            refused = _name_refusal(exc)
            if isinstance(refused, RefusedError) and refused.code == METHOD_NOT_FOUND:
                return types.ListToolsResult.model_validate({"tools": []})
            raise refused from exc
        except ValidationError as exc:
            problem = exc.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, problem["loc"]))
            raise ValueError(f"its list of tools is not valid: {place}: {problem['msg']}") from exc
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as exc:
            raise NotSentError("the connection is closed") from exc

    async def listen(self, on_change: Callable[[ListKind], None], *, again: bool = False) -> None:
        """Call a function when a list changes, on versions without a session.

        Returns when the subscription ends, or at once if the version has notifications.

        Args:
            on_change: Gets the kind of the list.
            again: True if an earlier subscription has ended: changes may have been missed.
        """
        kinds = [kind for kind in LIST_KINDS if self.reports(kind)]
        if self._client is None or not kinds:
            return
        wanted = {_FILTERS[kind]: True for kind in kinds}
        try:
            async with self._client.listen(**wanted) as events:
                for kind in kinds if again else ():
                    on_change(kind)
                async for event in events:
                    if event in _CHANGED:
                        on_change(_CHANGED[event])
        except ListenNotSupportedError:
            return
        except _LISTEN_ERRORS:
            # A server that cannot be listened to is asked for its tools now and then.
            on_change("tools")

    def reports(self, kind: ListKind) -> bool:
        """Return True if the server says that it reports changes of a list."""
        offered = self.capabilities.get(kind) or {}
        return offered.get("listChanged") is True

    @asynccontextmanager
    async def listen_to(self, uris: Sequence[str]) -> AsyncGenerator[AsyncIterator[str], None]:
        """Listen to resources, on versions without a session; give the changed addresses.

        They end when the stream does.

        Raises:
            RefusedError: The server does not listen to all of them.
        """
        try:
            async with self._client.listen(resource_subscriptions=uris) as events:
                if set(uris) - set(events.honored.resource_subscriptions or ()):
                    raise RefusedError("it does not report all of these", code=0, data=None)
                yield _addresses(events)
        except ListenNotSupportedError as exc:
            raise RefusedError(str(exc), code=METHOD_NOT_FOUND, data=None) from exc
        except _LISTEN_ERRORS as exc:
            code = getattr(getattr(exc, "error", None), "code", 0)
            raise RefusedError(str(exc), code=code, data=None) from exc

    @property
    def listens(self) -> bool:
        """True if changes come through `listen`."""
        if not HAS_SESSIONLESS:
            return False
        return self.protocol in types.version.MODERN_PROTOCOL_VERSIONS

    def _send_later(self, notification: Any) -> None:
        # The task that waited is being cancelled, and must not wait again.
        async def send() -> None:
            try:
                await self.inner.send_notification(notification)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return

        task = asyncio.get_running_loop().create_task(send())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _addresses(events: Any) -> AsyncGenerator[str, None]:
    with suppress(*_LISTEN_ERRORS):
        async for event in events:
            yield str(event.uri)


def _name_refusal(exc: Any) -> RefusedError | NotSentError:
    error = exc.error
    if isinstance(error.data, Mapping) and error.data.get("tool_search/unsent") is True:
        return NotSentError(str(error.message))
    return RefusedError(str(error.message), code=int(error.code), data=error.data)


@asynccontextmanager
async def open_session(
    transport: Transport,
    *,
    on_list_changed: Callable[[ListKind], None],
    on_updated: Callable[[str], None],
) -> AsyncGenerator[Session, None]:
    """Open a session over a transport, by the newest protocol that both sides know.

    Args:
        transport: The transport.
        on_list_changed: Called with the kind of a list of the server that has changed.
        on_updated: Called with the address of a resource that has changed.
    """

    async def hear(message: Any) -> None:
        inner = getattr(message, "root", message)
        method = getattr(inner, "method", "")
        if method in _LIST_CHANGED:
            on_list_changed(_LIST_CHANGED[method])
        elif method == _UPDATED:
            on_updated(str(inner.params.uri))

    version = tool_search.__version__
    info = types.Implementation(name="tool-search-middleware", version=version)
    if HAS_SESSIONLESS:
        options = {"mode": "auto", "message_handler": hear, "client_info": info, "cache": None}
        async with mcp.Client(transport, **options) as client:
            capabilities = client.server_capabilities
            yield Session(client.session, client, client.protocol_version, _json(capabilities))
        return
    async with (
        transport as (read, write, *_),
        mcp.ClientSession(read, write, message_handler=hear, client_info=info) as session,
    ):
        begun = await session.initialize()
        yield Session(session, None, str(begun.protocolVersion), _json(begun.capabilities))


def _json(model: Any) -> dict[str, Any]:
    content: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return content


def with_capabilities(message: Message) -> Message:
    """Say in a request, which is changed in place, what the one that it is for is capable of.

    The SDK writes the capabilities of the connection, which serves many.
    """
    inner = getattr(message, "message", None)
    params = getattr(getattr(inner, "root", inner), "params", None)
    meta = params.get("_meta") if isinstance(params, dict) else None
    if isinstance(meta, dict) and CLIENT_CAPABILITIES in meta:
        given = meta.pop(CLIENT_CAPABILITIES)
        if isinstance(meta.get(_CAPABILITIES), dict):
            meta[_CAPABILITIES] = {**meta[_CAPABILITIES], **given}
    return message


def parse_message(line: bytes, limits: LimitSettings) -> Message:
    """Return one line of a server as a message; an error for an answer beyond the bounds.

    Raises:
        ValueError: It is not a JSON-RPC message.
    """
    if len(line) <= LARGE_BYTES:
        # The SDK's parser refuses halves of characters, and more than 200 levels.
        with suppress(ValueError):
            return SessionMessage(_message_of_json(line))
    halves = HalfCharacters()
    whole = halves.feed(line) + halves.end()
    try:
        content = _with_valid_result(parse_json(whole, limits))
    except TooLargeError as exc:
        refused = refusal_of(line, str(exc))
        if refused is None:
            raise
        content = refused
    result = content.get("result") if isinstance(content, dict) else None
    if len(line) > LARGE_BYTES and isinstance(result, dict) and "tools" not in result:
        small = {k: type(v)() if isinstance(v, dict | list) else v for k, v in result.items()}
        whole_result = _Whole()
        whole_result.result = result
        content["result"] = small | {"_meta": {_WHOLE: whole_result}}
    if HAS_SESSIONLESS:
        adapter = types.jsonrpc.jsonrpc_message_adapter
        return SessionMessage(adapter.validate_python(content, by_name=False))
    return SessionMessage(types.JSONRPCMessage.model_validate(content))


def refusal_of(head: bytes, problem: str) -> dict[str, Any] | None:
    """Return an error in place of an answer that is beyond a bound; None: it is no answer.

    Args:
        head: Its beginning, in which servers write the id.
        problem: The bound.
    """
    found = _ID.search(head[:_HEAD_BYTES])
    if found is None or _METHOD.search(head[:_HEAD_BYTES]):
        return None
    error = {"code": _INTERNAL_ERROR, "message": f"its answer was given up: {problem}"}
    return {"jsonrpc": "2.0", "id": json.loads(found[1]), "error": error}


def _message_of_json(line: bytes) -> Any:
    if HAS_SESSIONLESS:
        return types.jsonrpc.jsonrpc_message_adapter.validate_json(line, by_name=False)
    return types.JSONRPCMessage.model_validate_json(line)


def _with_valid_result(content: Any) -> Any:
    """Return a message; an error for an answer without a result that the protocol has.

    Its request would wait in vain: the SDK has no message for it.
    """
    if not isinstance(content, dict) or "method" in content or "error" in content:
        return content
    result = content.get("result")
    if isinstance(result, dict) and isinstance(result.get("tools"), list):
        result["tools"] = [_of_few_levels(tool) for tool in result["tools"]]
    if "id" not in content or isinstance(result, dict):
        return content
    problem = {"code": _INTERNAL_ERROR, "message": "the result of its answer is not an object"}
    return {"jsonrpc": "2.0", "id": content["id"], "error": problem}


def _of_few_levels(definition: object) -> object:
    """Return a definition; a sentence if it is nested so deep that the SDK refuses the list."""
    level = [definition]
    for _ in range(_MAX_LEVELS):
        level = [
            part
            for value in level
            if isinstance(value, dict | list)
            for part in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return definition
    name = definition.get("name") if isinstance(definition, dict) else None
    return f"a definition of more than {_MAX_LEVELS} levels, of the tool {name!r:.60}"


def written_message(message: Message) -> bytes:
    """Return a message as one line for a server."""
    inner = with_capabilities(message).message
    if HAS_SESSIONLESS:
        text = inner.model_dump_json(by_alias=True, exclude_unset=True)
    else:
        text = inner.model_dump_json(by_alias=True, exclude_none=True)
    return f"{text}\n".encode()


def set_definitions_aside(message: Message) -> Message:
    """Move the tools of a list, which is changed in place, to where the SDK does not read them.

    The SDK refuses a whole page for one wrong definition. Tools whose arguments become
    HTTP headers stay, because the SDK writes those headers.
    """
    inner = getattr(message, "message", None)
    result = getattr(getattr(inner, "root", inner), "result", None)
    if isinstance(result, dict) and isinstance(result.get("tools"), list):
        given = result["tools"]
        meta = result.get("_meta")
        result["_meta"] = {**(meta if isinstance(meta, dict) else {}), _ASIDE: given}
        result["tools"] = [
            {"name": tool["name"], "inputSchema": tool["inputSchema"]}
            for tool in given
            if _has_headers(tool)
        ]
    return message


def _has_headers(tool: Any) -> bool:
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return False
    schema = tool.get("inputSchema")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return False
    return _is_marked(schema)


def _is_marked(schema: dict[str, Any], levels: int = _MAX_LEVELS) -> bool:
    """Return True if a property, however deep, becomes an HTTP header."""
    properties = schema.get("properties") if levels else None
    return isinstance(properties, dict) and any(
        isinstance(each, dict) and (_HEADER_MARK in each or _is_marked(each, levels - 1))
        for each in properties.values()
    )
