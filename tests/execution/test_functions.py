"""Python functions as tools: their definitions and their calls."""

from __future__ import annotations

import asyncio
import functools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from tool_search import (
    DuplicateToolError,
    ExecutableTool,
    InvalidToolError,
    Tool,
    ToolCall,
    ToolContext,
    tool_from_function,
)
from tool_search.runner.execution import ExecutionResult, FunctionExecutor, executable_tools

CONTEXT = ToolContext(conversation="c", language="en-US", user="ann")


class Unit(StrEnum):
    """A choice by name."""

    CELSIUS = "C"
    KELVIN = "K"


class Address(BaseModel):
    """A nested model."""

    city: str
    zip: str | None = None


@dataclass
class Point:
    """A nested dataclass."""

    x: int
    y: int = 0


def forecast(  # not every parameter is described everywhere
    city: str, days: int = 3, unit: Literal["C", "F"] = "C", note: str | None = None
) -> str:
    """Weather forecast for a city.

    Up to two weeks.

    Args:
        city: The city's name.
        days: How many days.

    Returns:
        The forecast.
    """
    return f"{city} {days} {unit} {note}"


async def run(
    function: Callable[..., Any] | ExecutableTool, timeout_s: float = 5.0, /, **arguments: Any
) -> ExecutionResult:
    """The one result of a call."""
    made = (
        function
        if isinstance(function, ExecutableTool)
        else tool_from_function(function, description="Serve.")
    )
    executor = FunctionExecutor([made], timeout_s=timeout_s)
    call = ToolCall(id="1", name=made.tool.name, arguments=json.dumps(arguments))
    events = [event async for event in executor.run(call, CONTEXT)]
    assert len(events) == 1
    assert isinstance(events[0], ExecutionResult)
    return events[0]


def test_a_function_is_described_by_its_name_docstring_and_signature() -> None:
    tool = tool_from_function(forecast).tool
    assert (tool.name, tool.description) == (
        "forecast", "Weather forecast for a city.\n\nUp to two weeks.",
    )  # fmt: skip
    properties = tool.parameters["properties"]
    assert properties["city"] == {"type": "string", "description": "The city's name."}
    assert properties["days"] == {"type": "integer", "default": 3, "description": "How many days."}
    assert properties["unit"] == {"enum": ["C", "F"], "type": "string", "default": "C"}
    assert tool.parameters["required"] == ["city"]


@pytest.mark.parametrize(
    "docstring",
    [
        "Adds.\n\nArgs:\n    a: First.",
        "Adds.\n\n:param a: First.",
        "Adds.\n\nParameters\n----------\na : int\n    First.",
    ],
    ids=["google", "rest", "numpy"],
)
def test_parameters_are_described_in_any_common_style(docstring: str) -> None:
    def add(a: int) -> int:
        return a

    add.__doc__ = docstring
    tool = tool_from_function(add).tool
    assert tool.description == "Adds."
    assert tool.parameters["properties"]["a"]["description"] == "First."


def test_a_definition_may_say_otherwise() -> None:
    tool = tool_from_function(forecast, name="weather", tags=("sky",), kind="builtin").tool
    assert (tool.name, tool.tags, tool.kind) == ("weather", ("sky",), "builtin")


def test_a_function_without_parameters_takes_no_arguments() -> None:
    def now() -> str:
        return "noon"

    assert tool_from_function(now, description="Give it.").tool.parameters == {}


@pytest.mark.parametrize("name", ["json", "schema", "copy", "model_config", "self_", "dict"])
async def test_a_parameter_may_have_any_name(name: str) -> None:
    """Names that pydantic's models use for themselves too."""
    scope: dict[str, Any] = {}
    exec(f"def f({name}: str = 'x'):\n    return {name}", scope)  # noqa: S102
    made = tool_from_function(scope["f"], description="Take it.")
    assert list(made.tool.parameters["properties"]) == [name]
    assert await run(scope["f"], **{name: "y"}) == ExecutionResult(content="y")


def test_titles_of_pydantics_own_are_left_out_and_others_kept() -> None:
    def make(title: str, options: dict[str, str] = {"title": "x"}) -> None:  # noqa: B006
        """Make."""

    schema = tool_from_function(make).tool.parameters
    assert "title" not in schema
    assert schema["properties"]["title"] == {"type": "string"}
    assert schema["properties"]["options"]["default"] == {"title": "x"}


