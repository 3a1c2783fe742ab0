"""Hooks before and after a call: the bot's owner sees, blocks or changes it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from tool_search.core.catalog.tool import Tool
from tool_search.core.values.redaction import log_failure
from tool_search.runner.execution.context import ToolContext
from tool_search.runner.execution.results import ExecutionResult, describe_exception
from tool_search.runner.execution.tasks import call_maybe_async

__all__ = ["HookAnswer", "HookedCall", "Hooks", "ToolHook"]

_AnswerT = TypeVar("_AnswerT")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookedCall:
    """A call as a hook sees it.

    Attributes:
        tool: The called tool.
        arguments: The current arguments; treat them as read-only.
        context: The context of the call.
    """

    tool: Tool
    arguments: Mapping[str, Any]
    context: ToolContext


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAnswer:
    """The answer of a before-hook.

    Attributes:
        block: A reason that blocks the call, as the model reads it.
        warning: A message for people; the call continues.
        arguments: Other arguments, checked as the model's own are.
        permission: `allow` skips the question to the user, `ask` forces it. If two hooks
            differ, `ask` wins. Neither overrides a rule that denies.
    """

    block: str | None = None
    warning: str | None = None
    arguments: Mapping[str, Any] | None = None
    permission: Literal["allow", "ask"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHook:
    """A hook for some tools or all.

    A hook that fails or takes too long gives a warning, and the call continues.

    Attributes:
        before: Called before the permission check.
        after: Called with the result; may return another result to replace it.
        tools: Canonical names; empty: every tool.
        timeout_s: Seconds that the hook may take.
    """

    before: Callable[[HookedCall], Awaitable[HookAnswer | None]] | None = None
    after: Callable[[HookedCall, ExecutionResult], Awaitable[ExecutionResult | None]] | None = None
    tools: Sequence[str] = ()
    timeout_s: float = 30.0

    def applies_to(self, name: str) -> bool:
        """Return True if the hook is called for a tool."""
        return not self.tools or name in self.tools


class Hooks:
    """All hooks of a bot.

    Args:
        hooks: In call order; each sees the changes of earlier hooks.
    """

    def __init__(self, hooks: Sequence[ToolHook] = ()) -> None:
        self._hooks = tuple(hooks)

    def __bool__(self) -> bool:
        return bool(self._hooks)

    async def before(self, call: HookedCall, warn: Callable[[str], None]) -> HookAnswer:
        """Return the combined answer of all hooks, up to the first that blocks."""
        combined = HookAnswer()
        for hook in self._hooks:
            if hook.before is None or not hook.applies_to(call.tool.name):
                continue
            answer = await _run_hook(hook.timeout_s, warn, hook.before, call)
            if answer is None:
                continue
            if answer.warning:
                warn(answer.warning)
            if answer.block is not None:
                return replace(combined, block=answer.block)
            if answer.arguments is not None:
                call = replace(call, arguments=answer.arguments)
                combined = replace(combined, arguments=answer.arguments)
            if answer.permission and combined.permission != "ask":
                combined = replace(combined, permission=answer.permission)
        return combined

    async def after(
        self, call: HookedCall, result: ExecutionResult, warn: Callable[[str], None]
    ) -> ExecutionResult:
        """Return the result after all hooks."""
        for hook in self._hooks:
            if hook.after is None or not hook.applies_to(call.tool.name):
                continue
            changed = await _run_hook(hook.timeout_s, warn, hook.after, call, result)
            result = result if changed is None else changed
        return result


async def _run_hook(
    timeout_s: float,
    warn: Callable[[str], None],
    hook: Callable[..., Awaitable[_AnswerT | None]],
    *given: object,
) -> _AnswerT | None:
    """Return a hook's answer; None, with a warning, if it fails or takes too long."""
    try:
        async with asyncio.timeout(timeout_s):
            answer: _AnswerT | None = await call_maybe_async(hook, *given)
            return answer
    except Exception as exc:  # noqa: BLE001  # the owner's own: it stops nothing
        log_failure(_log, "a hook failed; the call continues without it")
        warn(f"a hook failed: {describe_exception(exc)}")
        return None
