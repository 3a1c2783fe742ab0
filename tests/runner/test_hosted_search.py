"""A bot whose provider searches its catalog itself."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.runner.bench import SEARCHING, Bench, calling, named, say, some_tools, tool, turn
from tests.runner.kinds import KINDS, forecast, provider
from tool_search import Done, MemoryStore, ToolsDiscovered
from tool_search.testing import KeywordModel, ModelCall, ModelReply, ScriptedModel

FOUND = ModelReply(
    calls=(ModelCall(name="tool_search", arguments={"paths": ["weather"]}),), text="I have looked."
)
SERVICE = ["tool_search_call", "tool_search_output"]


@pytest.mark.parametrize("form", ["hosted", "deferred", "client"])
async def test_every_form_of_search_finds_and_calls_a_tool(bench: Bench, form: str) -> None:
    """By the service or by us, the tool is called, and the next turn needs no search."""
    bench.server.reset(model=KeywordModel())
    service = await bench.provider("responses", tool_search=form)
    runner = await bench.runner(providers={"responses": service}, config=SEARCHING)
    for _ in range(2):
        (done,) = named(await turn(runner, 'Weather forecast for "Paris", please'), Done)
        assert done.answer == "get_forecast: get_forecast is done"
    assert bench.ran == [("get_forecast", {"city": "Paris"})] * 2
    requests = [len(request.body["input"]) for request in bench.requests]
    assert requests == sorted(requests)


@pytest.mark.parametrize("kind", KINDS)
async def test_what_the_service_found_is_callable_after_a_swap(bench: Bench, kind: str) -> None:
    bench.server.reset(model=ScriptedModel([FOUND, say("It is there."), forecast, say("Sunny.")]))
    providers = {
        "service": await bench.provider("responses", tool_search="hosted"),
        "next": await provider(bench, kind),
    }
    runner = await bench.runner(providers=providers, config=SEARCHING)
    (found,) = named(await turn(runner, conversation="c"), ToolsDiscovered)
    assert found.names == ("get_forecast",)
    runner.use("next")
    (done,) = named(await turn(runner, "And Paris?", conversation="c"), Done)
    assert (done.answer, done.steps) == ("Sunny.", 2)
    assert bench.ran == [("get_forecast", {"city": "Paris"})]


async def test_the_service_reads_its_own_search_again_and_no_other(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([FOUND, say("It is there."), forecast, say("Sunny.")]))
    service = await bench.provider("responses", tool_search="hosted")
    store = MemoryStore()
    for _ in range(2):  # the second bot goes on from the store
        runner = await bench.runner(providers={"service": service}, config=SEARCHING, store=store)
        await turn(runner, "Paris?", conversation="c")
    inputs = [request.body["input"] for request in bench.requests]
    kinds = [item.get("type", "message") for item in inputs[-1]]
    assert [kind for kind in kinds if kind.startswith("tool_search")] == SERVICE
    for before, after in pairwise(inputs):
        assert after[: len(before)] == before
    assert bench.ran == [("get_forecast", {"city": "Paris"})]


async def test_the_service_is_not_sent_what_this_user_may_not_call(bench: Bench) -> None:
    """It knows no roles, and its own search would find the tool."""
    press = ModelCall(name="tool_search", arguments={"paths": ["press"]})
    script = [FOUND, say("It is there."), calling(press), say("No.")]
    bench.server.reset(model=ScriptedModel(script))
    plain = tool("get_news", "News, weather too.", kind="mcp", server="press")
    tools = [plain, *(replace(one, roles=("admin",)) for one in some_tools())]
    service = await bench.provider("responses", tool_search="hosted")
    runner = await bench.runner(providers={"service": service}, tools=tools, config=SEARCHING)
    (found,) = named(await turn(runner, conversation="a", roles=["admin"]), ToolsDiscovered)
    assert "get_forecast" in found.names
    (found,) = named(await turn(runner, conversation="b"), ToolsDiscovered)
    assert found.names == ("get_news",)
    assert "get_forecast" not in json.dumps(bench.requests[-1].body)