async def test_arguments_reach_the_function_as_python_types() -> None:
    """Annotations that ask for more than JSON get it."""

    def book(where: Address, at: Point, when: date, unit: Unit, many: list[Point]) -> str:
        return f"{where.city} {at.x + at.y} {when.year} {unit.name} {many[0].y}"

    result = await run(
        book, where={"city": "Oslo"}, at={"x": 1}, when="2026-11-21", unit="K", many=[{"x": 0}]
    )
    assert result == ExecutionResult(content="Oslo 1 2026 KELVIN 0")


async def test_what_is_not_given_is_the_functions_own_default() -> None:
    def ask(city: str, at: Annotated[str, Field(min_length=1)] = "") -> str:
        return f"{city}{at!r}"

    assert (await run(ask, city="Oslo")).content == "Oslo''"


@pytest.mark.parametrize(
    "arguments", [{}, {"city": 5}, {"city": "Oslo", "days": "many"}, {"city": "x", "extra": 1}]
)
async def test_arguments_that_do_not_fit_are_an_error_result(arguments: dict[str, Any]) -> None:
    result = await run(forecast, **arguments)
    assert result.is_error
    assert any(name in result.content for name in ("city", "days", "extra"))


def _star(*cities: str) -> None: ...
def _stars(**cities: str) -> None: ...
def _positional(city: str, /) -> None: ...
def _unknown(city: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def _indescribable(city: Callable[[], int]) -> None: ...


@pytest.mark.parametrize("function", [_star, _stars, _positional, _unknown, _indescribable, min])
def test_a_function_that_cannot_be_described_is_an_error_that_names_it(
    function: Callable[..., Any],
) -> None:
    with pytest.raises(InvalidToolError, match=f"tool '{function.__name__}'"):
        tool_from_function(function)


def test_a_lambda_needs_a_name() -> None:
    """Its own name is not valid for a model, but a given one is."""
    assert (
        tool_from_function(lambda city: city, name="echo", description="Echo.").tool.name == "echo"
    )


async def test_objects_partials_and_methods_are_functions_too() -> None:
    class Greeter:
        def __call__(self, name: str) -> str:
            return f"hi {name}"

        async def wave(self, name: str) -> str:
            return f"wave {name}"

    made = tool_from_function(Greeter(), name="greet", description="Greet.")
    assert made.tool.parameters["properties"]["name"] == {"type": "string"}
    assert (await run(made, name="Bo")).content == "hi Bo"
    assert (await run(Greeter().wave, name="Bo")).content == "wave Bo"
    short = tool_from_function(functools.partial(forecast, city="Oslo"), name="oslo")
    assert short.tool.parameters["properties"]["days"]["type"] == "integer"
    assert (await run(short, days=1)).content == "Oslo 1 C None"


@pytest.mark.parametrize("kind", [ToolContext, ToolContext | None])
async def test_the_context_is_given_and_is_no_argument(kind: Any) -> None:
    def who(context: Any = None) -> str:
        return f"{context.user} in {context.conversation}"

    who.__annotations__ = {"context": kind, "return": str}
    assert tool_from_function(who, description="Say who.").tool.parameters == {}
    assert (await run(who)).content == "ann in c"
    assert (await run(who, context={"user": "eve"})).is_error


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (None, ""), ("", ""), ("text", "text"), (5, "5"), (True, "true"), ([1, "天"], '[1,"天"]'),
        ({"a": None}, '{"a":null}'), (Address(city="Oslo"), '{"city":"Oslo","zip":null}'),
        ([Address(city="Oslo")], '[{"city":"Oslo","zip":null}]'), (Point(1), '{"x":1,"y":0}'),
        ({"when": date(2026, 11, 21)}, '{"when":"2026-11-21"}'), (b"ab", '"ab"'),
        (float("nan"), "nan"), ({1}, "[1]"), ({"unit": Unit.KELVIN}, '{"unit":"K"}'),
    ],
)  # fmt: skip
async def test_a_result_of_any_type_becomes_text(value: object, content: str) -> None:
    def give() -> Any:
        return value

    assert await run(give) == ExecutionResult(content=content)


