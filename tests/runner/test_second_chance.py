"""One more request after an answer that says there is no tool, over real HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runner.bench import (
    FORECAST,
    Bench,
    assert_paired,
    calling,
    kinds,
    many_tools,
    named,
    say,
    search,
    some_tools,
    tool,
    turn,
)
from tests.runner.test_preloads import KINDS, SAID, found
from tool_search import (
    CallOptions,
    Done,
    MemoryStore,
    Permissions,
    PermissionSettings,
    ProviderSwitched,
    RunnerWarning,
    SQLiteStore,
    TextDelta,
    ToolSearchConfig,
)
from tool_search.testing import Fault, ScriptedModel

CHANCE = ToolSearchConfig(tool_schema_mode="tool_search", second_chance=True, preload_score=0.5)
NONE = say("I have no tool for the weather.")
FOUND = [(("get_forecast",), "second_chance")]


def answer(events: Any) -> str:
    """The answer that the turn ended with."""
    return named(events, Done)[0].answer


def shown(events: Any) -> str:
    """The text that a consumer has on its screen: what is void is taken back."""
    text = ""
    for event in events:
        if isinstance(event, TextDelta):
            text += event.text
        elif isinstance(event, ProviderSwitched):
            assert text.endswith(event.discarded_text)
            text = text.removesuffix(event.discarded_text)
    return text


@KINDS
async def test_the_tool_is_called_in_the_second_request(bench: Bench, kind: str) -> None:
    bench.server.reset(model=ScriptedModel([NONE, calling(FORECAST), say("Sunny."), say("Bye.")]))
    runner = await bench.runner(kind, config=CHANCE)
    events = await turn(runner, SAID)
    assert found(events) == FOUND
    assert bench.ran == [("get_forecast", {"city": "Paris"})]
    assert (answer(events), shown(events)) == ("Sunny.", "Sunny.")
    assert named(events, Done)[0].steps == len(bench.requests) == 3
    assert not named(events, RunnerWarning)
    await turn(runner, "Thanks")
    assert [request.status for request in bench.requests] == [200] * 4
    session = runner.session()
    assert session is not None
    assert_paired(session.history)
    assert NONE.text not in str(session.history)


async def test_an_event_says_which_text_is_void(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([NONE, say("Sunny.")]))
    events = await turn(await bench.runner("gpt", config=CHANCE), SAID)
    assert kinds(events) == ["ProviderSwitched", "ToolsDiscovered", "Done"]
    (switch,) = named(events, ProviderSwitched)
    assert (switch.from_provider, switch.to_provider) == ("gpt", "gpt")
    assert (switch.cause, switch.discarded_text) == ("second_chance", NONE.text)


@KINDS
async def test_it_follows_calls_of_the_same_turn(bench: Bench, kind: str) -> None:
    script = [search("mail"), NONE, calling(FORECAST), say("Sunny."), say("Bye.")]
    bench.server.reset(model=ScriptedModel(script))
    runner = await bench.runner(kind, config=CHANCE)
    events = await turn(runner, SAID)
    assert found(events) == [(("send_mail",), "search"), *FOUND]
    assert answer(events) == "Sunny."
    await turn(runner, "Thanks")
    assert [request.status for request in bench.requests] == [200] * 5


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("form", ["deferred", "hosted"])
async def test_a_catalog_that_the_service_holds_is_searched_too(
    bench: Bench, form: str, keeps: bool
) -> None:
    bench.server.reset(model=ScriptedModel([NONE, calling(FORECAST), say("Sunny."), say("Bye.")]))
    provider = await bench.provider("responses", tool_search=form, previous_response_id=keeps)
    runner = await bench.runner(providers={"responses": provider}, config=CHANCE)
    events = await turn(runner, SAID)
    assert (found(events), answer(events)) == (FOUND, "Sunny.")
    await turn(runner, "Thanks")
    assert [request.status for request in bench.requests] == [200] * 4


async def test_a_reply_in_which_the_service_found_tools_is_not_asked_again(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([search("mail"), NONE, say("More.")]))
    provider = await bench.provider("responses", tool_search="hosted")
    runner = await bench.runner(providers={"responses": provider}, config=CHANCE)
    events = await turn(runner, SAID)
    assert (found(events), answer(events)) == ([(("send_mail",), "search")], NONE.text)


@pytest.mark.parametrize("extra", [{}, {"thinking": {"type": "enabled", "budget_tokens": 1024}}])
async def test_a_model_that_thinks_is_not_refused(bench: Bench, extra: dict[str, Any]) -> None:
    thinking = [
        type(reply)(text=reply.text, calls=reply.calls, thinking="Let me think.")
        for reply in (search("mail"), NONE, calling(FORECAST), say("Sunny."), say("Bye."))
    ]
    bench.server.reset(model=ScriptedModel(thinking))
    provider = await bench.provider("claude", extra_body=extra)
    runner = await bench.runner(providers={"claude": provider}, config=CHANCE)
    assert found(await turn(runner, SAID))[-1:] == FOUND
    await turn(runner, "Thanks")
    assert [request.status for request in bench.requests] == [200] * 5


async def test_a_second_answer_is_the_last(bench: Bench) -> None:
    again = say("No, I really have no tool for it.")
    bench.server.reset(model=ScriptedModel([NONE, again]))
    tools = [*some_tools(), tool("city_forecast", "Weather forecast of a city.", "city")]
    events = await turn(await bench.runner("gpt", tools=tools, config=CHANCE), SAID)
    assert (answer(events), len(bench.requests)) == (again.text, 2)


@pytest.mark.parametrize(("steps", "requests"), [(1, 1), (2, 3), (3, 3)])
async def test_the_steps_of_a_turn_are_kept(bench: Bench, steps: int, requests: int) -> None:
    bench.server.reset(model=ScriptedModel([NONE, calling(FORECAST), say("Sunny.")]))
    runner = await bench.runner("gpt", config=CHANCE, max_steps=steps)
    events = await turn(runner, SAID)
    assert len(bench.requests) == requests
    assert answer(events) == (NONE.text if steps == 1 else "Sunny.")
    assert named(events, Done)[0].stop_reason == ("max_steps" if steps == 2 else "answer")


@pytest.mark.parametrize(
    ("config", "reply", "said"),
    [
        (CHANCE.model_copy(update={"second_chance": False}), NONE, SAID),
        (CHANCE.model_copy(update={"tool_schema_mode": "full"}), NONE, SAID),
        (CHANCE.model_copy(update={"tool_schema_mode": "skills_like"}), NONE, SAID),
        (CHANCE, say("Sunny."), SAID),
        (CHANCE, NONE, "Hello there"),
    ],
)
async def test_another_turn_has_one_request(
    bench: Bench, config: ToolSearchConfig, reply: Any, said: str
) -> None:
    bench.server.reset(model=ScriptedModel([reply, say("More.")]))
    events = await turn(await bench.runner("gpt", config=config), said)
    assert kinds(events) == ["Done"]
    assert (answer(events), len(bench.requests)) == (reply.text, 1)


@pytest.mark.parametrize("rules", [{"ask": ["get_forecast"]}, {"deny": ["get_forecast"]}])
async def test_a_tool_that_asks_or_is_denied_brings_no_request(
    bench: Bench, rules: dict[str, Any]
) -> None:
    bench.server.reset(model=ScriptedModel([NONE, say("More.")]))

    async def yes(_: object) -> bool:
        return True

    permissions = Permissions(PermissionSettings.model_validate(rules), ask=yes)
    options = CallOptions(permissions=permissions)
    events = await turn(await bench.runner("gpt", config=CHANCE, calls=options), SAID)
    assert (answer(events), len(bench.requests)) == (NONE.text, 1)


@pytest.mark.parametrize("after", [None, 3])
async def test_the_first_answer_is_kept_if_no_provider_gives_a_second(
    bench: Bench, after: int | None
) -> None:
    bench.may_refuse = True
    script = [NONE, say("Sunny in Paris and in Rome."), calling(FORECAST), say("Sunny.")]
    bench.server.reset(model=ScriptedModel(script))
    bench.server.faults.add(
        Fault(status=None if after else 401, broken=bool(after), after_events=after, skip=1)
    )
    runner = await bench.runner("gpt", config=CHANCE, cooldown_s=0)
    events = await turn(runner, SAID)
    assert (answer(events), shown(events)) == (NONE.text, NONE.text)
    assert [warning.code for warning in named(events, RunnerWarning)] == ["second_chance_failed"]
    assert named(events, Done)[0].provider == "gpt"
    session = runner.session()
    assert session is not None
    assert session.last_message.text == NONE.text
    bench.server.faults.clear()
    assert bench.ran == []
    await turn(runner, "Go on")
    assert bench.requests[-1].status == 200


async def test_another_provider_may_give_the_second_answer(bench: Bench) -> None:
    bench.may_refuse = True
    bench.server.reset(model=ScriptedModel([NONE, calling(FORECAST), say("Sunny.")]))
    bench.server.faults.add(Fault(dialect="anthropic", status=401, skip=1))
    events = await turn(await bench.runner(config=CHANCE), SAID)
    assert (shown(events), named(events, Done)[0].provider) == ("Sunny.", "gpt")


@KINDS
async def test_it_survives_a_restart(bench: Bench, kind: str, tmp_path: Path) -> None:
    store = (
        await bench.stack.enter_async_context(SQLiteStore(tmp_path / "bot.db"))
        if kind == "gpt"
        else MemoryStore()
    )
    bench.server.reset(model=ScriptedModel([NONE, say("One."), calling(FORECAST), say("Two.")]))
    await turn(await bench.runner(kind, config=CHANCE, store=store), SAID)
    again = await bench.runner(kind, config=CHANCE, store=store)
    events = await turn(again, "Go on")
    assert (found(events), answer(events)) == ([], "Two.")
    assert bench.ran == [("get_forecast", {"city": "Paris"})]


async def test_a_large_catalog_is_searched_aside(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([NONE, say("Sunny.")]))
    tools = [*some_tools(), *many_tools(250)]
    events = await turn(await bench.runner("gpt", tools=tools, config=CHANCE), SAID)
    assert found(events) == FOUND
