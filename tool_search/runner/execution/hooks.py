"""Hooks around a call, its limits, and the calls that a retry continues, beside permissions."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar

from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.record import BegunCall, KeyedTurn
from tool_search.core.settings import MAX_RESULT_CHARS
from tool_search.core.values.json import json_bytes
from tool_search.core.values.redaction import log_failure
from tool_search.errors import ConfigurationError
from tool_search.runner.execution.context import ToolContext
from tool_search.runner.execution.results import ExecutionResult, describe_exception
from tool_search.runner.execution.tasks import call_maybe_async

__all__ = [
    "NO_TURN",
    "CallLimits",
    "ConcurrencyLimiter",
    "HookAnswer",
    "HookedCall",
    "Hooks",
    "ToolHook",
    "TurnCalls",
    "TurnKeeper",
]

# The calls of a turn that has an idempotency key: the key of each, and which have begun.


class TurnKeeper(Protocol):
    """A keeper of a turn that goes on."""

    async def refresh(self) -> None:
        """Take the state of the turn, while no call changes it."""
        ...

    async def save(self) -> None:
        """Write that state, with the calls that have begun."""
        ...


class TurnCalls:
    """The calls of one turn, each with a key of its own if the turn has one.

    Args:
        conversation: The conversation's key.
        key: The turn's idempotency key; None: its calls have none.
        user: The user, to whom the key belongs.

    Attributes:
        turn: The digest of user and key; empty without a key.
        begun: The calls that have begun, by id.
        keeper: Keeps them, before a tool is started; None: nothing does.
    """

    def __init__(
        self, conversation: str = "", key: str | None = None, *, user: str | None = None
    ) -> None:
        self.turn = "" if key is None else _digest([user, key])
        self.begun: dict[str, BegunCall] = {}
        self.keeper: TurnKeeper | None = None
        self._conversation = conversation
        self._used: set[str] = set()

    def resume(self, turn: KeyedTurn) -> None:
        """Go on with the calls of an earlier try.

        A call that may have run, and is made again, has its key again: its service can tell.
        """
        self.begun = dict(turn.calls)
        self._used = {call.key for call in turn.calls.values() if call.has_ended}

    async def begin(
        self, call_id: str, tool: str, arguments: Mapping[str, Any], *, is_nested: bool = False
    ) -> str:
        """Note that a tool is about to be started; return the call's key.

        The order of arguments does not matter. Equal calls get different keys: a model may
        want to roll the dice twice.

        Args:
            call_id: The id of the call.
            tool: The canonical name.
            arguments: The call's arguments.
            is_nested: True for a call inside another one, whose intent was saved.
        """
        call = [self._conversation, self.turn, tool, _sort_keys(arguments)]
        number, key = 1, _digest([1, *call])
        while key in self._used:
            number += 1
            key = _digest([number, *call])
        self._used.add(key)
        self.begun[call_id] = BegunCall(tool, key)
        if self.keeper is not None and not is_nested:
            await self.keeper.save()
        return key

    async def refresh(self) -> None:
        """Take the state of a turn that has a key, before its calls begin."""
        if self.turn and self.keeper is not None:
            await self.keeper.refresh()

    async def end(self, call_id: str, *, is_error: bool) -> None:
        """Save the result of a call, before anybody sees it; after an error it may have run."""
        if not self.turn:
            return
        for each, call in () if is_error else self.begun.items():
            if each == call_id or each.startswith(f"{call_id}."):
                self.begun[each] = call._replace(has_ended=True)
        if self.keeper is not None:
            await self.keeper.refresh()
            await self.keeper.save()


def _digest(value: list[Any]) -> str:
    written = json_bytes(value)
    return hashlib.sha256(written).hexdigest()[:32]


def _sort_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sort_keys(value[key]) for key in sorted(value)}
    return [_sort_keys(item) for item in value] if isinstance(value, list) else value


NO_TURN = TurnCalls()
"""A turn whose calls have no keys."""


# Limits of calls: concurrency of a tool, a server and a bot, time, and result size.


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """Limits of a bot's calls, over all its conversations; None: no limit.

    Attributes:
        overall: Concurrent calls.
        per_tool: Concurrent calls of one tool: one number for all tools, or one by
            canonical name.
        per_server: Concurrent calls of one server's tools: one number, or one by name.
        timeout_s: Seconds that a call may take, with any executor; functions also have a
            timeout of their own.
        grace_s: Seconds that a cancelled call has for its clean-up.
        longest_error: Characters of an error; a longer one keeps both ends.
        longest_result: Characters of a result that a model reads; a longer one keeps both
            ends. The result of a nested call is not cut.
        cancels_siblings: True if a failure cancels the calls that run at the same time.

    Raises:
        ConfigurationError: A number is below 1.
    """

    overall: int | None = None
    per_tool: int | Mapping[str, int] | None = None
    per_server: int | Mapping[str, int] | None = None
    timeout_s: float | None = None
    grace_s: float = 5.0
    longest_error: int = 10_000
    longest_result: int | None = MAX_RESULT_CHARS
    cancels_siblings: bool = False

    def __post_init__(self) -> None:
        for key in ("overall", "per_tool", "per_server"):
            value = getattr(self, key)
            numbers = value.values() if isinstance(value, Mapping) else [value]
            if any(number is not None and number < 1 for number in numbers):
                raise ConfigurationError(f"{key} is {value!r}: a limit must be at least 1, or None")


@dataclass(slots=True)
class ConcurrencyLimiter:
    """Semaphores of the tools, the servers and the bot.

    Attributes:
        limits: The limits that the semaphores enforce.
    """

    limits: CallLimits
    _semaphores: dict[tuple[str, str], asyncio.Semaphore] = field(default_factory=dict)

    @property
    def is_limited(self) -> bool:
        """True if there is a limit of concurrency."""
        limits = self.limits
        return (limits.overall, limits.per_tool, limits.per_server) != (None, None, None)

    def has_room(self, tool: Tool) -> bool:
        """Return True if a call of a tool can start without waiting."""
        return not any(semaphore.locked() for semaphore in self._semaphores_of(tool))

    @asynccontextmanager
    async def acquire(self, tool: Tool) -> AsyncGenerator[None, None]:
        """Hold the semaphores of one call: tool, then server, then bot."""
        async with AsyncExitStack() as stack:
            for semaphore in self._semaphores_of(tool):
                await stack.enter_async_context(semaphore)
            yield

    def _semaphores_of(self, tool: Tool) -> list[asyncio.Semaphore]:
        limits = self.limits
        wanted = (
            ("tool", tool.name, limits.per_tool),
            ("server", tool.server or "", limits.per_server if tool.server else None),
            ("overall", "", limits.overall),
        )
        semaphores = []
        for kind, name, limit in wanted:
            count = limit.get(name) if isinstance(limit, Mapping) else limit
            if count is not None:
                known = self._semaphores.get((kind, name))
                if known is None:
                    known = self._semaphores[kind, name] = asyncio.Semaphore(count)
                semaphores.append(known)
        return semaphores


# Hooks before and after a call: the bot's owner sees, blocks or changes it.


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
