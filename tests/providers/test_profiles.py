"""Known facts about providers and models, in profiles."""

from __future__ import annotations

from typing import Any

import pytest

from tool_search import ProviderConfig, UnsupportedStrategyError, profile_for
from tool_search.config.providers import ProfileMatch, ProfileSettings
from tool_search.core.catalog.naming import wire_name
from tool_search.providers.profile_choice import profile_of

SUPPORTED = [
    "claude-sonnet-4-5", "claude-sonnet-4-5-20250929", "claude-sonnet-4-6", "claude-sonnet-5",
    "claude-opus-4-5", "claude-opus-4-8", "claude-opus-5-5", "claude-haiku-4-5",
    "claude-haiku-5-5", "claude-fable-5-1", "claude-mythos-5-2",
]  # fmt: skip
UNSUPPORTED = [
    "claude-3-7-sonnet-20250219", "claude-3-haiku-20240307", "claude-2.1", "claude-instant-1.2",
    "claude-sonnet-4", "claude-sonnet-4-0", "claude-sonnet-4-20250514", "claude-opus-4",
    "claude-opus-4-20250514", "claude-opus-4-1", "claude-opus-4-1-20250805", "glm-5", "gpt-5.4",
]  # fmt: skip


@pytest.mark.parametrize("model", SUPPORTED)
def test_a_claude_model_with_tool_search_gets_its_strategy(model: str) -> None:
    profile = profile_for("anthropic", model)
    assert (profile.strategy, profile.max_deferred) == ("claude", 10_000)
    assert profile.max_tool_bytes == 4 * 1024 * 1024
    assert profile.max_tools is None


@pytest.mark.parametrize("model", UNSUPPORTED)
def test_any_other_model_gets_the_generic_strategy(model: str) -> None:
    """And an error where Claude's was asked for by name."""
    assert profile_for("anthropic", model).strategy == "generic"
    with pytest.raises(UnsupportedStrategyError, match=model):
        profile_for("anthropic", model, strategy="claude")


@pytest.mark.parametrize(
    ("base_url", "strategy"),
    [
        (None, "claude"),
        ("https://api.anthropic.com", "claude"),
        ("https://api.anthropic.com/v1/", "claude"),
        ("https://API.Anthropic.com:443", "claude"),
        ("https://api.z.ai/api/anthropic", "bridge"),
        ("http://localhost:8080", "generic"),
        ("https://api.anthropic.com.example.org", "generic"),
        ("https://api.anthropic.com@example.org", "generic"),
    ],
)
def test_an_endpoint_that_only_looks_like_anthropics_gets_no_native_strategy(
    base_url: str | None, strategy: str
) -> None:
    """The configuration may choose another."""
    model = "claude-sonnet-4-6"
    assert (
        profile_for("anthropic", model, base_url=base_url, takes_cheapest=True).strategy == strategy
    )
    named = profile_for("anthropic", model, base_url=base_url, strategy="claude")
    assert named.strategy == "claude"


def test_generic_may_be_named_for_any_model() -> None:
    assert profile_for("anthropic", "claude-sonnet-4-6", strategy="generic").strategy == "generic"


def test_openai_chat_takes_128_tools_and_no_claude_strategy() -> None:
    assert profile_for("openai_chat", "gpt-5.4").max_tools == 128
    with pytest.raises(UnsupportedStrategyError, match="needs type anthropic"):
        profile_for("openai_chat", "claude-sonnet-4-6", strategy="claude")


@pytest.mark.parametrize(
    ("model", "bound"),
    [("claude-opus-5-5", True), ("claude-sonnet-5-5-20260901", True), ("claude-fable-5-2", True),
     ("claude-mythos-5-2", True), ("claude-haiku-5-5", True), ("claude-opus-5", False),
     ("claude-sonnet-4-6", False), ("claude-mythos-5-1", False)],
)  # fmt: skip
def test_models_with_bound_thinking_are_known(model: str, bound: bool) -> None:
    profile = profile_for("anthropic", model)
    assert profile.thinking_bound_to_prefix is profile.generic().thinking_bound_to_prefix is bound


@pytest.mark.parametrize(
    ("base_url", "origin"),
    [
        (None, "api.openai.com"),
        ("https://user:sk-secret@proxy.example/v1?key=sk-secret", "proxy.example"),
        ("http://localhost:11434/v1", "localhost:11434"),
        ("http://localhost:80/v1", "localhost"),
        ("http://[::1]:8080", "::1:8080"),
        ("http://localhost:99999999", "localhost"),
    ],
)
def test_an_origin_names_the_host_and_no_secret(base_url: str | None, origin: str) -> None:
    assert profile_for("openai_chat", "m", base_url=base_url).origin == f"openai_chat:{origin}/m"


@pytest.mark.parametrize("dialect", ["anthropic", "openai_chat", "openai_responses"])
def test_two_models_of_one_gateway_have_origins_of_their_own(dialect: Any) -> None:
    gateway = "https://gateway.example/v1"
    origins = {profile_for(dialect, m, base_url=gateway).origin for m in ("a", "b")}
    assert len(origins) == 2


def test_a_profile_changes_only_its_strategy_when_it_is_generic() -> None:
    profile: Any = profile_for("anthropic", "claude-opus-5-5")
    generic = profile.generic()
    assert (profile.family, generic.family) == ("anthropic/claude", "anthropic/generic")
    assert generic.origin == profile.origin
    assert wire_name("a.b", generic.name_rule) == wire_name("a.b", profile.name_rule)


