"""Thinking that is bound to its prefix: what may change before it, and what not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tool_search.testing import ModelReply, ScriptedModel, StandInServer, check_anthropic

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
async def thought(
    server: StandInServer, claude: AsyncAnthropic, claude_body: dict[str, Any]
) -> dict[str, Any]:
    """Return a request whose history has a thinking block of the server."""
    server.reset(model=ScriptedModel([ModelReply(text="Hello.", thinking="A greeting.")]))
    claude_body.update(model="claude-fable-5-2", system="Be brief.")
    message = await claude.messages.create(**claude_body)
    content = [block.model_dump(exclude_none=True) for block in message.content]
    claude_body["messages"] = [
        *claude_body["messages"],
        {"role": "assistant", "content": content},
        {"role": "user", "content": "And now?"},
    ]
    return copy.deepcopy(claude_body)


def thinking(body: dict[str, Any]) -> Any:
    """Return the thinking block of the history."""
    return body["messages"][1]["content"][0]


KEPT = (
    pytest.param(lambda _: None, id="nothing"),
    pytest.param(lambda b: b["messages"].append({"role": "user", "content": "x"}), id="later"),
    pytest.param(
        lambda b: b.update(
            system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
        ),
        id="cache breakpoint",
    ),
    pytest.param(lambda b: b.update(tool_choice={"type": "none"}), id="tool choice"),
    pytest.param(
        lambda b: (b.update(system="Other."), b["messages"][1]["content"].pop(0)),
        id="thinking left out",
    ),
    pytest.param(
        lambda b: b.update(system="Other.", model="claude-sonnet-4-6"), id="another model"
    ),
    pytest.param(lambda b: thinking(b).update(signature="EqQBCkYI"), id="foreign block"),
)


@pytest.mark.parametrize("change", KEPT)
def test_change_that_keeps_the_prefix_is_accepted(thought: dict[str, Any], change: Change) -> None:
    change(thought)
    assert check_anthropic(thought) is None


BROKEN = (
    pytest.param(lambda b: b.update(system="Be long."), id="system"),
    pytest.param(lambda b: b["tools"][0].update(description="Other."), id="a tool"),
    pytest.param(
        lambda b: b["tools"].append({**b["tools"][0], "name": "more", "defer_loading": True}),
        id="a deferred tool more",
    ),
    pytest.param(lambda b: b["messages"][0].update(content="Other?"), id="an earlier message"),
    pytest.param(
        lambda b: b["messages"].insert(0, {"role": "user", "content": "First."}),
        id="a message more",
    ),
)


@pytest.mark.parametrize("change", BROKEN)
def test_change_of_the_prefix_is_refused(thought: dict[str, Any], change: Change) -> None:
    """Unless the request asks for the block to be dropped."""
    change(thought)
    violation = check_anthropic(thought)
    assert violation is not None
    assert violation.message.startswith("messages.")
    assert "The block is bound to a different conversation" in violation.message
    binding = {"prefix_mismatch_behavior": "drop_block"}
    thought["thinking"] = {"type": "adaptive", "block_binding": binding}
    assert check_anthropic(thought) is None


def test_changed_thinking_is_refused(thought: dict[str, Any]) -> None:
    thinking(thought).update(thinking="Something else.")
    violation = check_anthropic(thought)
    assert violation is not None
    assert violation.message == "messages.1.content.0: Invalid `signature` in `thinking` block"
