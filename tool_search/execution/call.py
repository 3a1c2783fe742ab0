"""The life of one call that was decided to be run.

Its tool is found and its arguments fit the schema by then (`calls.py`). What follows:
the tool's own check, before-hooks, permission, the call, after-hooks, rendering. Each
step may end it with an error result; nothing a tool, a hook or a rule does raises.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from time import perf_counter
from typing import Any, Literal, Protocol, runtime_checkable

from tool_search.catalog.validation import complaints_about
from tool_search.conversation.calls import CallDecision, RunCall
from tool_search.execution.context import CallChannel, ToolContext, ToolExecutor
from tool_search.execution.functions import ExecutableTool
from tool_search.execution.hooks import HookedCall, Hooks
from tool_search.execution.limits import CallLimits, ConcurrencyLimiter
from tool_search.execution.observers import CallObserver, CallTelemetry
from tool_search.execution.permissions.check import Permissions
from tool_search.execution.replay import RememberedResults, ResultMemory, TurnCalls
from tool_search.execution.results import (
    CallOutputDelta,
    CallProgress,
    CallStep,
    ExecutionResult,
    Failure,
    cause_of,
    failure_of,
    shortened,
    with_partials,
)
from tool_search.execution.tasks import CallClock, answer_of, closing
from tool_search.i18n import text
from tool_search.messages import ToolCall
from tool_search.values.json import compact_json, encodable
from tool_search.values.redaction import log_failure

__all__ = ["CallRun", "CallServices", "KnowsTools"]

_MAX_DEPTH = 8
_log = logging.getLogger(__name__)


@runtime_checkable
class KnowsTools(Protocol):
    """An executor of functions: it knows what their authors say, and runs them where it is."""

    def find(self, name: str) -> ExecutableTool | None:
        """The tool of a canonical name."""
        ...

    async def run_here(
        self,
        call: ToolCall,
        arguments: Mapping[str, Any],
        context: ToolContext,
        channel: CallChannel,
        clock: CallClock,
    ) -> ExecutionResult:
        """Runs one call in the task that awaits it."""
        ...


@dataclass(slots=True, kw_only=True)
class CallServices:
    """What all calls of a bot share.

    Attributes:
        executor: Runs the tools; `use` replaces it.
        permissions: Decides what may be called.
        hooks: What the owner has hung around calls.
        limits: How many calls at a time, and how long their results.
        memory: What retried turns are given again.
        observers: Are told of each call.
        telemetry: Traces each call; None: nothing does.
    """

    executor: InitVar[ToolExecutor]
    permissions: Permissions = field(default_factory=Permissions)
    hooks: Hooks = field(default_factory=Hooks)
    limits: CallLimits = field(default_factory=CallLimits)
    memory: ResultMemory = field(default_factory=RememberedResults)
    observers: Sequence[CallObserver] = ()
    telemetry: CallTelemetry | None = None
    slots: ConcurrencyLimiter = field(init=False)
    limited: bool = field(init=False)
    runs: ToolExecutor = field(init=False)
    functions: KnowsTools | None = field(init=False)

    def __post_init__(self, executor: ToolExecutor) -> None:
        self.slots = ConcurrencyLimiter(self.limits)
        self.limited = self.slots.limited or self.limits.timeout_s is not None
        self.use(executor)

    def use(self, executor: ToolExecutor) -> None:
        """Has other tools run, from the next call on."""
        self.runs = executor
        self.functions = executor if isinstance(executor, KnowsTools) else None

    def find(self, name: str) -> ExecutableTool | None:
        """What a tool's author knows of it, where the executor can say."""
        return None if self.functions is None else self.functions.find(name)


Decide = Callable[[ToolCall], "CallDecision | Awaitable[CallDecision]"]
"""Says what becomes of a call, at once or when awaited."""


