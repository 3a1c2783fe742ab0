"""Checks of `providers` and `profiles`: keys, addresses, strategies and limits."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from importlib.util import find_spec
from urllib.parse import urlsplit

from tool_search.cli.doctor.examined import Examined
from tool_search.cli.doctor.findings import Finding
from tool_search.config.bot import ProviderConfig
from tool_search.core.profiles import ProviderProfile
from tool_search.core.settings import Dialect
from tool_search.errors import ConfigurationError, UnsupportedStrategyError
from tool_search.providers.known import OWN_HOSTS, known_facts, likely_model, stated_facts
from tool_search.providers.profile_choice import profile_of

__all__ = ["check_providers", "is_local", "profile_or_finding"]

_SDKS: dict[Dialect, tuple[str, str]] = {
    "anthropic": ("anthropic", "anthropic"),
    "openai_chat": ("openai", "openai"),
    "openai_responses": ("openai", "openai"),
}
# The paths that the vendors' SDKs write after an address, longest first.
_ADDED_PATHS: dict[Dialect, tuple[str, ...]] = {
    "anthropic": ("/v1/messages", "/messages", "/v1"),
    "openai_chat": ("/chat/completions", "/completions"),
    "openai_responses": ("/responses",),
}
_LOCAL_NAMES = (".local", ".internal", ".lan", ".home.arpa")


def profile_or_finding(
    provider: ProviderConfig, index: int, bot: Examined
) -> ProviderProfile | Finding:
    """Return the profile of a provider, or a finding if it cannot have its strategy."""
    try:
        return profile_of(provider, bot.settings.profiles)
    except UnsupportedStrategyError as exc:
        return Finding(
            code="strategy_refused",
            path=("providers", index, "strategy"),
            values={"provider": provider.id, "problem": str(exc)},
        )


def check_providers(bot: Examined) -> Iterator[Finding]:
    """Yield what is wrong with the providers and the profiles."""
    if not bot.settings.providers and not bot.file.lacks("providers"):
        yield Finding(code="provider_missing", path=("providers",))
    seen: dict[tuple[str, str, str | None], str] = {}
    for index, provider in enumerate(bot.settings.providers):
        yield from _check_key(provider, index, bot)
        yield from _check_address(provider, index)
        yield from _check_model(provider, index)
        yield from _check_sdk(provider, index)
        yield from _check_native(provider, index, bot)
        yield from _check_reasoning(provider, index, bot)
        yield from _check_time(provider, index, bot)
        same = (provider.type, provider.model, provider.base_url)
        if (other := seen.setdefault(same, provider.id)) != provider.id:
            yield Finding(
                code="provider_repeated",
                path=("providers", index),
                values={"provider": provider.id, "other": other},
            )
    yield from _check_profiles(bot)


def _check_key(provider: ProviderConfig, index: int, bot: Examined) -> Iterator[Finding]:
    try:
        provider.api_key(bot.environment)
    except ConfigurationError:
        yield Finding(
            code="key_missing",
            path=("providers", index, "api_key_env"),
            values={"provider": provider.id, "variable": provider.api_key_env},
        )


def _check_address(provider: ProviderConfig, index: int) -> Iterator[Finding]:
    if provider.base_url is None:
        return
    parts, path = urlsplit(provider.base_url), ("providers", index, "base_url")
    if "@" in parts.netloc:
        yield Finding(code="address_secret", path=path, values={"provider": provider.id})
    yield from _check_path(provider, index)
    host = parts.hostname or ""
    if parts.scheme == "http" and provider.api_key_env is not None and not is_local(host):
        yield Finding(
            code="address_plain", path=path, values={"provider": provider.id, "host": host}
        )


def _check_path(provider: ProviderConfig, index: int) -> Iterator[Finding]:
    """Yield an address with the path that the SDK adds itself, or without the one it needs."""
    written = str(provider.base_url)
    parts = urlsplit(written)
    path = parts.path.rstrip("/")
    added = next((each for each in _ADDED_PATHS[provider.type] if path.endswith(each)), None)
    is_bare = provider.type != "anthropic" and parts.hostname == OWN_HOSTS[provider.type]
    if added is None and not (is_bare and not path):
        return
    right = path.removesuffix(added) if added is not None else "/v1"
    is_plain = written.endswith(parts.path) and "@" not in parts.netloc
    yield Finding(
        code="address_path",
        path=("providers", index, "base_url"),
        values={"provider": provider.id, "path": parts.path or "/", "right": right or "/"},
        wrong=written,
        instead=written.removesuffix(parts.path) + right if is_plain else None,
    )


def _check_model(provider: ProviderConfig, index: int) -> Iterator[Finding]:
    host = urlsplit(provider.base_url or "").hostname or OWN_HOSTS[provider.type]
    likely = likely_model(provider.type, host, provider.model)
    if likely is not None:
        yield Finding(
            code="model_unknown",
            path=("providers", index, "model"),
            values={
                "provider": provider.id,
                "model": provider.model,
                "host": host,
                "near": likely or "-",
            },
            wrong=provider.model,
            instead=likely or None,
        )


def is_local(host: str) -> bool:
    """True if a host is this machine, or of a private network."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or "." not in host or host.endswith(_LOCAL_NAMES)
    return address.is_loopback or address.is_private


