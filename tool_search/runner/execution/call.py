"""The run of one decided call: check, before-hooks, permission, call, after-hooks, rendering.

`core/conversation/calls.py` has found the tool and checked the arguments against the schema.
Each step may end the call with an error result. Exceptions of tools, hooks and rules become
results.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Literal, Protocol, runtime_checkable

from tool_search.catalog.validation import complaints_about
from tool_search.core.conversation.calls import CallDecision, RunCall
from tool_search.core.messages import ToolCall
from tool_search.core.values.aside import closing
from tool_search.core.values.json import compact_json, encodable
from tool_search.core.values.redaction import log_failure
from tool_search.i18n import text
from tool_search.runner.execution.context import CallChannel, ToolContext, ToolExecutor
from tool_search.runner.execution.functions import ExecutableTool
from tool_search.runner.execution.hooks import (
    CallLimits,
    ConcurrencyLimiter,
    HookedCall,
    Hooks,
    TurnCalls,
)
from tool_search.runner.execution.permissions.check import Permissions
from tool_search.runner.execution.results import (
    CallOutputDelta,
    CallProgress,
    CallStep,
    ExecutionResult,
    Failure,
    describe_exception,
    failure_result,
    shorten,
    with_partials,
)
from tool_search.runner.execution.tasks import CallClock, call_maybe_async

__all__ = ["CallProfile", "CallRun", "CallServices", "KnowsTools"]

CallProfile = Literal["default", "kode"]
_MAX_DEPTH = 8
_log = logging.getLogger(__name__)


@runtime_checkable
class KnowsTools(Protocol):
    """An executor that has the authors' facts on its tools and runs them in the caller's task."""

    def find(self, name: str) -> ExecutableTool | None:
        """Return the tool of a canonical name, or None."""
        ...

    async def run_here(
        self,
        call: ToolCall,
        arguments: Mapping[str, Any],
        context: ToolContext,
        channel: CallChannel,
        clock: CallClock,
    ) -> ExecutionResult:
        """Run one call in the current task."""
        ...


@dataclass(slots=True, kw_only=True)
class CallServices:
    """The parts that all calls of a bot share.

    Attributes:
        executor: Runs the tools; replaced by `use`.
        profile: The conventions of the calls; see `CallOptions`.
        permissions: The rules, grants and questions that calls pass.
        hooks: The owner's hooks around calls.
        limits: Limits of concurrency, time and result size.
    """

    executor: ToolExecutor
    profile: CallProfile = "default"
    permissions: Permissions = field(default_factory=Permissions)
    hooks: Hooks = field(default_factory=Hooks)
    limits: CallLimits = field(default_factory=CallLimits)
    limiter: ConcurrencyLimiter = field(init=False)
    is_limited: bool = field(init=False)
    functions: KnowsTools | None = field(init=False)

    def __post_init__(self) -> None:
        self.limiter = ConcurrencyLimiter(self.limits)
        self.is_limited = self.limiter.is_limited or self.limits.timeout_s is not None
        self.use(self.executor)

    def use(self, executor: ToolExecutor) -> None:
        """Replace the executor, from the next call on."""
        self.executor = executor
        self.functions = executor if isinstance(executor, KnowsTools) else None

    def find(self, name: str) -> ExecutableTool | None:
        """Return a tool with its author's facts, or None if the executor has none."""
        return None if self.functions is None else self.functions.find(name)


Decide = Callable[[ToolCall], "CallDecision | Awaitable[CallDecision]"]
"""Decides what to do with a call; sync or async."""


