"""What tools do, and what the model is told of it: each call gets exactly one result."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from tests.runner.bench import (
    FORECAST,
    SEARCHING,
    Bench,
    assert_paired,
    call,
    calling,
    many_tools,
    named,
    say,
    some_tools,
    turn,
)
from tool_search import (
    CallOptions,
    Done,
    ExecutableTool,
    Tool,
    ToolCall,
    ToolCatalog,
    ToolContext,
    ToolFinished,
    ToolsDiscovered,
    ToolSearchConfig,
    ToolSearchRunner,
)
from tool_search.runner.execution import CallLimits, ExecutionEvent, ExecutionResult
from tool_search.testing import Fault, ModelReply, ScriptedModel

BOTH = pytest.mark.parametrize("name", ["claude", "gpt"])


class Point(BaseModel):
    """A result that is a model."""

    x: int
    label: str


@dataclass
class Plain:
    """A result that is a dataclass."""

    x: int


def _core(function: Callable[..., Any]) -> ExecutableTool:
    return ExecutableTool(tool=Tool(name="it", always_load=True), function=function)


async def _finished(
    bench: Bench, tool: ExecutableTool, name: str = "gpt", **settings: Any
) -> ToolFinished:
    """How a call of the tool ends; the turn goes on, and so does the conversation."""
    bench.server.reset(model=ScriptedModel([calling(call("it")), say("Done."), say("Fine.")]))
    runner = await bench.runner(name, tools=[tool], **settings)
    events = await turn(runner)
    assert named(events, Done)[0].answer == "Done."
    assert named(await turn(runner), Done)[0].answer == "Fine."
    session = runner.session()
    assert session is not None
    assert_paired(session.history)
    return named(events, ToolFinished)[0]


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        (None, "(no output)"),
        ("  ", "(no output)"),
        ({"a": [1, "天气"]}, '{"a":[1,"天气"]}'),
        ([1, 2.5, None], "[1,2.5,null]"),
        (True, "true"),
        (Point(x=1, label="здесь"), '{"x":1,"label":"здесь"}'),
        (Plain(x=1), '{"x":1}'),
    ],
    ids=["str", "None", "blank", "dict", "list", "bool", "pydantic", "dataclass"],
)
async def test_result_of_any_kind_is_text(bench: Bench, value: object, content: str) -> None:
    """Text as it is, anything else as JSON; never nothing."""

    async def it() -> object:
        return value

    finished = await _finished(bench, _core(it))
    assert (finished.content, finished.is_error) == (content, False)


@BOTH
async def test_tool_that_raises_is_an_error_result(bench: Bench, name: str) -> None:
    """With its cause, for the model; the turn goes on."""

    async def it() -> str:
        raise RuntimeError("the disk is full")

    finished = await _finished(bench, _core(it), name)
    assert finished.is_error
    assert finished.content == "it failed: RuntimeError: the disk is full"


@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt(), StopIteration(), TimeoutError("mine")], ids=repr
)
async def test_sync_tool_that_tries_to_end_the_bot_is_an_error_result(
    bench: Bench, error: BaseException
) -> None:
    """A plugin that calls `sys.exit` ends its call, and nothing else."""

    def it() -> str:
        raise error

    finished = await _finished(bench, _core(it))
    assert finished.is_error
    assert type(error).__name__ in finished.content


@BOTH
async def test_tool_that_never_returns_is_given_up(bench: Bench, name: str) -> None:
    async def it() -> str:
        await asyncio.Event().wait()
        return "never"

    finished = await _finished(bench, _core(it), name, tool_timeout_s=0.05)
    assert finished.is_error
    assert "did not answer within 0.05 seconds" in finished.content


async def test_sync_tool_that_blocks_does_not_block_the_bot(bench: Bench) -> None:
    loop = asyncio.get_running_loop()
    release = asyncio.Event()

    def it() -> str:
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result()
        return "late"

    finished = await _finished(bench, _core(it), tool_timeout_s=0.05)
    assert finished.is_error
    release.set()


async def test_async_function_made_by_a_sync_one_is_awaited(bench: Bench) -> None:
    async def inner() -> str:
        return "inside"

    finished = await _finished(bench, _core(lambda: inner()))  # noqa: PLW0108  # a lambda is meant
    assert finished.content == "inside"


@pytest.mark.parametrize("broken", ["cut", "bad_escape"])
@BOTH
async def test_broken_json_arguments_are_answered(bench: Bench, name: str, broken: Any) -> None:
    """The model reads what was wrong and can send the call again; no tool was run."""
    script = [calling(call("get_forecast", {"city": "Paris"})), calling(FORECAST), say("Sunny.")]
    bench.server.reset(model=ScriptedModel(script))
    dialect = "anthropic" if name == "claude" else "openai_chat"
    bench.server.faults.add(Fault(dialect=dialect, arguments=broken))
    config = ToolSearchConfig(tool_schema_mode="full")
    runner = await bench.runner(name, config=config)
    events = await turn(runner, "Weather?")
    first, second = named(events, ToolFinished)
    assert first.is_error
    assert "JSON" in first.content
    assert not second.is_error
    assert bench.ran == [("get_forecast", {"city": "Paris"})]


@BOTH
async def test_unknown_tool_gets_near_matches_never_the_catalog(bench: Bench, name: str) -> None:
    script = [calling(call("gadget_0100"), call("qqqqqq")), say("Sorry.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner(name, tools=many_tools(120))
    near, far = named(await turn(runner), ToolFinished)
    assert near.is_error
    assert far.is_error
    assert 1 <= near.content.count("gadget_") - 1 <= 3
    assert "tool_search" in far.content
    assert "gadget_" not in far.content


@BOTH
async def test_deferred_tool_called_without_a_search_runs_where_arguments_fit(
    bench: Bench, name: str
) -> None:
    bench.server.reset(
        model=ScriptedModel([calling(call("get_forecast", {"city": "Rome"})), say("Hot.")])
    )
    runner = await bench.runner(name)
    events = await turn(runner)
    assert bench.ran == [("get_forecast", {"city": "Rome"})]
    assert named(events, ToolsDiscovered)[0].names == ("get_forecast",)


@BOTH
async def test_deferred_tool_called_wrongly_is_answered_with_its_schema(
    bench: Bench, name: str
) -> None:
    script = [calling(call("get_forecast", {"town": "Rome"})), calling(FORECAST), say("Hot.")]
    if name == "claude":  # it is shown the tool only by a reference, and guesses again
        script[1] = calling(call("get_forecast", {"city": "Paris"}))
    bench.server.reset(model=ScriptedModel(script))
    events = await turn(await bench.runner(name))
    first, second = named(events, ToolFinished)
    assert first.is_error
    assert '"city"' in first.content
    assert (second.tool, second.is_error) == ("get_forecast", False)
    assert bench.ran == [("get_forecast", {"city": "Paris"})]


@BOTH
async def test_repeated_call_ids_are_told_apart(bench: Bench, name: str) -> None:
    script: list[ModelReply] = [calling(call("get_time"), call("get_time"))] * 3
    bench.server.reset(model=ScriptedModel([*script, say("Noon.")]))
    runner = await bench.runner(name)
    await turn(runner)
    session = runner.session()
    assert session is not None
    assert_paired(session.history)
    assert len(bench.ran) == 6


class Odd:
    """An executor of somebody's own, which does not keep to its protocol."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    async def run(self, call: ToolCall, context: ToolContext) -> AsyncIterator[ExecutionEvent]:
        """Raises, or says nothing, or iterates without being a generator."""
        if self.kind == "raises":
            raise ConnectionError("the worker is gone")
        if self.kind == "result":
            yield ExecutionResult(content="worked")


