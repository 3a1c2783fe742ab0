"""JSON-RPC requests without a handshake before them, as `curl` sends them.

Source: MCProxy's document, "HTTP server": the methods, the codes of errors, and the event
stream of a search.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeGuard

from mcp.types.version import LATEST_HANDSHAKE_VERSION
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

import tool_search
from tool_search.core.values.clean_text import clean_line
from tool_search.core.values.json import compact_json, read_json, shown
from tool_search.core.values.redaction import log_failure
from tool_search.i18n import text
from tool_search.serving.door import until_disconnect
from tool_search.serving.gateway.calls import RefusedRequestError
from tool_search.serving.gateway.clients import GatewayClient
from tool_search.serving.gateway.passing import PassedRequests
from tool_search.serving.gateway.service import GatewayService

__all__ = ["BareRequests"]

_PARSE_ERROR, _INVALID_REQUEST, _METHOD_NOT_FOUND = -32_700, -32_600, -32_601
_INVALID_PARAMS, _INTERNAL_ERROR = -32_602, -32_603
_CODES = {"invalid": _INVALID_PARAMS, "unknown": -32_001, "failed": -32_002}
_MAX_MESSAGE_CHARS = 1_000
_CLOSED = 499
_LIST_CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
_log = logging.getLogger(__name__)
_Params = Mapping[str, Any]
_Id = str | float | None


class _RpcError(Exception):
    """An error in the form of JSON-RPC."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class BareRequests:
    """Answers POST requests that belong to no session.

    Args:
        service: Lists, searches and calls.
        passed: Prompts, resources and completions.
        server_name: The name that `initialize` returns.
        user_of: Returns the authenticated client of a request, or None.
    """

    def __init__(
        self,
        service: GatewayService,
        passed: PassedRequests,
        *,
        server_name: str,
        user_of: Callable[[Mapping[str, Any]], str | None],
    ) -> None:
        self._service = service
        self._passed = passed
        self._server_name = server_name
        self._user_of = user_of
        self._methods: dict[str, Callable[[_Params], Awaitable[dict[str, Any]]]] = {
            "initialize": self._initialize,
            "ping": _answer_ping,
            "prompts/list": self._list_prompts,
            "prompts/get": passed.get_prompt,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": passed.read_resource,
            "completion/complete": passed.complete,
        }

    async def answer(self, request: Request) -> Response:
        """Return the answer to a POST request."""
        try:
            content = _read_body(await request.body())
        except ClientDisconnect:
            return Response(status_code=_CLOSED)
        except _RpcError as exc:
            return _response(request, [_error(None, exc)])
        # A notification has no answer; a ping has one, as MCProxy gives it.
        if isinstance(content, dict) and "id" not in content and _is_notification(content):
            return Response(status_code=202)
        messages = await until_disconnect(request.receive, self._messages(request, content))
        if messages is None:
            return Response(status_code=_CLOSED)
        return _response(request, messages)

    async def _messages(self, request: Request, content: object) -> list[dict[str, Any]]:
        """Return the notification of a change, if there is one, and the answer."""
        given = content.get("id") if isinstance(content, Mapping) else None
        number = given if _is_id(given) else None
        try:
            method, params = _method_of(content)
            if method == "tools/list":
                client = self._client(request)
                return [_result(number, {"tools": self._service.list_tools(client)})]
            if method == "tools/call":
                return await self._call(self._client(request), number, params)
            run = self._runner_of(method)
            return [_result(number, await run({} if params is None else params))]
        except _RpcError as exc:
            return [_error(number, exc)]
        except RefusedRequestError as exc:
            return [_error(number, _RpcError(_CODES[exc.kind], str(exc)))]
        except Exception:  # noqa: BLE001  # the client must get an answer
            log_failure(_log, "a request without a session failed")
            return [_error(number, _RpcError(_INTERNAL_ERROR, "Internal error"))]

    def _runner_of(self, method: str) -> Callable[[_Params], Awaitable[dict[str, Any]]]:
        run = self._methods.get(method)
        if run is None:
            raise _RpcError(_METHOD_NOT_FOUND, f"Method not found: {clean_line(method, 100)}")
        return run

    async def _call(
        self, client: GatewayClient, number: _Id, params: _Params | None
    ) -> list[dict[str, Any]]:
        if params is None:
            raise _RpcError(_INVALID_PARAMS, "Missing params")
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise _RpcError(_INVALID_PARAMS, f"params.name must be text, not {shown(name)}")
        if arguments is not None and not isinstance(arguments, Mapping):
            raise _RpcError(
                _INVALID_PARAMS, f"params.arguments must be an object, not {shown(arguments)}"
            )
        answer = await self._service.call_tool(client, name, arguments or {})
        if answer.error is not None:
            first = answer.content["content"][0]["text"]
            raise _RpcError(_CODES["failed"], str(first))
        content = answer.content
        if "inputRequests" in content:
            said = text("call.needs_input", self._service.language, name=name)
            content = {"content": [{"type": "text", "text": said}], "isError": True}
        content.pop("resultType", None)
        result = _result(number, content)
        return [_LIST_CHANGED, result] if answer.found else [result]

    def _client(self, request: Request) -> GatewayClient:
        user, offer = self._user_of(request.scope), self._service.offer
        clients = self._service.clients
        return clients.others(offer) if user is None else clients.of_user(user, offer)

    async def _initialize(self, params: _Params) -> dict[str, Any]:
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if isinstance(asked, str) else LATEST_HANDSHAKE_VERSION,
            "capabilities": {
                "tools": {"listChanged": True},
                "prompts": {},
                "resources": {},
                "completions": {},
            },
            "serverInfo": {"name": self._server_name, "version": tool_search.__version__},
        }

    async def _list_prompts(self, _: _Params) -> dict[str, Any]:
        return {"prompts": await self._passed.list_prompts()}

    async def _list_resources(self, _: _Params) -> dict[str, Any]:
        return {"resources": await self._passed.list_resources()}

    async def _list_templates(self, _: _Params) -> dict[str, Any]:
        return {"resourceTemplates": await self._passed.list_resource_templates()}


