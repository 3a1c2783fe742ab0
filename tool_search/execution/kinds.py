"""Tools that are objects: one for each conversation, cleaned up with it."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from tool_search.execution.context import ToolContext
from tool_search.execution.functions import (
    ExecutableTool,
    context_parameter,
    tool_from_function,
)
from tool_search.execution.tasks import called
from tool_search.values.redaction import log_failure

__all__ = ["stateful_tool"]

_log = logging.getLogger(__name__)


def stateful_tool(kind: type[Any], **definition: Any) -> ExecutableTool:
    """A tool that keeps an object for each conversation.

    Args:
        kind: A class whose objects are called: `__call__` is sync, async or an async
            generator, and its parameters are the tool's. An object is made from the
            context of the first call in a conversation, and its `aclose` or `close`,
            where it has one, is called when the conversation is forgotten or the bot
            ends.
        definition: Fields of `Tool` or `ExecutableTool`; without a name, the class's.

    Raises:
        InvalidToolError: A parameter cannot be described as JSON.
    """
    method = vars(kind).get("__call__", kind.__call__)
    described = partial(method, None)
    described.__doc__ = inspect.getdoc(kind)
    made = tool_from_function(described, **{"name": kind.__name__, **definition})
    objects = _Objects(kind, context_parameter(method))
    return ExecutableTool(
        tool=made.tool,
        function=objects.run,
        arguments=made.arguments,
        **{
            "close": objects.close,
            "forget": objects.forget,
            **{key: definition[key] for key in _MORE.intersection(definition)},
        },
    )


_MORE = {
    "validate_input", "needs_permission", "is_read_only", "is_concurrency_safe", "subjects",
    "render", "timeout_s",
}  # fmt: skip


class _Objects:
    """The objects of one stateful tool, by conversation."""

    def __init__(self, kind: Callable[[ToolContext], Any], context_parameter: str | None) -> None:
        self._kind = kind
        self._context_parameter = context_parameter
        self._objects: dict[str, Any] = {}

    async def run(self, *, tool_context: ToolContext, **arguments: Any) -> Any:
        """Calls the conversation's object."""
        found = self._objects.get(tool_context.conversation)
        if found is None:
            found = self._objects[tool_context.conversation] = self._kind(tool_context)
        if self._context_parameter is not None:
            arguments[self._context_parameter] = tool_context
        function = found.__call__
        return await called(function, arguments)

    async def forget(self, conversation: str) -> None:
        """Cleans the conversation's object up; one that fails at it is logged."""
        found = self._objects.pop(conversation, None)
        close = getattr(found, "aclose", None) or getattr(found, "close", None)
        if close is None:
            return
        try:
            await called(close, {})
        except Exception:  # noqa: BLE001  # a tool's clean-up may raise anything
            log_failure(_log, "%r failed while it was closed", type(found).__name__)

    async def close(self) -> None:
        """Cleans all objects up."""
        for conversation in list(self._objects):
            await self.forget(conversation)
