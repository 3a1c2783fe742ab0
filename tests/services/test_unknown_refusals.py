"""Refusals in words that no table has: a turn ends with an answer all the same."""

from __future__ import annotations

import json

import pytest

from tests.services.raw import JSON, RawService
from tests.services.test_sizes import MODELS, TOOLS, answers, bot, codes
from tool_search.errors import AllProvidersFailedError
from tool_search.events import ContentLeftOut

ODD = "Die Anfrage wurde nicht angenommen (E-4711)."
OPTIONAL = {
    "claude": lambda body: "defer_loading" in json.dumps(body) or "cache_control" in str(body),
    "chat": lambda body: "stream_options" in body or "tool_search" in json.dumps(body["tools"]),
    "responses": lambda body: "include" in body or '"tool_search"' in json.dumps(body["tools"]),
}


@pytest.mark.parametrize("kind", OPTIONAL)
async def test_form_without_optional_parts_helps_and_is_remembered(kind: str) -> None:
    service = RawService(rule=lambda body: ODD if OPTIONAL[kind](body) else None)
    async with bot({"odd": (kind, service)}) as made:
        first = await made.turn(f"Please use {TOOLS[0]}")
        second = await made.turn(f"Please use {TOOLS[1]}")
        assert all(map(answers, (first, second)))
        assert codes(first) == ["form_refused"]
        assert codes(second) == []
        assert len(service.refused) == 1


@pytest.mark.parametrize("kind", MODELS)
async def test_request_without_tools_is_the_last_form_and_the_person_is_told(kind: str) -> None:
    service = RawService(rule=lambda body: ODD if body.get("tools") else None)
    async with bot({"odd": (kind, service)}) as made:
        events = await made.turn(f"Please use {TOOLS[0]}")
        assert answers(events)
        assert any(isinstance(event, ContentLeftOut) for event in events)
        assert len(service.refused) <= 4
        # Tools are offered again: what was refused may have been this message alone.
        service.rule = lambda _: None
        assert answers(await made.turn(f"Please use {TOOLS[1]}"))
        assert service.bodies[-1].get("tools")


@pytest.mark.parametrize("kind", MODELS)
async def test_service_that_refuses_everything_is_asked_few_times_and_keeps_its_form(
    kind: str,
) -> None:
    service = RawService(rule=lambda _: ODD)
    async with bot({"odd": (kind, service)}) as made:
        with pytest.raises(AllProvidersFailedError, match="E-4711"):
            await made.turn(f"Please use {TOOLS[0]}")
        assert len(service.refused) <= 5
        service.rule = lambda _: None
        assert answers(await made.turn(f"Please use {TOOLS[1]}"))
        assert made.history[0].text.endswith(TOOLS[0])


async def test_other_provider_is_asked_before_any_plainer_form() -> None:
    odd = RawService(rule=lambda _: ODD)
    services = {"odd": ("chat", odd), "good": ("claude", RawService())}
    async with bot(services) as made:
        assert answers(await made.turn(f"Please use {TOOLS[0]}"))
        assert len(odd.refused) == 1


@pytest.mark.parametrize("status", [401, 403, 429, 503])
async def test_no_plainer_form_is_tried_where_the_request_is_not_at_fault(status: int) -> None:
    service = RawService(rule=lambda _: ODD, status=status)
    async with bot({"odd": ("chat", service)}) as made:
        with pytest.raises(AllProvidersFailedError):
            await made.turn(f"Please use {TOOLS[0]}")
        assert len(service.refused) == 1


async def test_tool_that_ran_is_not_run_again_for_a_refusal() -> None:
    def rule(body: JSON) -> str | None:
        has_result = any(m.get("role") == "tool" for m in body["messages"][-1:])
        return ODD if has_result and "stream_options" in body else None

    service = RawService(rule=rule)
    async with bot({"odd": ("chat", service)}) as made:
        assert answers(await made.turn(f"Please use {TOOLS[0]}"))
        results = [m for m in made.history if m.role == "tool" and m.name == TOOLS[0]]
        assert len(results) == 1
