"""A bot whose provider takes tools in system messages, and one that says it does not."""

from __future__ import annotations

from typing import Any

from tests.runner.bench import Bench, named, say, search, turn
from tests.runner.kinds import forecast
from tool_search import Done, RunnerWarning
from tool_search.testing import Endpoint, ScriptedModel

KIMI: dict[str, Any] = {"strategy": "tools_in_messages", "model": "kimi-k3"}


async def test_what_is_found_is_called_and_no_list_ever_changes(bench: Bench) -> None:
    model = ScriptedModel([search("weather"), forecast, say("Sunny."), forecast, say("Still.")])
    bench.server.reset(model=model)
    runner = await bench.runner(providers={"kimi": await bench.provider("kimi", **KIMI)})
    for expected in ("Sunny.", "Still."):
        (done,) = named(await turn(runner, conversation="c"), Done)
        assert done.answer == expected
    assert len({request.tools_bytes for request in bench.requests}) == 1
    assert bench.ran == [("get_forecast", {"city": "Paris"})] * 2


async def test_an_endpoint_that_refuses_them_gets_the_generic_strategy(bench: Bench) -> None:
    """For the same request, with a warning, and for good."""
    bench.may_refuse = True
    model = ScriptedModel([search("weather"), forecast, say("Sunny."), say("Hi.")])
    plain = Endpoint(supports_tool_search=False)
    bench.server.reset(model=model, endpoint=plain)
    runner = await bench.runner(providers={"kimi": await bench.provider("kimi", **KIMI)})
    events = await turn(runner, conversation="c")
    assert [event.code for event in named(events, RunnerWarning)] == ["strategy_replaced"]
    assert named(events, Done)[0].answer == "Sunny."
    assert named(await turn(runner, conversation="c"), RunnerWarning) == []
    assert [status for _, status in bench.asked] == [200, 400, 200, 200, 200]