async def test_a_result_that_has_no_json_becomes_its_text() -> None:
    circle: list[Any] = []
    circle.append(circle)

    def give() -> Any:
        return circle

    def thing() -> Any:
        return {"a": time}

    assert (await run(give)).content == "[[...]]"
    assert "module 'time'" in (await run(thing)).content


async def test_a_result_that_cannot_even_be_written_is_an_error_result() -> None:
    class Unwritable:
        def __str__(self) -> str:
            raise OSError("no text")

    def give() -> Any:
        return Unwritable()

    assert (await run(give)).is_error


class _Unusual(BaseException):
    pass


def _raising(error: BaseException) -> list[Callable[[], Any]]:
    def sync() -> None:
        raise error

    async def asynchronous() -> None:
        raise error

    def awaitable() -> Any:
        return asynchronous()

    return [sync, asynchronous, awaitable]


@pytest.mark.parametrize("way", [0, 1, 2], ids=["sync", "async", "awaitable"])
@pytest.mark.parametrize(
    "error",
    [
        ValueError("no such city"), KeyError("x"), TimeoutError("slow"), StopIteration("end"),
        SystemExit(3), GeneratorExit(), asyncio.CancelledError(), BaseExceptionGroup("g",
        [_Unusual()]), RecursionError(), MemoryError(), AssertionError(),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
async def test_whatever_a_function_raises_is_an_error_result(
    error: BaseException, way: int
) -> None:
    """A tool's failure never ends the bot, and the model reads it."""
    result = await run(_raising(error)[way])
    assert result.is_error
    assert result.content.startswith(("sync failed: ", "asynchronous failed: ", "awaitable failed"))


async def test_the_cause_of_a_failure_is_told_to_the_model() -> None:
    result = await run(_raising(ValueError("no such city"))[0])
    assert result.content == "sync failed: ValueError: no such city"


@pytest.mark.parametrize("way", ["sync", "async"])
async def test_a_function_that_never_returns_is_given_up(way: str) -> None:
    def hang() -> None:
        time.sleep(30)

    async def wait() -> None:
        await asyncio.Event().wait()

    result = await run(hang if way == "sync" else wait, 0.05)
    assert result.is_error
    assert "within 0.05 seconds" in result.content


async def test_cancelling_a_call_cancels_the_tool() -> None:
    ended = asyncio.Event()
    started = asyncio.Event()

    async def wait() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.ensure_future(run(wait))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_sync_functions_run_beside_each_other() -> None:
    turn = asyncio.Event()
    loop = asyncio.get_running_loop()

    def first() -> str:
        return asyncio.run_coroutine_threadsafe(turn.wait(), loop).result(5) and "first"

    def second() -> str:
        loop.call_soon_threadsafe(turn.set)
        return "second"

    results = await asyncio.gather(run(first), run(second))
    assert [result.content for result in results] == ["first", "second"]


async def test_a_tool_without_executor_is_an_error_result() -> None:
    """Its source may have disappeared since the decision."""
    call = ToolCall(id="1", name="gone")
    (result,) = [event async for event in FunctionExecutor([]).run(call, CONTEXT)]
    assert isinstance(result, ExecutionResult)
    assert result.is_error


async def test_a_definition_with_a_function_of_its_own_gets_json_types() -> None:
    made = ExecutableTool(tool=Tool(name="echo"), function=lambda **given: given)
    assert (await run(made, a=[1])).content == '{"a":[1]}'


def test_two_tools_of_one_name_are_an_error() -> None:
    """The choice between them would be ambiguous."""
    made = tool_from_function(forecast)
    with pytest.raises(DuplicateToolError, match="'forecast'"):
        FunctionExecutor([made, made])


def test_functions_and_tools_may_be_given_together() -> None:
    made = tool_from_function(forecast, name="b")
    assert [item.tool.name for item in executable_tools([made, forecast])] == ["b", "forecast"]


@pytest.mark.parametrize("item", ["forecast", 5, None, Tool(name="t")])
def test_anything_else_is_no_tool(item: Any) -> None:
    with pytest.raises(InvalidToolError, match="must be a function"):
        executable_tools([item])
