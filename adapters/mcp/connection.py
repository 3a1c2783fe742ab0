"""One server: its lasting connection, owned by one task, and what it lists.

The task connects, lists, and then waits. A connection that is gone is made again, with a
growing pause after each failure; a call that finds none waits for the next try.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any

from tool_search.adapters.mcp.http import HttpFailures, http_transport
from tool_search.adapters.mcp.oauth import oauth_client
from tool_search.adapters.mcp.protocol import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    NotSentError,
    Progress,
    RefusedError,
    Session,
    Transport,
    open_session,
)
from tool_search.adapters.mcp.stdio import ServerProcess
from tool_search.adapters.mcp.watching import WatchedResources
from tool_search.adapters.wire.incoming import DEFAULT_LIMITS
from tool_search.config.limits import LimitSettings
from tool_search.config.mcp import MCPServerSettings
from tool_search.core.catalog.tool import Tool
from tool_search.core.values.aside import end
from tool_search.core.values.clean_text import clean_line
from tool_search.errors import ConfigurationError, SourceError
from tool_search.runner.execution.results import describe_exception
from tool_search.sources.base import (
    ListChange,
    ListKind,
    OnListChange,
    OnUpdate,
    ServerState,
    ServerStatus,
    Unsubscribe,
)
from tool_search.sources.definitions import ListedTools, read_definitions
from tool_search.sources.variables import expand

__all__ = ["ServerConnection"]

_MIN_PAUSE_S, _MAX_PAUSE_S = 0.2, 30.0
# A connection that lasted this long was a good one: the next pause is the shortest again.
_STEADY_S = 30.0
# A call waits for a try that begins within this time, and fails at once otherwise.
_PATIENCE_S = 5.0
# A server that reports no changes is asked for its tools after a call, if they were read this
# long ago, or for a long list this many times as long as reading it took.
_UNREPORTED_S, _UNREPORTED_TIMES = 2.0, 50.0
# Between two lists for notifications of a change, of which a server may send any number.
_LIST_PAUSE_S = 1.0
_PASSED_LISTS: tuple[ListKind, ...] = ("prompts", "resources")
_PERSON_S = 300.0
_ROUNDS = 4
_LAST_WORDS_S = 0.1
_MAX_ERROR_CHARS = 1_000
_log = logging.getLogger(__name__)


class ServerConnection:
    """The connection to one server.

    Args:
        name: The server's name.
        settings: Its entry, with variables.
        environment: The variables.
        on_change: Called when its tools or its state have changed.
        on_list_change: Called when its prompts or resources have changed.
        whole_lists: True if gateways of this library list the tools too that they hide.
        limits: The bounds of what it sends.

    Attributes:
        name: The server's name.
        tools: Its tools as it lists them; empty while it cannot be reached.
    """

    def __init__(
        self,
        name: str,
        settings: MCPServerSettings,
        environment: Mapping[str, str],
        *,
        on_change: Callable[[str], None],
        on_list_change: OnListChange,
        whole_lists: bool = False,
        limits: LimitSettings = DEFAULT_LIMITS,
    ) -> None:
        self._whole_lists = whole_lists
        self._limits = limits
        self.name = name
        self.tools: tuple[Tool, ...] = ()
        self._given = settings
        self._settings = settings
        self._environment = environment
        self._on_change = on_change
        self._on_list_change = on_list_change
        # The lists of prompts and resources that the server had when it was there.
        self._lists: tuple[ListKind, ...] = ()
        self._state: ServerState = "disabled" if settings.disabled else "connecting"
        self._protocol: str | None = None
        self._error: str | None = None
        self._last_lines = ""
        self._problems: tuple[str, ...] = ()
        self._session: Session | None = None
        self._task: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._wake = asyncio.Event()
        self._lost = asyncio.Event()
        self._must_list = self._may_list = False
        self._list_from = 0.0
        self._attempts = 0
        self._next_try = 0.0
        self._tried = asyncio.Condition()
        self._failures = HttpFailures()
        self._process: ServerProcess | None = None
        self._watched = WatchedResources(name, timeout_s=settings.timeout)

    @property
    def status(self) -> ServerStatus:
        """The current state."""
        return ServerStatus(
            server=self.name,
            state=self._state,
            tools=len(self.tools),
            protocol=self._protocol,
            error=self._error,
            last_lines=self._last_lines,
        )

    def start(self) -> None:
        """Begin to connect, in a task of its own."""
        if self._state == "disabled":
            self._settled.set()
        else:
            self._task = asyncio.create_task(self._run(), name=f"mcp:{self.name}")

    async def settled(self) -> None:
        """Wait until the first try to connect is over."""
        await self._settled.wait()

    async def aclose(self) -> None:
        """End the connection and its process."""
        task, self._task = self._task, None
        if task is not None:
            await end(task)
        if self._state != "disabled":
            self._state = "closed"

    async def session(self) -> Session:
        """Return the open session; connect again if it is gone.

        Raises:
            SourceError: The server cannot be reached.
        """
        if self._session is None:
            self._check_patience()
            before = self._attempts
            async with self._tried:
                await self._tried.wait_for(
                    lambda: self._session is not None or self._attempts > before
                )
        if self._session is None:
            raise SourceError(f"is not connected: {self._error}", server=self.name)
        return self._session

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        on_progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Return the result of a request, which is sent once at most.

        A connection that is found gone before the request is sent is made again first.

        Raises:
            SourceError: The server cannot be reached, refuses the request, or its answer
                is not valid.
            TimeoutError: There was no answer within the time-out of its entry.
        """
        async with asyncio.timeout(self._settings.timeout):
            if self._process is not None:
                # The end of a killed process is read in the next rounds of the event loop.
                for _ in range(_ROUNDS):
                    await asyncio.sleep(0)
            session = await self.session()
            try:
                return await self._answer(session, method, params, on_progress)
            except NotSentError:
                self._lose(session)
                session = await self.session()
            except SourceError as exc:
                if exc.code != HEADER_MISMATCH:
                    raise
                # The call did not run: the tool's schema, which says what is written into
                # HTTP headers too, has changed since it was listed.
                try:
                    await self._list(session)
                except (RefusedError, NotSentError, ValueError) as failed:
                    raise exc from failed
                self._on_change(self.name)
            try:
                return await self._answer(session, method, params, on_progress)
            except NotSentError as exc:
                self._lose(session)
                raise SourceError(f"is not connected: {exc}", server=self.name) from exc

    async def watch(self, uri: str, callback: OnUpdate) -> Unsubscribe:
        """Call a function after each change of a resource; return the end of it.

        Raises:
            SourceError: The server cannot be reached, does not offer it, or refuses.
            TimeoutError: There was no answer within the time-out of its entry.
        """
        async with asyncio.timeout(self._settings.timeout):
            session = await self.session()
            try:
                return await self._watched.add(session, uri, callback)
            except ValueError as exc:
                raise SourceError(str(exc), server=self.name) from exc
            except RefusedError as exc:
                raise SourceError(str(exc), server=self.name, code=exc.code, data=exc.data) from exc
            except NotSentError as exc:
                self._lose(session)
                raise SourceError(f"is not connected: {exc}", server=self.name) from exc

    async def _answer(
        self,
        session: Session,
        method: str,
        params: Mapping[str, Any] | None,
        on_progress: Progress | None,
    ) -> dict[str, Any]:
        request = asyncio.ensure_future(session.request(method, params, on_progress=on_progress))
        lost = asyncio.ensure_future(self._lost.wait())
        try:
            await asyncio.wait((request, lost), return_when=asyncio.FIRST_COMPLETED)
            if not request.done():
                # An answer from just before the end is still on its way; SDK 1.x gives no
                # error to the requests of a session that ends.
                await asyncio.wait((request,), timeout=_LAST_WORDS_S)
            if not request.done():
                raise self._lost_error("")
            if method == "tools/call":
                self._list_unreported(session)
            return request.result()
        except RefusedError as exc:
            if exc.code == CONNECTION_CLOSED:
                raise self._lost_error(str(exc)) from exc
            raise SourceError(str(exc), server=self.name, code=exc.code, data=exc.data) from exc
        except ValueError as exc:
            raise SourceError(str(exc), server=self.name) from exc
        finally:
            lost.cancel()
            if not request.done():
                request.cancel()
                await asyncio.wait((request,))

    def _lost_error(self, detail: str) -> SourceError:
        cause = self._cause() or detail
        problem = "the connection was lost during the request, which may have run"
        return SourceError(f"{problem}: {cause}" if cause else problem, server=self.name)

    def _check_patience(self) -> None:
        """Raise if there is nobody who connects, or the next try is far away."""
        if self._task is None or self._task.done():
            state = "is disabled" if self._state == "disabled" else "is closed"
            raise SourceError(f"{state}; open its source first", server=self.name)
        pause = self._next_try - time.monotonic()
        if pause > _PATIENCE_S:
            raise SourceError(
                f"is not connected: {self._error}; the next try is in {pause:.0f} s",
                server=self.name,
            )

    # -- the task that owns the connection ---------------------------------------------------------

    async def _run(self) -> None:
        pause = _MIN_PAUSE_S
        while True:
            began = time.monotonic()
            failure: Exception | None = None
            try:
                await self._connect()
            except Exception as exc:  # noqa: BLE001  # a transport may raise anything, in groups too
                failure = exc
            if self._task is None:
                # Closed: what a transport raises then takes the place of the cancellation.
                return
            self._keep_last_lines()
            if failure is None:
                self._error = self._cause() or "the connection was closed"
            elif self._state == "connected":
                # Gone while it was in use: its tools stay until it cannot be made again.
                self._error = self._reason(failure)
            else:
                self._fail(failure)
            if self._state == "connected":
                self._warn("mcp_connection_lost: server %r: %s", self._error)
            self._end()
            if time.monotonic() - began > _STEADY_S:
                pause = _MIN_PAUSE_S
            self._next_try = time.monotonic() + pause
            await self._tell()
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE_S)

    async def _connect(self) -> None:
        """Connect, list, and return when the connection is gone."""
        self._must_list = self._may_list = False
        self._lost.clear()
        self._wake.clear()
        self._failures, self._process = HttpFailures(), None
        given = self._given.model_dump(by_alias=True)
        values = expand(given, self._environment, place=f"mcpServers.{self.name}")
        settings = self._settings = MCPServerSettings.model_validate(values)
        async with AsyncExitStack() as stack:
            # A person who has to permit it needs more time than a server.
            limit = _PERSON_S if settings.oauth is not None else settings.timeout
            try:
                async with asyncio.timeout(limit):
                    session = await stack.enter_async_context(
                        open_session(
                            self._transport(settings),
                            on_list_changed=self._hear,
                            on_updated=self._watched.hear,
                        )
                    )
                    # A change while the list is read must be heard.
                    listening = asyncio.create_task(self._listen(session))
                    stack.push_async_callback(_await_end, listening)
                    await self._list(session)
            except TimeoutError as exc:
                raise SourceError(
                    f"did not answer within {limit:g} seconds", server=self.name
                ) from exc
            resuming = asyncio.create_task(self._watched.resume(session))
            stack.push_async_callback(_await_end, resuming)
            stack.callback(self._watched.stop)
            await self._serve(session)

    def _transport(self, settings: MCPServerSettings) -> Transport:
        if settings.command:
            self._process = ServerProcess(
                self.name,
                command=settings.command,
                args=settings.args,
                variables=settings.env,
                inherited=self._environment,
                cwd=settings.cwd,
                limits=self._limits,
                on_end=self._end,
            )
            return self._process.streams()
        return http_transport(
            settings,
            auth=oauth_client(self.name, settings),
            failures=self._failures,
            limits=self._limits,
            on_end=self._end,
        )

    async def _serve(self, session: Session) -> None:
        if self._state == "failed":
            _log.info("mcp_server_back: server %r answers again", self.name)
        self._session, self._protocol = session, session.protocol
        self._state, self._error = "connected", None
        # Changes may have been missed since the last connection.
        self._lists = tuple(
            kind for kind in _PASSED_LISTS if session.capabilities.get(kind) is not None
        )
        for kind in self._lists:
            self._report(kind)
        await self._tell()
        while not self._lost.is_set():
            await self._wake.wait()
            self._wake.clear()
            if self._may_list and not self._must_list and not self._lost.is_set():
                self._may_list = False
                # Nobody asked for it: a server that is busy, or refuses, keeps its tools.
                with suppress(TimeoutError, RefusedError, NotSentError, ValueError):
                    await self._list_unless_lost(session)
                    await self._tell()
            if self._must_list and not self._lost.is_set():
                self._must_list = False
                await self._list_unless_lost(session)
                await self._tell()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LIST_PAUSE_S):
                        await self._lost.wait()

    async def _listen(self, session: Session) -> None:
        pause, again = _MIN_PAUSE_S, False
        while session.listens:
            began = time.monotonic()
            await session.listen(self._hear, again=again)
            again = True
            pause = _MIN_PAUSE_S if time.monotonic() - began > _STEADY_S else pause
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE_S)

    async def _list_unless_lost(self, session: Session) -> None:
        """Read the tools; return without them if the connection is lost meanwhile."""
        reading = asyncio.ensure_future(self._list(session))
        lost = asyncio.ensure_future(self._lost.wait())
        try:
            async with asyncio.timeout(self._settings.timeout):
                await asyncio.wait((reading, lost), return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                reading.result()
        finally:
            for task in (reading, lost):
                task.cancel()
            await asyncio.wait((reading, lost))

    async def _list(self, session: Session) -> None:
        began = time.monotonic()
        definitions = await session.list_tools(whole=self._whole_lists)
        # Off the event loop, which 10,000 definitions or one of 10 MB would hold.
        listed = await asyncio.to_thread(read_definitions, definitions, server=self.name)
        self._take(listed)
        ended = time.monotonic()
        self._list_from = ended + max(_UNREPORTED_S, _UNREPORTED_TIMES * (ended - began))

    def _list_unreported(self, session: Session) -> None:
        """Read the tools again, soon, if the server does not say when they change."""
        if not session.reports("tools") and time.monotonic() >= self._list_from:
            self._list_from = time.monotonic() + _UNREPORTED_S
            self._may_list = True
            self._wake.set()

    def _take(self, listed: ListedTools) -> None:
        self.tools = listed.tools
        if listed.problems != self._problems:
            self._problems = listed.problems
            for problem in listed.problems:
                _log.warning("mcp_definition: server %r %s", self.name, problem)

    def _fail(self, exc: Exception) -> None:
        """Hide the tools of a server that cannot be reached; warn once."""
        self._error = self._reason(exc)
        if self._state != "failed":
            self._warn(
                "mcp_server_failed: server %r: %s; its tools are hidden until it answers",
                self._error,
            )
        self._state, self.tools = "failed", ()
        for kind in self._lists:
            self._report(kind)
        self._lists = ()

    def _keep_last_lines(self) -> None:
        self._last_lines = self._process.last_lines if self._process is not None else ""

    def _warn(self, message: str, problem: str | None) -> None:
        """Write a failure into the operator's log, with what the server wrote to its own."""
        if self._last_lines:
            problem = f"{problem}; its last lines: {self._last_lines}"
        _log.warning(message, self.name, problem)

    def _reason(self, exc: BaseException) -> str:
        """Return the cause of a failure, without secrets."""
        while isinstance(exc, BaseExceptionGroup):
            exc = exc.exceptions[0]
        own = isinstance(exc, ConfigurationError | SourceError)
        said = str(exc) if own else self._cause() or describe_exception(exc)
        return clean_line(said.removeprefix(f"server {self.name!r}: "), _MAX_ERROR_CHARS)

    def _cause(self) -> str:
        if self._process is not None:
            return self._process.cause
        return self._failures.last

    async def _tell(self) -> None:
        """Let those who wait for the connection, and the source, know of a try."""
        if self._session is None:
            if self._state == "connected":
                self._state = "connecting"
            self._attempts += self._state == "failed"
        self._settled.set()
        self._on_change(self.name)
        async with self._tried:
            self._tried.notify_all()

    def _hear(self, kind: ListKind) -> None:
        """Take note of a list that has changed."""
        if kind == "tools":
            self._must_list = True
            self._wake.set()
        else:
            self._report(kind)

    def _report(self, kind: ListKind) -> None:
        self._on_list_change(ListChange(server=self.name, kind=kind))

    def _end(self) -> None:
        self._lost.set()
        self._session = None
        self._wake.set()

    def _lose(self, session: Session) -> None:
        if self._session is session:
            self._end()


async def _await_end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
