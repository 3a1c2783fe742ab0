"""Models without tools, and services that forbid calls only in requests without any."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from tests.services.raw import JSON, RawService
from tests.services.rules import RULES
from tests.services.test_sizes import MODELS, TOOLS, answers, bot, codes, entries
from tool_search.core.settings import Dialect
from tool_search.runner.events import ContentLeftOut, RunnerEvent

OLLAMA = "registry.ollama.ai/library/gemma3:4b does not support tools"
GROQ = "Tool choice is none, but model called a tool"


def plain_only(dialect: Dialect) -> RawService:
    """Return a service whose model takes neither tools nor their traces in a history."""
    is_broken = RULES["no tools"].is_broken
    return RawService(rule=lambda body: OLLAMA if is_broken(dialect, body) else None)


def told(events: list[RunnerEvent]) -> list[str]:
    """Return what the user is told."""
    return [event.text for event in events if isinstance(event, ContentLeftOut)]


def system_of(body: JSON) -> str:
    """Return the system text of a request."""
    prompt = body.get("instructions") or body.get("system") or ""
    listed = [m["content"] for m in entries(body) if m.get("role") == "system"]
    return json.dumps([prompt, *listed])


@pytest.mark.parametrize("kind", MODELS)
async def test_model_without_tools_answers_and_person_and_model_are_told(kind: str) -> None:
    service = plain_only(MODELS[kind][0])
    async with bot({"plain": (kind, service)}) as made:
        first = await made.turn(f"Please use {TOOLS[0]}")
        assert codes(first) == ["form_refused"]
        (said,) = told(first)
        assert "another model" in said
        assert "--enable-auto-tool-choice" in said
        assert "No tools can be called" in system_of(service.bodies[-1])
        assert "tool_search" not in system_of(service.bodies[-1])
        again = await made.turn(f"Please use {TOOLS[1]}")
        other = [event async for event in made.runner.run("Please use it", conversation="d")]
        assert (codes(again), told(again), told(other)) == ([], [], [said])
        assert all(map(answers, (first, again)))
        assert service.refused == [OLLAMA]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("first", MODELS)
async def test_history_with_calls_goes_on_at_a_model_without_tools(first: str, kind: str) -> None:
    plain = plain_only(MODELS[kind][0])
    services = {"able": (first, RawService()), "plain": (kind, plain)}
    async with bot(services) as made:
        assert answers(await made.turn(f"Please use {TOOLS[0]}", "able"))
        assert answers(await made.turn(f"Please use {TOOLS[1]}", "plain"))
        assert answers(await made.turn(f"Please use {TOOLS[2]}", "able"))
        assert answers(await made.turn(f"Please use {TOOLS[3]}", "plain"))
        assert plain.refused == [OLLAMA]
        shown = json.dumps(entries(plain.bodies[-1]))
        for name in (TOOLS[0], TOOLS[2]):
            assert f"[{name} was called with" in shown
            assert f"{name.replace('_', ' ')} " in shown
        roles = [entry["role"] for entry in entries(plain.bodies[-1])]
        assert all(a != b for a, b in pairwise(roles))


async def test_last_answer_of_a_turn_has_results_to_read_where_none_is_refused() -> None:
    def rule(body: JSON) -> str | None:
        is_forbidden = body.get("tool_choice") == "none" or "tools" not in body
        has_calls = RULES["no tools"].is_broken("openai_chat", body)
        return GROQ if is_forbidden and has_calls else None

    service = RawService(rule=rule)
    async with bot({"groq": ("chat", service)}, max_steps=2) as made:
        for name in TOOLS[:4]:
            events = await made.turn(f"Please use {name}")
            assert answers(events)
            assert told(events) == []
            assert f"[{name} was called with" in json.dumps(service.bodies[-1]["messages"])
        assert len(service.refused) == 1
        assert service.bodies[-2]["tools"]
