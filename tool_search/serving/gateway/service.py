"""Lists, searches and calls for the clients of a gateway, apart from any transport."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from pydantic import ValidationError

from tool_search.adapters.hosts.tool_search import ToolSearch
from tool_search.config.conversation import ToolSearchConfig
from tool_search.config.search import SearchSettings
from tool_search.core.catalog.tool import Tool
from tool_search.core.services import SearchResult
from tool_search.core.values.aside import end
from tool_search.core.values.json import read_arguments, shown
from tool_search.errors import ConfigurationError, SourceError, ToolSearchError
from tool_search.i18n import LANGUAGES, Language, text
from tool_search.runner.execution.context import ToolExecutor
from tool_search.serving.gateway.answers import (
    CALL_TOOL,
    SEARCH_TOOL,
    Hit,
    call_tool,
    schemas_text,
    search_text,
    search_tool,
)
from tool_search.serving.gateway.calls import (
    CallAnswer,
    GatewayCalls,
    Progress,
    RefusedRequestError,
    Requests,
    error_content,
)
from tool_search.serving.gateway.clients import GatewayClient, GatewayClients
from tool_search.serving.gateway.config import GatewayConfig
from tool_search.serving.gateway.names import split_name
from tool_search.serving.gateway.offer import HeldTools, Offer, OfferBuilder, definition_of
from tool_search.serving.inspector.mcp_calls import (
    ANSWERED,
    FAILED,
    ListedTools,
    McpRecords,
    UnderWay,
)
from tool_search.sources.base import MISSING_CAPABILITY, ListKind
from tool_search.sources.following import Follower
from tool_search.stores.base import EvidenceStore

__all__ = ["GatewayService", "ListsTools", "ToolAnswer", "language_of_gateway"]

_MAX_QUERY_CHARS = 4_000
_MAX_PAGE_BYTES = 750_000
_MAX_NAME_CHARS = 200
_NOTIFY_S = 5.0
_FEW_TOOLS = 100
_log = logging.getLogger(__name__)


class ListsTools(Protocol):
    """A source of tools, such as `MCPSource` or `ToolRegistry`."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The current tools."""
        ...

    @property
    def executor(self) -> ToolExecutor:
        """The executor of the tools."""
        ...

    def subscribe(self, callback: Callable[[Any], object]) -> Callable[[], None]:
        """Call a function after each change of `tools`; return the end of it."""
        ...


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The answer to `tools/call`.

    Attributes:
        content: The result, as JSON.
        list_changed: True if the client's list has changed by it.
        found: True for a search with hits.
        error: The failure of a server that gave no result.
    """

    content: dict[str, Any]
    list_changed: bool = False
    found: bool = False
    error: Exception | None = None


class GatewayService:
    """The tools of a source for many clients, each with searches of its own.

    Args:
        config: The settings.
        source: The tools, their executor and their changes.
        store: The store of what searches teach; None: memory of this object.
        records: Takes searches and calls for the inspector; None: there is none.

    Attributes:
        clients: The clients.
        language: The language of the gateway's own tools and answers.

    Raises:
        ConfigurationError: The settings of the search cannot be used.
    """

    def __init__(
        self,
        config: GatewayConfig,
        source: ListsTools,
        *,
        store: EvidenceStore | None = None,
        records: McpRecords | None = None,
    ) -> None:
        self._records = records
        self._config = config
        self._settings = config.tool_search
        self._source = source
        self.language = language_of_gateway(config)
        self._shown = config.tool_search.shown
        self.clients = GatewayClients(self._shown)
        self.calls = GatewayCalls(source, config)
        self._builder = OfferBuilder(
            config,
            permitted=self.calls.permitted,
            with_output=isinstance(source, Requests),
        )
        self._search = ToolSearch((), _search_config(config), store=store)
        # For `debug` alone: its index is built when it is first asked.
        self._unlimited = ToolSearch((), _search_config(config, min_relevance=0.0))
        self._held = HeldTools()
        self._tools: tuple[Tool, ...] | None = None
        self._offer: Offer | None = None
        self._follower = Follower(self._look, name="gateway:follower")
        self._unsubscribe: Callable[[], None] = lambda: None
        self._sending: set[asyncio.Task[None]] = set()

    @property
    def offer(self) -> Offer:
        """The current tools.

        Raises:
            ToolSearchError: The service is not started.
        """
        if self._offer is None:
            raise ToolSearchError("the gateway is not open yet")
        return self._offer

    async def start(self) -> None:
        """Offer the tools of the source, and follow its changes.

        Raises:
            DuplicateToolError: Two tools without a server have the same name.
        """
        if self._settings.learning.enabled:
            await self._search.prepare()
        await self._update()
        self._unsubscribe = self._source.subscribe(self._follower.hear)
        self._follower.hear()
        self._follower.start()

    async def aclose(self) -> None:
        """End the following of changes."""
        self._unsubscribe()
        await self._follower.aclose()
        await end(*self._sending)

    # -- lists -------------------------------------------------------------------------------------

    def list_tools(self, client: GatewayClient) -> list[dict[str, Any]]:
        """Return the list of a client, as `tools/list` has it."""
        offer, exposed = self.offer, client.exposed
        found = [offer.definition(name) for name in exposed.listed if name in offer.names.shown]
        if exposed.has_search:
            found.append(definition_of(search_tool(exposed.hidden, self.language)))
        if exposed.has_call_tool:
            found.append(definition_of(call_tool(self.language)))
        return found

    def list_page(
        self, client: GatewayClient, cursor: str | None, *, whole: bool = False
    ) -> tuple[list[dict[str, Any]], str | None]:
        """Return a page of a client's list, and the cursor of the next one.

        The official SDK refuses an event of more than a megabyte, so larger lists have pages.

        Args:
            client: The client.
            cursor: The cursor of the page before; None for the first page.
            whole: True for every tool, hidden ones too, and none of the gateway's own.

        Raises:
            RefusedRequestError: The cursor is not one of this list.
        """
        offer = self.offer
        if whole:
            tools = [offer.definition(name) for name in offer.names.shown]
        else:
            tools = self.list_tools(client)
        first = _place(cursor, len(tools))
        room = _MAX_PAGE_BYTES
        for place in range(first, len(tools)):
            name = tools[place]["name"]
            # The gateway's own tools are short.
            room -= offer.size(name) if name in offer.names.shown else 0
            if room < 0 and place > first:
                return tools[first:place], str(place)
        return tools[first:], None

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a tool's arguments, or None for an unknown name."""
        tool = self.offer.names.find(name)
        return None if tool is None else json.loads(tool.parameters_json)

    # -- calls -------------------------------------------------------------------------------------

    async def call_tool(
        self,
        client: GatewayClient,
        name: str,
        arguments: Mapping[str, Any],
        *,
        on_progress: Progress | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> ToolAnswer:
        """Return the answer to a client's call.

        Args:
            client: The client.
            name: The name of a tool, as clients are shown it or in full.
            arguments: The arguments.
            on_progress: Gets the progress, the total and a message.
            more: Further parameters that a server gets, such as `inputResponses`.

        Raises:
            RefusedRequestError: There is no such tool, or `query` or `name` is missing.
        """
        tool = self.offer.names.find(name)
        if tool is None and name == SEARCH_TOOL and self._shown.searches:
            query = _text_in(arguments, "query")
            with self._under_way(client) as begun:
                return await self._answer_search(client, query, begun)
        if tool is None and name == CALL_TOOL and self._shown.searches:
            name, arguments = _text_in(arguments, "name"), _inner_arguments(arguments)
            tool = self.offer.names.find(name)
        if tool is None:
            raise self._unknown(name)
        with self._under_way(client, tool.name) as begun:
            answer = await self.calls.run(
                tool.name,
                arguments,
                conversation=client.key,
                language=self.language,
                user=client.user,
                on_progress=on_progress,
                more=more,
            )
            answer = self._or_refusal(name, answer)
            if begun is not None:
                status = FAILED if answer.is_error else ANSWERED
                begun.called(self._list(client), status=status, bodies=(arguments, answer.content))
        await self._learn(client, tool, answer)
        return ToolAnswer(answer.content, error=answer.error)

    def _or_refusal(self, name: str, answer: CallAnswer) -> CallAnswer:
        """Return an answer; a refusal if the server would ask a person, and nobody can be."""
        if isinstance(answer.error, SourceError) and answer.error.code == MISSING_CAPABILITY:
            said = text("call.needs_input", self.language, name=name)
            return CallAnswer(content=error_content(said))
        return answer

    def _under_way(
        self, client: GatewayClient, name: str = ""
    ) -> AbstractContextManager[UnderWay | None]:
        """Show a call, or a search, in the inspector while it runs."""
        if self._records is None:
            return nullcontext()
        return self._records.under_way(self._list(client), name)

    def _list(self, client: GatewayClient) -> ListedTools:
        """Return the list of a client, for its record."""
        offer = self.offer
        return ListedTools(
            session=client.key,
            owner=client.user or "",
            exposure=self._settings.exposure,
            listed=client.exposed.listed,
            shown=offer.shown,
            definition=offer.definition,
            catalog_id=offer.catalog.fingerprint[:12],
        )

    def _unknown(self, name: str) -> RefusedRequestError:
        server, _ = split_name(name)
        problem = f"there is no tool {shown(name[:_MAX_NAME_CHARS])}"
        if server is not None and server in self._config.mcp_servers:
            for each in getattr(self._source, "status", ()):
                if each.server == server and each.state != "connected":
                    return RefusedRequestError(
                        f"{problem} at present: server {server!r} cannot be reached: {each.error}",
                        kind="failed",
                    )
            return RefusedRequestError(f"{problem} at server {server!r}", kind="unknown")
        if server is not None:
            return RefusedRequestError(
                f"{problem}, and no server {server[:_MAX_NAME_CHARS]!r}", kind="unknown"
            )
        return RefusedRequestError(
            f"{problem}; names have the form server___tool, as a search returns them",
            kind="unknown",
        )

    # -- searches ----------------------------------------------------------------------------------

    async def _answer_search(
        self, client: GatewayClient, query: str, begun: UnderWay | None
    ) -> ToolAnswer:
        offer = self.offer
        asked = query[:_MAX_QUERY_CHARS]
        began = time.perf_counter()
        result = SearchResult(query=asked)
        if asked.strip():
            result = await self._search.arank(asked, limit=self._shown.hits, user=client.user)
        seconds = time.perf_counter() - began
        if self._settings.debug:
            await self._record(result, seconds)
        if result.error is not None:
            if begun is not None:
                begun.searched(self._list(client), result, None)
            return ToolAnswer(error_content(result.error))
        hits = [
            Hit(offer.shown[m.name], offer.catalog[m.name], _describe(offer, m.name))
            for m in result.matches
            if m.name in offer.shown
        ]
        changed = client.exposed.take_hits([hit.name for hit in hits])
        if begun is not None:
            explain = partial(self._search.explain, user=client.user)
            begun.searched(self._list(client), result, explain)
        if client.can_follow and self._settings.learning.enabled:
            self._remember(client, result)
        by_name = bool(hits) and (client.exposed.has_call_tool or not client.can_follow)
        words = [search_text(asked, hits, self.language)]
        if by_name:
            words.append(schemas_text(hits, self.language))
        return ToolAnswer(
            {"content": [{"type": "text", "text": one} for one in words], "isError": False},
            list_changed=changed,
            found=bool(hits),
        )

    async def _record(self, result: SearchResult, seconds: float) -> None:
        """Log one search."""
        before = await asyncio.to_thread(self._count_all, result.query)
        facts = {
            "query": result.query,
            "index_size": len(self._search.catalog),
            "matches_before_threshold": before,
            "matches_after_threshold": result.total_found,
            "seconds": seconds,
        }
        _log.info(
            "tool_search: query=%r index_size=%d matches_before_threshold=%d "
            "matches_after_threshold=%d seconds=%.4f",
            *facts.values(),
            extra=facts,
        )

    def _count_all(self, query: str) -> int:
        """Return the number of tools that fit a query however little."""
        if not query.strip():
            return 0
        return self._unlimited.rank(query, self._search.catalog, limit=1).total_found

    # -- learning ----------------------------------------------------------------------------------

    def _remember(self, client: GatewayClient, result: SearchResult) -> None:
        """Keep a search, which teaches if a tool that it found is called."""
        if client.has_called:
            # A search after a call begins another task.
            client.trail.begin_turn()
        client.has_called = False
        client.trail.replied()
        client.trail.searched(result)

    async def _learn(self, client: GatewayClient, tool: Tool, answer: CallAnswer) -> None:
        if not client.can_follow or answer.needs_input or not self._settings.learning.enabled:
            return
        client.has_called = True
        client.trail.replied()
        if not answer.is_error:
            client.trail.succeeded(tool)
        await self._search.learn(client)

    # -- changes -----------------------------------------------------------------------------------

    def notify_all(self, kind: ListKind = "tools") -> None:
        """Send every client the message that its list of a kind has changed."""
        for client in self.clients:
            if client.notify is not None:
                self.send_later(partial(client.notify, kind))

    async def _look(self) -> float | None:
        try:
            return await self._update()
        except ToolSearchError as exc:
            _log.warning("gateway_tools: the tools stay as they are: %s", exc)
            return None

    async def _update(self) -> float | None:
        """Offer the current tools; return the seconds after which to look again."""
        tools, wait = self._held.take(self._source.tools)
        if tools == self._tools:
            return wait
        if len(tools) <= _FEW_TOOLS:
            offer = self._build(tools)
        else:
            offer = await asyncio.to_thread(self._build, tools)
        self._tools, self._offer = tools, offer
        self.calls.use(offer)
        for client in self.clients:
            if client.exposed.replace(offer.offered) and client.notify is not None:
                self.send_later(partial(client.notify, "tools"))
            # A thousand sessions must not hold the event loop together.
            await asyncio.sleep(0)
        return wait

    def _build(self, tools: tuple[Tool, ...]) -> Offer:
        offer = self._builder.build(tools)
        self._search.replace_tools(offer.catalog)
        if self._shown.searches:
            self._search.rank("tools", limit=1)  # builds the index
        return offer

    def send_later(self, notify: Callable[[], Awaitable[None]]) -> None:
        """Send a message to a client; one that does not read it in time is passed over."""
        task = asyncio.create_task(_within(notify))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)


