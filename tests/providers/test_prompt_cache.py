"""Breakpoints of a request's prompt cache, and the part that the next one repeats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from tests.conversations import BOUND_GENERIC, CLAUDE, COMPATIBLE, OPENAI, Chat, toolbox
from tool_search import profile_for
from tool_search.adapters.anthropic import wire as anthropic_wire
from tool_search.core.profiles import ProviderProfile
from tool_search.providers.prompt_cache import cache_plan

RESPONSES = profile_for("openai_responses", "gpt-5.4")
BRIDGE = profile_for("openai_chat", "deepseek-chat", strategy="bridge")
MARKED = replace(COMPATIBLE, cache="explicit")


def marked(body: dict[str, Any]) -> Iterator[str]:
    """Return the places of the breakpoints in a written request."""
    parts = [("tools", body["tools"]), ("messages", body["messages"])]
    for name, entries in (parts[0], ("system", [body["system"]]), parts[1]):
        for index, entry in enumerate(entries):
            if "cache_control" in str(entry):
                yield name if name == "system" else f"{name}[{index}]"


@pytest.mark.parametrize("profile", [CLAUDE, MARKED, COMPATIBLE], ids=["claude", "glm", "none"])
def test_breakpoints_are_those_that_are_written(profile: ProviderProfile) -> None:
    plan = Chat(toolbox(8, core=2), system_prompt="Be kind.").begin(profile)
    places = cache_plan(plan, profile).breakpoints
    assert places == tuple(marked(anthropic_wire.to_wire(plan, profile)))
    assert bool(places) is (profile.cache == "explicit")


@pytest.mark.parametrize(("reserved", "count"), [(0, 2), (1, 1), (2, 0)])
def test_breakpoints_are_four_at_most(reserved: int, count: int) -> None:
    chat = Chat(toolbox(8, core=2))
    chat.begin(CLAUDE)
    chat.search("common")
    planned = cache_plan(chat.session.plan(CLAUDE), CLAUDE, reserved=reserved)
    assert (len(planned.messages), planned.system, planned.tool) == (count, True, 2)


@pytest.mark.parametrize(
    ("profile", "change"),
    [
        (CLAUDE, "never"), (RESPONSES, "never"), (BRIDGE, "never"),
        (OPENAI, "at its end"), (BOUND_GENERIC, "at its end"),
    ],
    ids=["claude", "responses", "bridge", "openai", "bound"],
)  # fmt: skip
def test_the_next_request_repeats_what_is_called_stable(
    profile: ProviderProfile, change: str
) -> None:
    chat = Chat(toolbox(8, core=2))
    plans = [chat.begin(profile)]
    chat.search("common")
    plans.append(chat.session.plan(profile))
    chat.answer()
    plans.append(chat.begin(profile, "more"))
    for before, after in pairwise(plans):
        planned = cache_plan(before, profile)
        tools, messages = planned.stable_tools, planned.stable_messages
        assert list(after.tools[:tools]) == list(before.tools)
        assert after.messages[:messages] == before.messages
        assert planned.tools_change == change
        assert (len(after.tools) == tools) or change == "at its end"


def test_a_phase_of_skills_like_promises_nothing() -> None:
    chat = Chat(toolbox(3), {"tool_schema_mode": "skills_like"})
    chat.begin(OPENAI)
    planned = cache_plan(chat.session.plan(OPENAI, phase="select"), OPENAI)
    assert (planned.tools_change, planned.stable_tools, planned.stable_messages) == ("anew", 0, 0)