def _check_sdk(provider: ProviderConfig, index: int) -> Iterator[Finding]:
    package, extra = _SDKS[provider.type]
    if find_spec(package) is None:
        yield Finding(
            code="adapter_missing",
            path=("providers", index, "type"),
            values={"provider": provider.id, "package": package, "extra": extra},
        )


def _check_native(provider: ProviderConfig, index: int, bot: Examined) -> Iterator[Finding]:
    """Yield a note if a model has tool search of its own, and its endpoint is not known to."""
    profile = bot.profiles.get(provider.id)
    if profile is None or provider.strategy != "auto":
        return
    host = urlsplit(provider.base_url or "").hostname or OWN_HOSTS[provider.type]
    facts = {
        **known_facts(provider.type, host, provider.model),
        **stated_facts(bot.settings.profiles, provider.type, host, provider.model),
    }
    native = facts.get("native")
    # `False` is a fact: the endpoint is known to refuse it.
    if native and "knows_native" not in facts and profile.strategy != native:
        yield Finding(
            code="native_search_unused",
            path=("providers", index),
            values={
                "provider": provider.id,
                "model": provider.model,
                "native": native,
                "strategy": profile.strategy,
                "host": host,
            },
        )


def _check_reasoning(provider: ProviderConfig, index: int, bot: Examined) -> Iterator[Finding]:
    """Yield a note if a model reasons only in requests without tools."""
    profile = bot.profiles.get(provider.id)
    if profile is not None and not profile.reasons_with_tools:
        yield Finding(
            code="reasoning_off",
            path=("providers", index, "type"),
            values={"provider": provider.id, "model": provider.model},
        )


def _check_time(provider: ProviderConfig, index: int, bot: Examined) -> Iterator[Finding]:
    """Yield a warning if a silent provider uses up a turn before its fallback is asked."""
    whole = bot.settings.turn_timeout_s
    is_last = index == len(bot.settings.providers) - 1
    if whole is not None and not is_last and provider.first_byte_timeout_s >= whole:
        yield Finding(
            code="fallback_late",
            path=("providers", index, "first_byte_timeout_s"),
            values={
                "provider": provider.id,
                "waits": f"{provider.first_byte_timeout_s:g}",
                "turn": f"{whole:g}",
            },
        )


def _check_profiles(bot: Examined) -> Iterator[Finding]:
    for name in bot.settings.profiles:
        one = {name: bot.settings.profiles[name]}
        hosts = (
            (provider, urlsplit(provider.base_url or "").netloc.rpartition("@")[2])
            for provider in bot.settings.providers
        )
        if not any(
            stated_facts(one, provider.type, host or OWN_HOSTS[provider.type], provider.model)
            or not one[name].stated
            for provider, host in hosts
        ):
            yield Finding(
                code="profile_unmatched", path=("profiles", name), values={"profile": name}
            )