class CallRun:
    """One call on its way; also the channel that its tool speaks through.

    Args:
        decision: What was decided to be run.
        context: Where it is called.
        services: What it passes through.
        decide: Decides the calls that the tool makes itself.
        turn: Gives the call its key.
        emit: Takes what the tool says meanwhile.
        overdue: Is called where the tool ignores that its time is over, with the seconds.
        outer: The clock of the call whose tool makes this one.
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
        self._limit = CallClock(overdue, grace_s, outer) if services.limited else None
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
        self._wish: Literal["allow", "ask"] | None = None
        self._overdue = overdue
        self._context = context

    @property
    def is_concurrency_safe(self) -> bool:
        """Whether the call may run beside others: as its author says, or else its annotations.

        Those of a server count if the operator trusts it. A tool that says nothing but that
        it only reads is safe; one whose author's own answer fails is not.
        """
        asked = self._item.is_concurrency_safe if self._item is not None else None
        if asked is None:
            return self._services.permissions.hints(self.tool).concurrency_safe
        name = self.tool.name
        try:
            return asked(self.arguments) is True
        except (Exception, SystemExit):  # noqa: BLE001  # the author's own answer
            log_failure(_log, "tool %r cannot say whether its call is safe; taken for a no", name)
            return False

    async def run(self) -> ExecutionResult:
        """The call's one result, as the model reads it."""
        try:
            result = await self._checked() if self._is_checked else None
            if result is None:
                result = await self._permitted()
        except (Exception, SystemExit) as exc:  # noqa: BLE001  # whatever is not the call itself
            log_failure(_log, "what belongs to the call of tool %r failed", self.tool.name)
            result = self._failed(exc)
        return self.rendered(result)

    def rendered(self, result: ExecutionResult) -> ExecutionResult:
        """A result with what there was before a failure, and not too long for a model."""
        language, limits = self._context.language, self._services.limits
        if self.partials:
            result = with_partials(result, self.partials, language=language)
        # Another tool reads what its call came to: half a JSON text would be of no use to it.
        longest = None if self._context.depth else limits.longest_result
        longest = limits.longest_error if result.is_error else longest
        if longest is not None:
            result = shortened(result, longest=longest, language=language)
        content = result.content
        if not content.isascii():
            content = encodable(content)
        return result if content == result.content else replace(result, content=content)

    def error(self, failure: Failure, key: str, **values: object) -> ExecutionResult:
        """A failure of ours, in the language of the conversation."""
        return failure_of(failure, key, self._context.language, name=self.tool.name, **values)

    def say(self, event: CallProgress | CallOutputDelta) -> None:
        """Passes on what the tool says, and keeps the pieces of its result."""
        if isinstance(event, CallOutputDelta):
            self.partials.append(event.content)
        self._emit(event)

    async def ask(self, question: str) -> bool:
        """Asks the user what the tool wants to know."""
        permissions = self._services.permissions
        with self.clock.stopped():
            return await permissions.ask(self.tool, self.arguments, self._context, question)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ExecutionResult:
        """Calls another tool as the model would; it takes part in this call's place."""
        if self._context.depth >= _MAX_DEPTH:
            return self.error("failed", "call.too_deep")
        self._nested += 1
        call = ToolCall(
            id=f"{self._id}.{self._nested}", name=name, arguments=compact_json(dict(arguments))
        )
        said = self._decide(call)
        decision = await said if isinstance(said, Awaitable) else said
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
        """Return True if a call of another tool of the author's would be made unasked."""
        permissions, item = self._services.permissions, self._services.find(name)
        if item is None or permissions.let_everything(item):
            return True
        return permissions.verdict(item.tool, arguments, self._context, item) == "allow"

    async def _checked(self) -> ExecutionResult | None:
        """The tool's own check and the hooks before the call; None: nothing speaks against it."""
        item = self._item
        if item is not None and item.validate_input is not None:
            began = perf_counter()
            said = await answer_of(item.validate_input, self.arguments, self._context)
            self._took("validate_input", began)
            if said:
                return self.error("invalid", "call.refused_input", complaint=said)
        if not self._services.hooks:
            return None
        began = perf_counter()
        refused = await self._hooked()
        self._took("before_hooks", began)
        return refused

    async def _hooked(self) -> ExecutionResult | None:
        call = HookedCall(tool=self.tool, arguments=self.arguments, context=self._context)
        answer = await self._services.hooks.before(call, self._warn)
        if answer.block is not None:
            return self.error("blocked", "call.blocked", cause=answer.block)
        if answer.arguments is not None:
            complaints = complaints_about(self.tool, answer.arguments)
            if complaints:
                told = "; ".join(complaints)
                return self.error("invalid", "call.hook_arguments", complaints=told)
            self.arguments = answer.arguments
        self._wish = answer.permission
        return None

    async def _permitted(self) -> ExecutionResult:
        """The call's result, once it is permitted; what is only remembered too."""
        # Counted before the answer: a retried turn counts the same calls in the same order.
        key = self._turn.key(self.tool.name, self.arguments, user=self._context.user)
        began = perf_counter()
        permissions, why = self._services.permissions, None
        if self._wish == "ask" or not permissions.let_everything(self._item):
            with self.clock.stopped():
                why = await permissions.refused(
                    self.tool, self.arguments, self._context, self._item, self._wish
                )
        self._took("permission", began)
        if why is not None:
            return ExecutionResult(content=why, is_error=True, failure="denied")
        return await self._made() if key is None else await self._once(key)

    async def _once(self, key: str) -> ExecutionResult:
        """The result an earlier try of the turn came to, or else the call's own."""
        known = await self._services.memory.get(key)
        if known is not None:
            self.steps.append(CallStep("remembered", 0.0))
            return known
        self._context = replace(self._context, idempotency_key=key)
        result = await self._made()
        if not result.is_error:
            await self._services.memory.put(key, result)
        return result

    async def _made(self) -> ExecutionResult:
        began = perf_counter()
        result = await (self._in_place() if self._services.limited else self._executed())
        self._took("call", began)
        if self._services.hooks:
            began = perf_counter()
            call = HookedCall(tool=self.tool, arguments=self.arguments, context=self._context)
            result = await self._services.hooks.after(call, result, self._warn)
            self._took("after_hooks", began)
        return result

    async def _in_place(self) -> ExecutionResult:
        """The call in the places it takes; a call inside of another takes none of its own."""
        slots = self._services.slots
        if self._context.depth:
            return await self._within_time()
        if not slots.free(self.tool):
            self.say(CallProgress(text("call.waiting", self._context.language)))
        async with slots.taken(self.tool):
            return await self._within_time()

    async def _within_time(self) -> ExecutionResult:
        timeout_s = self._services.limits.timeout_s
        if timeout_s is None or self._limit is None:
            return await self._executed()
        try:
            with self._limit.within(timeout_s):
                return await self._executed()
        except TimeoutError:
            return self.late(timeout_s)

    def late(self, seconds: float) -> ExecutionResult:
        """What a call comes to that did not end in its time."""
        return self.error("timed_out", "call.timed_out", seconds=f"{seconds:g}")

    async def _executed(self) -> ExecutionResult:
        """What the executor makes of it: its first result ends the call."""
        services, name = self._services, self.tool.name
        try:
            if services.functions is not None:
                call = self._call if self._call.name == name else ToolCall(id=self._id, name=name)
                return await services.functions.run_here(
                    call, self.arguments, self._context, self, self.clock
                )
            result: ExecutionResult = await answer_of(self._streamed)
        except Exception as exc:  # noqa: BLE001  # an executor is the bot's own: it must not end the turn
            log_failure(_log, "the executor of tool %r failed", name)
            return self._failed(exc)
        return result

    async def _streamed(self) -> ExecutionResult:
        """The first result of an executor that is not ours."""
        name = self.tool.name
        call = ToolCall(id=self._id, name=name, arguments=compact_json(dict(self.arguments)))
        context = replace(self._context, tool=name, call_id=self._id, channel=self)
        async with closing(self._services.runs.run(call, context)) as events:
            async for event in events:
                if isinstance(event, ExecutionResult):
                    return event
                self.say(event)
        return ExecutionResult(content="")

    def _failed(self, exc: BaseException) -> ExecutionResult:
        result = self.error("failed", "call.failed", cause=cause_of(exc))
        return replace(result, error=exc)

    def _warn(self, message: str) -> None:
        self.say(CallProgress(message))

    def _took(self, step: str, began: float) -> None:
        self.steps.append(CallStep(step, perf_counter() - began))
