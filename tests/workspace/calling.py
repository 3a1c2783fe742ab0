"""Helpers of the tests of the workspace tools: a workspace, and calls of a model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tool_search import CallOptions, CallRunner, ToolCall, ToolContext, ToolFinished
from tool_search.config.permissions import PermissionSettings
from tool_search.runner.execution import PermissionRequest, Permissions
from tool_search.sources.workspace import workspace_tools


class Desk:
    """A workspace's tools, called in one conversation or another.

    Attributes:
        folder: The workspace.
        runner: Runs the calls; its user allows everything, unless told otherwise.
        asked: The tools the user was asked about.
    """

    def __init__(
        self,
        folder: Path,
        *,
        rules: PermissionSettings | None = None,
        allows: bool = True,
        **more: Any,
    ) -> None:
        self.folder = folder
        self.asked: list[str] = []

        async def answer(request: PermissionRequest) -> bool:
            self.asked.append(request.tool.name)
            return allows

        permissions = Permissions(rules, ask=answer)
        self.runner = CallRunner(
            workspace_tools(folder, **more), options=CallOptions(permissions=permissions)
        )

    async def call(
        self, name: str, /, *, conversation: str = "c", **arguments: Any
    ) -> ToolFinished:
        """The one result of one call."""
        context = ToolContext(conversation=conversation, language="en-US")
        wanted = ToolCall(id="1", name=name, arguments=json.dumps(arguments))
        (finished,) = await self.runner.results([wanted], context)
        return finished

    async def said(self, name: str, /, **arguments: Any) -> str:
        """Return the result of a call that succeeds."""
        finished = await self.call(name, **arguments)
        assert not finished.is_error, finished.content
        return finished.content

    async def refused(self, name: str, /, **arguments: Any) -> str:
        """Return the error of a call that fails."""
        finished = await self.call(name, **arguments)
        assert finished.is_error, finished.content
        return finished.content


@asynccontextmanager
async def opened(folder: Path, **more: Any) -> AsyncIterator[Desk]:
    """A desk that is closed at the end, its shells with it."""
    desk = Desk(folder, **more)
    try:
        yield desk
    finally:
        await desk.runner.aclose()