async def _within(notify: Callable[[], Awaitable[None]]) -> None:
    """Send a message; a client that does not read it is passed over."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_NOTIFY_S):
            await notify()


def _place(cursor: str | None, count: int) -> int:
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 9 or int(cursor) > count:
        raise RefusedRequestError(
            f"the cursor {shown(cursor)} is not one of this list; begin without one",
            kind="invalid",
        )
    return int(cursor)


def _describe(offer: Offer, name: str) -> str | None:
    return offer.descriptions.get(offer.shown[name])


def language_of_gateway(config: GatewayConfig) -> Language:
    """Return the language of a gateway's own tools and answers; `auto` is English."""
    return next((known for known in LANGUAGES if known == config.tool_search.language), "en-US")


def _search_config(
    config: GatewayConfig, *, min_relevance: float | None = None
) -> ToolSearchConfig:
    settings = config.tool_search
    floor = settings.search_threshold if min_relevance is None else min_relevance
    try:
        return ToolSearchConfig(
            tool_schema_mode="tool_search",
            auto_always_load_builtin=False,
            search=SearchSettings(engine=settings.engine, min_relevance=floor),
            learning=settings.learning,
            language=language_of_gateway(config),
            listing="none",
        )
    except (ValidationError, ConfigurationError) as exc:
        problem = str(exc).rpartition(f"{settings.engine!r}: ")[2]
        if isinstance(exc, ValidationError):
            problem = exc.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise ConfigurationError(f"tool_search.engine is {settings.engine!r}: {problem}") from exc


def _text_in(arguments: Mapping[str, Any], key: str) -> str:
    value = arguments.get(key)
    if not isinstance(value, str):
        state = "is missing" if value is None else f"must be text, not {shown(value)}"
        raise RefusedRequestError(f"the argument {key!r} {state}", kind="invalid")
    return value


def _inner_arguments(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    given = arguments.get("arguments")
    read = read_arguments(given) if isinstance(given, str) else given
    if read is None and given is None:
        return {}
    if not isinstance(read, Mapping):
        raise RefusedRequestError(
            f"the argument 'arguments' must be an object, not {shown(given)}", kind="invalid"
        )
    return read
