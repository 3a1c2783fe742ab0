"""`profiles` in a configuration: additions to what is known, and words against it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tool_search import ConfigurationError, UnsupportedStrategyError, load_config, profile_for
from tool_search.config.providers import ProfileSettings
from tool_search.core.profiles import ProviderProfile

PROXY = "https://llm.example.com/v1"


def profiles(**entries: Mapping[str, Any]) -> dict[str, ProfileSettings]:
    """Entries of `profiles`, by name."""
    return {name: ProfileSettings.model_validate(entry) for name, entry in entries.items()}


def proxied(entries: Mapping[str, ProfileSettings], **more: Any) -> ProviderProfile:
    """Return the profile of Claude at a proxy of one's own."""
    model = more.pop("model", "claude-sonnet-4-6")
    options = {"base_url": PROXY, "profiles": entries, **more}
    return profile_for("anthropic", model, **options)


def test_a_profile_has_the_strategy_of_a_proxy() -> None:
    entries = profiles(
        mine={"match": {"host": "llm.example.com", "model": "claude-*"}, "strategy": "claude",
              "max_tools": 64, "cache": "none"}
    )  # fmt: skip
    profile = proxied(entries)
    assert (profile.strategy, profile.max_tools, profile.cache) == ("claude", 64, "none")
    assert profile.max_deferred == 10_000
    assert proxied({}).strategy == "generic"


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        ({"host": "llm.example.com"}, True),
        ({"host": "LLM.*.com:443"}, False),
        ({"host": ["other.example", "*.example.com"]}, True),
        ({"host": "example.com"}, False),
        ({"model": "CLAUDE-*"}, True),
        ({"model": "gpt-*"}, False),
        ({"type": "anthropic"}, True),
        ({"type": "openai_chat"}, False),
        ({"type": "anthropic", "host": "llm.*", "model": "gpt-*"}, False),
    ],
)
def test_a_profile_is_for_what_fits_all_it_names(match: Mapping[str, Any], fits: bool) -> None:
    entries = profiles(mine={"match": match, "name_rule": "identifier"})
    assert (proxied(entries).name_rule.shape == "identifier") is fits


@pytest.mark.parametrize("host", ["llm.example.com", "llm.example.com:8443"])
def test_a_host_is_named_with_or_without_its_port(host: str) -> None:
    entries = profiles(mine={"match": {"host": host}, "max_tools": 9})
    profile = proxied(entries, base_url="https://llm.example.com:8443/v1")
    assert profile.max_tools == 9


def test_the_closest_profile_counts_before_a_wider_one() -> None:
    entries = profiles(
        exact={"match": {"host": "llm.example.com", "model": "claude-sonnet-4-6"}, "max_tools": 7},
        host={"match": {"host": "llm.example.com"}, "max_tools": 8, "cache": "none"},
        model={"match": {"model": "claude-*"}, "max_tools": 9, "name_rule": "identifier"},
    )
    profile = proxied(entries)
    assert (profile.max_tools, profile.cache, profile.name_rule.shape) == (7, "none", "identifier")
    assert proxied(entries, model="claude-opus-5").max_tools == 8


def test_null_takes_a_limit_away() -> None:
    """VLLM for instance has none."""
    entries = profiles(vllm={"match": {"host": "localhost:8000"}, "max_tools": None})
    profile = profile_for("openai_chat", "m", base_url="http://localhost:8000", profiles=entries)
    assert profile.max_tools is None


def test_a_profile_makes_a_model_of_ones_own_one_with_tool_search() -> None:
    """It holds for that model only, and a provider's own entry goes before it."""
    entries = profiles(mine={"match": {"model": "house-*"}, "strategy": "claude"})
    assert proxied(entries, model="house-large").strategy == "claude"
    assert proxied(entries, model="house-large", strategy="claude").strategy == "claude"
    assert proxied(entries, model="house-large", strategy="generic").strategy == "generic"
    with pytest.raises(UnsupportedStrategyError, match="name the strategy in profiles"):
        proxied(entries, model="other", strategy="claude")


def test_a_profiles_strategy_of_another_dialect_is_an_error() -> None:
    entries = profiles(mine={"match": {"model": "m"}, "strategy": "claude"})
    with pytest.raises(UnsupportedStrategyError, match="name the type in the profile's match"):
        profile_for("openai_chat", "m", profiles=entries)


def test_a_responses_model_of_ones_own_gets_its_search_form() -> None:
    entries = profiles(
        wide={"match": {"type": "openai_responses"}, "strategy": "openai_responses"},
        old={"match": {"model": "house-old"}, "search_form": "additional"},
    )
    forms = [
        profile_for("openai_responses", model, base_url=PROXY, profiles=entries).search_form
        for model in ("house", "house-old")
    ]
    assert forms == ["client", "additional"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{strategy: claude}", "profiles.mine.match is missing"),
        ("{match: {}}", "must name a type, a host or a model"),
        ("{match: {host: 'https://x/v1'}}", "must be a host alone"),
        ("{match: {hosts: x}}", "match.hosts is unknown; known here: host, model, type"),
        ("{match: {model: ''}}", "match.model[0]"),
        ("{match: {model: m}, strategie: x}", "mine.strategie is unknown; known here: cache, "),
        (
            "{match: {model: m}, strategy: auto}",
            "known: 'claude', 'generic', 'bridge', ",
        ),
        ("{match: {model: m}, cache: yes please}", "'explicit', 'automatic' or 'none'"),
        ("{match: {model: m}, max_tools: 1}", "greater than or equal to 4"),
        ("{match: {model: m}, cache: null}", "profiles.mine.cache"),
    ],
)
def test_a_mistake_in_a_profile_names_its_key(tmp_path: Path, entry: str, said: str) -> None:
    """The error has the allowed values too, even if the user's name for it is one of our keys."""
    for name in ("mine", "search"):
        file = tmp_path / "bot.yaml"
        file.write_text(f"profiles:\n  {name}: {entry}\n", "utf-8")
        with pytest.raises(ConfigurationError) as caught:
            load_config(file)
        assert "bot.yaml, line 2: profiles." in str(caught.value)
        assert said.replace("mine", name) in str(caught.value)


def test_profiles_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "bot.yaml"
    file.write_text(
        "profiles:\n"
        "  my-proxy:\n"
        "    match: {host: llm.example.com, model: ['claude-*', 'anthropic/*']}\n"
        "    strategy: bridge\n",
        "utf-8",
    )
    assert proxied(load_config(file).profiles).strategy == "bridge"
