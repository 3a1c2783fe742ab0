"""Settings that change between two runs of a bot, on every kind of provider, over real HTTP.

The bench fails a test whose requests a service would have refused.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.runner.bench import FORECAST, Bench, assert_paired, call, calling, named, say, turn
from tests.runner.kinds import KINDS, forecast
from tests.runner.test_restart import JsonStore
from tool_search import RunnerEvent, RunnerWarning, ToolSearchConfig, ToolSearchRunner
from tool_search.testing import ModelCall, ModelReply, ModelView, ScriptedModel
from tool_search.testing.models.scripted import Step

# Besides: tools that come in items of their own, and replies that the service keeps.
FIRST = pytest.mark.parametrize("first", [*KINDS, "late", "kept"])
# `skills_like` is not offered to thinking that is bound to the prefix.
ANY = pytest.mark.parametrize("first", [*KINDS, "late", "kept", "bound"])
# Each mode after each other.
MODES = ("full", "skills_like", "tool_search", "skills_like", "full", "tool_search")
RENAMED = {"search_tool_name": "find_tools"}


class Bot:
    """A bot that is started again and again, with another configuration.

    Its server is never reset: a service goes on keeping replies.
    """

    def __init__(self, bench: Bench, first: str) -> None:
        self.bench = bench
        self.kinds = [first, *(kind for kind in KINDS if kind != first)]
        self.store = JsonStore()
        self.script = ScriptedModel()
        self.runner: ToolSearchRunner | None = None
        bench.server.reset(model=self)

    def reply(self, view: ModelView) -> ModelReply:
        """As the script of the moment says."""
        return self.script.reply(view)

    async def starts(self, **config: Any) -> None:
        """A new process, with one provider of the first kind and one of each other."""
        made = {k: await self.bench.provider(k, **KINDS.get(k, {})) for k in self.kinds}
        settings = ToolSearchConfig(**{"tool_schema_mode": "tool_search", **config})
        self.runner = await self.bench.runner(providers=made, store=self.store, config=settings)

    async def asked(self, *steps: Step, kind: str | None = None) -> list[str]:
        """One turn; gives the codes of its warnings."""
        assert self.runner is not None
        self.script = ScriptedModel(steps)
        self.runner.use(kind or self.kinds[0])
        events: list[RunnerEvent] = await turn(self.runner, "And now?")
        assert not self.bench.server.violations, self.bench.server.violations
        return [event.code for event in named(events, RunnerWarning)]

    def searches(self, name: str) -> ModelReply:
        """A search under a name, where the first kind's search has one."""
        by = "tool_search" if self.kinds[0] in ("responses", "kept") else name
        return calling(ModelCall(name=by, arguments={"query": "weather"}))


def calls_forecast(view: ModelView) -> ModelReply:
    """Calls the forecast; in the first phase of `skills_like` it picks it, by the same call."""
    return forecast(view) if view.tool("call_tool") else calling(FORECAST)


@FIRST
async def test_every_change_of_mode_gives_requests_that_every_service_takes(
    bench: Bench, first: str
) -> None:
    bot = Bot(bench, first)
    await bot.starts()
    assert await bot.asked(bot.searches("tool_search"), calls_forecast, say("1")) == []
    for number, mode in enumerate(MODES):
        bench.ran.clear()
        await bot.starts(tool_schema_mode=mode)
        phases = [calls_forecast] * (2 if mode == "skills_like" else 1)
        assert await bot.asked(*phases, say("2")) == ["settings_changed"]
        assert bench.ran == [("get_forecast", {"city": "Paris"})]
        assert await bot.asked(say("3"), kind=bot.kinds[1 + number % (len(KINDS) - 1)]) == []
    session = bot.runner.session() if bot.runner else None
    assert session is not None
    assert_paired(session.history)


@ANY
async def test_searches_of_the_old_name_are_taken_by_every_service(
    bench: Bench, first: str
) -> None:
    """Thinking before them, one in vain, another tool beside; then a swap to each other kind."""
    bot = Bot(bench, first)
    await bot.starts()
    vain = ModelCall(name="tool_search", arguments={"query": "qwzx"})
    calls = (*bot.searches("tool_search").calls, vain, call("get_time"))
    thinking = ModelReply(calls=calls, thinking="What do I need?")
    assert await bot.asked(thinking, calls_forecast, say("1")) == []
    await bot.starts(**RENAMED, language="ru-RU")
    before, codes = len(bench.requests), []
    bench.ran.clear()
    for kind in bot.kinds:
        codes += await bot.asked(calls_forecast, say("2"), kind=kind)
    assert codes == ["settings_changed"]
    assert bench.ran == [("get_forecast", {"city": "Paris"})] * len(bot.kinds)
    for request in bench.requests[before:]:
        assert b'"name":"tool_search"' not in request.raw_body


@ANY
async def test_restart_after_a_change_changes_no_byte(bench: Bench, first: str) -> None:
    """What a bot that was not restarted would have sent is what is sent."""
    bodies = []
    for restarts in (False, True):
        bot = Bot(bench, first)
        await bot.starts()
        assert await bot.asked(say("1")) == []
        await bot.starts(**RENAMED)
        steps = (bot.searches("find_tools"), calls_forecast, say("2"))
        assert await bot.asked(*steps) == ["settings_changed"]
        if restarts:
            await bot.starts(**RENAMED)
        assert await bot.asked(say("3")) == []
        bodies.append(bench.requests[-1].raw_body)
    assert bodies[0] == bodies[1]
