"""Runs the calls of registered tools at their backends."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any

from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import ToolCall
from tool_search.core.values.aside import close, closing
from tool_search.core.values.json import compact_json, shown
from tool_search.errors import InvalidBackendError, RegistryError
from tool_search.runner.execution.call import KnowsTools
from tool_search.runner.execution.functions import ExecutableTool, FunctionExecutor
from tool_search.runner.execution.results import ExecutionResult, failure_result
from tool_search.sources.registry.backends import Backend

if TYPE_CHECKING:
    from tool_search.runner.execution.context import CallChannel, ToolContext, ToolExecutor
    from tool_search.runner.execution.results import ExecutionEvent
    from tool_search.runner.execution.tasks import CallClock
    from tool_search.sources.registry.registry import ToolRegistry

__all__ = ["RegistryExecutor"]

_log = logging.getLogger(__name__)


class RegistryExecutor:
    """The executor of a registry's tools, by their names in its catalog and by their ids.

    Each call goes to the backend that the registry chooses at that moment, under the tool's
    name there.

    Args:
        registry: The registry.
    """

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._lock = Lock()
        self._attached: dict[tuple[str, str], Any] = {}
        self._functions: dict[tuple[str, int], tuple[ExecutableTool, FunctionExecutor]] = {}

    def attach(self, executor: Any, *, server: str | None, provider: str | None) -> None:
        """Say what runs the tools of a server or provider; see `ToolRegistry.attach`."""
        if (server is None) == (provider is None) or not (server or provider):
            raise InvalidBackendError(
                "attach(executor, ...) needs a server or a provider, not both"
            )
        runs = executor if hasattr(executor, "run") else getattr(executor, "executor", None)
        if not callable(getattr(runs, "run", None)):
            raise InvalidBackendError(
                f"{shown(executor)} cannot run tools: it must be a ToolExecutor, or have one as "
                "its attribute executor"
            )
        key = ("mcp", server) if server else ("provider", provider or "")
        with self._lock:
            self._attached[key] = executor

    async def run(
        self, call: ToolCall, context: ToolContext
    ) -> AsyncGenerator[ExecutionEvent, None]:
        """Run one call at the tool's backend; the last event is the result."""
        try:
            executor, name = self._target(call.name)
        except RegistryError as exc:
            yield _gone(call, context, exc)
            return
        async with closing(executor.run(replace(call, name=name), context)) as events:
            async for event in events:
                yield event

    async def run_here(
        self,
        call: ToolCall,
        arguments: Mapping[str, Any],
        context: ToolContext,
        channel: CallChannel,
        clock: CallClock,
    ) -> ExecutionResult:
        """Run one call in the current task; see `FunctionExecutor.run_here`."""
        try:
            executor, name = self._target(call.name)
        except RegistryError as exc:
            return _gone(call, context, exc)
        if isinstance(executor, KnowsTools):
            inner = replace(call, name=name)
            return await executor.run_here(inner, arguments, context, channel, clock)
        written = ToolCall(id=call.id, name=name, arguments=compact_json(dict(arguments)))
        running = replace(context, tool=call.name, call_id=call.id, channel=channel)
        async with closing(executor.run(written, running)) as events:
            async for event in events:
                if isinstance(event, ExecutionResult):
                    return event
                channel.say(event)
        return failure_result("failed", "call.no_result", context.language, name=call.name)

    def find(self, name: str) -> ExecutableTool | None:
        """Return the local tool of a name with the facts of its author, or None."""
        try:
            tool_id = self._registry.tool_id(name)
            tool, backend = self._registry.get(tool_id).tool, self._registry.backend(tool_id)
        except RegistryError:
            return None
        if backend.kind != "local":
            return None
        given = backend.executor
        if not hasattr(given, "run"):
            return self._function_tool(tool, backend)[0]
        found: ExecutableTool | None = given.find(tool.name) if hasattr(given, "find") else None
        return found

    async def forget(self, conversation: str) -> None:
        """Drop the state that tools keep for a conversation."""
        for executor in self._executors():
            if hasattr(executor, "forget"):
                await executor.forget(conversation)

    async def aclose(self) -> None:
        """Close the executors of local tools; sources are closed by who opened them."""
        for executor in self._executors():
            await close(executor)

    def _target(self, name: str) -> tuple[ToolExecutor, str]:
        """Return what runs a tool, and the tool's name there."""
        tool_id = self._registry.tool_id(name)
        tool, backend = self._registry.get(tool_id).tool, self._registry.backend(tool_id)
        if backend.kind == "local":
            if hasattr(backend.executor, "run"):
                return backend.executor, tool.name
            item, executor = self._function_tool(tool, backend)
            return executor, item.tool.name
        with self._lock:
            attached = self._attached.get((backend.kind, backend.name))
        if attached is None:
            what = "server" if backend.kind == "mcp" else "provider"
            raise RegistryError(
                f"nothing runs the tools of {backend}: call "
                f"registry.attach(executor, {what}={backend.name!r})"
            )
        # A source may replace its executor when it connects again.
        executor = attached if hasattr(attached, "run") else attached.executor
        return executor, backend.tool or tool.name

    def _function_tool(
        self, tool: Tool, backend: Backend
    ) -> tuple[ExecutableTool, FunctionExecutor]:
        """Return a function as a tool, and the executor that runs it; both are made once."""
        given = backend.executor
        key = tool.id, id(given)
        with self._lock:
            known = self._functions.get(key)
            if known is None or known[0].function is not getattr(given, "function", given):
                is_tool = isinstance(given, ExecutableTool)
                item = given if is_tool else ExecutableTool(tool=tool, function=given)
                known = self._functions[key] = item, FunctionExecutor([item])
        return known

    def _executors(self) -> Iterator[Any]:
        """Yield the executors of local tools, each once."""
        seen: set[int] = set()
        for tool_id in self._registry.snapshot().names:
            registration = self._registry.get(tool_id)
            for backend in registration.backends:
                if backend.kind != "local":
                    continue
                given = backend.executor
                if not hasattr(given, "run"):
                    given = self._function_tool(registration.tool, backend)[1]
                if id(given) not in seen:
                    seen.add(id(given))
                    yield given


def _gone(call: ToolCall, context: ToolContext, problem: RegistryError) -> ExecutionResult:
    """Return the result of a call that nothing can run; the operator reads why."""
    _log.warning("tool %r cannot be run: %s", call.name, problem)
    return failure_result("failed", "call.tool_gone", context.language, name=call.name)
