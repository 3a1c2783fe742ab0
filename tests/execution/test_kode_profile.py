"""The `kode` profile of calls: siblings, waiting calls and interrupted turns."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.execution.calling import CONTEXT, calls, of_kind, runner, told, tool
from tool_search import CallOptions, ConfigurationError, ToolFinished
from tool_search.runner.events import ToolProgress
from tool_search.runner.execution import Cancellation

SAFE = {"concurrency_safe": True}
SIBLING = "<tool_use_error>Sibling tool call errored</tool_use_error>"
KODE = CallOptions(profile="kode")


async def _sleeps(**arguments: Any) -> str:
    await asyncio.sleep(60)
    return "slept"


async def _fails(**arguments: Any) -> str:
    await asyncio.sleep(0)
    raise LookupError("broken")


async def _works(**arguments: Any) -> str:
    return "worked"


async def test_an_error_ends_the_calls_that_have_not_ended() -> None:
    """Those that run, and those that have not begun."""
    run = runner(
        tool(_works, "works", annotations=SAFE),
        tool(_fails, "fails", annotations=SAFE),
        tool(_sleeps, "sleeps", annotations=SAFE),
        tool(_works, "alone"),
        options=KODE,
    )
    finished = of_kind(await told(run, calls("works", "fails", "sleeps", "alone")), ToolFinished)
    assert [one.content for one in finished] == [
        "worked",
        "fails failed: LookupError: broken",
        SIBLING,
        SIBLING,
    ]
    assert [one.is_error for one in finished] == [False, True, True, True]


async def test_a_call_that_waits_for_others_says_so_once() -> None:
    run = runner(tool(_works, "safe", annotations=SAFE), tool(_works, "alone"), options=KODE)
    events = await told(run, calls("alone", "safe", "alone"))
    waiting = [(one.call.id, one.message) for one in of_kind(events, ToolProgress)]
    assert waiting == [("c1", "Waiting…"), ("c2", "Waiting…")]
    assert [one.content for one in of_kind(events, ToolFinished)] == ["worked"] * 3


@pytest.mark.parametrize("profile", ["kode", "default"])
async def test_the_last_result_of_an_interrupted_turn_says_so(profile: Any) -> None:
    cancellation = Cancellation()

    async def interrupts(**arguments: Any) -> str:
        cancellation.cancel()
        await asyncio.sleep(60)
        return "late"

    run = runner(
        tool(interrupts, "interrupts"),
        tool(_works, "works"),
        options=CallOptions(profile=profile),
    )
    context = replace(CONTEXT, cancellation=cancellation)
    first, last = of_kind(await told(run, calls("interrupts", "works"), context), ToolFinished)
    assert "interrupted by user" not in first.content
    assert last.content.endswith("\n[Request interrupted by user for tool use]") is (
        profile == "kode"
    )


async def test_the_usual_profile_keeps_siblings_and_says_nothing() -> None:
    run = runner(tool(_fails, "fails"), tool(_works, "works"))
    events = await told(run, calls("fails", "works"))
    assert of_kind(events, ToolProgress) == []
    assert of_kind(events, ToolFinished)[1].content == "worked"


def test_an_unknown_profile_is_an_error_with_the_known_ones() -> None:
    unknown: Any = "claude-code"
    with pytest.raises(ConfigurationError, match="'claude-code': must be one of 'default', 'kode'"):
        CallOptions(profile=unknown)
