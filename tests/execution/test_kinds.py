"""Tools of every kind: functions, generators, objects with a clean-up, nested tools."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.execution.calling import CONTEXT, calls, of_kind, result, runner, told, tool
from tool_search import (
    CallOptions,
    Permissions,
    PermissionSettings,
    ToolCall,
    ToolCallError,
    ToolContext,
    ToolFinished,
    stateful_tool,
    tool_from_function,
)
from tool_search.runner.events import ToolOutputDelta, ToolProgress
from tool_search.runner.execution import (
    CallOutputDelta,
    CallProgress,
    ExecutionResult,
    FunctionExecutor,
    PermissionRequest,
)


async def count(until: int) -> AsyncIterator[Any]:
    """Count.

    Args:
        until: The last number.
    """
    for number in range(until):
        yield CallProgress(f"{number} of {until}")
        yield CallOutputDelta(str(number))
    yield {"counted": until}
    yield "nobody reads this"


async def test_generator_yields_progress_pieces_and_one_result() -> None:
    events = await told(runner(count), calls(("count", {"until": 2})))
    assert [event.message for event in of_kind(events, ToolProgress)] == ["0 of 2", "1 of 2"]
    assert [event.content for event in of_kind(events, ToolOutputDelta)] == ["0", "1"]
    assert [event.content for event in of_kind(events, ToolFinished)] == ['{"counted":2}']


async def test_generator_is_closed_when_its_call_is_over() -> None:
    closed = []

    async def stream() -> AsyncIterator[Any]:
        """Stream."""
        try:
            yield "first"
            yield "second"
        finally:
            closed.append(True)

    assert (await result(runner(stream), "stream")).content == "first"
    assert closed == [True]


async def test_generator_made_by_another_function_is_one_too() -> None:
    made = tool(lambda **arguments: count(1))
    assert (await result(runner(made), "it")).content == '{"counted":1}'


@pytest.mark.parametrize("way", ["async", "thread"])
async def test_function_says_how_far_it_is(way: str) -> None:
    async def here(context: ToolContext) -> str:
        """Work."""
        context.progress("half")
        context.partial({"n": 1})
        return "done"

    def there(context: ToolContext) -> str:
        """Work."""
        context.progress("half")
        context.partial({"n": 1})
        return "done"

    function = here if way == "async" else there
    events = await told(runner(function), calls(function.__name__))
    kinds = [type(event).__name__ for event in events]
    assert kinds == ["ToolCallStarted", "ToolProgress", "ToolOutputDelta", "ToolFinished"]
    assert of_kind(events, ToolOutputDelta)[0].content == '{"n":1}'


async def test_executor_alone_gives_the_same_events() -> None:
    """For loops that only need to run functions."""

    async def here(context: ToolContext) -> str:
        """Work."""
        context.progress("half")
        return "done"

    executor = FunctionExecutor([tool_from_function(here)])
    call = ToolCall(id="1", name="here")
    events = [event async for event in executor.run(call, CONTEXT)]
    assert events == [CallProgress("half"), ExecutionResult(content="done")]


async def test_tool_knows_its_call_and_what_it_may_use(tmp_path: Path) -> None:
    seen: list[ToolContext] = []

    async def look(context: ToolContext) -> None:
        """Look around."""
        seen.append(context)

    options = CallOptions(folder=tmp_path, settings={"unit": "km"})
    run = runner(look, options=options)
    await run.results(calls("look"), run.context("c", "ru-RU", user="ann", roles=["admin"]))
    (context,) = seen
    assert (context.conversation, context.language, context.user) == ("c", "ru-RU", "ann")
    assert (context.folder, context.settings, sorted(context.roles)) == (
        tmp_path, {"unit": "km"}, ["admin"],
    )  # fmt: skip
    assert (context.tool, context.call_id, context.is_cancelled) == ("look", "c0", False)
    assert context.logger is logging.getLogger("tool_search.tools.look")


class Counter:
    """Counts up.

    Args of the class are none of the tool's.
    """

    closed: list[str]

    def __init__(self, context: ToolContext) -> None:
        self.conversation = context.conversation
        self.count = 0

    async def __call__(self, context: ToolContext, step: int = 1) -> str:
        """Counts."""
        self.count += step
        context.progress(f"at {self.count}")
        return f"{self.conversation} {self.count}"

    async def aclose(self) -> None:
        Counter.closed.append(self.conversation)


async def test_object_lives_as_long_as_its_conversation() -> None:
    """Each conversation has its own object, which is closed when the conversation is forgotten."""
    Counter.closed = []
    run = runner(stateful_tool(Counter, name="count"))
    other = replace(CONTEXT, conversation="d")
    said = [
        (await result(run, ("count", {"step": 2}))).content,
        (await result(run, "count")).content,
        (await result(run, "count", other)).content,
    ]
    assert said == ["c 2", "c 3", "d 1"]
    await run.forget("c")
    assert Counter.closed == ["c"]
    assert (await result(run, "count")).content == "c 1"
    await run.aclose()
    assert sorted(Counter.closed) == ["c", "c", "d"]


def test_object_is_described_by_its_class_and_its_call() -> None:
    made = stateful_tool(Counter, tags=("number",), timeout_s=3).tool
    assert (made.name, made.tags) == ("Counter", ("number",))
    assert made.description.startswith("Counts up.")
    assert list(made.parameters["properties"]) == ["step"]


async def test_object_of_any_kind_may_fail_at_its_end(caplog: pytest.LogCaptureFixture) -> None:
    class Blocking:
        """Block."""

        def __init__(self, context: ToolContext) -> None:
            pass

        def __call__(self) -> str:
            return "sync"

        def close(self) -> None:
            raise OSError("busy")

    Counter.closed = []
    run = runner(stateful_tool(Blocking, name="block"), stateful_tool(Counter, name="count"))
    assert (await result(run, "block")).content == "sync"
    await result(run, "count")
    await run.aclose()
    assert Counter.closed == ["c"]
    assert "'Blocking' failed while it was closed" in caplog.text


async def add(a: int, b: int) -> int:
    """Add.

    Args:
        a: First.
        b: Second.
    """
    return a + b


async def test_tool_of_tools_passes_every_step_with_each() -> None:
    async def add_all(numbers: list[int], context: ToolContext) -> int:
        """Add all."""
        total = 0
        for number in numbers:
            total = await context.call("add", a=total, b=number)
            context.progress(str(total))
        return total

    events = await told(runner(add, add_all), calls(("add_all", {"numbers": [1, 2, 3]})))
    assert [event.message for event in of_kind(events, ToolProgress)] == ["1", "3", "6"]
    assert of_kind(events, ToolFinished)[0].content == "6"


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("add", {"a": 1}, '"b" is a required property'),
        ("subtract", {}, "There is no tool named subtract."),
        ("secret", {}, "There is no tool named secret."),
        ("add", {"a": 1, "b": 13}, "add is not allowed with these arguments."),
    ],
)
async def test_failure_of_an_inner_call_is_an_exception_that_says_it(
    name: str, arguments: dict[str, Any], said: str
) -> None:
    async def attempt(context: ToolContext) -> str:
        """Try."""
        try:
            await context.call(name, **arguments)
        except ToolCallError as exc:
            return f"not: {exc}"
        return "worked"

    async def secret(**given: Any) -> str:
        return "secret"

    made = tool(secret, "secret", parameters={"type": "object"})
    permissions = Permissions(PermissionSettings(deny=("secret(*)", "add(b=13)"), otherwise="deny",
                                                 allow=("attempt", "add")))  # fmt: skip
    run = runner(add, attempt, made, options=CallOptions(permissions=permissions))
    assert said in (await result(run, "attempt")).content


async def test_tool_that_calls_itself_for_ever_is_stopped() -> None:
    async def again(context: ToolContext) -> Any:
        """Call itself."""
        return await context.call("again")

    done = await result(runner(again), "again")
    assert "again was not called: calls are nested too deeply." in done.content


async def test_inner_call_is_asked_about_under_its_own_name() -> None:
    """A permission for the outer tool does not count for the inner one."""
    asked = []

    async def ask(request: PermissionRequest) -> bool:
        asked.append(request.tool.name)
        return True

    async def outer(context: ToolContext) -> Any:
        """Call."""
        return await context.call("add", a=1, b=1)

    permissions = Permissions(PermissionSettings(ask=("*",)), ask=ask)
    run = runner(add, outer, options=CallOptions(permissions=permissions))
    assert (await result(run, "outer")).content == "2"
    assert asked == ["outer", "add"]


async def test_context_without_a_runner_calls_and_asks_nobody() -> None:
    """A context made by hand is useful in a test of a tool."""
    assert await CONTEXT.ask("May I?") is False
    CONTEXT.progress("nobody hears")
    with pytest.raises(ToolCallError, match="no CallRunner"):
        await CONTEXT.call("add", a=1)


async def test_async_function_that_swallows_its_cancellation_is_listed() -> None:
    free = asyncio.Event()

    async def stubborn() -> str:
        """Go on."""
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    executor = FunctionExecutor([tool_from_function(stubborn)], timeout_s=0.02, grace_s=0.02)
    call = ToolCall(id="1", name="stubborn")
    (given_up,) = [event async for event in executor.run(call, CONTEXT)]
    assert isinstance(given_up, ExecutionResult)
    assert "within 0.02 seconds" in given_up.content
    assert executor.runaways == ("stubborn",)
    free.set()
    while executor.runaways:  # noqa: ASYNC110  # nothing announces it
        await asyncio.sleep(0)