@pytest.mark.parametrize(
    ("model", "form"),
    [
        ("gpt-5.4", "client"), ("gpt-5.4-mini-2026-03-17", "client"), ("gpt-5.6-sol", "client"),
        ("gpt-6", "client"), ("gpt-10.2-pro", "client"), ("ft:gpt-5.5:me", "client"),
        ("gpt-5.4-nano", "additional"), ("gpt-5", "additional"), ("gpt-5-2025-08-07", "additional"),
        ("gpt-5.2", "additional"), ("gpt-5.3-codex", "additional"),
    ],
)  # fmt: skip
def test_a_responses_model_gets_definitions_in_its_form(model: str, form: str) -> None:
    """By a search of its own from gpt-5.4 on, but for that version's nano."""
    profile = profile_for("openai_responses", model)
    assert (profile.strategy, profile.search_form) == ("openai_responses", form)
    assert profile.generic().strategy == "generic"


@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-4o", "o3", "gpt-oss-120b", "kimi-k3", ""])
def test_a_model_that_takes_no_definitions_in_messages_gets_the_bridge(model: str) -> None:
    """And an error where the other was asked for by name."""
    assert profile_for("openai_responses", model, takes_cheapest=True).strategy == "bridge"
    with pytest.raises(UnsupportedStrategyError, match="gpt-5 or later"):
        profile_for("openai_responses", model, strategy="openai_responses")


def test_an_endpoint_that_only_looks_like_openais_gets_the_generic_strategy() -> None:
    """The configuration may choose another."""
    url = "https://proxy.example/v1"
    assert profile_for("openai_responses", "gpt-5.4", base_url=url).strategy == "generic"
    named = profile_for("openai_responses", "gpt-5.4", base_url=url, strategy="openai_responses")
    assert named.strategy == "openai_responses"


@pytest.mark.parametrize(
    ("model", "strategy", "base_url"),
    [("gpt-5.2", "auto", None), ("gpt-5.4", "generic", None), ("gpt-5.4", "auto", "http://x")],
)
def test_a_form_of_search_that_a_model_cannot_have_is_an_error(
    model: str, strategy: Any, base_url: str | None
) -> None:
    """Rather than something else than was asked for."""
    with pytest.raises(UnsupportedStrategyError, match="tool_search: hosted"):
        profile_for(
            "openai_responses", model, strategy=strategy, base_url=base_url, search_form="hosted"
        )


@pytest.mark.parametrize(
    ("dialect", "strategy"),
    [
        ("openai_chat", "openai_responses"), ("anthropic", "openai_responses"),
        ("openai_responses", "claude"), ("openai_chat", "claude"),
    ],
)  # fmt: skip
def test_a_strategy_of_another_dialect_is_an_error(dialect: Any, strategy: Any) -> None:
    needed = {"claude": "anthropic"}.get(strategy, strategy)
    with pytest.raises(UnsupportedStrategyError, match=f"needs type {needed}"):
        profile_for(dialect, "gpt-5.4", strategy=strategy)


@pytest.mark.parametrize(
    ("model", "base_url", "asked"),
    [
        ("gpt-5.4", None, True), ("o3", None, True), ("gpt-4.1", None, False),
        ("gpt-5-chat-latest", None, False), ("gpt-5.4", "http://localhost:1234", False),
    ],
)  # fmt: skip
def test_reasoning_is_asked_for_where_a_model_has_it(
    model: str, base_url: str | None, asked: bool
) -> None:
    assert profile_for("openai_responses", model, base_url=base_url).gives_reasoning is asked


def test_replies_of_responses_belong_to_one_model() -> None:
    origins = {profile_for("openai_responses", m).origin for m in ("gpt-5.4", "gpt-5.5")}
    assert len(origins) == 2


@pytest.mark.parametrize("url", ["https://api.deepseek.com", "https://api.openai.com/v1", None])
def test_vendor_with_a_cache_and_no_search_gets_the_bridge_unless_another_is_named(
    url: str | None,
) -> None:
    assert profile_for("openai_chat", "m", base_url=url, takes_cheapest=True).strategy == "bridge"
    assert profile_for("openai_chat", "m", base_url=url, strategy="generic").strategy == "generic"
    match = ProfileMatch(type="openai_chat")
    own = {"mine": ProfileSettings(match=match, strategy="generic")}
    assert profile_for("openai_chat", "m", base_url=url, profiles=own).strategy == "generic"


def test_profile_with_capitals_in_its_patterns_matches_a_host_and_a_model() -> None:
    match = ProfileMatch(host=("*.Example.COM",), model=("House-*",))
    own = {"mine": ProfileSettings(match=match, max_tools=7)}
    url = "https://LLM.example.com/v1"
    assert profile_for("openai_chat", "house-1", base_url=url, profiles=own).max_tools == 7


@pytest.mark.parametrize("url", ["http://localhost:11434/v1", "https://llm.example.com/v1"])
def test_endpoint_without_a_known_price_gets_the_growing_list(url: str) -> None:
    assert profile_for("openai_chat", "m", base_url=url).strategy == "generic"


def test_a_loop_of_ones_own_gets_the_growing_list_where_a_bot_gets_the_bridge() -> None:
    bot = ProviderConfig(id="gpt", type="openai_chat", model="gpt-5.4")
    assert profile_of(bot).strategy == "bridge"
    assert profile_for("openai_chat", "gpt-5.4").strategy == "generic"
