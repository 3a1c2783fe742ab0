"""Whether an operator is told of a prompt cache that breaks for no announced reason."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest

from tests.runner.bench import (
    FORECAST,
    SEARCHING,
    Bench,
    calling,
    named,
    say,
    search,
    some_tools,
    turn,
)
from tool_search import ToolCatalog, ToolSearchSession
from tool_search.core.messages import Message
from tool_search.providers.prompt_cache import PrefixMonitor
from tool_search.runner.conversations import TurnWatch
from tool_search.runner.events import RunnerWarning
from tool_search.runner.execution import CallRunner, ToolContext, TurnCalls
from tool_search.runner.execution.observers import EventStream, Readers
from tool_search.runner.providers import ProviderPool
from tool_search.runner.turn import Turn
from tool_search.stores import MemoryStore
from tool_search.stores.keeping import Backlog, ConversationKeeper, KeptConversation
from tool_search.testing import ScriptedModel, prefix_change


@pytest.mark.parametrize(("system", "codes"), [("Other.", ["prefix_moved"]), (None, [])])
async def test_request_that_leaves_its_prefix_untold_is_a_warning(
    bench: Bench, system: str | None, codes: list[str]
) -> None:
    bench.server.reset(model=ScriptedModel([say("Hello.")]))
    gpt = await bench.provider("gpt")
    session = ToolSearchSession(ToolCatalog(some_tools()), config=SEARCHING)
    session.begin_turn("Hi", profile=gpt.profile)
    plan = session.plan(gpt.profile)
    keeper = ConversationKeeper(MemoryStore(), Backlog())
    monitor = PrefixMonitor()
    last = plan if system is None else replace(plan, system=system)
    monitor.check("gpt", gpt.profile, last, history=session.history)
    stream = EventStream(Readers(), "c")
    asked = Turn(
        session=session,
        pool=ProviderPool({"gpt": gpt}, {"gpt": 1.0}),
        provider="gpt",
        calls=CallRunner(),
        context=ToolContext(conversation="c", language="en-US"),
        keys=TurnCalls("c"),
        keep=partial(keeper.append, KeptConversation("c")),
        stream=stream,
        max_steps=2,
        prefixes=monitor,
    )
    events = TurnWatch(None, stream).events(Message(role="user"), asked.run, tuple)
    warnings = named([event async for event in events], RunnerWarning)
    assert [warning.code for warning in warnings] == codes
    assert all("'gpt' is sent differs" in warning.message for warning in warnings)
    assert all("at system" in warning.message for warning in warnings)


async def test_conversation_with_swaps_tells_of_no_broken_cache(
    bench: Bench,
) -> None:
    """What the bytes of its requests confirm, for each provider."""
    forecast = calling(FORECAST)
    script = [search("weather"), forecast, say("Sunny."), say("Yes."), search("mail"), say("No.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner("claude", "gpt")
    warnings: list[RunnerWarning] = []
    for provider in ("claude", "gpt", "claude"):
        runner.use(provider)
        warnings += named(await turn(runner, "And now?"), RunnerWarning)
    assert warnings == []
    bodies = [r.raw_body for r in bench.server.requests if r.dialect == "anthropic"]
    assert len(bodies) == 5
    assert [prefix_change(*pair) for pair in pairwise(bodies)] == [None] * 4
