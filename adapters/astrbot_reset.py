"""AstrBot's agents that no plugin sees: subagents and scheduled tasks.

All of them start in one method of the runner, which is wrapped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

__all__ = ["ResetHook"]

_METHOD = "reset"
_MARK = "_tool_search_original"


class ResetHook:
    """The wrapper around the start of an agent's run.

    Args:
        runner_class: AstrBot's `ToolLoopAgentRunner`.
        prepare: Takes the event and the request.
    """

    def __init__(self, runner_class: Any, prepare: Callable[[Any, Any], Awaitable[None]]) -> None:
        self._class = runner_class
        self._prepare = prepare
        self._installed: Any = None

    def install(self) -> None:
        """Wraps the method, in place of a wrapper that an earlier load left behind."""
        method = getattr(self._class, _METHOD)
        original = getattr(method, _MARK, method)

        @wraps(original)
        async def reset(runner: Any, *args: Any, **kwargs: Any) -> Any:
            request = kwargs.get("request") or (args[1] if len(args) > 1 else None)
            context = kwargs.get("run_context") or (args[2] if len(args) > 2 else None)
            event = getattr(getattr(context, "context", None), "event", None)
            if self._installed is not None and request is not None and event is not None:
                await self._prepare(event, request)
            return await original(runner, *args, **kwargs)

        setattr(reset, _MARK, original)
        setattr(self._class, _METHOD, reset)
        self._installed = reset

    def remove(self) -> None:
        """Puts the method back; under a wrapper of someone else's, ours lets all through."""
        installed, self._installed = self._installed, None
        if installed is not None and getattr(self._class, _METHOD) is installed:
            setattr(self._class, _METHOD, getattr(installed, _MARK))
