"""Names that services keep for themselves: known before, and learned from words."""

from __future__ import annotations

import json

import pytest

from tests.services.raw import RawService
from tests.services.rules import xai
from tests.services.test_sizes import TOOLS, answers, bot, codes
from tool_search.core.catalog.naming import COMMON, wire_name
from tool_search.providers.profile_choice import profile_for


@pytest.mark.parametrize(
    ("dialect", "model", "base_url", "kept"),
    [
        ("openai_chat", "grok-4.5", "https://api.x.ai/v1", {"tool_search", "web_search"}),
        ("openai_chat", "x-ai/grok-4.6", "https://openrouter.ai/api/v1", {"tool_search"}),
        ("openai_chat", "grok-code", "https://opencode.ai/zen/v1", {"tool_search", "search_files"}),
        ("openai_chat", "gpt-5.4", None, {"python"}),
        ("openai_responses", "gpt-5.6-sol", None, {"python", "image_gen", "web"}),
        ("openai_chat", "qwen3-coder", "https://dashscope.aliyuncs.com/v1", {"search"}),
        ("anthropic", "claude-sonnet-4-6", None, set()),
    ],
)
def test_kept_names_are_known_by_host_and_by_model(
    dialect: str, model: str, base_url: str | None, kept: set[str]
) -> None:
    known = profile_for(dialect, model, base_url=base_url).name_rule.kept
    assert kept <= set(known)
    assert bool(kept) == bool(known)


def test_own_search_is_not_renamed_where_only_functions_are_kept() -> None:
    rule = profile_for("openai_responses", "gpt-5.6-sol").name_rule
    assert wire_name("tool_search", rule) == "tool_search"
    assert wire_name("terminal", rule) != "terminal"


def test_no_two_tools_have_one_name_where_names_are_kept() -> None:
    rule = COMMON.keeping("tool_search", "python")
    names = ["tool_search", "find_tools", "python", wire_name("python", rule), "call_tool"]
    names.append(wire_name("find_tools", rule))
    sent = [wire_name(name, rule) for name in names]
    assert len(set(sent)) == len(names)
    assert sent[0] == "find_tools"
    assert not {"tool_search", "python"} & set(sent)


def test_search_has_a_name_where_both_of_its_names_are_kept() -> None:
    rule = COMMON.keeping("tool_search", "find_tools")
    assert wire_name("tool_search", rule).startswith("tool_search_")
    assert wire_name("find_tools", rule) != wire_name("tool_search", rule)


async def test_refused_name_is_remembered_and_what_the_model_reads_has_the_other() -> None:
    service = xai()
    async with bot({"grok": ("chat", service)}) as made:
        first = await made.turn(f"Please use {TOOLS[0]}")
        second = await made.turn(f"Please use {TOOLS[1]}")
        assert codes(first) == ["form_refused"]
        assert codes(second) == []
        assert all(map(answers, (first, second)))
        assert len(service.refused) == 1
        sent = json.dumps(service.bodies[-1])
        assert "find_tools" in sent
        assert "tool_search" not in sent


async def test_swap_keeps_discoveries_and_each_service_reads_its_own_name() -> None:
    services = {"claude": ("claude", RawService()), "grok": ("chat", xai())}
    async with bot(services) as made:
        for turn, name in enumerate(("claude", "grok", "claude", "grok")):
            assert answers(await made.turn(f"Please use {TOOLS[turn]}", name))
        assert "find_tools" not in json.dumps(services["claude"][1].bodies)
        assert len(services["grok"][1].refused) == 1


async def test_words_that_name_what_was_not_sent_teach_nothing() -> None:
    said = "The function name 'delete_everything' is reserved for use by this model."
    service = RawService(rule=lambda body: said if body.get("tools") else None)
    async with bot({"odd": ("chat", service), "good": ("chat", RawService())}) as made:
        events = await made.turn(f"Please use {TOOLS[0]}")
        assert answers(events)
        again = await made.turn(f"Please use {TOOLS[1]}", "odd")
        assert answers(again)
        assert not {"form_refused"} & {*codes(events), *codes(again)}
