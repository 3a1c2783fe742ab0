"""The length of a reply: known of each model, and learned from refusals."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.adapters.contract import ADAPTERS, plan_of
from tool_search import profile_for
from tool_search.config import ProfileSettings
from tool_search.errors import ProviderError
from tool_search.providers.errors import ErrorAction, classify_error
from tool_search.providers.known import OWN_HOSTS
from tool_search.testing.anthropic.rules import check_anthropic

DIALECT_MODULES: dict[str, ModuleType] = {adapter.dialect: adapter.module for adapter in ADAPTERS}
MODELS = {
    "claude-2.1": 4_096,
    "claude-3-haiku-20240307": 4_096,
    "claude-3-opus-latest": 4_096,
    "claude-3-5-sonnet-20241022": 8_192,
    "claude-3-7-sonnet-20250219": 64_000,
    "claude-opus-4-20250514": 32_000,
    "claude-opus-4-0": 32_000,
    "claude-opus-4-1-20250805": 32_000,
    "claude-sonnet-4-20250514": 64_000,
    "claude-sonnet-4-5-20250929": 64_000,
    "claude-haiku-4-5": 64_000,
    "claude-opus-4-5-20251101": 64_000,
    "claude-opus-4-6": 128_000,
    "claude-sonnet-4-6": 128_000,
    "claude-opus-4-8": 128_000,
    "claude-haiku-5-5": 128_000,
    "claude-sonnet-5": 128_000,
    "claude-fable-5-2": 128_000,
    "claude-mythos-preview": 128_000,
}


def asked(model: str, **settings: Any) -> int | None:
    """Return the tokens that a request of Anthropic's dialect asks for."""
    profile = profile_for("anthropic", model, **settings)
    limit: int | None = DIALECT_MODULES["anthropic"].to_wire(plan_of(), profile)["max_tokens"]
    return limit


@pytest.mark.parametrize(("model", "most"), MODELS.items())
def test_claude_may_write_what_it_can(model: str, most: int) -> None:
    assert asked(model) == most
    message = {"role": "user", "content": "Hi"}
    body: dict[str, Any] = {"model": model, "max_tokens": most, "messages": [message]}
    assert check_anthropic(body) is None
    refused = check_anthropic({**body, "max_tokens": most + 1})
    assert refused is not None
    assert refused.message == (
        f"max_tokens: {most + 1} > {most}, which is the maximum allowed number of output tokens "
        f"for {model}"
    )


@pytest.mark.parametrize(
    ("model", "base_url", "most"),
    [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "https://bedrock.example", 64_000),
        ("anthropic/claude-opus-4.1", "https://openrouter.ai/api", 32_000),
        ("claude-sonnet-4@20250514", "https://aiplatform.googleapis.com", 64_000),
        ("deepseek-v4-pro", "https://api.deepseek.com/anthropic", 384_000),
        ("glm-5", "https://api.z.ai/api/anthropic", 131_072),
        ("glm-4.6", "https://open.bigmodel.cn/api/anthropic", 131_072),
        ("new-model", "https://llm.example.com", 32_000),
    ],
)
def test_model_elsewhere_may_write_what_is_known_of_it(
    model: str, base_url: str, most: int
) -> None:
    assert asked(model, base_url=base_url) == most


def test_configuration_goes_before_the_table() -> None:
    settings = {"match": {"model": "*"}, "max_output_tokens": 777}
    profiles = {"mine": ProfileSettings.model_validate(settings)}
    assert asked("claude-sonnet-4-6", profiles=profiles) == 777
    for dialect, field in (
        ("openai_chat", "max_completion_tokens"),
        ("openai_responses", "max_output_tokens"),
    ):
        profile = profile_for(dialect, "gpt-5.4", profiles=profiles)
        assert DIALECT_MODULES[dialect].to_wire(plan_of(), profile)[field] == 777
    compatible = profile_for("openai_chat", "x", base_url="http://a/v1", profiles=profiles)
    assert DIALECT_MODULES["openai_chat"].to_wire(plan_of(), compatible)["max_tokens"] == 777


@pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses"])
def test_services_with_a_length_of_their_own_are_not_told(dialect: Any) -> None:
    wire = DIALECT_MODULES[dialect].to_wire(plan_of(), profile_for(dialect, "gpt-5.4"))
    assert not [key for key in wire if key.startswith("max_")]
    assert dialect in OWN_HOSTS


REFUSALS = {
    "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for x": 8_192,
    "The parameter max_tokens specified in the request is not valid: integer above maximum value, "
    "expected a value <= 16384, but got 32000 instead.": 16_384,
    "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]": 8_192,
    "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 16384]": 16_384,
    "`max_tokens` must be less than or equal to `8192`, the maximum value": 8_192,
    "input length and `max_tokens` exceed context limit: 180000 + 32000 > 200000, decrease input "
    "length or `max_tokens` and try again": 10_000,
    "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context "
    "length is 32768 tokens and your request has 768 input tokens (32000 > 32768 - 768).": 16_000,
}


@pytest.mark.parametrize(("detail", "most"), REFUSALS.items())
def test_refused_length_is_learned(detail: str, most: int) -> None:
    profile = profile_for("anthropic", "new-model", base_url="https://llm.example.com")
    said = classify_error(ProviderError(detail, provider="p", status=400), profile)
    assert said.remedy == "within_limit"
    assert said.profile is not None
    assert said.profile.max_output_tokens == most


def test_conversation_that_leaves_no_room_for_a_reply_is_shortened() -> None:
    detail = "input length and `max_tokens` exceed context limit: 199900 + 32000 > 200000"
    error = ProviderError(detail, provider="p", status=400)
    assert classify_error(error, profile_for("anthropic", "claude-sonnet-4-5")).remedy == "shorten"


def test_length_that_is_documented_is_not_learned_again() -> None:
    detail = "max_tokens: 128001 > 64000, which is the maximum allowed number of output tokens"
    profile = profile_for("anthropic", "claude-sonnet-4-5")
    error = ProviderError(detail, provider="p", status=400)
    assert classify_error(error, profile) == ErrorAction(remedy="next_provider")
