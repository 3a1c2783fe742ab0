"""A place to try a tool, for tests of tools.

>>> import asyncio
>>> from tool_search.testing import ToolTrial
>>> def greet(name: str) -> str:
...     "Greet somebody."
...     return f"Hello, {name}"
>>> asyncio.run(ToolTrial(greet).call(name="Bo")).content
'Hello, Bo'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

from tool_search.core.messages import ToolCall
from tool_search.core.values.json import compact_json
from tool_search.errors import InvalidToolError
from tool_search.runner.events import ToolFinished, ToolOutputDelta, ToolProgress
from tool_search.runner.execution import (
    CallOptions,
    CallRunner,
    Cancellation,
    ExecutableTool,
    PermissionAnswer,
    PermissionRequest,
    Permissions,
    ToolContext,
    ToolFunction,
    executable_tools,
)

__all__ = ["ToolTrial"]


class ToolTrial:
    """A runner of one tool that records its messages and questions.

    Every step of a call is real: arguments are checked, permission is requested, the
    result is rendered. Only the user is simulated.

    Args:
        tool: The tool.
        others: Tools that it may call.
        answers: The user's answers, in order; after the last one, the answer is no.
        options: The options of calls; its permissions are replaced by the user's answers.
        folder: The folder that the tool may work in.
        settings: The tool's settings.

    Attributes:
        context: The context of calls; a test may replace it.
        progress: The progress messages, in order.
        partials: The pieces of results, in order.
        asked: The questions to the user, in order.
    """

    def __init__(
        self,
        tool: ExecutableTool | ToolFunction,
        *,
        others: Iterable[ExecutableTool | ToolFunction] = (),
        answers: Iterable[PermissionAnswer | bool] = (),
        options: CallOptions | None = None,
        folder: Path | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        made = executable_tools([tool, *others])
        self._name = made[0].tool.name
        self._answers = iter(tuple(answers))
        given = options or CallOptions()
        rules = given.permissions.settings if given.permissions else None
        permissions = Permissions(rules, ask=self._answer)
        self._runner = CallRunner(made, options=replace(given, permissions=permissions))
        self._calls = 0
        self.context = ToolContext(
            conversation="trial",
            language="en-US",
            user="tester",
            folder=folder,
            settings=dict(settings or {}),
        )
        self.progress: list[str] = []
        self.partials: list[str] = []
        self.asked: list[PermissionRequest] = []

    async def call(self, **arguments: Any) -> ToolFinished:
        """Return the result of one call, as the model would read it.

        Raises:
            InvalidToolError: The arguments are not JSON, so a model cannot write them.
        """
        try:
            written = compact_json(arguments)
        except (TypeError, ValueError) as exc:
            raise InvalidToolError(
                f"tool {self._name!r}: a model writes arguments as JSON, which {arguments!r} is "
                f"not: {exc}"
            ) from exc
        return await self.call_as_written(written)

    async def call_as_written(self, arguments: str) -> ToolFinished:
        """Return the result of a call with arguments as JSON text, broken or not."""
        self._calls += 1
        call = ToolCall(id=f"call_{self._calls}", name=self._name, arguments=arguments)
        async with aclosing(self._runner.run([call], self.context)) as events:
            async for event in events:
                if isinstance(event, ToolProgress):
                    self.progress.append(event.message)
                elif isinstance(event, ToolOutputDelta):
                    self.partials.append(event.content)
                elif isinstance(event, ToolFinished):
                    return event
        raise RuntimeError("a call has ended without a result")

    def cancel(self) -> None:
        """Stop the current call, as a user would; later calls are not affected."""
        stopped, self.context = (
            self.context,
            replace(self.context, cancellation=Cancellation()),
        )
        stopped.cancellation.cancel()

    async def close(self) -> None:
        """End the trial: the tool cleans up."""
        await self._runner.forget(self.context.conversation)
        await self._runner.aclose()

    async def _answer(self, request: PermissionRequest) -> PermissionAnswer | bool:
        self.asked.append(request)
        return next(self._answers, False)
