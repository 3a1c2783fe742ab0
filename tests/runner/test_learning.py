"""What one conversation's success is worth to the next one's search."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.runner.bench import (
    FORECAST,
    SEARCHING,
    Bench,
    call,
    calling,
    named,
    say,
    search,
    some_tools,
    tool,
    turn,
)
from tool_search import Done, ExecutableTool, MemoryStore, SQLiteStore, Tool, ToolSearchRunner
from tool_search.search.learned import Evidence
from tool_search.stores import KeptEvidence
from tool_search.testing import ModelReply, ScriptedModel

NAMES = pytest.mark.parametrize("name", ["claude", "gpt"])
LEARNING_OFF = SEARCHING.model_validate(
    {"tool_schema_mode": "tool_search", "learning": {"enabled": False}}
)
CHINESE = "明天天气怎么样"


async def said(bench: Bench, runner: ToolSearchRunner, *replies: ModelReply, **how: Any) -> None:
    """A turn of a conversation in which the model replies so."""
    bench.server.reset(model=ScriptedModel([*replies, say("Done.")]))
    await turn(runner, **how)


async def found(bench: Bench, runner: ToolSearchRunner, query: str, **how: Any) -> list[str]:
    """What a search finds in a new conversation."""
    await said(bench, runner, search(query), conversation=f"new: {query}", **how)
    session = runner.session(f"new: {query}")
    assert session is not None
    content = json.loads(session.history[2].text)
    return [match["name"] for match in content["matches"]]


@NAMES
async def test_chinese_request_finds_what_another_search_led_to(bench: Bench, name: str) -> None:
    """The model asked in Chinese, found nothing, asked in English and was served."""
    runner = await bench.runner(name)
    assert await found(bench, runner, CHINESE) == []
    await said(bench, runner, search("北京的天气"), search("weather forecast"), calling(FORECAST))
    assert await found(bench, runner, "上海天气") == ["get_forecast"]


async def test_words_of_a_success_find_the_tool_for_others(bench: Bench) -> None:
    runner = await bench.runner("gpt")
    await said(bench, runner, search("weather umbrella needed"), calling(FORECAST))
    assert await found(bench, runner, "umbrella") == ["get_forecast"]


async def test_one_user_alone_does_not_lead_the_searches_of_others(bench: Bench) -> None:
    """Twenty conversations of one user; then another one, who has just come."""
    runner = await bench.runner("gpt")
    mail = call("send_mail", {"to": "a@example.com"})
    query = "city cash payment mail"
    for number in range(20):
        replies = (search(query), calling(mail))
        await said(bench, runner, *replies, conversation=f"c{number}", user="mallory")
    assert (await found(bench, runner, "city cash payment", user="mallory"))[0] == "send_mail"
    assert (await found(bench, runner, "a city cash payment", user="ann"))[0] == "get_forecast"
    await said(bench, runner, search(query), calling(mail), conversation="d", user="bob")
    assert (await found(bench, runner, "the city cash payment", user="ann"))[0] == "get_forecast"


async def test_tool_that_failed_teaches_nothing(bench: Bench) -> None:
    async def fail(city: str) -> str:
        raise RuntimeError(city)

    broken = ExecutableTool(tool=some_tools()[1], function=fail)
    runner = await bench.runner("gpt", tools=[some_tools()[0], broken])
    await said(bench, runner, search("weather umbrella"), calling(FORECAST))
    assert await found(bench, runner, "umbrella") == []


async def test_call_whose_arguments_do_not_fit_teaches_nothing(bench: Bench) -> None:
    """It never ran."""
    runner = await bench.runner("gpt")
    await said(bench, runner, search("weather umbrella"), calling(call("get_forecast")))
    assert await found(bench, runner, "umbrella") == []


async def test_call_without_a_search_teaches_nothing(bench: Bench) -> None:
    store = MemoryStore()
    forecast = call("get_forecast", {"city": "Paris"})
    await said(bench, await bench.runner("gpt", store=store), calling(forecast))
    assert len(bench.ran) == 1
    assert await store.load_evidence() == KeptEvidence(0, ())


async def test_words_of_definitions_calls_and_results_teach_nothing(bench: Bench) -> None:
    """Only what was asked is evidence, whatever a server writes and answers."""

    async def answer(city: str) -> str:
        return f"giraffe {city}"

    store = MemoryStore()
    weather = tool("get_forecast", "Weather zebra. Search for elephant.", "city")
    tools: list[Tool | ExecutableTool] = [
        some_tools()[0],
        ExecutableTool(tool=weather, function=answer),
    ]
    runner = await bench.runner("gpt", store=store, tools=tools)
    await said(bench, runner, search("weather umbrella"), calling(FORECAST))
    kept = (await store.load_evidence()).entries
    assert [(entry.tool, entry.words) for entry in kept] == [
        ("get_forecast", ("umbrella", "weather"))
    ]


async def test_tool_that_no_search_returned_teaches_nothing(bench: Bench) -> None:
    """The search was for another."""
    runner = await bench.runner("gpt")
    mail = call("send_mail", {"to": "a@example.com"})
    await said(bench, runner, search("weather umbrella"), calling(mail))
    assert await found(bench, runner, "umbrella") == []


async def test_switched_off_nothing_is_written_or_read(bench: Bench) -> None:
    store = MemoryStore()
    runner = await bench.runner("gpt", store=store, config=LEARNING_OFF)
    await said(bench, runner, search("weather umbrella"), calling(FORECAST))
    assert await store.load_evidence() == KeptEvidence(0, ())
    await store.add_evidence([Evidence(tool="get_forecast", words=("umbrella",), at=2.0e9)])
    assert await found(bench, runner, "umbrella") == []


async def test_what_was_learned_outlives_the_process(bench: Bench, tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "store.db") as store:
        runner = await bench.runner("gpt", store=store)
        await said(bench, runner, search("weather umbrella"), calling(FORECAST))
    async with SQLiteStore(tmp_path / "store.db") as store:
        runner = await bench.runner("gpt", store=store)
        assert await found(bench, runner, "umbrella") == ["get_forecast"]


async def test_tool_of_a_role_is_not_revealed_by_what_its_users_did(bench: Bench) -> None:
    secret = tool("open_vault", "Opens the vault.", "code", roles=("owner",))
    runner = await bench.runner("gpt", tools=[*some_tools(), secret])
    opened = call("open_vault", {"code": "1"})
    await said(bench, runner, search("vault treasure"), calling(opened), roles=["owner"])
    assert bench.ran == [("open_vault", {"code": "1"})]
    assert await found(bench, runner, "treasure") == []
    session = runner.session("new: treasure")
    assert session is not None
    assert json.loads(session.history[2].text)["total_found"] == 0
    assert await found(bench, runner, "the treasure", roles=["owner"]) == ["open_vault"]


async def test_evidence_of_a_tool_that_is_away_waits_for_its_return(bench: Bench) -> None:
    """Its server was down for a day."""
    runner = await bench.runner("gpt")
    await said(bench, runner, search("weather umbrella"), calling(FORECAST))
    everything = some_tools()
    runner.replace_tools(bench.runnable(item) for item in everything if item.server != "weather")
    assert await found(bench, runner, "umbrella") == []
    runner.replace_tools(map(bench.runnable, everything))
    assert await found(bench, runner, "my umbrella") == ["get_forecast"]


class FailingStore(MemoryStore):
    """A store whose evidence is out of reach."""

    async def evidence_revision(self) -> int:
        """Fails."""
        raise OSError("no such disk")

    async def add_evidence(self, entries: Sequence[Evidence]) -> None:
        """Fails too."""
        raise OSError("no such disk")


async def test_bot_goes_on_where_nothing_can_be_learned(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.server.reset(model=ScriptedModel([search("weather"), calling(FORECAST), say("Sunny.")]))
    events = await turn(await bench.runner("gpt", store=FailingStore()))
    assert named(events, Done)[0].answer == "Sunny."
    assert "evidence cannot be read: no such disk" in caplog.text
    assert "evidence cannot be kept, and waits in memory: no such disk" in caplog.text
