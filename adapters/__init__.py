"""Adapters: the plans of this library in the formats of providers and frameworks.

Each is a module of its own, imported when it is needed, with an extra of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import SecretStr

from tool_search.config.bot import ProviderConfig
from tool_search.config.providers import Dialect, ProfileSettings
from tool_search.providers.base import ConnectedProvider
from tool_search.providers.profiles import profile_of

__all__ = ["build_provider"]

_RETRIES_WITHOUT_FALLBACK = 2


def build_provider(
    config: ProviderConfig,
    *,
    api_key: str | SecretStr,
    fallbacks: bool,
    profiles: Mapping[str, ProfileSettings] | None = None,
) -> ConnectedProvider:
    """The provider that an entry of `providers` describes.

    Args:
        config: The entry.
        api_key: Its key.
        fallbacks: Whether another provider can take its turns over; where none can,
            the SDK repeats a failed request twice.
        profiles: The configuration's `profiles`.

    Raises:
        ConfigurationError: A setting or the key cannot be used.
        UnsupportedStrategyError: It names a strategy its model cannot honour.
        ImportError: The SDK is not installed; the message names the extra.
    """
    profile = profile_of(config, profiles or {})
    return _provider_class(config.type)(
        profile=profile,
        api_key=api_key,
        base_url=config.base_url,
        id=config.id,
        timeout_s=config.timeout_s,
        first_byte_timeout_s=config.first_byte_timeout_s,
        reply_timeout_s=config.reply_timeout_s,
        max_retries=0 if fallbacks else _RETRIES_WITHOUT_FALLBACK,
        extra_body=config.extra_body,
    )


def _provider_class(dialect: Dialect) -> Callable[..., ConnectedProvider]:
    """The adapter of a dialect, whose SDK is loaded now."""
    if dialect == "anthropic":
        from tool_search.adapters.anthropic import AnthropicProvider  # noqa: PLC0415 - an extra

        return AnthropicProvider
    if dialect == "openai_responses":
        from tool_search.adapters.openai_responses import (  # noqa: PLC0415 - an extra
            OpenAIResponsesProvider,
        )

        return OpenAIResponsesProvider
    from tool_search.adapters.openai_chat import OpenAIChatProvider  # noqa: PLC0415 - an extra

    return OpenAIChatProvider
