"""`docs/providers.md` says what the table of facts says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import pytest

from tool_search import load_config
from tool_search.core.profiles import ProviderProfile
from tool_search.core.settings import Dialect
from tool_search.providers.known import CLAUDE_MAX_DEFERRED, KNOWN_PROVIDERS, KnownProvider
from tool_search.providers.profile_choice import profile_for, profile_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "providers.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "docs" / "providers.zh-CN.md").read_text(encoding="utf-8")
THREAD = re.compile(r"(?<![\w.])([A-Za-z][\w.-]*(?:/[\w.-]+)?) (\d{2,6})(?: and (\d{2,6}))?\b")


def rows(heading: str) -> list[list[str]]:
    """The cells of the table that follows a heading, its head left out."""
    after = PAGE.split(f"## {heading}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", after, flags=re.MULTILINE)
    assert table is not None
    lines = table.group().splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


KNOWN = rows("Known hosts and models")


def form(profile: ProviderProfile) -> str:
    """What is particular about requests to a provider, in the page's words."""
    chat = profile.dialect == "openai_chat"
    in_answers = " in answers too" if profile.reasoning_in_answers else ""
    said = {
        "bound thinking": profile.thinking_bound_to_prefix,
        "strict schemas": profile.takes_strict,
        f'reasoning `"{profile.missing_reasoning}"`{in_answers}': (
            profile.missing_reasoning is not None
        ),
        f'content `"{profile.empty_content}"`': profile.empty_content is not None,
        f"at most {profile.max_calls} calls": profile.max_calls is not None,
        "joined turns": profile.message_rules == "joined",
        "additional tools": profile.search_form == "additional",
        "no `tool_choice: none`": not profile.takes_tool_choice_none,
        "signed calls": profile.missing_signature is not None,
        "Mistral's messages": profile.message_rules == "mistral",
        "Moonshot's schemas": profile.schema_rules == "moonshot",
        "no `stream_options`": not profile.takes_stream_options,
        "no reasoning with tools": not profile.reasons_with_tools,
        f"schemas of {profile.max_schema_levels} levels without recursion": (
            profile.schema_rules == "acyclic" and profile.max_schema_levels is not None
        ),
        "no reasoning back": chat and not profile.returns_reasoning,
    }
    return ", ".join(words for words, holds in said.items() if holds)


def tools(profile: ProviderProfile) -> str:
    """How many tools it takes, in the page's words."""
    if profile.max_deferred is not None:
        assert profile.max_deferred == CLAUDE_MAX_DEFERRED
        return f"{profile.max_deferred:,} deferred"
    return "no limit" if profile.max_tools is None else str(profile.max_tools)


@pytest.mark.parametrize("row", KNOWN, ids=lambda row: " ".join(row[:3]))
def test_row_of_the_page_is_what_a_bot_gets(row: list[str]) -> None:
    address, model, dialect, *stated = row
    profile = profile_for(
        cast("Dialect", dialect), model, base_url=f"https://{address}", takes_cheapest=True
    )
    assert stated == [
        profile.strategy, tools(profile), profile.name_rule.shape, profile.cache, form(profile),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "row", [r for r in KNOWN_PROVIDERS if r.hosts != ("*",)], ids=lambda row: row.hosts[0]
)
def test_every_known_address_is_on_the_page(row: KnownProvider) -> None:
    fits = [row.match_rank(cast("Dialect", kind), host, model) for host, model, kind, *_ in KNOWN]
    assert any(fit is not None for fit in fits), row.source


def threads(text: str) -> set[tuple[str, str]]:
    """The threads that a text names, each by a project and a number; what it quotes left out."""
    found = THREAD.findall(re.sub(r"`[^`]*`", "", " ".join(text.split())))
    named = {(name.lower(), n) for name, *numbers in found for n in numbers if n}
    return {(name, n) for name, n in named if name not in ("a", "most", "since", "than")}


def test_every_thread_that_the_table_of_facts_cites_is_on_the_page() -> None:
    cited = {thread for row in KNOWN_PROVIDERS for thread in threads(row.source)}
    assert len(cited) > 10
    assert cited - threads(PAGE) == set()


def test_every_family_has_its_row() -> None:
    providers = " ".join(row[0] for row in rows("Demands"))
    for family in (
        "Claude", "OpenAI Chat", "OpenAI Responses", "DeepSeek", "Kimi", "Qwen", "GLM", "Gemini",
        "Grok", "Mistral", "Ollama", "vLLM", "OpenRouter",
    ):  # fmt: skip
        assert family in providers
    assert all(all(row) for row in rows("Demands"))


def test_both_languages_have_the_same_tables_and_sources() -> None:
    """Cells of facts word for word, and the last column of demands."""
    tables = [
        [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in re.findall(r"^\|.*$", page, flags=re.MULTILINE)
        ]
        for page in (PAGE, CHINESE)
    ]
    assert len(tables[0]) == len(tables[1])
    for english, chinese in zip(*tables, strict=True):
        assert len(english) == len(chinese)
        if english[0] in {row[0] for row in KNOWN}:
            assert english == chinese
        elif len(english) == 4 and english[3] != "documented or recorded":
            assert english[3] == chinese[3]


def test_vllm_is_told_as_claude_is_by_the_profile_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "k" * 20)
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    file = tmp_path / "bot.yaml"
    file.write_text(block, encoding="utf-8")
    config = load_config(file)
    profile = profile_of(config.providers[0], config.profiles)
    assert (profile.strategy, profile.cache) == ("claude", "automatic")
    assert profile_of(config.providers[0]).strategy == "generic"