class NoGenerator:
    """An iterator that cannot be closed."""

    def __init__(self) -> None:
        self.left: list[ExecutionEvent] = [ExecutionResult(content="worked")]

    def run(self, call: ToolCall, context: ToolContext) -> AsyncIterator[ExecutionEvent]:
        """Itself."""
        return self

    def __aiter__(self) -> AsyncIterator[ExecutionEvent]:
        return self

    async def __anext__(self) -> ExecutionEvent:
        if not self.left:
            raise StopAsyncIteration
        return self.left.pop()


@pytest.mark.parametrize(
    ("executor", "content", "is_error"),
    [
        (Odd("raises"), "get_time failed: ConnectionError: the worker is gone", True),
        (Odd("silent"), "(no output)", False),
        (Odd("result"), "worked", False),
        (NoGenerator(), "worked", False),
    ],
    ids=["raises", "silent", "result", "no generator"],
)
async def test_executor_of_any_kind_gives_one_result(
    bench: Bench, executor: Any, content: str, is_error: bool
) -> None:
    bench.server.reset(model=ScriptedModel([calling(call("get_time")), say("Noon.")]))
    runner = ToolSearchRunner(
        providers={"gpt": await bench.provider("gpt")},
        catalog=ToolCatalog(some_tools()),
        executor=executor,
        config=SEARCHING,
    )
    events = await turn(runner)
    finished = named(events, ToolFinished)[0]
    assert (finished.content, finished.is_error) == (content, is_error)
    assert named(events, Done)[0].answer == "Noon."


@BOTH
async def test_result_that_no_request_can_carry_is_cleaned(bench: Bench, name: str) -> None:
    async def it() -> str:
        return "half \ud83d of it"

    finished = await _finished(bench, _core(it), name)
    assert "half" in finished.content
    json.dumps(finished.content, ensure_ascii=False).encode()


@BOTH
async def test_huge_result_goes_through(bench: Bench, name: str) -> None:
    async def it() -> str:
        return "x" * 1_000_000

    assert (await _finished(bench, _core(it), name)).content.count("x") == 30_000
    whole = CallOptions(limits=CallLimits(longest_result=None))
    finished = await _finished(bench, _core(it), name, calls=whole)
    assert finished.content == "x" * 1_000_000
