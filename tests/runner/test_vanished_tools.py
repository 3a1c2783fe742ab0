"""Tools that go away while a conversation refers to them, and come back, on every kind."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.runner.bench import Bench, call, calling, named, say, search, some_tools, tool, turn
from tests.runner.kinds import KINDS, forecast, provider
from tool_search import MemoryStore, RunnerWarning, Tool, ToolFinished, ToolSearchRunner
from tool_search.testing import ScriptedModel
from tool_search.testing.models.scripted import Step

KIND = pytest.mark.parametrize("kind", KINDS)
RESTARTS = pytest.mark.parametrize("restarts", [False, True], ids=["at once", "after a restart"])
LEFT = [item for item in some_tools() if item.server != "weather"]
CHANGED = tool(
    "get_forecast", "Weather of a city in a unit.", "city", "unit", kind="mcp", server="weather"
)


class Bot:
    """A bot whose tools change between turns, in one process or over several."""

    def __init__(self, bench: Bench, kind: str, *, restarts: bool) -> None:
        self._bench = bench
        self._kind = kind
        self._restarts = restarts
        self._store = MemoryStore()
        self._runner: ToolSearchRunner | None = None

    async def turn(self, tools: Sequence[Tool]) -> tuple[list[str], list[ToolFinished]]:
        """A turn with these tools: what was warned of, and how calls ended."""
        if self._runner is None or self._restarts:
            made = {"one": await provider(self._bench, self._kind)}
            runner = await self._bench.runner(providers=made, tools=tools, store=self._store)
            self._runner = runner
        else:
            self._runner.replace_tools(map(self._bench.runnable, tools))
        events = await turn(self._runner, "Weather?")
        return [event.code for event in named(events, RunnerWarning)], named(events, ToolFinished)


@KIND
@RESTARTS
async def test_tool_whose_server_is_away_stays_callable_and_comes_back(
    bench: Bench, kind: str, restarts: bool
) -> None:
    """Shown with its last definition; a call fails clearly until the server is there."""
    script: list[Step] = [search("weather"), say("1"), forecast, say("2"), forecast, say("3")]
    bench.server.reset(model=ScriptedModel(script))
    bot = Bot(bench, kind, restarts=restarts)
    await bot.turn(some_tools())
    _, gone = await bot.turn(LEFT)
    assert [event.is_error for event in gone] == [True]
    assert '"weather" is not connected' in gone[0].content
    _, back = await bot.turn(some_tools())
    assert [event.is_error for event in back] == [False]
    assert [name for name, _ in bench.ran] == ["get_forecast"]


@KIND
@RESTARTS
async def test_schema_that_changed_meanwhile_is_one_named_break(
    bench: Bench, kind: str, restarts: bool
) -> None:
    new = call("get_forecast", {"city": "Paris", "unit": "C"})
    script: list[Step] = [
        search("weather"),
        say("1"),
        say("2"),
        calling(new),
        say("3"),
        forecast,
        say("4"),
    ]
    bench.server.reset(model=ScriptedModel(script))
    bot = Bot(bench, kind, restarts=restarts)
    await bot.turn(some_tools())
    await bot.turn(LEFT)
    changed = [*LEFT, CHANGED]
    told, ended = await bot.turn(changed)
    assert told.count("schema_changed") == 1
    assert "prefix_moved" not in told
    assert [event.is_error for event in ended] == [False]
    assert b'"unit"' in bench.requests[-1].raw_body.replace(b'\\"', b'"')
    told, ended = await bot.turn(changed)
    assert told == []
    assert [event.is_error for event in ended] == [True]