async def _answer_ping(_: _Params) -> dict[str, Any]:
    return {}


def _read_body(body: bytes) -> object:
    try:
        return read_json(body.decode("utf-8-sig"))
    except (ValueError, RecursionError) as exc:
        raise _RpcError(_PARSE_ERROR, "Parse error: the body is not JSON") from exc


def _is_notification(content: Mapping[str, Any]) -> bool:
    method = content.get("method")
    return isinstance(method, str) and method.startswith("notifications/")


def _is_id(value: object) -> TypeGuard[str | float]:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _method_of(content: object) -> tuple[str, _Params | None]:
    """Return the method and the parameters of a request; raise if it is not one."""
    if not isinstance(content, Mapping):
        raise _RpcError(_INVALID_REQUEST, "Invalid Request: the body must be one JSON object")
    if content.get("jsonrpc") != "2.0":
        raise _RpcError(
            _INVALID_REQUEST,
            f"Invalid Request: jsonrpc must be '2.0', not {shown(content.get('jsonrpc'))}",
        )
    number = content.get("id")
    if number is not None and not _is_id(number):
        problem = f"Invalid Request: id must be text or a number, not {shown(number)}"
        raise _RpcError(_INVALID_REQUEST, problem)
    method, params = content.get("method"), content.get("params")
    if not isinstance(method, str):
        raise _RpcError(_INVALID_REQUEST, "Invalid Request: the method is missing")
    if params is not None and not isinstance(params, Mapping):
        raise _RpcError(_INVALID_PARAMS, f"params must be an object, not {shown(params)}")
    return method, params


def _result(number: _Id, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _error(number: _Id, exc: _RpcError) -> dict[str, Any]:
    message = clean_line(str(exc), _MAX_MESSAGE_CHARS)
    return {"jsonrpc": "2.0", "id": number, "error": {"code": exc.code, "message": message}}


def _response(request: Request, messages: list[dict[str, Any]]) -> Response:
    """Return messages as an event stream if the client names one, else the last as JSON."""
    if "text/event-stream" in request.headers.get("accept", ""):
        events = "".join(f"event: message\ndata: {_json(one)}\n\n" for one in messages)
        return Response(events, media_type="text/event-stream")
    return Response(_json(messages[-1]), media_type="application/json")


def _json(message: dict[str, Any]) -> str:
    try:
        return compact_json(message)
    except (TypeError, ValueError):  # lone surrogates, or numbers that JSON does not have
        return json.dumps(message, default=str)
