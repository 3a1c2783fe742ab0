"""AstrBot's agents that no plugin sees: subagents and scheduled tasks.

All of them start in one method of the runner, which is wrapped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any

from tool_search.adapters.astrbot.hooks import MethodHook, Wrapper

__all__ = ["ResetHook"]


class ResetHook(MethodHook):
    """The wrapper around the start of an agent's run.

    Args:
        runner_class: AstrBot's `ToolLoopAgentRunner`.
        prepare: Takes the event and the request.
    """

    def __init__(self, runner_class: Any, prepare: Callable[[Any, Any], Awaitable[None]]) -> None:
        super().__init__(runner_class)
        self._prepare = prepare

    def _wrappers(self) -> Mapping[str, Wrapper]:
        return {"reset": self._wrapped}

    def _wrapped(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        async def reset(runner: Any, *args: Any, **kwargs: Any) -> Any:
            request = kwargs.get("request") or (args[1] if len(args) > 1 else None)
            context = kwargs.get("run_context") or (args[2] if len(args) > 2 else None)
            event = getattr(getattr(context, "context", None), "event", None)
            if self.is_installed and request is not None and event is not None:
                await self._prepare(event, request)
            return await original(runner, *args, **kwargs)

        return reset
