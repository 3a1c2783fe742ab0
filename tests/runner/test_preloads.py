"""Tools that are loaded for the user's message, over real HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runner.bench import FORECAST, Bench, calling, named, say, search, some_tools, turn
from tool_search import (
    CallOptions,
    ExecutableTool,
    MemoryStore,
    Permissions,
    PermissionSettings,
    SQLiteStore,
    ToolsDiscovered,
    ToolSearchConfig,
)
from tool_search.runner.execution import PermissionRequest
from tool_search.testing import ScriptedModel

PRELOADING = ToolSearchConfig(tool_schema_mode="tool_search", preload=2, preload_score=0.5)
SAID = "Weather forecast of a city"
KINDS = pytest.mark.parametrize(
    "kind", ["claude", "bound", "glm", "gpt", "responses", "kept", "late"]
)


async def _yes(_: PermissionRequest) -> bool:
    return True


def found(events: Any) -> list[tuple[tuple[str, ...], str]]:
    """The discoveries that were announced."""
    return [(tuple(event.names), event.via) for event in named(events, ToolsDiscovered)]


@KINDS
async def test_a_preloaded_tool_is_called_in_the_first_request(bench: Bench, kind: str) -> None:
    bench.server.reset(model=ScriptedModel([calling(FORECAST), say("Sunny."), say("Bye.")]))
    runner = await bench.runner(kind, config=PRELOADING)
    events = await turn(runner, SAID)
    assert found(events) == [(("get_forecast",), "preload")]
    assert bench.ran == [("get_forecast", {"city": "Paris"})]
    assert len(bench.requests) == 2
    await turn(runner, "Thanks")
    assert [request.status for request in bench.requests] == [200] * 3


@KINDS
async def test_a_preload_survives_a_restart(bench: Bench, kind: str, tmp_path: Path) -> None:
    store = (
        await bench.stack.enter_async_context(SQLiteStore(tmp_path / "bot.db"))
        if kind == "gpt"
        else MemoryStore()
    )
    bench.server.reset(model=ScriptedModel([say("One."), calling(FORECAST), say("Two.")]))
    await turn(await bench.runner(kind, config=PRELOADING, store=store), SAID)
    again = await bench.runner(kind, config=PRELOADING, store=store)
    assert found(await turn(again, "Go on")) == []
    assert bench.ran == [("get_forecast", {"city": "Paris"})]


async def test_a_search_of_the_model_says_so(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([search("forecast"), say("Found.")]))
    events = await turn(await bench.runner("gpt"), "Hello")
    assert found(events) == [(("get_forecast",), "search")]


async def test_thinking_with_a_budget_is_not_refused(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([calling(FORECAST), say("Sunny.")]))
    provider = await bench.provider(
        "claude", extra_body={"thinking": {"type": "enabled", "budget_tokens": 1024}}
    )
    runner = await bench.runner(providers={"claude": provider}, config=PRELOADING)
    await turn(runner, SAID)
    assert [request.status for request in bench.requests] == [200, 200]


@pytest.mark.parametrize(
    "rules",
    [
        {"ask": ["get_forecast"]},
        {"ask": ["get_forecast(city=Paris)"]},
        {"policy": {"ask": ["get_forecast"]}},
        {"otherwise": "ask"},
        {"deny": ["get_forecast"]},
        {"otherwise": "deny"},
    ],
)
async def test_a_tool_that_asks_or_is_denied_is_not_preloaded(
    bench: Bench, rules: dict[str, Any]
) -> None:
    bench.server.reset(model=ScriptedModel([say("Hello.")]))
    options = CallOptions(
        permissions=Permissions(PermissionSettings.model_validate(rules), ask=_yes)
    )
    runner = await bench.runner("gpt", config=PRELOADING, calls=options)
    assert found(await turn(runner, SAID)) == []


@pytest.mark.parametrize("wanted", [True, lambda _: False])
async def test_a_tool_whose_author_lets_it_ask_is_not_preloaded(bench: Bench, wanted: Any) -> None:
    bench.server.reset(model=ScriptedModel([say("Hello.")]))
    forecast = next(item for item in some_tools() if item.name == "get_forecast")
    asking = ExecutableTool(tool=forecast, function=lambda city: city, needs_permission=wanted)
    options = CallOptions(permissions=Permissions(ask=_yes))
    runner = await bench.runner("gpt", tools=[asking], config=PRELOADING, calls=options)
    assert found(await turn(runner, SAID)) == []
