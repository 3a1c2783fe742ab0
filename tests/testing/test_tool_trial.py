"""Trying a tool in a test of its author's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tool_search import (
    CallOptions,
    InvalidToolError,
    PermissionAnswer,
    Permissions,
    PermissionSettings,
    ToolContext,
    stateful_tool,
)
from tool_search.runner.execution import CallOutputDelta
from tool_search.testing import ToolTrial


async def remove(name: str, context: ToolContext) -> str:
    """Remove a file.

        Args:
            name: Its name.
    context: The context.
    """
    context.progress(f"looking for {name}")
    if not await context.ask(f"Remove {name}?"):
        return "kept"
    return f"removed {name} from {context.folder}"


async def test_call_is_checked_and_its_words_are_kept(tmp_path: Path) -> None:
    trial = ToolTrial(remove, answers=[True], folder=tmp_path)
    done = await trial.call(name="a.txt")
    assert done.content == f"removed a.txt from {tmp_path}"
    assert trial.progress == ["looking for a.txt"]
    assert [asked.question for asked in trial.asked] == ["Remove a.txt?"]
    assert (await trial.call(name="b.txt")).content == "kept"
    assert "not of type" in (await trial.call(name=5)).content
    assert (await trial.call_as_written("{")).is_error


async def test_arguments_that_no_model_can_write_are_a_mistake_of_the_test() -> None:
    with pytest.raises(InvalidToolError, match="JSON"):
        await ToolTrial(remove).call(name=object())


async def test_rules_of_the_bot_can_be_tried_too() -> None:
    """The user's answers replace the bot's own question."""
    rules = Permissions(PermissionSettings(ask=("remove",)))
    answers: list[PermissionAnswer | bool] = [PermissionAnswer(allow=True, scope="always")]
    answers += [True, True]
    trial = ToolTrial(remove, answers=answers, options=CallOptions(permissions=rules))
    assert not (await trial.call(name="a")).is_error
    assert not (await trial.call(name="b")).is_error
    assert len(trial.asked) == 3


async def test_call_can_be_stopped_as_a_user_would() -> None:
    begun = asyncio.Event()

    async def stream(wait: bool) -> Any:
        """Stream.

        Args:
            wait: For good.
        """
        yield CallOutputDelta("half")
        begun.set()
        if wait:
            await asyncio.Event().wait()
        yield "whole"

    trial = ToolTrial(stream)
    call = asyncio.ensure_future(trial.call(wait=True))
    await begun.wait()
    trial.cancel()
    stopped = await call
    assert (stopped.outcome, trial.partials) == ("cancelled", ["half"])
    assert (await trial.call(wait=False)).content == "whole"


async def test_clean_up_is_part_of_the_trial() -> None:
    closed = []

    class Session:
        """Keep a line open."""

        def __init__(self, context: ToolContext) -> None:
            self.user = context.user

        def __call__(self) -> str:
            return f"open for {self.user}"

        def close(self) -> None:
            closed.append(self.user)

    trial = ToolTrial(stateful_tool(Session, name="session"))
    assert (await trial.call()).content == "open for tester"
    await trial.close()
    assert closed == ["tester"]
