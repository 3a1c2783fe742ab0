"""Hooks around a call: what the bot's owner wants to see, stop or change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from tool_search.catalog.tool import Tool
from tool_search.execution.context import ToolContext
from tool_search.execution.results import ExecutionResult, cause_of
from tool_search.execution.tasks import answer_of
from tool_search.values.redaction import log_failure

__all__ = ["HookAnswer", "HookedCall", "Hooks", "ToolHook"]

_AnswerT = TypeVar("_AnswerT")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookedCall:
    """A call as a hook sees it.

    Attributes:
        tool: What is called.
        arguments: As the call has them by now; treat them as read-only.
        context: Where it is called.
    """

    tool: Tool
    arguments: Mapping[str, Any]
    context: ToolContext


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAnswer:
    """What a before-hook wants.

    Attributes:
        block: Why the call shall not be made, as the model reads it.
        warning: Something for people; the call goes on.
        arguments: Other arguments; they are checked like the model's own.
        permission: `allow` spares the user a question, `ask` makes sure of one, and
            wins where two hooks differ. Neither lifts a rule that denies.
    """

    block: str | None = None
    warning: str | None = None
    arguments: Mapping[str, Any] | None = None
    permission: Literal["allow", "ask"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHook:
    """A hook for some tools or all.

    A hook that fails or takes too long is a warning: it stops nothing.

    Attributes:
        before: Called before permission is asked for.
        after: Called with the result; may give another one in its place.
        tools: Canonical names; empty: every tool.
        timeout_s: Seconds it may take.
    """

    before: Callable[[HookedCall], Awaitable[HookAnswer | None]] | None = None
    after: Callable[[HookedCall, ExecutionResult], Awaitable[ExecutionResult | None]] | None = None
    tools: Sequence[str] = ()
    timeout_s: float = 30.0

    def concerns(self, name: str) -> bool:
        """Whether it is called for a tool."""
        return not self.tools or name in self.tools


class Hooks:
    """All hooks of a bot, in order.

    Args:
        hooks: In the order they are called; each sees what those before it changed.
    """

    def __init__(self, hooks: Sequence[ToolHook] = ()) -> None:
        self._hooks = tuple(hooks)

    def __bool__(self) -> bool:
        return bool(self._hooks)

    async def before(self, call: HookedCall, warn: Callable[[str], None]) -> HookAnswer:
        """What all of them want; the first that blocks is the last that is asked."""
        together = HookAnswer()
        for hook in self._hooks:
            if hook.before is None or not hook.concerns(call.tool.name):
                continue
            answer = await _within(hook.timeout_s, warn, hook.before, call)
            if answer is None:
                continue
            if answer.warning:
                warn(answer.warning)
            if answer.block is not None:
                return replace(together, block=answer.block)
            if answer.arguments is not None:
                call = replace(call, arguments=answer.arguments)
                together = replace(together, arguments=answer.arguments)
            if answer.permission and together.permission != "ask":
                together = replace(together, permission=answer.permission)
        return together

    async def after(
        self, call: HookedCall, result: ExecutionResult, warn: Callable[[str], None]
    ) -> ExecutionResult:
        """The result as the last of them left it."""
        for hook in self._hooks:
            if hook.after is None or not hook.concerns(call.tool.name):
                continue
            changed = await _within(hook.timeout_s, warn, hook.after, call, result)
            result = result if changed is None else changed
        return result


async def _within(
    timeout_s: float,
    warn: Callable[[str], None],
    hook: Callable[..., Awaitable[_AnswerT | None]],
    *given: object,
) -> _AnswerT | None:
    """What a hook says in its time; nothing, and a warning, where it fails."""
    try:
        async with asyncio.timeout(timeout_s):
            said: _AnswerT | None = await answer_of(hook, *given)
            return said
    except Exception as exc:  # noqa: BLE001  # the owner's own: it stops nothing
        log_failure(_log, "a hook failed, and the call goes on without it")
        warn(f"a hook failed: {cause_of(exc)}")
        return None
