"""Lists that no provider takes whole: rendered within the limit, every tool callable."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.runner.bench import (
    Bench,
    assert_paired,
    call,
    calling,
    many_tools,
    named,
    results,
    say,
    search,
    tool,
    turn,
)
from tool_search import (
    Done,
    RunnerEvent,
    RunnerWarning,
    ToolCallStarted,
    ToolFinished,
    ToolSearchConfig,
)
from tool_search.testing import Endpoint, Fault, ModelReply, ScriptedModel

WIDE = ToolSearchConfig(tool_schema_mode="tool_search", max_results=100)
FULL = ToolSearchConfig(tool_schema_mode="full")


def _through(name: str, **arguments: str) -> ModelReply:
    return calling(call("call_tool", {"name": name, "arguments": arguments}))


async def test_endpoint_with_a_shorter_limit_is_sent_a_shorter_list(bench: Bench) -> None:
    """Once more within 40, with a warning; remembered for the next turn and for others."""
    bench.may_refuse = True
    bench.server.reset(
        model=ScriptedModel(
            [search("gadget"), say("Found."), say("Hi."), search("gadget"), say("Hi.")]
        ),
        endpoint=Endpoint(max_tools=40),
    )
    runner = await bench.runner("gpt", tools=many_tools(60), config=WIDE)
    events = await turn(runner)
    assert [event.code for event in named(events, RunnerWarning)] == ["rendered_within_limit"]
    assert [len(r.tool_names) for r in bench.requests] == [1, 61, 40]
    assert bench.requests[-1].tool_names[-1] == "call_tool"
    assert named(await turn(runner), RunnerWarning) == []
    assert named(await turn(runner, conversation="another"), RunnerWarning) == []
    assert [status for _, status in bench.asked] == [200, 400, 200, 200, 200, 200]


async def test_full_mode_above_the_limit_becomes_tool_search(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([search("number 149"), say("Found.")]))
    runner = await bench.runner("gpt", tools=many_tools(150), config=FULL)
    await turn(runner)
    session = runner.session()
    assert session is not None
    assert session.decision.reason == "above_provider_limit"
    assert bench.requests[0].tool_names == ("tool_search",)


async def test_full_mode_that_an_endpoint_refuses_becomes_tool_search(bench: Bench) -> None:
    """The limit was not known; within the same turn the model gets what it can take."""
    bench.may_refuse = True
    bench.server.reset(model=ScriptedModel([say("Hi.")]), endpoint=Endpoint(max_tools=40))
    runner = await bench.runner("gpt", tools=many_tools(60), config=FULL)
    events = await turn(runner)
    codes = [event.code for event in named(events, RunnerWarning)]
    assert codes == ["rendered_within_limit", "mode_changed"]
    assert bench.requests[-1].tool_names == ("tool_search",)
    assert "tool_search" in bench.requests[-1].body["messages"][0]["content"]


async def test_a_catalog_that_claude_refused_has_references_again_once_it_is_smaller(
    bench: Bench,
) -> None:
    """The size is what was refused, not the way: filtered while it lasts, and no longer."""
    bench.server.reset(model=ScriptedModel([search("number 007"), say("Found."), say("Hi.")]))
    fault = Fault(
        dialect="anthropic", status=400, code="available_tools_limit_exceeded",
        message="tools: too much text is deferred",
    )  # fmt: skip
    bench.server.faults.add(fault)
    runner = await bench.runner("claude", tools=many_tools(30))
    events = await turn(runner, conversation="c")
    codes = [event.code for event in named(events, RunnerWarning)]
    assert codes == ["rendered_within_limit", "catalog_over_limit"]
    assert [len(request.tool_names) for request in bench.requests] == [31, 1, 2]
    runner.replace_tools(map(bench.runnable, many_tools(20)))
    await turn(runner, conversation="c")
    assert b'"defer_loading"' in (bench.requests[-1].tools_bytes or b"")
    assert '"tool_reference"' in json.dumps(bench.requests[-1].body["messages"])
    assert [status for _, status in bench.asked] == [400, 200, 200, 200]


async def test_discoveries_beyond_the_limit_survive_a_swap(bench: Bench) -> None:
    found = [search("gadget"), search("name:gadget_1*"), say("Found all.")]
    script = [*found, _through("gadget_149", part="x"), say("Ran.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner(tools=many_tools(150), config=WIDE)
    await turn(runner)
    runner.use("gpt")
    events = await turn(runner)
    last = bench.requests[-1]
    assert len(last.tool_names) == 128
    assert last.tool_names[-1] == "call_tool"
    assert bench.ran == [("gadget_149", {"part": "x"})]
    assert named(events, ToolCallStarted)[0].tool == "gadget_149"


async def _beyond(bench: Bench, *script: ModelReply) -> list[RunnerEvent]:
    """A conversation on `gpt` that has found all of 150 tools; then a turn of the script."""
    tools = many_tools(150)
    found = [search("gadget", "name:gadget_1*"), say("Found.")]
    bench.server.reset(model=ScriptedModel([*found, *script]))
    runner = await bench.runner("gpt", tools=tools, config=WIDE)
    await turn(runner)
    session = runner.session()
    assert session is not None
    assert len(session.discoveries) == 150
    events = await turn(runner, "Go on")
    assert_paired(session.history)
    return events


async def test_call_tool_comes_last_and_stays(bench: Bench) -> None:
    """Later requests have the same list, byte for byte."""
    await _beyond(bench, _through("gadget_149", part="x"), say("Done."))
    assert len({request.tools_bytes for request in bench.requests[1:]}) == 1
    assert bench.requests[-1].tool_names[-1] == "call_tool"


async def test_search_result_beyond_the_limit_carries_the_schema(bench: Bench) -> None:
    """Nothing else in the request has it."""
    await _beyond(bench, say("Done."))
    last = bench.requests[-1]
    shown = [json.loads(m["content"]) for m in last.body["messages"] if m["role"] == "tool"]
    matches = [match for result in shown for match in result["matches"]]
    missing = [m for m in matches if m["name"] not in last.tool_names]
    assert missing
    assert all(m["parameters"]["properties"] == {"part": {"type": "string"}} for m in missing)
    assert all("parameters" not in m for m in matches if m["name"] in last.tool_names)


async def test_wrong_arguments_through_call_tool_are_answered_with_the_schema(
    bench: Bench,
) -> None:
    events = await _beyond(
        bench, _through("gadget_149", piece="x"), _through("gadget_149", part="x"), say("Done.")
    )
    first, second = named(events, ToolFinished)
    assert first.is_error
    assert first.tool == "gadget_149"
    assert '"part"' in first.content
    assert not second.is_error
    assert bench.ran == [("gadget_149", {"part": "x"})]


@pytest.mark.parametrize(
    "arguments",
    [{}, {"name": 7}, {"name": "gadget_149", "arguments": "{"}, {"name": "gadget_999"}],
    ids=["nothing", "no name", "broken", "unknown"],
)
async def test_broken_call_through_call_tool_is_answered(
    bench: Bench, arguments: dict[str, object]
) -> None:
    events = await _beyond(bench, calling(call("call_tool", arguments)), say("Done."))
    assert [event.is_error for event in named(events, ToolFinished)] == [True]
    assert bench.ran == []


async def test_search_through_call_tool_is_a_search(bench: Bench) -> None:
    events = await _beyond(bench, _through("tool_search", query="gadget"), say("Done."))
    finished = named(events, ToolFinished)[0]
    assert finished.tool == "tool_search"
    assert json.loads(finished.content)["loaded"]


async def test_swap_back_from_the_limit_refers_to_everything(bench: Bench) -> None:
    """Claude has the whole catalog, and calls what the list had no room for."""
    tools = many_tools(150)
    found = [search("gadget", "name:gadget_1*"), say("Found.")]
    direct = calling(call("gadget_149", {"part": "x"}))
    script = [*found, _through("gadget_149", part="x"), say("Ran."), direct, say("Ran.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner("gpt", "claude", tools=tools, config=WIDE)
    await turn(runner)
    await turn(runner)
    runner.use("claude")
    events = await turn(runner)
    assert named(events, Done)[0].answer == "Ran."
    assert bench.ran == [("gadget_149", {"part": "x"})] * 2


async def test_core_above_the_limit_is_cut_with_a_way_to_the_rest(bench: Bench) -> None:
    """140 tools that are always wanted: what has no room is deferred, and found."""
    tools = [tool(f"core_{n:03}", f"Core thing {n}.", always_load=True) for n in range(140)]
    script = [search("core thing 139"), calling(call("core_139")), say("Ran.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner("gpt", tools=tools)
    events = await turn(runner)
    assert [event.code for event in named(events, RunnerWarning)] == ["catalog_over_limit"]
    assert bench.ran == [("core_139", {})]
    session = runner.session()
    assert session is not None
    assert [result.is_error for result in results(session.history)] == [False, False]


async def test_catalog_beyond_claude_gets_the_generic_strategy(bench: Bench) -> None:
    tools = [tool(f"heavy_{n}", "x" * 900_000) for n in range(5)]
    bench.server.reset(model=ScriptedModel([say("Hi.")] * 2))
    runner = await bench.runner("claude", tools=tools)
    events = await turn(runner)
    assert [event.code for event in named(events, RunnerWarning)] == ["catalog_over_limit"]
    assert bench.requests[0].tool_names == ("tool_search",)
    assert named(await turn(runner), RunnerWarning) == []


@pytest.mark.parametrize("mode", ["full", "tool_search"])
async def test_core_tools_that_a_learned_limit_has_no_room_for_are_found(
    bench: Bench, mode: str
) -> None:
    """Twenty core tools, and an endpoint that turns out to take ten: the rest is deferred."""
    bench.may_refuse = True
    script = [search("number 19"), calling(call("gadget_019", {"part": "x"})), say("Ran.")]
    bench.server.reset(model=ScriptedModel(script), endpoint=Endpoint(max_tools=10))
    core = [replace(item, always_load=True) for item in many_tools(20)]
    waiting = tool("send_mail", "Send an e-mail to somebody.", "to")
    config = ToolSearchConfig.model_validate({"tool_schema_mode": mode})
    runner = await bench.runner("gpt", tools=[*core, waiting], config=config)
    events = await turn(runner)
    assert "rendered_within_limit" in [event.code for event in named(events, RunnerWarning)]
    assert all(len(request.tool_names) <= 10 for request in bench.requests[1:])
    assert "tool_search" in bench.requests[-1].tool_names
    assert bench.ran == [("gadget_019", {"part": "x"})]


async def test_endpoint_with_shorter_replies_is_asked_once_more(bench: Bench) -> None:
    bench.may_refuse = True
    bench.server.reset(
        model=ScriptedModel([say("Hi."), say("Again.")]), endpoint=Endpoint(max_output_tokens=8_192)
    )
    runner = await bench.runner("glm")
    events = await turn(runner)
    assert [event.code for event in named(events, RunnerWarning)] == ["rendered_within_limit"]
    assert named(events, Done)[0].answer == "Hi."
    await turn(runner)
    assert [r.body["max_tokens"] for r in bench.requests] == [32_000, 8_192, 8_192]


async def test_context_that_leaves_less_room_gets_shorter_replies(bench: Bench) -> None:
    """Half of what is left, since the conversation grows."""
    bench.may_refuse = True
    bench.server.reset(model=ScriptedModel([say("Hi.")]))
    message = (
        "input length and `max_tokens` exceed context limit: 150000 + 128000 > 200000, decrease "
        "input length or `max_tokens` and try again"
    )
    bench.server.faults.add(Fault(status=400, message=message))
    events = await turn(await bench.runner("claude"))
    assert named(events, Done)[0].answer == "Hi."
    assert [r.body["max_tokens"] for r in bench.requests] == [128_000, 25_000]
