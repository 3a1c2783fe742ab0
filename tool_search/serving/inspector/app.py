"""The inspector as an ASGI application, for a proxy or a gateway to mount.

`/` is the page; `/api/requests`, `/api/requests/{id}`, `/api/figures` and `/api/events` give
the same as JSON and as server-sent events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import Receive, Scope, Send

from tool_search.serving.door import Access
from tool_search.serving.inspector.figures import figures
from tool_search.serving.inspector.page import page, page_headers
from tool_search.serving.inspector.recorder import Recorder

__all__ = ["InspectorApp", "inspector_routes"]

_MAX_FOLLOWERS = 64
_MAX_ROWS = 10_000
_ROWS = 1_000
_HEARTBEAT_S = 15.0
# Events that come at once are sent together, at most so often.
_PAUSE_S = 0.1
_HEADERS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class InspectorApp:
    """The page and its API.

    Args:
        recorder: The requests.
        access: The rules of who may read.
        is_kept: True for requests of a log, to which none are added.
    """

    def __init__(self, recorder: Recorder, access: Access, *, is_kept: bool = False) -> None:
        self._recorder = recorder
        self._access = access
        self._is_kept = is_kept
        self._router = Router(
            routes=[
                Route("/", self._page),
                Route("/api/requests", self._requests),
                Route("/api/requests/{id}", self._request),
                Route("/api/figures", self._figures),
                Route("/api/events", self._events),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that may read, and refuse any other."""
        headers = dict(Headers(scope=scope).items())
        peer = scope["client"][0] if scope.get("client") else None
        if _opens_page(scope, headers):
            # A link on another page may open this one, which has no data of its own and asks
            # for a token if one is needed.
            headers.pop("sec-fetch-site", None)
            refusal = self._access.refusal(headers, peer)
            refused = refusal if refusal and refusal[0] != 401 else None
        else:
            refused = self._access.refusal(headers, peer)
        if refused is not None:
            status, reason = refused
            await JSONResponse({"error": reason}, status, _HEADERS)(scope, receive, send)
            return
        await self._router(scope, receive, send)

    def _owner(self, request: Request) -> str | None:
        """Return the client that reads, which sees its own requests; None: there are no tokens."""
        return self._access.client(request.headers)

    async def _page(self, _request: Request) -> Response:
        return HTMLResponse(page(), headers={**_HEADERS, **page_headers()})

    async def _requests(self, request: Request) -> Response:
        after = _number(request, "after", 0)
        limit = min(_number(request, "limit", _ROWS), _MAX_ROWS)
        last = self._recorder.last
        owner = self._owner(request)
        rows = await asyncio.to_thread(self._recorder.rows, after, limit, owner)
        last = rows[-1][0] if rows else last
        written = ",".join(row for _, row in rows)
        kept = "true" if self._is_kept else "false"
        running = ",".join(self._recorder.running(owner).values())
        head = f'"last":{last},"kept":{kept}'
        content = f'{{{head},"requests":[{written}],"running":[{running}]}}'
        return Response(content, media_type="application/json", headers=_HEADERS)

    async def _request(self, request: Request) -> Response:
        record = await asyncio.to_thread(
            self._recorder.get, request.path_params["id"], self._owner(request)
        )
        if record is None:
            return JSONResponse({"error": "this request is not kept"}, 404, _HEADERS)
        content = await asyncio.to_thread(record.model_dump_json)
        return Response(content, media_type="application/json", headers=_HEADERS)

    async def _figures(self, request: Request) -> Response:
        owner = self._owner(request)
        content = await asyncio.to_thread(lambda: figures(*self._recorder.all(owner)))
        return JSONResponse(content, headers=_HEADERS)

    async def _events(self, request: Request) -> Response:
        if self._recorder.followers >= _MAX_FOLLOWERS:
            return JSONResponse({"error": "too many pages are open"}, 503, _HEADERS)
        after = _number(request, "after", self._recorder.last)
        return StreamingResponse(
            self._rows_as_they_come(after, self._owner(request)),
            headers=_HEADERS,
            media_type="text/event-stream",
        )

    async def _rows_as_they_come(self, after: int, owner: str | None) -> AsyncIterator[str]:
        if after > self._recorder.last:
            after = 0  # of a process before this one
        with self._recorder.following() as event:
            yield ": open\n\n"
            shown: set[str] = set()
            while True:
                event.clear()
                # Read first: one that ends meanwhile is among the rows.
                running = self._recorder.running(owner)
                begun = [row for request_id, row in running.items() if request_id not in shown]
                for row in begun:
                    yield f"event: running\ndata: {row}\n\n"
                rows = self._recorder.rows(after, owner=owner)
                for number, row in rows:
                    after = number
                    yield f"id: {number}\nevent: request\ndata: {row}\n\n"
                for request_id in shown - running.keys():
                    if not self._recorder.has(request_id):
                        yield f'event: gone\ndata: {{"id":"{request_id}"}}\n\n'
                shown = set(running)
                if rows or begun:
                    await asyncio.sleep(_PAUSE_S)
                    continue
                with suppress(TimeoutError):
                    await asyncio.wait_for(event.wait(), _HEARTBEAT_S)
                    continue
                yield ": still here\n\n"


def inspector_routes(app: InspectorApp, path: str = "/inspector") -> list[BaseRoute]:
    """Return the routes that mount an inspector, before any that matches every path.

    Args:
        app: The inspector.
        path: The place.
    """

    async def add_slash(_request: Request) -> Response:
        return RedirectResponse(f"{path.rpartition('/')[2]}/", headers=_HEADERS)

    return [Route(path, add_slash), Mount(path, app)]


def _opens_page(scope: Scope, headers: dict[str, str]) -> bool:
    """True if a browser opens the page in a window of its own."""
    return "/api/" not in scope["path"] and headers.get("sec-fetch-mode", "navigate") == "navigate"


def _number(request: Request, name: str, default: int) -> int:
    value = request.query_params.get(name, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 16 else default
