"""The tools of a bot's own functions and of sources, as one catalog with one executor."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Any

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import NameBook, Source
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import ToolCall
from tool_search.core.values.aside import closing
from tool_search.core.values.json import compact_json
from tool_search.runner.execution import ExecutableTool, FunctionExecutor, ToolExecutor, named_tools
from tool_search.runner.execution.context import CallChannel, ToolContext
from tool_search.runner.execution.results import ExecutionEvent, ExecutionResult, failure_result
from tool_search.runner.execution.tasks import CallClock
from tool_search.sources.base import ToolSource

__all__ = ["CombinedTools"]


class CombinedTools:
    """The tools of functions and of sources: `catalog` and `executor` for a runner.

    A name stays with its tool in every catalog that is made here.

    Args:
        functions: The bot's own tools.
        sources: The sources, the first one's tools named first.
        reserved: Names that no server's tool may have.
        timeout_s: Seconds for one call of a function.

    Raises:
        DuplicateToolError: Two tools without a server have the same name.
    """

    def __init__(
        self,
        functions: Iterable[ExecutableTool],
        sources: Iterable[ToolSource],
        *,
        reserved: Iterable[str] = (),
        timeout_s: float = 60.0,
    ) -> None:
        self._reserved = tuple(reserved)
        own, self._named = named_tools(functions, reserved=self._reserved)
        self._own = tuple(item.tool for item in self._named)
        self._book: NameBook = own.book
        self._sources = tuple(sources)
        self._functions = FunctionExecutor(self._named, timeout_s=timeout_s)

    def build(self) -> tuple[ToolCatalog, ToolExecutor]:
        """Return the current catalog and the executor of its tools; from any thread.

        Two calls must not run at the same time.
        """
        listed: dict[Source, tuple[Tool, ToolExecutor]] = {}
        for source in self._sources:
            for tool in source.tools:
                listed.setdefault(tool.source, (tool, source.executor))
        catalog = ToolCatalog(
            (*self._own, *(tool for tool, _ in listed.values())),
            names=self._book,
            reserved=self._reserved,
        )
        self._book = catalog.book
        remote = {catalog.by_source[key].name: entry for key, entry in listed.items()}
        return catalog, _CombinedExecutor(self._functions, remote)


class _CombinedExecutor:
    """Runs functions, and hands the other calls to the executors of their sources."""

    def __init__(
        self, functions: FunctionExecutor, remote: Mapping[str, tuple[Tool, ToolExecutor]]
    ) -> None:
        self._functions = functions
        self._remote = remote

    def find(self, name: str) -> ExecutableTool | None:
        """Return the function of a canonical name, or None."""
        return None if name in self._remote else self._functions.find(name)

    async def run(
        self, call: ToolCall, context: ToolContext
    ) -> AsyncGenerator[ExecutionEvent, None]:
        """Run one call; yield its events, the result last."""
        entry = self._remote.get(call.name)
        if entry is None:
            async with aclosing(self._functions.run(call, context)) as events:
                async for event in events:
                    yield event
            return
        tool, executor = entry
        inner = ToolCall(id=call.id, name=tool.name, arguments=call.arguments)
        async with closing(executor.run(inner, context)) as remote:
            async for event in remote:
                yield event

    async def run_here(
        self,
        call: ToolCall,
        arguments: Mapping[str, Any],
        context: ToolContext,
        channel: CallChannel,
        clock: CallClock,
    ) -> ExecutionResult:
        """Run one call in the current task."""
        if call.name not in self._remote:
            return await self._functions.run_here(call, arguments, context, channel, clock)
        written = ToolCall(id=call.id, name=call.name, arguments=compact_json(dict(arguments)))
        async with aclosing(self.run(written, context)) as events:
            async for event in events:
                if isinstance(event, ExecutionResult):
                    return event
                channel.say(event)
        return failure_result("failed", "call.no_result", context.language, name=call.name)

    async def forget(self, conversation: str) -> None:
        """Drop the state that functions keep for a conversation."""
        await self._functions.forget(conversation)

    async def aclose(self) -> None:
        """Close the functions; a source is closed by whoever opened it."""
        await self._functions.aclose()
