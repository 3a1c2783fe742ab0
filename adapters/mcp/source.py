"""MCP servers as a source of tools.

>>> source = MCPSource({"mcpServers": {"time": {"command": "mcp-server-time"}}})
>>> [each.state for each in source.status]
['closed']
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from tool_search.adapters.mcp.connection import ServerConnection
from tool_search.adapters.mcp.protocol import Progress, Session
from tool_search.adapters.wire.incoming import DEFAULT_LIMITS
from tool_search.config.limits import LimitSettings
from tool_search.config.mcp_files import servers_from_mapping
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import NameBook
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import ToolCall
from tool_search.core.values.clean_text import clean_line
from tool_search.core.values.redaction import log_failure
from tool_search.errors import SessionError, SourceError
from tool_search.runner.execution import ToolExecutor
from tool_search.runner.execution.context import ToolContext
from tool_search.runner.execution.results import (
    CallProgress,
    ExecutionEvent,
    ExecutionResult,
    describe_exception,
    failure_result,
)
from tool_search.sources.base import (
    MISSING_CAPABILITY,
    ListChange,
    OnListChange,
    OnUpdate,
    ServerStatus,
    SourceChange,
    Unsubscribe,
)
from tool_search.sources.following import Follower
from tool_search.sources.results import is_long_answer, result_from_answer

__all__ = ["MCPSource"]

_START_S = 10.0
_FEW_TOOLS = 200
_MAX_PROGRESS_CHARS = 500
_log = logging.getLogger(__name__)
_Callback = TypeVar("_Callback")
_Change = TypeVar("_Change")


class MCPSource:
    """The tools of MCP servers, over one lasting connection to each.

    Use it in an `async with` block. All servers are connected at the same time; one that
    needs more than `start_s` seconds comes later, as a change.

    Args:
        servers: The `mcpServers` of a configuration, with or without that key around them.
        environment: The variables for `${VAR}`; None: those of this process.
        start_s: Seconds for which the beginning of the block waits for servers.
        whole_lists: True if gateways of this library list the tools too that they hide.
        limits: The bounds of what servers send; None: the usual ones.

    Raises:
        ConfigurationError: An entry is wrong.
        ImportError: The SDK is not installed; the message names the extra.

    Example:
        ::

            async with MCPSource({"mcpServers": {"time": {"command": "mcp-server-time"}}}) as mcp:
                runner = ToolSearchRunner(
                    providers=["openai:gpt-5.4"],
                    catalog=ToolCatalog(mcp.tools),
                    executor=mcp.executor,
                )
    """

    def __init__(
        self,
        servers: Mapping[str, Any],
        *,
        environment: Mapping[str, str] | None = None,
        start_s: float = _START_S,
        whole_lists: bool = False,
        limits: LimitSettings | None = None,
    ) -> None:
        self._whole_lists = whole_lists
        self._limits = limits or DEFAULT_LIMITS
        variables = dict(os.environ if environment is None else environment)
        self._settings = servers_from_mapping(servers)
        self._variables = variables
        self._start_s = start_s
        self._connections: dict[str, ServerConnection] = {}
        self._tools: tuple[Tool, ...] = ()
        self._by_name: dict[str, Tool] = {}
        self._book = NameBook()
        self._changed: set[str] = set()
        self._publisher = Follower(self._publish, name="mcp:publisher")
        self._subscribers: list[Callable[[SourceChange], object]] = []
        self._list_subscribers: list[OnListChange] = []
        self._executor = _MCPExecutor(self)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The current tools, each under a name of its own, in the order of the servers."""
        return self._tools

    @property
    def executor(self) -> ToolExecutor:
        """The executor of the tools, by the names in `tools`."""
        return self._executor

    @property
    def status(self) -> tuple[ServerStatus, ...]:
        """The state of each server, in the order of the configuration."""
        if not self._connections:
            return tuple(
                ServerStatus(server=name, state="disabled" if entry.disabled else "closed")
                for name, entry in self._settings.items()
            )
        return tuple(connection.status for connection in self._connections.values())

    def subscribe(self, callback: Callable[[SourceChange], object]) -> Unsubscribe:
        """Call a function in the event loop after each change of `tools`.

        Returns:
            A function that ends the subscription.
        """
        return _join(self._subscribers, callback)

    def subscribe_lists(self, callback: OnListChange) -> Unsubscribe:
        """Call a function in the event loop after changes of a server's prompts or resources.

        It is called for each report of a server, of which there may be any number, and also
        when a server that has prompts or resources comes or goes.

        Returns:
            A function that ends the subscription.
        """
        return _join(self._list_subscribers, callback)

    def find(self, name: str) -> Tool | None:
        """Return the tool of a name in `tools`, or None."""
        return self._by_name.get(name)

    async def request(
        self,
        server: str,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        on_progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Return the result of a request to a server, as JSON; it is sent once at most.

        Args:
            server: The server's name.
            method: The method, such as `tools/call` or `prompts/list`.
            params: Its parameters.
            on_progress: Gets the progress, the total and a message.

        Raises:
            SourceError: There is no such server, it cannot be reached, or it refuses.
            TimeoutError: It did not answer within the `timeout` of its entry.
        """
        return await self._connection(server).request(method, params, on_progress=on_progress)

    async def session(self, server: str) -> Session:
        """Return the open session of a server; connect again if it is gone.

        Raises:
            SourceError: There is no such server, or it cannot be reached.
        """
        return await self._connection(server).session()

    async def watch(self, server: str, uri: str, callback: OnUpdate) -> Unsubscribe:
        """Call a function with the address of a server's resource after each change of it.

        A lost connection ends nothing: changes may have been missed then, so each resource
        is reported once when the server is back.

        Returns:
            A function that ends it.

        Raises:
            SourceError: There is no such server, it cannot be reached, it does not report
                changes of resources, or it refuses.
            TimeoutError: It did not answer within the `timeout` of its entry.
        """
        return await self._connection(server).watch(uri, callback)

    def timeout_of(self, server: str) -> float:
        """Return the seconds that a call of a server may take."""
        return self._settings[server].timeout

    def _connection(self, server: str) -> ServerConnection:
        found = self._connections.get(server)
        if found is None:
            known = ", ".join(map(repr, self._settings)) or "none"
            state = "is not open" if server in self._settings else f"is unknown; there are: {known}"
            raise SourceError(state, server=server)
        return found

    async def __aenter__(self) -> Self:
        """Connect to the servers.

        Raises:
            SessionError: The source is open already.
        """
        if self._publisher.is_open:
            raise SessionError("the source is open already; open it in one `async with` block")
        self._connections = {
            name: ServerConnection(
                name,
                entry,
                self._variables,
                on_change=self._note,
                on_list_change=self._tell_lists,
                whole_lists=self._whole_lists,
                limits=self._limits,
            )
            for name, entry in self._settings.items()
        }
        for connection in self._connections.values():
            connection.start()
        waits = [asyncio.create_task(each.settled()) for each in self._connections.values()]
        try:
            if waits:
                await asyncio.wait(waits, timeout=self._start_s)
            await self._merge()
        except BaseException:
            await self._close()
            raise
        finally:
            for wait in waits:
                wait.cancel()
        self._publisher.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the connections and the processes of the servers."""
        await self._publisher.aclose()
        await self._close()

    async def _close(self) -> None:
        closing = [connection.aclose() for connection in self._connections.values()]
        await asyncio.gather(*closing, return_exceptions=True)

    def _note(self, server: str) -> None:
        self._changed.add(server)
        self._publisher.hear()

    async def _publish(self) -> None:
        """Merge the tools of servers after each change, and let subscribers know."""
        servers = await self._merge()
        if servers:
            self._tell(SourceChange(servers=servers))

    async def _merge(self) -> tuple[str, ...]:
        """Take the tools of all servers; return the servers whose tools have changed."""
        listed = [tool for each in self._connections.values() for tool in each.tools]
        # Off the event loop, which 10,000 tools would hold for half a second.
        is_large = len(listed) >= _FEW_TOOLS
        made = (
            await asyncio.to_thread(self._merge_tools, listed)
            if is_large
            else self._merge_tools(listed)
        )
        self._book, self._tools, self._by_name, servers = made
        return servers

    def _merge_tools(
        self, listed: list[Tool]
    ) -> tuple[NameBook, tuple[Tool, ...], dict[str, Tool], tuple[str, ...]]:
        catalog = ToolCatalog(listed, names=self._book)
        tools = tuple(catalog.by_source[tool.source] for tool in listed)
        before = {tool.fingerprint: tool for tool in self._tools}
        now = {tool.fingerprint: tool for tool in tools}
        changed = before.keys() ^ now.keys()
        servers = {str((now.get(key) or before[key]).server) for key in changed}
        by_name = {tool.name: tool for tool in tools}
        return catalog.book, tools, by_name, tuple(sorted(servers))

    def _tell(self, change: SourceChange) -> None:
        _call_all(self._subscribers, change)

    def _tell_lists(self, change: ListChange) -> None:
        _call_all(self._list_subscribers, change)


class _MCPExecutor:
    """Runs the tools of a source at their servers."""

    def __init__(self, source: MCPSource) -> None:
        self._source = source

    async def run(
        self, call: ToolCall, context: ToolContext
    ) -> AsyncGenerator[ExecutionEvent, None]:
        """Run one call; yield its progress, and its result last."""
        events: asyncio.Queue[ExecutionEvent] = asyncio.Queue()
        task = asyncio.create_task(self._run(call, context, events))
        try:
            while not isinstance(event := await events.get(), ExecutionResult):
                yield event
            yield event
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])

    async def _run(
        self, call: ToolCall, context: ToolContext, events: asyncio.Queue[ExecutionEvent]
    ) -> None:
        try:
            result = await self._result(call, context, events)
        except Exception as exc:  # noqa: BLE001  # whoever waits for the result must get one
            log_failure(_log, "the call of tool %r failed", call.name)
            cause = describe_exception(exc)
            result = failure_result(
                "failed", "call.failed", context.language, name=call.name, cause=cause
            )
        events.put_nowait(result)

    async def _result(
        self, call: ToolCall, context: ToolContext, events: asyncio.Queue[ExecutionEvent]
    ) -> ExecutionResult:
        language, name = context.language, call.name
        tool = self._source.find(name)
        if tool is None:
            return failure_result("failed", "call.tool_gone", language, name=name)
        server, listed = tool.source
        seen = -1.0

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            nonlocal seen
            if done > seen or message:
                seen = max(seen, done)
                events.put_nowait(CallProgress(_progress(done, total, message)))

        try:
            params = {"name": listed, "arguments": call.parsed_arguments() or {}}
            answer = await self._source.request(
                str(server), "tools/call", params, on_progress=on_progress
            )
        except SourceError as exc:
            _log.warning("tool %r failed: %s", name, exc)
            if exc.code == MISSING_CAPABILITY:
                return failure_result("failed", "call.needs_input", language, name=name)
            cause = clean_line(str(exc), _MAX_PROGRESS_CHARS)
            return failure_result("failed", "call.failed", language, name=name, cause=cause)
        except TimeoutError:
            seconds = f"{self._source.timeout_of(str(server)):g}"
            return failure_result(
                "timed_out", "call.timed_out", language, name=name, seconds=seconds
            )
        if "inputRequests" in answer:
            return failure_result("failed", "call.needs_input", language, name=name)
        if is_long_answer(answer):
            return await asyncio.to_thread(result_from_answer, answer, language=language)
        return result_from_answer(answer, language=language)


def _join(callbacks: list[_Callback], callback: _Callback) -> Unsubscribe:
    """Add a callback; return the function that removes it."""
    callbacks.append(callback)

    def leave() -> None:
        with suppress(ValueError):
            callbacks.remove(callback)

    return leave


def _call_all(callbacks: list[Callable[[_Change], object]], change: _Change) -> None:
    for callback in tuple(callbacks):
        try:
            callback(change)
        except Exception:  # noqa: BLE001  # the subscriber's own function
            # A subscriber's failure must not end the updates of the others.
            _log.exception("mcp_subscriber: a subscriber failed")


def _progress(done: float, total: float | None, message: str | None) -> str:
    amount = f"{done:g}" if total is None else f"{done:g}/{total:g}"
    return f"{amount} {clean_line(message or '', _MAX_PROGRESS_CHARS)}".strip()
