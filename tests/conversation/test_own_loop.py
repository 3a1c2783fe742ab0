"""A session that runs its own calls: decide, execute and commit in one step."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tool_search import (
    CallOptions,
    CallRunner,
    ConfigurationError,
    InvalidToolError,
    Message,
    Permissions,
    PermissionSettings,
    SessionError,
    Tool,
    ToolCall,
    ToolCatalog,
    ToolContext,
    ToolSearchConfig,
    ToolSearchSession,
    profile_for,
)

PROFILE = profile_for("openai-chat", "gpt-5.4", strategy="generic")
SEARCHING = ToolSearchConfig(tool_schema_mode="tool_search")


def get_forecast(city: str) -> str:
    """Return the weather forecast for a city."""
    return f"Rain in {city}."


def broken() -> str:
    """Fail at once."""
    raise RuntimeError("no luck")


def whoami(context: ToolContext) -> str:
    """Return who asks."""
    return f"{context.user} {sorted(context.roles)}"


def begun(session: ToolSearchSession, **settings: object) -> ToolSearchSession:
    session.begin_turn("Weather in Paris?", profile=PROFILE, **settings)  # type: ignore[arg-type]
    session.plan(PROFILE)
    return session


def called(session: ToolSearchSession, *calls: ToolCall) -> tuple[ToolCall, ...]:
    return session.accept(Message(role="assistant", content="", tool_calls=calls))


async def test_a_call_is_executed_and_its_result_committed() -> None:
    session = begun(ToolSearchSession(tools=[get_forecast]))
    (call,) = called(session, ToolCall(id="1", name="get_forecast", arguments='{"city": "Paris"}'))
    result = await session.run(call)
    assert (result.content, result.is_error) == ("Rain in Paris.", False)
    assert (session.history[-1].role, session.history[-1].text) == ("tool", "Rain in Paris.")


async def test_a_search_and_a_failing_tool_have_their_results_too() -> None:
    session = begun(ToolSearchSession(tools=[get_forecast, broken], config=SEARCHING))
    search = ToolCall(id="1", name="tool_search", arguments='{"query": "weather forecast"}')
    fails = ToolCall(id="2", name="broken", arguments="{}")
    first, second = [await session.run(call) for call in called(session, search, fails)]
    assert not first.is_error
    assert session.discoveries.names == ("get_forecast", "broken")
    assert second.is_error
    assert "no luck" in second.content
    assert "get_forecast" in session.plan(PROFILE).tools.names


async def test_a_call_is_run_once() -> None:
    session = begun(ToolSearchSession(tools=[get_forecast]))
    (call,) = called(session, ToolCall(id="1", name="get_forecast", arguments='{"city": "Paris"}'))
    await session.run(call)
    length = len(session.history)
    with pytest.raises(SessionError, match="has its result already"):
        await session.run(call)
    assert len(session.history) == length


async def test_tools_know_the_roles_of_the_turn() -> None:
    session = begun(ToolSearchSession(tools=[whoami]), roles=["admin"])
    (call,) = called(session, ToolCall(id="1", name="whoami", arguments="{}"))
    assert (await session.run(call)).content == "None ['admin']"


async def test_a_runner_of_its_own_brings_permissions_and_context() -> None:
    rules = Permissions(PermissionSettings.model_validate({"deny": ["get_forecast"]}))
    runner = CallRunner([get_forecast, whoami], options=CallOptions(permissions=rules))
    session = begun(ToolSearchSession(runner.catalog))
    denied, allowed = called(
        session,
        ToolCall(id="1", name="get_forecast", arguments='{"city": "Paris"}'),
        ToolCall(id="2", name="whoami", arguments="{}"),
    )
    context = ToolContext(conversation="c", language="en-US", user="ann")
    assert (await session.run(denied, runner=runner, context=context)).is_error
    assert (await session.run(allowed, runner=runner, context=context)).content == "ann []"


async def test_a_cancelled_call_leaves_a_valid_history() -> None:
    begun_to_wait = asyncio.Event()

    async def waits() -> str:
        """Wait for ever."""
        begun_to_wait.set()
        await asyncio.Event().wait()
        return "never"

    session = begun(ToolSearchSession(tools=[waits]))
    (call,) = called(session, ToolCall(id="1", name="waits", arguments="{}"))
    running = asyncio.create_task(session.run(call))
    await begun_to_wait.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (session.history[-1].role, session.history[-1].is_error) == ("tool", True)


async def test_a_session_of_definitions_says_what_runs_calls() -> None:
    catalog = ToolCatalog([Tool(name="get_forecast", description="Weather.")])
    session = begun(ToolSearchSession(catalog))
    (call,) = called(session, ToolCall(id="1", name="get_forecast", arguments="{}"))
    with pytest.raises(SessionError, match=r"tools=\[functions\]"):
        await session.run(call)


def test_a_catalog_and_tools_contradict_each_other() -> None:
    with pytest.raises(ConfigurationError, match="not both"):
        ToolSearchSession(ToolCatalog(()), tools=[get_forecast])


@pytest.mark.parametrize("given", [get_forecast, "get_forecast", {"f": get_forecast}])
def test_tools_that_are_not_a_list_say_so(given: Any) -> None:
    with pytest.raises(InvalidToolError, match=r"must be a list of functions.*tools=\[\.\.\.\]"):
        ToolSearchSession(tools=given)
