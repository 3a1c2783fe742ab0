"""A provider fails, in every way there is: the next takes the turn over, nothing is lost."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass

import pytest

from tests.runner.bench import (
    FORECAST,
    KEY,
    Bench,
    assert_paired,
    call,
    calling,
    many_tools,
    named,
    say,
    search,
    some_tools,
    tool,
    turn,
)
from tool_search import (
    AllProvidersFailedError,
    ConfigurationError,
    Done,
    ProviderSwitched,
    RunnerWarning,
    TextDelta,
    ToolCallStarted,
    ToolFinished,
    ToolsDiscovered,
    ToolSearchConfig,
)
from tool_search.core.catalog.naming import wire_name
from tool_search.testing import Endpoint, Fault, ScriptedModel, StandInServer

UNREACHABLE = "http://127.0.0.1:9"
NO_REFERENCE = "messages.2.content.0: Tool reference 'get_forecast' not found in available tools"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A way to fail, and whether the provider rests after it."""

    fault: Fault
    rests: bool = True
    discarded: bool = False


def _status(status: int) -> Case:
    return Case(fault=Fault(dialect="anthropic", status=status, times=None))


CASES = {
    **{str(status): _status(status) for status in (401, 403, 408, 409, 429, 500, 502, 503, 529)},
    "400": Case(
        fault=Fault(dialect="anthropic", status=400, message="no credit", times=None), rests=False
    ),
    "404": Case(fault=Fault(dialect="anthropic", status=404, times=None), rests=False),
    "hangs up": Case(fault=Fault(dialect="anthropic", broken=True, times=None)),
    "breaks in text": Case(
        fault=Fault(dialect="anthropic", broken=True, after_events=5, times=None), discarded=True
    ),
    "error in text": Case(
        fault=Fault(dialect="anthropic", status=529, after_events=5, times=None), discarded=True
    ),
    "no JSON": Case(fault=Fault(dialect="anthropic", body=b"<html>", times=None)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_failing_provider_is_followed_by_the_next(bench: Bench, case: Case) -> None:
    bench.server.reset(model=ScriptedModel([say("Many words of an answer.")] * 3))
    bench.server.faults.add(case.fault)
    runner = await bench.runner()
    events = await turn(runner)
    switch = named(events, ProviderSwitched)[0]
    assert (switch.from_provider, switch.to_provider) == ("claude", "gpt")
    assert "'claude' failed" in switch.cause
    assert bool(switch.discarded_text) == case.discarded
    behind = events[events.index(switch) :]
    assert "".join(event.text for event in named(behind, TextDelta)) == "Many words of an answer."
    assert named(events, Done)[0].provider == "gpt"


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_failed_provider_rests_where_the_failure_is_its_own(bench: Bench, case: Case) -> None:
    """A refused request says nothing of the next one: that provider is asked again at once."""
    bench.server.reset(model=ScriptedModel([say("Words of an answer.")] * 6))
    bench.server.faults.add(case.fault)
    runner = await bench.runner()
    await turn(runner)
    before = len(bench.requests)
    await turn(runner)
    first = bench.requests[before].dialect
    assert first == ("openai_chat" if case.rests else "anthropic")


async def test_text_of_a_broken_reply_travels_with_the_switch(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([say("One two three four five."), say("Afresh.")]))
    bench.server.faults.add(Fault(dialect="anthropic", broken=True, after_events=5))
    events = await turn(await bench.runner())
    switch = named(events, ProviderSwitched)[0]
    shown = named(events[: events.index(switch)], TextDelta)
    assert switch.discarded_text == "".join(event.text for event in shown)
    assert "One two three four five.".startswith(switch.discarded_text)
    assert named(events, Done)[0].answer == "Afresh."


@pytest.mark.parametrize("names", [("claude", "gpt"), ("gpt", "claude")], ids="-".join)
async def test_half_a_tool_call_is_dropped(bench: Bench, names: tuple[str, str]) -> None:
    """It is neither run nor in the history; the next provider's call is run, once."""
    get_time = calling(call("get_time"), text="Wait.")
    bench.server.reset(model=ScriptedModel([get_time, get_time, say("Noon.")]))
    dialect = "anthropic" if names[0] == "claude" else "openai_chat"
    bench.server.faults.add(Fault(dialect=dialect, broken=True, after_events="tool_call"))
    runner = await bench.runner(*names)
    events = await turn(runner)
    assert named(events, ProviderSwitched)[0].discarded_text == "Wait."
    assert [ran for ran, _ in bench.ran] == ["get_time"]
    assert len(named(events, ToolCallStarted)) == 1
    session = runner.session()
    assert session is not None
    assert_paired(session.history)


@pytest.mark.parametrize("names", [("claude", "gpt"), ("gpt", "claude")], ids="-".join)
async def test_failure_after_a_call_runs_no_tool_twice(
    bench: Bench, names: tuple[str, str]
) -> None:
    """Search and call are behind us; the next provider answers from their results."""
    script = [search("weather"), calling(FORECAST), say("Sunny, as I found.")]
    bench.server.reset(model=ScriptedModel(script))
    dialect = "anthropic" if names[0] == "claude" else "openai_chat"
    bench.server.faults.add(Fault(dialect=dialect, status=529, skip=2))
    runner = await bench.runner(*names)
    events = await turn(runner, "Weather in Paris?")
    assert bench.ran == [("get_forecast", {"city": "Paris"})]
    assert named(events, Done)[0].answer == "Sunny, as I found."
    assert "get_forecast" in bench.requests[-1].tool_names


@pytest.mark.parametrize("names", [("claude", "gpt"), ("gpt", "claude")], ids="-".join)
async def test_discoveries_stay_when_a_provider_fails(bench: Bench, names: tuple[str, str]) -> None:
    """What one provider's model found, the next one's calls without another search."""
    script = [search("weather"), calling(FORECAST), say("Sunny.")]
    bench.server.reset(model=ScriptedModel(script))
    dialect = "anthropic" if names[0] == "claude" else "openai_chat"
    bench.server.faults.add(Fault(dialect=dialect, status=429, skip=1))
    events = await turn(await bench.runner(*names), "Weather in Paris?")
    assert named(events, ToolsDiscovered)[0].total == 1
    assert [event.is_error for event in named(events, ToolFinished)] == [False, False]
    assert bench.ran == [("get_forecast", {"city": "Paris"})]
    assert named(events, Done)[0].provider == names[1]


async def test_refused_connection_is_followed_by_the_next(bench: Bench) -> None:
    providers = {
        "claude": await bench.provider("claude", base_url=UNREACHABLE),
        "gpt": await bench.provider("gpt"),
    }
    bench.server.reset(model=ScriptedModel([say("Here.")]))
    events = await turn(await bench.runner(providers=providers))
    assert "connection" in named(events, ProviderSwitched)[0].cause
    assert named(events, Done)[0].answer == "Here."


async def test_silent_provider_is_given_up_after_its_time(bench: Bench) -> None:
    providers = {
        "claude": await bench.provider("claude", first_byte_timeout_s=0.05),
        "gpt": await bench.provider("gpt"),
    }
    bench.server.reset(model=ScriptedModel([say("Here.")]))
    bench.server.faults.add(Fault(dialect="anthropic", delay_s=60))
    events = await turn(await bench.runner(providers=providers))
    assert "timeout" in named(events, ProviderSwitched)[0].cause


async def test_provider_that_falls_silent_in_its_reply_is_given_up(bench: Bench) -> None:
    providers = {
        "claude": await bench.provider("claude", timeout_s=0.2),
        "gpt": await bench.provider("gpt"),
    }
    bench.server.reset(model=ScriptedModel([say("One two three four.")] * 2))
    # After the message's start, the block's, a ping and its first words.
    bench.server.faults.add(Fault(dialect="anthropic", stalls=True, after_events=4))
    events = await turn(await bench.runner(providers=providers))
    assert named(events, Done)[0].provider == "gpt"


async def test_primary_is_not_asked_before_its_cooldown(bench: Bench) -> None:
    """One failed request, then none for as long as it rests, in any conversation."""
    bench.server.reset(model=ScriptedModel([say("Hi.")] * 3))
    bench.server.faults.add(Fault(dialect="anthropic", status=529))
    runner = await bench.runner(cooldown_s=3600)
    await turn(runner)
    await turn(runner)
    await turn(runner, conversation="another")
    assert bench.asked == [("claude", 529), ("gpt", 200), ("gpt", 200), ("gpt", 200)]


async def test_primary_is_asked_again_after_its_cooldown(bench: Bench) -> None:
    """By id, and the return is an event; the turn it failed in stays with the other."""
    script = [calling(call("get_time")), say("Noon."), say("I am back.")]
    bench.server.reset(model=ScriptedModel(script))
    bench.server.faults.add(Fault(dialect="anthropic", status=529))
    runner = await bench.runner(cooldown_s={"claude": 0, "gpt": 3600})
    await turn(runner)
    assert bench.asked == [("claude", 529), ("gpt", 200), ("gpt", 200)]
    events = await turn(runner)
    switch = named(events, ProviderSwitched)[0]
    assert (switch.from_provider, switch.to_provider) == ("gpt", "claude")
    assert (switch.cause, switch.discarded_text) == ("primary_available", "")
    assert named(events, Done)[0].answer == "I am back."


async def test_cooldown_by_id_may_name_only_some(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([say("Hi.")] * 2))
    bench.server.faults.add(Fault(dialect="anthropic", status=529))
    runner = await bench.runner(cooldown_s={"gpt": 5})
    await turn(runner)
    await turn(runner)
    assert bench.asked == [("claude", 529), ("gpt", 200), ("gpt", 200)]


async def test_bad_request_is_not_repeated(bench: Bench) -> None:
    bench.may_refuse = True
    bench.server.reset(model=ScriptedModel([say("Hi.")]))
    fault = Fault(dialect="anthropic", status=400, message="max_tokens: out of range")
    bench.server.faults.add(fault)
    events = await turn(await bench.runner())
    assert bench.asked == [("claude", 400), ("gpt", 200)]
    assert named(events, RunnerWarning) == []


async def test_all_failed_names_each_with_its_cause(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """In the order they were asked, and without a key, which the provider quotes here."""
    bench.server.faults.add(
        Fault(dialect="anthropic", status=529, message=f"overloaded, {KEY}", times=None),
        Fault(dialect="openai_chat", status=401, message=f"Incorrect API key: {KEY}", times=None),
    )
    with caplog.at_level(logging.DEBUG), pytest.raises(AllProvidersFailedError) as failure:
        await turn(await bench.runner())
    error = failure.value
    assert [(name, cause.status) for name, cause in error.causes.items()] == [
        ("claude", 529),
        ("gpt", 401),
    ]
    assert "overloaded" in str(error)
    assert "Incorrect API key" in str(error)
    seen = [str(error), *(str(cause.__cause__) for cause in error.causes.values())]
    assert all(KEY not in text for text in [*seen, caplog.text.replace("x-api-key", "")])


async def test_conversation_goes_on_after_all_have_failed(bench: Bench) -> None:
    """The message and what was discovered are kept; even resting providers are tried."""
    script = [search("weather"), calling(FORECAST), say("Sunny.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner()
    bench.server.faults.add(
        Fault(dialect="anthropic", status=529, skip=1), Fault(dialect="openai_chat", status=500)
    )
    with pytest.raises(AllProvidersFailedError):
        await turn(runner, "Weather in Paris?")
    events = await turn(runner, "Are you there?")
    assert named(events, Done)[0].answer == "Sunny."
    assert bench.ran == [("get_forecast", {"city": "Paris"})]
    session = runner.session()
    assert session is not None
    said = [message.text for message in session.history if message.role == "user"]
    assert said == ["Weather in Paris?", "Are you there?"]
    assert_paired(session.history)


async def test_a_third_provider_is_asked_in_order(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([say("Third.")]))
    providers = {
        "claude": await bench.provider("claude"),
        "gpt-a": await bench.provider("gpt-a", base_url=UNREACHABLE),
        "gpt-b": await bench.provider("gpt-b"),
    }
    bench.server.faults.add(Fault(dialect="anthropic", status=500))
    events = await turn(await bench.runner(providers=providers))
    switches = [
        (event.from_provider, event.to_provider) for event in named(events, ProviderSwitched)
    ]
    assert switches == [("claude", "gpt-a"), ("gpt-a", "gpt-b")]


async def test_endpoint_without_tool_search_gets_the_generic_strategy(bench: Bench) -> None:
    """The same request once more, with a warning; remembered for every conversation."""
    bench.may_refuse = True
    plain = Endpoint(supports_tool_search=False)
    script = [search("weather"), calling(FORECAST), say("Sunny."), say("Hi."), say("Ho.")]
    bench.server.reset(model=ScriptedModel(script), endpoint=plain)
    runner = await bench.runner("claude")
    events = await turn(runner, "Weather in Paris?")
    assert [event.code for event in named(events, RunnerWarning)] == ["strategy_replaced"]
    assert named(events, ProviderSwitched) == []
    assert named(events, Done)[0].answer == "Sunny."
    await turn(runner)
    assert named(await turn(runner, conversation="another"), RunnerWarning) == []
    assert [status for _, status in bench.asked] == [400, 200, 200, 200, 200, 200]
    assert "get_forecast" not in bench.requests[-1].tool_names


async def test_endpoint_that_forgets_tool_search_in_a_conversation_gets_what_was_found(
    bench: Bench,
) -> None:
    """A proxy changed: references of the history become text, discoveries are declared."""
    bench.may_refuse = True
    script = [search("weather"), say("Found."), calling(FORECAST), say("Sunny.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner("claude")
    await turn(runner, "Weather?")
    seen = len(bench.requests)
    bench.server.reset(
        model=ScriptedModel(script[2:]), endpoint=Endpoint(supports_tool_search=False)
    )
    events = await turn(runner, "In Paris?")
    assert seen == 2
    assert [event.code for event in named(events, RunnerWarning)] == ["strategy_replaced"]
    assert bench.ran == [("get_forecast", {"city": "Paris"})]


async def test_learned_profile_of_one_provider_leaves_another_of_its_model(bench: Bench) -> None:
    """Two entries for one model, of which one must not use references."""
    bench.may_refuse = True
    bench.server.reset(
        model=ScriptedModel([say("Hi.")] * 3), endpoint=Endpoint(supports_tool_search=False)
    )
    providers = {
        "claude": await bench.provider("claude"),
        "claude-generic": await bench.provider("claude-generic", strategy="generic"),
    }
    runner = await bench.runner(providers=providers)
    await turn(runner)
    runner.use("claude-generic")
    events = await turn(runner)
    assert named(events, RunnerWarning) == []
    assert bench.asked[-1] == ("claude", 200)


async def test_refused_reference_is_repaired_and_sent_once_more(bench: Bench) -> None:
    """The reference is gone from the request, its tool stays callable; a warning tells."""
    script = [search("weather"), calling(call("get_forecast", {"city": "Paris"})), say("Sunny.")]
    bench.server.reset(model=ScriptedModel(script))
    bench.server.faults.add(Fault(dialect="anthropic", status=400, message=NO_REFERENCE, skip=1))
    runner = await bench.runner("claude")
    events = await turn(runner, "Weather?")
    assert [event.code for event in named(events, RunnerWarning)] == ["request_repaired"]
    refused, repaired = bench.requests[1:3]
    assert '"tool_reference"' in json.dumps(refused.body["messages"])
    assert '"tool_reference"' not in json.dumps(repaired.body["messages"])
    assert refused.tools_bytes == repaired.tools_bytes
    assert bench.ran == [("get_forecast", {"city": "Paris"})]


async def test_refused_reference_to_a_tool_that_is_gone_is_repaired(bench: Bench) -> None:
    gone = tool("files.read", "Read a file from the disk.", "path", server="files")
    script = [search("read file"), say("Found."), say("Gone.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner("claude", tools=[*some_tools(), gone])
    await turn(runner)
    runner.replace_tools(map(bench.runnable, some_tools()))
    message = f"Tool reference {wire_name(gone.name)!r} not found in available tools"
    bench.server.faults.add(Fault(dialect="anthropic", status=400, message=message))
    await turn(runner)
    refused, repaired = bench.requests[-2:]
    assert '"tool_reference"' in json.dumps(refused.body["messages"])
    assert '"tool_reference"' not in json.dumps(repaired.body["messages"])


async def test_reference_refused_twice_goes_to_the_next_provider(bench: Bench) -> None:
    script = [search("weather"), calling(FORECAST), say("Sunny.")]
    bench.server.reset(model=ScriptedModel(script))
    fault = Fault(dialect="anthropic", status=400, message=NO_REFERENCE, skip=1, times=2)
    bench.server.faults.add(fault)
    events = await turn(await bench.runner(), "Weather in Paris?")
    assert [event.code for event in named(events, RunnerWarning)] == ["request_repaired"]
    assert named(events, ProviderSwitched)[0].to_provider == "gpt"
    statuses = [status for _, status in bench.asked]
    assert statuses == [200, 400, 400, 200, 200]
    assert bench.ran == [("get_forecast", {"city": "Paris"})]


async def test_bad_name_is_rendered_by_the_narrower_rule(bench: Bench) -> None:
    """Names of this endpoint begin with a letter from then on; the warning comes once."""
    tools = [*some_tools(), tool("2fa_code", "The second factor.", always_load=True)]
    bench.server.reset(model=ScriptedModel([say("Hi.")] * 2))
    message = "Invalid 'tools[0].function.name': string does not match pattern '^[a-zA-Z_]...'"
    bench.server.faults.add(Fault(dialect="openai_chat", status=400, message=message))
    runner = await bench.runner("gpt", tools=tools)
    events = await turn(runner)
    assert [event.code for event in named(events, RunnerWarning)] == ["rendered_within_limit"]
    assert "2fa_code" in bench.requests[0].tool_names
    assert [name for name in bench.requests[1].tool_names if name[0].isdigit()] == []
    assert named(await turn(runner), RunnerWarning) == []
    assert bench.requests[2].tool_names == bench.requests[1].tool_names


async def test_use_swaps_the_provider_of_one_conversation(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([say("Hi.")] * 3))
    runner = await bench.runner()
    await turn(runner, conversation="a")
    runner.use("gpt", conversation="a")
    events = await turn(runner, conversation="a")
    await turn(runner, conversation="b")
    assert named(events, ProviderSwitched)[0].cause == "requested"
    assert [dialect for dialect, _ in bench.asked] == ["claude", "gpt", "claude"]


async def test_use_for_all_leaves_a_choice_of_its_own(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([say("Hi.")] * 2))
    runner = await bench.runner()
    runner.use("claude", conversation="a")
    runner.use("gpt")
    await turn(runner, conversation="a")
    await turn(runner, conversation="b")
    assert [dialect for dialect, _ in bench.asked] == ["claude", "gpt"]


async def test_use_of_a_resting_provider_wakes_it(bench: Bench) -> None:
    """Who asks for it wants it now."""
    bench.server.reset(model=ScriptedModel([say("Hi.")] * 2))
    bench.server.faults.add(Fault(dialect="anthropic", status=529))
    runner = await bench.runner()
    await turn(runner)
    runner.use("claude")
    await turn(runner)
    assert bench.asked[-1] == ("claude", 200)


async def test_use_of_an_unknown_provider_is_an_error_that_lists_them(bench: Bench) -> None:
    runner = await bench.runner()
    with pytest.raises(ConfigurationError, match=r"'gtp'.*claude, gpt"):
        runner.use("gtp")


@pytest.mark.parametrize(
    "swap", [("claude", "gpt"), ("gpt", "claude"), ("gpt", "glm")], ids="-".join
)
async def test_swap_between_turns_keeps_what_was_discovered(
    bench: Bench, swap: tuple[str, str]
) -> None:
    script = [search("weather"), say("Found."), calling(FORECAST), say("Sunny.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner(*swap)
    await turn(runner, "Weather?")
    runner.use(swap[1])
    await turn(runner, "In Paris?")
    assert bench.ran == [("get_forecast", {"city": "Paris"})]


async def test_other_servers_stay_out_of_it(bench: Bench) -> None:
    bench.may_refuse = True
    bench.server.reset(
        model=ScriptedModel([say("Hi.")] * 2), endpoint=Endpoint(supports_tool_search=False)
    )
    with StandInServer(model=ScriptedModel([say("Ho.")])) as native:
        providers = {
            "claude": await bench.provider("claude"),
            "claude-native": await bench.provider("claude-native", server=native),
        }
        runner = await bench.runner(
            providers=providers, config=ToolSearchConfig(), tools=many_tools(30)
        )
        await turn(runner)
        runner.use("claude-native")
        await turn(runner)
        assert "defer_loading" in json.dumps(native.requests[0].body)
        for provider in providers.values():
            await provider.aclose()  # type: ignore[attr-defined]
