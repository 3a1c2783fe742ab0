"""Prompts, resources and completions of the servers, passed on to clients.

A prompt has the name `server___prompt`. A resource keeps its address; of two servers with one
address, the first in the configuration has it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from tool_search.core.values.clean_text import cut_text
from tool_search.core.values.json import compact_json, shown
from tool_search.errors import SourceError
from tool_search.serving.gateway.calls import RefusedRequestError
from tool_search.serving.gateway.names import gateway_name, split_name
from tool_search.serving.gateway.owners import ResourceOwners
from tool_search.sources.base import (
    METHOD_NOT_FOUND,
    ListChange,
    ListKind,
    OnListChange,
    OnUpdate,
    Unsubscribe,
)
from tool_search.sources.paced import PacedCalls

__all__ = ["PassedRequests"]

_MAX_PAGES = 100
_MAX_ITEMS = 10_000
_MAX_DESCRIPTION_CHARS = 8_000
_MAX_ANSWER_CHARS = 40_000_000
# A client is sent one message about a list in this time.
_NOTIFY_PAUSE_S = 2.0
_OWN_META = "io.modelcontextprotocol/"
_log = logging.getLogger(__name__)
_Params = Mapping[str, Any]


@runtime_checkable
class _HasServers(Protocol):
    """The part of `MCPSource` that reaches its servers."""

    @property
    def status(self) -> tuple[Any, ...]: ...

    async def request(
        self, server: str, method: str, params: Mapping[str, Any] | None = None
    ) -> dict[str, Any]: ...

    async def session(self, server: str) -> Any: ...


@runtime_checkable
class _Watches(Protocol):
    """The part of `MCPSource` that reports changes of resources."""

    async def watch(self, server: str, uri: str, callback: OnUpdate) -> Unsubscribe: ...


@runtime_checkable
class _ReportsLists(Protocol):
    """The part of `MCPSource` that reports changes of prompts and resources."""

    def subscribe_lists(self, callback: OnListChange) -> Unsubscribe: ...


class PassedRequests:
    """Requests that go to the server that has what they name.

    Args:
        source: The source; one that does not reach servers has no prompts and no resources.
    """

    def __init__(self, source: object) -> None:
        self._source: _HasServers | None = source if isinstance(source, _HasServers) else None
        self._owners = ResourceOwners(self._list_addresses)
        self._is_followed = False

    def follow(self, notify: Callable[[ListKind], object]) -> Unsubscribe:
        """Pass on changes of the lists of prompts and resources; return the end of it.

        Args:
            notify: Sends clients the message that a list has changed; it is called at most
                once in two seconds for each kind of list.
        """
        source: object = self._source
        if not isinstance(source, _ReportsLists):
            return lambda: None
        paced = PacedCalls(notify, interval_s=_NOTIFY_PAUSE_S)

        def hear(change: ListChange) -> None:
            if change.kind == "resources":
                self._hear_resources(change.server)
            paced(change.kind)

        unsubscribe = source.subscribe_lists(hear)
        self._is_followed = True

        def end() -> None:
            self._is_followed = False
            unsubscribe()
            paced.close()

        return end

    def _hear_resources(self, server: str) -> None:
        # A server that cannot be reached keeps its addresses: a request says why it fails.
        if server in self._servers(besides=("disabled", "failed")):
            self._owners.forget(server)
        else:
            self._owners.doubt()

    async def list_prompts(self) -> list[dict[str, Any]]:
        """Return the prompts of all servers."""
        found = []
        for server, item in await self._list("prompts", "prompts/list", "prompts"):
            if isinstance(item.get("name"), str):
                found.append({**item, "name": gateway_name(server, item["name"])})
        return found

    async def list_resources(self) -> list[dict[str, Any]]:
        """Return the resources of all servers."""
        return await self._with_owners("resources/list", "resources", "uri")

    async def list_resource_templates(self) -> list[dict[str, Any]]:
        """Return the templates of resources of all servers."""
        method = "resources/templates/list"
        return await self._with_owners(method, "resourceTemplates", "uriTemplate")

    async def get_prompt(self, params: _Params) -> dict[str, Any]:
        """Return a prompt.

        Raises:
            RefusedRequestError: There is no such prompt, or the server refused.
        """
        server, name = self._prompt(_text_in(params, "name"))
        return await self._ask(server, "prompts/get", {**_rest(params), "name": name})

    async def read_resource(self, params: _Params) -> dict[str, Any]:
        """Return the contents of a resource.

        Raises:
            RefusedRequestError: No server has it, or the server refused.
        """
        uri = _text_in(params, "uri")
        refusal: RefusedRequestError | None = None
        for server in (await self.servers_of([uri]))[uri]:
            try:
                return await self._ask(server, "resources/read", {**_rest(params), "uri": uri})
            except RefusedRequestError as exc:
                refusal = exc
        raise refusal or _no_resource(uri)

    async def servers_of(self, uris: Iterable[str]) -> dict[str, list[str]]:
        """Return the servers to ask for each address, the likeliest first."""
        return await self._owners.servers_of(uris)

    async def watch(
        self, uri: str, callback: OnUpdate, *, servers: Iterable[str] | None = None
    ) -> Unsubscribe:
        """Call a function after each change of a resource; return the end of it.

        Args:
            uri: The address.
            callback: Gets the address that has changed.
            servers: Its servers; None: they are looked up.

        Raises:
            RefusedRequestError: No server has it, or the server refused.
        """
        refusal: RefusedRequestError | None = None
        source: object = self._source
        if not isinstance(source, _Watches):
            raise _no_resource(uri)
        if servers is None:
            servers = (await self.servers_of([uri]))[uri]
        for server in servers:
            try:
                return await source.watch(server, uri, callback)
            except SourceError as exc:
                refusal = RefusedRequestError(str(exc), kind="failed", code=exc.code)
            except TimeoutError:
                problem = f"server {server!r} did not answer in time"
                refusal = RefusedRequestError(problem, kind="failed")
        raise refusal or _no_resource(uri)

    async def complete(self, params: _Params) -> dict[str, Any]:
        """Return completions of an argument of a prompt or of a template.

        Raises:
            RefusedRequestError: There is no such prompt or template, or the server refused.
        """
        ref = params.get("ref")
        if not isinstance(ref, Mapping):
            raise RefusedRequestError("the parameter 'ref' is missing", kind="invalid")
        if ref.get("type") == "ref/prompt":
            server, name = self._prompt(_text_in(ref, "name"))
            return await self._ask(
                server, "completion/complete", {**_rest(params), "ref": {**ref, "name": name}}
            )
        uri = _text_in(ref, "uri")
        for server in (await self.servers_of([uri]))[uri][:1]:
            return await self._ask(server, "completion/complete", _rest(params))
        raise _no_resource(uri)

    def _prompt(self, name: str) -> tuple[str, str]:
        servers = self._servers()
        server, own = split_name(name)
        if server not in servers:
            # A server's own name may hold the joint.
            known = (each for each in servers if name.startswith(gateway_name(each, "")))
            server = next(known, None)
            own = name.removeprefix(gateway_name(server, ""))
        if server is None or not own:
            raise RefusedRequestError(
                f"there is no prompt {shown(name)}; names have the form server___prompt",
                kind="unknown",
            )
        return server, own

    def _servers(self, *, besides: Collection[str] = ("disabled",)) -> list[str]:
        if self._source is None:
            return []
        return [each.server for each in self._source.status if each.state not in besides]

    async def _list_addresses(self) -> None:
        if not self._is_followed:
            self._owners.doubt()
        await asyncio.gather(self.list_resources(), self.list_resource_templates())

    async def _with_owners(self, method: str, key: str, name: str) -> list[dict[str, Any]]:
        found = []
        for server, item in await self._list("resources", method, key):
            address = item.get(name)
            if not isinstance(address, str):
                continue
            if self._owners.take(address, server):
                found.append(item)
        return found

    async def _list(
        self, capability: str, method: str, key: str
    ) -> list[tuple[str, dict[str, Any]]]:
        """Return what all servers list, in their order; a server that fails is passed over."""
        # The next try to reach one that failed may be seconds away.
        servers = self._servers(besides=("disabled", "failed"))
        lists = await asyncio.gather(
            *(self._pages(server, capability, method, key) for server in servers)
        )
        pairs = zip(servers, lists, strict=True)
        return [(server, _cut_texts(item)) for server, items in pairs for item in items]

    async def _pages(
        self, server: str, capability: str, method: str, key: str
    ) -> list[dict[str, Any]]:
        source = self._source
        found: list[dict[str, Any]] = []
        if source is None:
            return found
        try:
            session = await source.session(server)
            offered = session.capabilities.get(capability)
            if offered is None:
                return found
            if capability == "resources" and not offered.get("listChanged"):
                # Its list may change without a word.
                self._owners.doubt()
            params: dict[str, Any] = {}
            for _ in range(_MAX_PAGES):
                page = await source.request(server, method, params)
                items = page.get(key)
                found += [one for one in _items(items) if isinstance(one, dict)]
                cursor = page.get("nextCursor")
                if not isinstance(cursor, str) or not cursor or len(found) >= _MAX_ITEMS:
                    break
                params = {"cursor": cursor}
        except (SourceError, TimeoutError) as exc:
            if getattr(exc, "code", None) == METHOD_NOT_FOUND:
                # A server with resources need not have templates.
                return found
            if capability == "resources":
                self._owners.doubt()
            _log.warning("mcp_list: %s of server %r is passed over: %s", method, server, exc)
        return found[:_MAX_ITEMS]

    async def _ask(self, server: str, method: str, params: _Params) -> dict[str, Any]:
        source = self._source
        if source is None:
            raise RefusedRequestError(f"there is no server {server!r}", kind="unknown")
        try:
            answer = await source.request(server, method, params)
        except SourceError as exc:
            raise RefusedRequestError(str(exc), kind="failed", code=exc.code) from exc
        except TimeoutError as exc:
            problem = f"server {server!r} did not answer {method} in time"
            raise RefusedRequestError(problem, kind="failed") from exc
        if len(await asyncio.to_thread(compact_json, answer)) > _MAX_ANSWER_CHARS:
            raise RefusedRequestError(
                f"the answer of server {server!r} has more than {_MAX_ANSWER_CHARS:,} characters",
                kind="failed",
            )
        return _plain(answer)


def _no_resource(uri: str) -> RefusedRequestError:
    return RefusedRequestError(f"no server has the resource {shown(uri)}", kind="unknown")


def _items(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else ()


def _cut_texts(item: dict[str, Any]) -> dict[str, Any]:
    found = dict(item)
    for key in ("description", "title"):
        if isinstance(found.get(key), str):
            found[key] = cut_text(found[key], _MAX_DESCRIPTION_CHARS)
    return found


def _plain(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without the facts of the connection to its server."""
    meta = answer.get("_meta")
    found = {key: value for key, value in answer.items() if key not in ("_meta", "ttlMs")}
    if isinstance(meta, dict):
        kept = {key: value for key, value in meta.items() if not key.startswith(_OWN_META)}
        if kept:
            found["_meta"] = kept
    return found


def _rest(params: _Params) -> dict[str, Any]:
    """Return parameters without the facts of the connection to the client."""
    return {key: value for key, value in params.items() if key != "_meta"}


def _text_in(params: _Params, key: str) -> str:
    value = params.get(key)
    if not isinstance(value, str):
        raise RefusedRequestError(f"the parameter {key!r} is missing", kind="invalid")
    return value
