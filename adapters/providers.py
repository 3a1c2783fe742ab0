"""The provider of a configuration: the adapter of its dialect, with its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pydantic import SecretStr

from tool_search.config.bot import ProviderConfig, provider_from_string
from tool_search.config.limits import LimitSettings
from tool_search.config.providers import ProfileSettings
from tool_search.core.settings import Dialect
from tool_search.providers.base import ConnectedProvider
from tool_search.providers.profile_choice import profile_of

__all__ = ["build_provider"]

_RETRIES_WITHOUT_FALLBACK = 2


def build_provider(
    config: ProviderConfig | str,
    *,
    api_key: str | SecretStr | None = None,
    fallbacks: bool = False,
    profiles: Mapping[str, ProfileSettings] | None = None,
    configured: Iterable[ProviderConfig] = (),
    environment: Mapping[str, str] | None = None,
    incoming: LimitSettings | None = None,
) -> ConnectedProvider:
    """Build a provider; its caller closes it, as by `async with`.

    Args:
        config: A string `kind:model`, such as `anthropic:claude-sonnet-4-6`, or an entry
            of `providers`. The `id` of a provider from a string is the string.
        api_key: Its key; None: the one in the environment variable that it names.
        fallbacks: True if another provider can take its turns over; else the SDK repeats
            a failed request twice.
        profiles: The `profiles` section of a configuration.
        configured: Entries of a configuration, whose ids a string may name.
        environment: The variables; None: those of this process.
        incoming: The `limits` section of a configuration.

    Raises:
        ConfigurationError: The string, a setting or the key cannot be used.
        UnsupportedStrategyError: It names a strategy that its model does not support.
        ImportError: The SDK is not installed; the message names the extra.
    """
    if not isinstance(config, ProviderConfig):
        config = provider_from_string(config, configured)
    profile = profile_of(config, profiles or {})
    return _provider_class(config.type)(
        profile=profile,
        api_key=config.api_key(environment) if api_key is None else api_key,
        api_key_env=config.api_key_env,
        base_url=config.base_url,
        id=config.id,
        timeout_s=config.timeout_s,
        first_byte_timeout_s=config.first_byte_timeout_s,
        reply_timeout_s=config.reply_timeout_s,
        max_retries=0 if fallbacks else _RETRIES_WITHOUT_FALLBACK,
        extra_body=config.extra_body,
        incoming=incoming,
    )


def _provider_class(dialect: Dialect) -> Callable[..., ConnectedProvider]:
    """Return the adapter of a dialect; its SDK is imported here."""
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