class CallRun:
    """The run of one call, and the channel of its tool.

    Args:
        decision: The tool to run and its arguments.
        context: The context of the batch.
        services: Everything that calls of a bot share.
        decide: Decides calls that the tool makes itself.
        turn: The turn; if it has a key, the call has one, and is noted before it begins.
        emit: Receives progress and pieces of output.
        overdue: Called with the seconds if the tool ignores that its time is over.
        outer: The clock of the call whose tool makes this call.
    """

    def __init__(
        self,
        decision: RunCall,
        context: ToolContext,
        *,
        services: CallServices,
        decide: Decide,
        turn: TurnCalls,
        emit: Callable[[CallProgress | CallOutputDelta], None],
        overdue: Callable[[float], None],
        outer: CallClock | None = None,
    ) -> None:
        self.tool = decision.tool
        self.arguments = decision.arguments
        self.steps: list[CallStep] = []
        self.partials: list[str] = []
        grace_s = services.limits.grace_s
        self._limit = CallClock(overdue, grace_s, outer) if services.is_limited else None
        self.clock = CallClock(overdue, grace_s, self._limit or outer)
        self._call = decision.call
        self._id = decision.call.id
        self._services = services
        self._decide = decide
        self._turn = turn
        self._emit = emit
        self._item = item = services.find(self.tool.name)
        own_check = item is not None and item.validate_input is not None
        self._is_checked = own_check or bool(services.hooks)
        self._nested = 0
        self._may_have_run = False
        self._hook_permission: Literal["allow", "ask"] | None = None
        self._overdue = overdue
        self._context = context

    @property
    def is_concurrency_safe(self) -> bool:
        """True if the call may run together with others.

        The author's own function decides, or else the annotations: those of a server count
        if the operator trusts it. A tool that only reads is safe unless it says otherwise.
        A function that fails counts as False.
        """
        asked = self._item.is_concurrency_safe if self._item is not None else None
        if asked is None:
            return self._services.permissions.hints(self.tool).concurrency_safe
        name = self.tool.name
        try:
            return asked(self.arguments) is True
        except (Exception, SystemExit):  # noqa: BLE001  # the author's own answer
            log_failure(_log, "is_concurrency_safe of tool %r failed; its call runs alone", name)
            return False

    async def run(self) -> ExecutionResult:
        """Return the call's one result, as the model reads it."""
        try:
            result = await self._check_input() if self._is_checked else None
            if result is None:
                result = await self._call_if_permitted()
        except (Exception, SystemExit) as exc:  # noqa: BLE001  # whatever is not the call itself
            log_failure(_log, "a check or permission of tool %r failed", self.tool.name)
            result = self._failure(exc)
        return self.render(result)

    def render(self, result: ExecutionResult) -> ExecutionResult:
        """Return a result with earlier output of a failed call, cut to the limits."""
        language, limits = self._context.language, self._services.limits
        if self._may_have_run and result.failure in ("cancelled", "timed_out"):
            noted = text("call.may_have_run", language, name=self.tool.name)
            result = replace(result, content=f"{result.content}\n{noted}")
        if self.partials:
            result = with_partials(result, self.partials, language=language)
        # The result of a nested call is data for a tool: JSON cut in half is useless there.
        longest = None if self._context.depth else limits.longest_result
        longest = limits.longest_error if result.is_error else longest
        if longest is not None:
            result = shorten(result, longest=longest, language=language)
        content = result.content
        if not content.isascii():
            content = encodable(content)
        return result if content == result.content else replace(result, content=content)

    def error(self, failure: Failure, key: str, **values: object) -> ExecutionResult:
        """Return a failure in the language of the conversation."""
        return failure_result(failure, key, self._context.language, name=self.tool.name, **values)

    def say(self, event: CallProgress | CallOutputDelta) -> None:
        """Pass an event on, and keep pieces of the result."""
        if isinstance(event, CallOutputDelta):
            self.partials.append(event.content)
        self._emit(event)

    async def ask(self, question: str) -> bool:
        """Ask the user a question of the tool."""
        permissions = self._services.permissions
        with self.clock.paused():
            return await permissions.ask(self.tool, self.arguments, self._context, question)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ExecutionResult:
        """Call another tool as the model would, within this call's limits."""
        if self._context.depth >= _MAX_DEPTH:
            return self.error("failed", "call.too_deep")
        self._nested += 1
        call = ToolCall(
            id=f"{self._id}.{self._nested}", name=name, arguments=compact_json(dict(arguments))
        )
        answer = self._decide(call)
        decision = await answer if isinstance(answer, Awaitable) else answer
        if not isinstance(decision, RunCall):
            failure: Failure = "denied" if decision.is_denied else "invalid"
            return ExecutionResult(
                content=decision.content, is_error=decision.is_error, failure=failure
            )
        inner = CallRun(
            decision,
            replace(self._context, depth=self._context.depth + 1),
            services=self._services,
            decide=self._decide,
            turn=self._turn,
            emit=self._emit,
            overdue=self._overdue,
            outer=self.clock,
        )
        return await inner.run()

    def allows(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Return True if another tool of the bot's own could be called without a question."""
        permissions, item = self._services.permissions, self._services.find(name)
        if item is None or permissions.allows_everything(item):
            return True
        return permissions.decide(item.tool, arguments, self._context, item) == "allow"

    def has_permission(self, rule: str) -> bool:
        """Return True if a call that a rule describes can run without a question."""
        services = self._services
        return services.permissions.has_permission(rule, self._context, services.find)

    async def _check_input(self) -> ExecutionResult | None:
        """Run the tool's own check and the before-hooks; return a failure, or None."""
        item = self._item
        if item is not None and item.validate_input is not None:
            began = perf_counter()
            problem = await call_maybe_async(item.validate_input, self.arguments, self._context)
            self._record_step("validate_input", began)
            if problem:
                return self.error("invalid", "call.refused_input", complaint=problem)
        if not self._services.hooks:
            return None
        began = perf_counter()
        failure = await self._run_before_hooks()
        self._record_step("before_hooks", began)
        return failure

    async def _run_before_hooks(self) -> ExecutionResult | None:
        call = HookedCall(tool=self.tool, arguments=self.arguments, context=self._context)
        answer = await self._services.hooks.before(call, self._warn)
        if answer.block is not None:
            return self.error("blocked", "call.blocked", cause=answer.block)
        if answer.arguments is not None:
            complaints = complaints_about(self.tool, answer.arguments)
            if complaints:
                joined = "; ".join(complaints)
                return self.error("invalid", "call.hook_arguments", complaints=joined)
            self.arguments = answer.arguments
        self._hook_permission = answer.permission
        return None

    async def _call_if_permitted(self) -> ExecutionResult:
        """Check the permission, then call the tool."""
        began = perf_counter()
        permissions, denial = self._services.permissions, None
        if self._hook_permission == "ask" or not permissions.allows_everything(self._item):
            try:
                with self.clock.paused():
                    denial = await permissions.authorize(
                        self.tool, self.arguments, self._context, self._item, self._hook_permission
                    )
            except (Exception, SystemExit) as exc:  # noqa: BLE001  # the author's own functions
                log_failure(_log, "the permission of tool %r cannot be checked", self.tool.name)
                cause = describe_exception(exc)
                return replace(self.error("denied", "call.unchecked", cause=cause), error=exc)
        self._record_step("permission", began)
        if denial is not None:
            return ExecutionResult(content=denial, is_error=True, failure="denied")
        if self._turn.turn:
            is_nested = self._context.depth > 0
            key = await self._turn.begin(
                self._id, self.tool.name, self.arguments, is_nested=is_nested
            )
            self._context = replace(self._context, idempotency_key=key)
            self._may_have_run = True
        return await self._call_with_hooks()

    async def _call_with_hooks(self) -> ExecutionResult:
        began = perf_counter()
        result = await (self._call_in_slot() if self._services.is_limited else self._execute())
        self._record_step("call", began)
        if self._services.hooks:
            began = perf_counter()
            call = HookedCall(tool=self.tool, arguments=self.arguments, context=self._context)
            result = await self._services.hooks.after(call, result, self._warn)
            self._record_step("after_hooks", began)
        return result

    async def _call_in_slot(self) -> ExecutionResult:
        """Wait for a free slot; a nested call uses the slot of its outer call."""
        limiter = self._services.limiter
        if self._context.depth:
            return await self._call_within_timeout()
        if not limiter.has_room(self.tool):
            self.say(CallProgress(text("call.waiting", self._context.language)))
        async with limiter.acquire(self.tool):
            return await self._call_within_timeout()

    async def _call_within_timeout(self) -> ExecutionResult:
        timeout_s = self._services.limits.timeout_s
        if timeout_s is None or self._limit is None:
            return await self._execute()
        try:
            with self._limit.within(timeout_s):
                return await self._execute()
        except TimeoutError:
            return self.timeout_result(timeout_s)

    def timeout_result(self, seconds: float) -> ExecutionResult:
        """Return the result of a call that took too long."""
        return self.error("timed_out", "call.timed_out", seconds=f"{seconds:g}")

    async def _execute(self) -> ExecutionResult:
        """Run the tool; the executor's first result ends the call."""
        services, name = self._services, self.tool.name
        try:
            if services.functions is not None:
                call = self._call if self._call.name == name else ToolCall(id=self._id, name=name)
                return await services.functions.run_here(
                    call, self.arguments, self._context, self, self.clock
                )
            result: ExecutionResult = await call_maybe_async(self._run_executor)
        except Exception as exc:  # noqa: BLE001  # an executor is the bot's own: it must not end the turn
            log_failure(_log, "the executor of tool %r failed", name)
            return self._failure(exc)
        return result

    async def _run_executor(self) -> ExecutionResult:
        """Return the first result of a custom executor."""
        name = self.tool.name
        call = ToolCall(id=self._id, name=name, arguments=compact_json(dict(self.arguments)))
        context = replace(self._context, tool=name, call_id=self._id, channel=self)
        async with closing(self._services.executor.run(call, context)) as events:
            async for event in events:
                if isinstance(event, ExecutionResult):
                    return event
                self.say(event)
        return ExecutionResult(content="")

    def _failure(self, exc: BaseException) -> ExecutionResult:
        result = self.error("failed", "call.failed", cause=describe_exception(exc))
        return replace(result, error=exc)

    def _warn(self, message: str) -> None:
        self.say(CallProgress(message))

    def _record_step(self, step: str, began: float) -> None:
        self.steps.append(CallStep(step, perf_counter() - began))
