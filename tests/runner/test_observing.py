"""Observers of turns."""

from __future__ import annotations

import json
import logging

import pytest

from tool_search import CallOptions, Done, TextDelta, ToolSearchRunner
from tool_search.adapters import build_provider
from tool_search.cli.demo.script import MARATHON, script
from tool_search.config.bot import ProviderConfig
from tool_search.runner.events import (
    RequestFinished,
    RequestStarted,
    RunnerEvent,
    SearchFinished,
    TurnEvent,
    TurnObserver,
)
from tool_search.runner.observing import EventLog
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import StandInServer

OF_OBSERVERS = (RequestStarted, RequestFinished, SearchFinished)


async def turn(*observers: TurnObserver) -> list[RunnerEvent]:
    with StandInServer(model=script()) as server:
        provider = ProviderConfig(
            id="claude",
            type="anthropic",
            model="claude-sonnet-4-6",
            api_key_env=None,
            base_url=server.anthropic_base_url,
            strategy="claude",
        )
        async with build_provider(provider) as built:
            runner = ToolSearchRunner(
                providers={"claude": built},
                tools=TOOLBOX,
                calls=CallOptions(turn_observers=observers),
            )
            events = [event async for event in runner.run(MARATHON, conversation="ours")]
            await runner.aclose()
            return events


async def test_an_observer_gets_every_event_in_order() -> None:
    """Three kinds are for observers alone: of requests, and of searches."""
    seen: list[TurnEvent] = []
    events = await turn(seen.append)
    assert [each.event for each in seen if not isinstance(each.event, OF_OBSERVERS)] == events
    kinds = [type(each.event).__name__ for each in seen if isinstance(each.event, OF_OBSERVERS)]
    request = ["RequestStarted", "RequestFinished"]
    assert kinds == [*request, "SearchFinished", *request, *request]
    assert {each.conversation for each in seen} == {"ours"}
    assert [each.elapsed_s for each in seen] == sorted(each.elapsed_s for each in seen)


async def test_an_observer_that_fails_ends_no_turn(caplog: pytest.LogCaptureFixture) -> None:
    def fails(seen: TurnEvent) -> None:
        raise RuntimeError("mine")

    seen: list[TurnEvent] = []
    events = await turn(fails, seen.append)
    assert isinstance(events[-1], Done)
    assert seen[-1].event == events[-1]
    assert "an observer of turns failed" in caplog.text


async def test_the_log_has_the_conversation_and_nobodys_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="tool_search.runner.events")
    events = await turn(EventLog())
    records = [each for each in caplog.records if each.name == "tool_search.runner.events"]
    logged = [json.loads(each.getMessage()) for each in records]
    assert [each["event"] for each in logged] == [
        "RequestFinished",
        "ToolCallStarted",
        "SearchFinished",
        "ToolFinished",
        "ToolsDiscovered",
        "RequestFinished",
        "ToolCallStarted",
        "ToolFinished",
        "RequestFinished",
        "Done",
    ]
    assert {each["conversation"] for each in logged} == {"ours"}
    assert all(record.__dict__["conversation"] == "ours" for record in records)
    answer = "".join(each.text for each in events if isinstance(each, TextDelta))
    assert answer
    assert answer not in caplog.text
    assert "42.195" not in "".join(each.getMessage() for each in records)
