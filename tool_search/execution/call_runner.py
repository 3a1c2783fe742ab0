"""Runs a model's calls, with everything that belongs to it: for any agent loop.

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
from typing import Any

from tool_search.catalog.catalog import ToolCatalog
from tool_search.catalog.tool import Tool
from tool_search.conversation.calls import CallResolver
from tool_search.discovery.search_tool import CALL_TOOL_NAME
from tool_search.discovery.state import DiscoveryState
from tool_search.errors import ConfigurationError
from tool_search.events import RunnerEvent, ToolFinished
from tool_search.execution.batch import CallBatch
from tool_search.execution.call import CallServices, Decide
from tool_search.execution.context import ToolContext, ToolExecutor
from tool_search.execution.function_executor import FunctionExecutor
from tool_search.execution.functions import (
    ExecutableTool,
    ToolFunction,
    executable_tools,
    named_tools,
)
from tool_search.execution.hooks import Hooks, ToolHook
from tool_search.execution.limits import CallLimits
from tool_search.execution.observers import CallObserver, CallTelemetry
from tool_search.execution.permissions.check import Permissions
from tool_search.execution.replay import RememberedResults, ResultMemory, TurnCalls
from tool_search.execution.results import FinishedCall
from tool_search.i18n import Language
from tool_search.messages import ToolCall

__all__ = ["CallOptions", "CallRunner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """How a bot's calls are run.

    Attributes:
        permissions: Who may call what; default: what no rule names runs.
        hooks: Called around calls, in order.
        limits: How many at a time, how long, and how much of a result.
        observers: Are told of each call: `ToolRun`, and `ToolFailure` where it failed.
        telemetry: Traces each call, such as `tool_search.adapters.opentelemetry.OpenTelemetry()`.
        memory: Remembers what turns with an idempotency key did; default: the process does,
            until it ends.
        folder: Where tools may work with files.
        settings: What tools are configured with.
    """

    permissions: Permissions | None = None
    hooks: Sequence[ToolHook] = ()
    limits: CallLimits = field(default_factory=CallLimits)
    observers: Sequence[CallObserver] = ()
    telemetry: CallTelemetry | None = None
    memory: ResultMemory | None = None
    folder: Path | None = None
    settings: dict[str, Any] = field(default_factory=dict)


class CallRunner:
    """Runs calls from the model's words to results that it can read.

    Each call is found, checked against its schema, permitted, run and rendered; each
    has exactly one result, whatever happens. Nothing a model writes and nothing a tool
    does raises.

    Args:
        tools: Functions and `ExecutableTool`s.
        catalog: The definitions, where `executor` runs them; instead of `tools`.
        executor: Runs the catalog's tools.
        options: How.

    Raises:
        ConfigurationError: A catalog without an executor.
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
        offered, made = named_tools(executable_tools(tools))
        if executor is None:
            if catalog is not None and not made:
                raise ConfigurationError("a catalog needs an executor that runs its tools")
            executor = FunctionExecutor(made)
        self.options = options or CallOptions()
        self.permissions = self.options.permissions or Permissions()
        self.catalog = self.permissions.offered(offered if catalog is None else catalog)
        self._no_discoveries = DiscoveryState(())
        # The replies of a turn share their context.
        self._last: tuple[ToolContext, CallResolver] | None = None
        self._services = CallServices(
            executor=executor,
            permissions=self.permissions,
            hooks=Hooks(self.options.hooks),
            limits=self.options.limits,
            memory=self.options.memory or RememberedResults(),
            observers=self.options.observers,
            telemetry=self.options.telemetry,
        )

    def replace(self, catalog: ToolCatalog, executor: ToolExecutor) -> None:
        """Takes other tools, from the next batch on; limits, grants and memory stay."""
        self.catalog = self.permissions.offered(catalog)
        self._services.use(executor)
        self._last = None

    def batch(
        self,
        calls: Sequence[ToolCall],
        context: ToolContext,
        *,
        decide: Decide | None = None,
        turn: TurnCalls | None = None,
        is_heard: bool = True,
    ) -> CallBatch:
        """The calls of one reply, ready to be run.

        Args:
            calls: In call order, each under an id of its own.
            context: Where they are called.
            decide: What becomes of each, such as `ToolSearchSession.decide`; default: all
                tools of the catalog may be called, by whom their roles let.
            turn: Gives the calls of a turn that may be retried their keys.
            is_heard: Whether anybody wants more than the outcomes.
        """
        return CallBatch(
            calls,
            context,
            decide=decide or self._desk(context).decide,
            services=self._services,
            turn=turn,
            is_heard=is_heard,
        )

    async def run(
        self, calls: Sequence[ToolCall], context: ToolContext
    ) -> AsyncGenerator[RunnerEvent, None]:
        """The calls of one reply as events, `ToolFinished` once a call, in call order.

        Closing the iteration cancels what is not over.
        """
        batch = self.batch(calls, context)
        async with aclosing(batch.events()) as events:
            async for event in events:
                yield event.finished() if isinstance(event, FinishedCall) else event

    async def results(
        self, calls: Sequence[ToolCall], context: ToolContext
    ) -> tuple[ToolFinished, ...]:
        """The same without what happens meanwhile."""
        events = self.batch(calls, context, is_heard=False).events()
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
        """Where calls are made, with what the options give tools."""
        return ToolContext(
            conversation=conversation,
            language=language,
            user=user,
            roles=frozenset(roles),
            folder=self.options.folder,
            settings=self.options.settings,
        )

    def refusal(self, context: Callable[[], ToolContext]) -> Callable[[Tool], str | None]:
        """Says why a tool may not be called: what a search of tools must hide.

        Made for `ToolSearchSession.begin_turn`.

        Args:
            context: Where; asked only when a tool is.
        """
        permissions, find = self.permissions, self._services.find
        known: dict[str, str | None] = {}
        state = permissions.state

        def why_not(tool: Tool) -> str | None:
            nonlocal state
            if permissions.let_everything(find(tool.name)):
                return None
            if state != permissions.state:
                known.clear()
                state = permissions.state
            if tool.name not in known:
                known[tool.name] = permissions.refusal(tool, context(), find(tool.name))
            return known[tool.name]

        return why_not

    async def forget(self, conversation: str) -> None:
        """Drops what permissions and tools keep for a conversation."""
        await self.permissions.forget(conversation)
        forget = getattr(self._services.runs, "forget", None)
        if forget is not None:
            await forget(conversation)

    async def aclose(self) -> None:
        """Lets tools clean up, where their executor can be closed."""
        close = getattr(self._services.runs, "aclose", None)
        if close is not None:
            await close()

    def _desk(self, context: ToolContext) -> CallResolver:
        last = self._last
        if last is None or last[0] is not context:
            last = self._last = context, self._desk_of(context)
        return last[1]

    def _desk_of(self, context: ToolContext) -> CallResolver:
        refusal = self.refusal(lambda: context)
        roles = context.roles

        def why_not(tool: Tool) -> str | None:
            if tool.roles and roles.isdisjoint(tool.roles):
                return ""
            return refusal(self.catalog.executable(tool))

        return CallResolver(
            catalog=self.catalog,
            discoveries=self._no_discoveries,
            core=self.catalog,
            search_tool=None,
            search_tool_name="",
            call_tool_name=CALL_TOOL_NAME,
            language=context.language,
            permits=lambda tool: why_not(tool) is None,
            denial_reason=why_not,
        )
