"""A runner of tool calls for any agent loop: checks, permissions, limits, hooks and results.

>>> import asyncio
>>> from tool_search import CallRunner, ToolCall, ToolContext
>>> def add(a: int, b: int) -> int:
...     "Add two numbers."
...     return a + b
>>> calls = [ToolCall(id="1", name="add", arguments='{"a": 1, "b": 2}')]
>>> context = ToolContext(conversation="c", language="en-US")
>>> [done.content for done in asyncio.run(CallRunner([add]).results(calls, context))]
['3']
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from tool_search.catalog.validation import SCHEMAS
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.calls import CallResolver
from tool_search.core.discoveries import DiscoveryState
from tool_search.core.messages import ToolCall
from tool_search.core.services import CALL_TOOL_NAME
from tool_search.core.values.aside import close
from tool_search.errors import ConfigurationError
from tool_search.i18n import Language
from tool_search.runner.events import RunnerEvent, ToolFinished, TurnObserver
from tool_search.runner.execution.batch import CallBatch
from tool_search.runner.execution.call import CallProfile, CallServices, Decide
from tool_search.runner.execution.context import ToolContext, ToolExecutor
from tool_search.runner.execution.functions import (
    ExecutableTool,
    FunctionExecutor,
    ToolFunction,
    executable_tools,
    named_tools,
)
from tool_search.runner.execution.hooks import CallLimits, Hooks, ToolHook, TurnCalls
from tool_search.runner.execution.observers import CallObserver, EventStream, Readers, Telemetry
from tool_search.runner.execution.permissions.check import Permissions
from tool_search.runner.execution.results import FinishedCall

__all__ = ["CallOptions", "CallRunner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """Options of a bot's calls.

    Attributes:
        permissions: The rules and questions; default: every call is allowed.
        hooks: Called before and after calls, in order.
        limits: Limits of concurrency, time and result size.
        observers: Called with a `ToolRun` for each call, and a `ToolFailure` if it failed.
        turn_observers: Called with each event of a turn, in the event loop: be quick, or be
            `async`. One that fails is logged, and gets the next event.
        telemetry: Traces calls, or turns with all that they do, such as
            `tool_search.adapters.opentelemetry.OpenTelemetry()`.
        folder: The folder in which tools may use files.
        settings: Settings for tools, passed in their context.
        profile: `kode` for the conventions of Kode: an error ends the other calls of its
            reply that have not ended, a call that waits for others says so, and the last
            result of an interrupted turn says that the user interrupted it.
    """

    permissions: Permissions | None = None
    hooks: Sequence[ToolHook] = ()
    limits: CallLimits = field(default_factory=CallLimits)
    observers: Sequence[CallObserver] = ()
    turn_observers: Sequence[TurnObserver] = ()
    telemetry: Telemetry | None = None
    folder: Path | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    profile: CallProfile = "default"

    def __post_init__(self) -> None:
        if self.profile not in get_args(CallProfile):
            known = ", ".join(map(repr, get_args(CallProfile)))
            raise ConfigurationError(f"profile is {self.profile!r}: must be one of {known}")


class CallRunner:
    """Runs the calls of a model's reply and returns results that the model can read.

    Each call is resolved, checked against its schema, permitted, run and rendered. Each call
    has exactly one result. Invalid calls and failing tools give error results and raise
    nothing.

    Args:
        tools: Functions and `ExecutableTool`s.
        catalog: The definitions, if `executor` runs them; instead of `tools`.
        executor: Runs the catalog's tools.
        options: Permissions, hooks, limits and the rest.

    Raises:
        ConfigurationError: There is a catalog and no executor.
        DuplicateToolError: Two tools without a server have the same name.
    """

    def __init__(
        self,
        tools: Iterable[ExecutableTool | ToolFunction] = (),
        *,
        catalog: ToolCatalog | None = None,
        executor: ToolExecutor | None = None,
        options: CallOptions | None = None,
    ) -> None:
        offered, executables = named_tools(executable_tools(tools))
        if executor is None:
            if catalog is not None and not executables:
                raise ConfigurationError("a catalog needs an executor that runs its tools")
            executor = FunctionExecutor(executables)
        self.options = options or CallOptions()
        # The replies of a turn share their context.
        self._last: tuple[ToolContext, ToolCatalog, CallResolver] | None = None
        self.permissions = self.options.permissions or Permissions()
        self._offer(offered if catalog is None else catalog)
        self._no_discoveries = DiscoveryState(())
        self._services = CallServices(
            executor=executor,
            profile=self.options.profile,
            permissions=self.permissions,
            hooks=Hooks(self.options.hooks),
            limits=self.options.limits,
        )
        given = self.options
        self.readers = Readers(given.turn_observers, given.observers, given.telemetry)

    def replace(self, catalog: ToolCatalog, executor: ToolExecutor) -> None:
        """Replace the tools from the next batch on; keep limits and grants."""
        self._services.use(executor)
        self._offer(catalog)

    @property
    def catalog(self) -> ToolCatalog:
        """The tools that some user may call, by the current rules."""
        if self._offered_at != self.permissions.rule_changes:
            self._offer(self._given)
        return self._catalog

    def _offer(self, catalog: ToolCatalog) -> None:
        self._given = catalog
        self._offered_at = self.permissions.rule_changes
        self._catalog = self.permissions.offered(catalog)
        self._last = None
        self._some_ask: bool | None = None

    def batch(
        self,
        calls: Sequence[ToolCall],
        context: ToolContext,
        *,
        decide: Decide | None = None,
        turn: TurnCalls | None = None,
        stream: EventStream | None = None,
        wants_events: bool = True,
    ) -> CallBatch:
        """Return the calls of one reply as a batch that is ready to run.

        Args:
            calls: The calls in order, each with its own id.
            context: The context of all calls.
            decide: Decides each call, such as `ToolSearchSession.decide`; default: every tool
                of the catalog may be called by users who have one of its roles.
            turn: The turn, if it has an idempotency key: tools get a key for each call, and
                its keeper saves before one begins.
            stream: The events of the turn of which the calls are.
            wants_events: False if only the results matter.
        """
        return CallBatch(
            calls,
            context,
            decide=decide or self._resolver(context).decide,
            services=self._services,
            turn=turn,
            stream=stream or EventStream(self.readers, context.conversation),
            wants_events=wants_events,
        )

    async def run(
        self, calls: Sequence[ToolCall], context: ToolContext
    ) -> AsyncGenerator[RunnerEvent, None]:
        """Run the calls of one reply; yield events, with one `ToolFinished` a call in order.

        Closing the iterator cancels calls that have not ended.
        """
        batch = self.batch(calls, context)
        async with aclosing(batch.events()) as events:
            async for event in events:
                yield event.finished() if isinstance(event, FinishedCall) else event

    async def results(
        self, calls: Sequence[ToolCall], context: ToolContext
    ) -> tuple[ToolFinished, ...]:
        """Run the calls of one reply; return one `ToolFinished` a call, in call order."""
        events = self.batch(calls, context, wants_events=False).events()
        try:
            over = [one.finished() async for one in events if isinstance(one, FinishedCall)]
        finally:
            await events.aclose()
        return tuple(over)

    def context(
        self,
        conversation: str,
        language: Language,
        *,
        user: str | None = None,
        roles: Collection[str] = (),
    ) -> ToolContext:
        """Return a context with the folder and settings of the options."""
        return ToolContext(
            conversation=conversation,
            language=language,
            user=user,
            roles=frozenset(roles),
            folder=self.options.folder,
            settings=self.options.settings,
        )

    def denial_reason(self, context: Callable[[], ToolContext]) -> Callable[[Tool], str | None]:
        """Return a function that says why a tool may not be called, or None if it may.

        A search hides tools that have a reason. Use it for `ToolSearchSession.begin_turn`.

        Args:
            context: Returns the current context; called when a tool is looked at.
        """
        return _Denials(self.permissions, self._services.find, context, self._allows_everything)

    def _allows_everything(self) -> bool:
        """Return True if no rule, mode or author can restrict a call just now."""
        if self._some_ask is None:
            functions = self._services.functions
            items = [] if functions is None else list(map(functions.find, self._given))
            self._some_ask = any(item and item.needs_permission is not None for item in items)
        return self.permissions.allows_everything(None) and not self._some_ask

    def may_ask(self, context: Callable[[], ToolContext]) -> Callable[[Tool], bool]:
        """Return a function that says if some call of a tool asks the user for permission.

        Use it for `ToolSearchSession.begin_turn`.

        Args:
            context: Returns the current context; called when a tool is looked at.
        """
        permissions, find = self.permissions, self._services.find
        return lambda tool: permissions.may_ask(tool, context(), find(tool.name))

    async def forget(self, conversation: str) -> None:
        """Drop the permissions and tool state of a conversation."""
        await self.permissions.forget(conversation)
        forget = getattr(self._services.executor, "forget", None)
        if forget is not None:
            await forget(conversation)

    async def aclose(self) -> None:
        """Close the executor if it can be closed, so that tools clean up."""
        await close(self._services.executor)

    def _resolver(self, context: ToolContext) -> CallResolver:
        catalog, last = self.catalog, self._last
        if last is None or last[0] is not context or last[1] is not catalog:
            last = self._last = context, catalog, self._build_resolver(context)
        return last[2]

    def _build_resolver(self, context: ToolContext) -> CallResolver:
        denial_reason = self.denial_reason(lambda: context)
        roles = context.roles

        def why_not(tool: Tool) -> str | None:
            if tool.roles and roles.isdisjoint(tool.roles):
                return ""
            return denial_reason(self.catalog.executable(tool))

        return CallResolver(
            catalog=self.catalog,
            schemas=SCHEMAS,
            discoveries=self._no_discoveries,
            core=self.catalog,
            search_tool=None,
            search_tool_name="",
            call_tool_name=CALL_TOOL_NAME,
            language=context.language,
            denial_reason=why_not,
            denied=lambda tools: frozenset(t.name for t in tools if why_not(t) is not None),
        )


@dataclass(slots=True)
class _Denials:
    """Says why a tool may not be called, or at once that every tool may."""

    permissions: Permissions
    find: Callable[[str], ExecutableTool | None]
    context: Callable[[], ToolContext]
    is_open: Callable[[], bool]  # True if no call of any tool is restricted just now
    _state: object = None
    _known: dict[str, str | None] = field(default_factory=dict)

    def __call__(self, tool: Tool) -> str | None:
        permissions, item = self.permissions, self.find(tool.name)
        if permissions.allows_everything(item):
            return None
        if self._state != permissions.state:
            self._known, self._state = {}, permissions.state
        if tool.name not in self._known:
            self._known[tool.name] = permissions.denial_reason(tool, self.context(), item)
        return self._known[tool.name]
