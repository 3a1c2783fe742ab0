"""A provider that says when it can be asked again: waited for, where that is soon."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from tests.runner.bench import Bench, kinds, named, say, settled, turn
from tool_search import Done, ProviderSwitched, RunnerWarning
from tool_search.adapters.sdk.failures import retry_after_s
from tool_search.testing import Fault, ScriptedModel

ALL = pytest.mark.parametrize("name", ["claude", "gpt", "responses"])


def busy(dialect: str | None = None, *, times: int = 1, status: int = 429, **headers: str) -> Fault:
    """A service that has no time now, and says so."""
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return Fault(dialect=dialect, status=status, times=times, headers=named)


@ALL
@pytest.mark.parametrize("status", [429, 503, 529])
async def test_primary_is_asked_again_after_a_short_wait(
    bench: Bench, name: str, status: int
) -> None:
    bench.server.reset(model=ScriptedModel([say("Here."), say("Again.")]))
    bench.server.faults.add(busy(status=status, retry_after_ms="20"))
    runner = await bench.runner(name, "glm")
    events = await turn(runner)
    assert named(events, ProviderSwitched) == []
    assert [event.code for event in named(events, RunnerWarning)] == ["provider_waited_for"]
    assert named(events, Done)[0].provider == name
    assert [status for _, status in bench.asked] == [status, 200]
    assert named(await turn(runner), Done)[0].provider == name


async def test_primary_is_waited_for_once(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([say("Here."), say("Here.")]))
    bench.server.faults.add(busy("openai_chat", times=2, retry_after="0"))
    runner = await bench.runner("gpt", "glm")
    events = await turn(runner)
    assert kinds(events) == ["RunnerWarning", "ProviderSwitched", "Done"]
    assert named(await turn(runner), Done)[0].provider == "glm"


@pytest.mark.parametrize("after", ["6", "3600", "soon", "-1", "nan", "inf", ""])
async def test_long_or_unreadable_wait_goes_to_the_fallback(bench: Bench, after: str) -> None:
    bench.server.reset(model=ScriptedModel([say("Here.")]))
    bench.server.faults.add(busy("openai_chat", retry_after=after))
    events = await turn(await bench.runner("gpt", "glm"))
    assert kinds(events) == ["ProviderSwitched", "Done"]


async def test_fallback_is_not_waited_for(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([say("Here.")]))
    bench.server.faults.add(
        Fault(dialect="openai_chat", status=500), busy("anthropic", retry_after="0")
    )
    events = await turn(await bench.runner("gpt", "glm", "responses"))
    assert kinds(events) == ["ProviderSwitched", "ProviderSwitched", "Done"]


async def test_bad_request_is_not_repeated_for_its_header(bench: Bench) -> None:
    bench.may_refuse = True
    bench.server.reset(model=ScriptedModel([say("Here.")]))
    bench.server.faults.add(busy("openai_chat", status=400, retry_after="0"))
    events = await turn(await bench.runner("gpt", "glm"))
    assert kinds(events) == ["ProviderSwitched", "Done"]


async def test_wait_counts_for_the_turn_and_can_be_cancelled(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([say("Here.")] * 2))
    bench.server.faults.add(busy(times=2, retry_after="4"))
    runner = await bench.runner("gpt", turn_timeout_s=0.2)
    assert named(await turn(runner), Done)[0].stop_reason == "timeout"
    unlimited = await bench.runner("gpt")
    async with aclosing(unlimited.run("Hello")) as events:
        assert isinstance(await anext(events), RunnerWarning)
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await settled()


def test_header_is_read_in_each_form() -> None:
    later = datetime.now(UTC) + timedelta(seconds=100)
    assert retry_after_s({"retry-after": "1.5"}) == 1.5
    assert retry_after_s({"retry-after-ms": "250", "retry-after": "1"}) == 0.25
    assert 90 < (retry_after_s({"retry-after": format_datetime(later, usegmt=True)}) or 0) <= 100
    assert retry_after_s({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert retry_after_s({}) is None
