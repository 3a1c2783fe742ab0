"""The table of providers: what is known of each, and where that is from."""

from __future__ import annotations

from typing import Any

import pytest

from tool_search import UnsupportedStrategyError, profile_for

CLAUDE = "claude-sonnet-4-6"


@pytest.mark.parametrize(
    ("base_url", "model", "strategy"),
    [
        ("https://eu-west1-aiplatform.googleapis.com/v1", "claude-sonnet-4-5@20250929", "claude"),
        ("https://aiplatform.us.rep.googleapis.com/v1", "claude-opus-4-5", "claude"),
        ("https://mine.services.ai.azure.com/anthropic/", "claude-haiku-4-5", "claude"),
        ("https://aws-external-anthropic.us-east-1.api.aws", CLAUDE, "claude"),
        ("https://aiplatform.googleapis.com", "claude-sonnet-4@20250514", "bridge"),
        ("https://bedrock-runtime.us-east-1.amazonaws.com", f"us.anthropic.{CLAUDE}-v1:0",
         "bridge"),
        ("https://bedrock-mantle.us-east-1.api.aws/anthropic", f"anthropic.{CLAUDE}", "bridge"),
        ("https://openrouter.ai/api", f"anthropic/{CLAUDE}", "generic"),
    ],
)  # fmt: skip
def test_claude_on_a_platform_is_told_as_the_platform_allows(
    base_url: str, model: str, strategy: str
) -> None:
    assert (
        profile_for("anthropic", model, base_url=base_url, takes_cheapest=True).strategy == strategy
    )


@pytest.mark.parametrize("model", [f"us.anthropic.{CLAUDE}-v1:0", f"anthropic/{CLAUDE}"])
def test_a_model_is_known_under_a_gateways_name(model: str) -> None:
    named = profile_for("anthropic", model, base_url="http://proxy", strategy="claude")
    assert (named.strategy, named.model) == ("claude", model)


@pytest.mark.parametrize("model", ["anthropic/claude-opus-4.1", "claude-3.5-sonnet"])
def test_an_old_model_is_known_with_dots_too(model: str) -> None:
    assert profile_for("anthropic", model).strategy == "generic"


@pytest.mark.parametrize(
    ("dialect", "base_url", "cache"),
    [
        ("anthropic", None, "explicit"),
        ("anthropic", "https://proxy.example", "explicit"),
        ("anthropic", "https://dashscope-intl.aliyuncs.com/apps/anthropic", "explicit"),
        ("anthropic", "https://api.deepseek.com/anthropic", "automatic"),
        ("anthropic", "https://api.z.ai/api/anthropic", "automatic"),
        ("anthropic", "https://api.moonshot.ai/anthropic", "automatic"),
        ("openai_chat", None, "automatic"),
        ("openai_chat", "https://dashscope.aliyuncs.com/compatible-mode/v1", "automatic"),
        ("openai_responses", None, "automatic"),
    ],
)
def test_how_a_provider_caches_is_known(dialect: Any, base_url: str | None, cache: str) -> None:
    """An unknown endpoint of Anthropic's dialect is sent breakpoints."""
    assert profile_for(dialect, "m", base_url=base_url).cache == cache


@pytest.mark.parametrize(
    ("base_url", "most", "rule"),
    [
        ("https://generativelanguage.googleapis.com/v1beta/openai/", 512, "identifier"),
        ("http://localhost:11434/v1", None, "common"),
        ("http://localhost:8000/v1", 128, "common"),
        ("https://api.deepseek.com", 128, "common"),
    ],
)
def test_what_a_list_may_be_is_known(base_url: str, most: int | None, rule: str) -> None:
    """OpenAI's limit applies to endpoints without a known one."""
    profile = profile_for("openai_chat", "m", base_url=base_url)
    assert (profile.max_tools, profile.name_rule.shape) == (most, rule)


def test_responses_has_no_known_limit() -> None:
    assert profile_for("openai_responses", "gpt-5.4").max_tools is None


@pytest.mark.parametrize(
    ("model", "host", "strategy"),
    [
        ("kimi-k3", "api.moonshot.ai", "tools_in_messages"),
        ("kimi-k3-256k", "api.moonshot.cn", "tools_in_messages"),
        ("kimi-k2.5", "api.moonshot.ai", "bridge"),
        ("moonshotai/kimi-k3", "openrouter.ai", "generic"),
    ],
)
def test_kimi_k3_gets_definitions_in_messages_where_moonshot_serves_it(
    model: str, host: str, strategy: str
) -> None:
    """Other models refuse them, and nobody knows what a gateway passes on."""
    profile = profile_for("openai_chat", model, base_url=f"https://{host}/v1", takes_cheapest=True)
    assert profile.strategy == strategy


def test_definitions_in_messages_may_be_chosen_for_kimi_k3_anywhere() -> None:
    address = "https://llm.example.com/v1"
    named = profile_for("openai_chat", "kimi-k3", base_url=address, strategy="tools_in_messages")
    assert (named.strategy, named.is_native) == ("tools_in_messages", True)
    with pytest.raises(UnsupportedStrategyError, match="kimi-k3"):
        profile_for("openai_chat", "gpt-5.4", strategy="tools_in_messages")


@pytest.mark.parametrize("model", ["gpt-35-turbo", "gpt-50", "my-gpt-5.4"])
def test_a_name_that_only_looks_like_a_models_is_not_known(model: str) -> None:
    assert profile_for("openai_responses", model, takes_cheapest=True).strategy == "bridge"


@pytest.mark.parametrize(
    ("base_url", "model", "facts"),
    [
        ("https://api.mistral.ai/v1", "mistral-large-latest", ("mistral", False, True, 128)),
        ("https://openrouter.ai/api/v1", "mistralai/devstral-2512", ("mistral", True, True, 128)),
        ("http://localhost:11434/v1", "mistral:7b", ("openai", True, True, None)),
        ("https://api.z.ai/api/paas/v4", "glm-5", ("openai", True, False, 128)),
        ("https://openrouter.ai/api/v1", "z-ai/glm-5.2", ("openai", True, False, 128)),
        ("https://api.x.ai/v1", "grok-4.5", ("openai", True, True, 200)),
        ("https://api.deepseek.com", "deepseek-v4-pro", ("openai", True, True, 128)),
        (None, "gpt-5.4", ("openai", True, True, 128)),
    ],
)
def test_form_of_a_vendors_chat_requests_is_known(
    base_url: str | None, model: str, facts: tuple[str, bool, bool, int | None]
) -> None:
    profile = profile_for("openai_chat", model, base_url=base_url)
    assert facts == (
        profile.message_rules,
        profile.takes_stream_options,
        profile.takes_tool_choice_none,
        profile.max_tools,
    )


@pytest.mark.parametrize(
    ("base_url", "model", "rules"),
    [
        ("https://api.moonshot.ai/v1", "kimi-k2.6", "moonshot"),
        ("https://openrouter.ai/api/v1", "moonshotai/kimi-k3", "moonshot"),
        ("https://api.deepseek.com", "deepseek-v4-pro", "json_schema"),
        ("https://api.x.ai/v1", "grok-4.5", "acyclic"),
        ("https://api.meta.ai/v1", "muse-spark-1.3", "acyclic"),
        ("https://opencode.ai/zen/go/v1", "muse-spark-1.3-contributor", "acyclic"),
    ],
)
def test_subset_of_schemas_is_known(base_url: str, model: str, rules: str) -> None:
    assert profile_for("openai_chat", model, base_url=base_url).schema_rules == rules
