"""The providers of a runner: from strings or objects, with their profiles and health."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from types import MappingProxyType
from typing import Any, cast

from pydantic import SecretStr

from tool_search.config.bot import ProviderConfig, api_keys, provider_from_string
from tool_search.config.limits import LimitSettings
from tool_search.config.providers import ProfileSettings
from tool_search.core.messages import Notice, Phase, RequestPlan, ToolList
from tool_search.core.profiles import ProviderProfile
from tool_search.errors import ConfigurationError, UnsupportedStrategyError
from tool_search.i18n import Language, text
from tool_search.providers.base import ChatProvider, ConnectedProvider
from tool_search.providers.errors import ProviderHealth

__all__ = [
    "COOLDOWN_S",
    "NamedProviders",
    "PlainerForm",
    "ProviderPool",
    "Providers",
    "changes",
    "name_providers",
]

Provider = str | ProviderConfig | ChatProvider
Providers = str | Mapping[str, Provider] | Iterable[Provider]
"""Strings `kind:model`, entries of a configuration, or objects; by `id` or in order."""

COOLDOWN_S = 60.0
"""The seconds for which a failed provider is skipped, unless somebody says otherwise."""

_MAX_FORMS = 1_000
# Adapters are above the runner: the builder of providers is loaded by its name.
_BUILD_PROVIDER = "tool_search.adapters:build_provider"
_NO_PROFILES: Mapping[str, ProfileSettings] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedProviders:
    """Providers by their `id`, the primary first.

    Attributes:
        by_id: The providers.
        built: The providers that were built here; the caller closes them.
        cooldown_s: Seconds that a failed one is skipped, if its configuration says so.
    """

    by_id: Mapping[str, ChatProvider]
    built: Sequence[ConnectedProvider] = ()
    cooldown_s: Mapping[str, float] = field(default_factory=dict)

    def pool(self, cooldown_s: float | Mapping[str, float]) -> ProviderPool:
        """Return the providers with their health; seconds are for all, or by `id`."""
        named = cooldown_s if isinstance(cooldown_s, Mapping) else {}
        usual = COOLDOWN_S if isinstance(cooldown_s, Mapping) else cooldown_s
        return ProviderPool(self.by_id, {name: named.get(name, usual) for name in self.by_id})


def name_providers(
    given: Providers,
    *,
    configured: Sequence[ProviderConfig] = (),
    profiles: Mapping[str, ProfileSettings] = _NO_PROFILES,
    environment: Mapping[str, str] | None = None,
    incoming: LimitSettings | None = None,
) -> NamedProviders:
    """Return providers under their ids; build those that are strings or configurations.

    Args:
        given: The providers. An object in a list has its own `id`, or else
            `dialect:model`.
        configured: Entries of a configuration, whose ids strings may name.
        profiles: The `profiles` section of the configuration.
        environment: The variables with keys; None: those of this process.
        incoming: The `limits` section of the configuration.

    Raises:
        ConfigurationError: There is none, two have one `id`, a string has a wrong form,
            or keys are missing.
    """
    listed = _by_id(given, configured)
    if not listed:
        raise ConfigurationError(
            "a bot needs at least one provider, such as 'anthropic:claude-sonnet-4-6'; "
            "providers is empty"
        )
    entries = {name: one for name, one in listed.items() if isinstance(one, ProviderConfig)}
    keys = api_keys(entries.values(), environment)
    fallbacks = len(listed) > 1
    built = {
        name: _build(entry, keys[entry.id], profiles, incoming, fallbacks=fallbacks)
        for name, entry in entries.items()
    }
    objects = {name: one for name, one in listed.items() if not isinstance(one, ProviderConfig)}
    both: dict[str, ChatProvider] = {**objects, **built}
    return NamedProviders(
        by_id={name: both[name] for name in listed},
        built=tuple(built.values()),
        cooldown_s={name: entry.cooldown_s for name, entry in entries.items()},
    )


def _by_id(
    given: Providers, configured: Sequence[ProviderConfig]
) -> dict[str, ProviderConfig | ChatProvider]:
    listed: dict[str, ProviderConfig | ChatProvider] = {}
    if isinstance(given, Mapping):
        for name, one in given.items():
            read = _read_provider(one, configured)
            if isinstance(read, ProviderConfig):
                read = read.model_copy(update={"id": name})
            listed[name] = read
        return listed
    for one in (given,) if isinstance(given, str) else given:
        read = _read_provider(one, configured)
        name = read.id if isinstance(read, ProviderConfig) else _own_id(read)
        if name in listed:
            raise ConfigurationError(
                f"two providers have the id {name!r}; give them ids of their own, as in "
                "providers={'first': ..., 'second': ...}"
            )
        listed[name] = read
    return listed


def _own_id(provider: ChatProvider) -> str:
    profile = provider.profile
    return str(getattr(provider, "id", "") or f"{profile.dialect}:{profile.model}")


def _read_provider(
    one: Provider, configured: Sequence[ProviderConfig]
) -> ProviderConfig | ChatProvider:
    if isinstance(one, str):
        return provider_from_string(one, configured)
    if isinstance(one, ProviderConfig) or (hasattr(one, "stream") and hasattr(one, "profile")):
        return one
    raise ConfigurationError(
        "a provider must be a string such as 'anthropic:claude-sonnet-4-6', a ProviderConfig "
        f"or an object with `profile` and `stream`, not {one!r}"
    )


def _build(
    entry: ProviderConfig,
    key: SecretStr,
    profiles: Mapping[str, ProfileSettings],
    incoming: LimitSettings | None,
    *,
    fallbacks: bool,
) -> ConnectedProvider:
    module, _, name = _BUILD_PROVIDER.partition(":")
    build = getattr(import_module(module), name)
    try:
        provider = build(
            entry, api_key=key, fallbacks=fallbacks, profiles=profiles, incoming=incoming
        )
    except (UnsupportedStrategyError, ImportError) as exc:
        raise ConfigurationError(f"provider {entry.id!r}: {exc}") from exc
    return cast("ConnectedProvider", provider)


@dataclass(frozen=True, slots=True)
class PlainerForm:
    """A plainer form of requests than the usual one, which a provider has refused.

    Attributes:
        changes: The fields of its profile that are others.
        how: The form in words, as in "answers requests without tools".
        said: The refusal.
        has_row: True if its words are known, and their remedy did not help.
        is_passing: True if the fault may be of a conversation alone.
        helped: True if the provider has answered such a request.
    """

    changes: Mapping[str, Any]
    how: str
    said: str
    has_row: bool = False
    is_passing: bool = False
    helped: bool = False

    @property
    def takes_tools(self) -> bool:
        """True if such a request may have tools."""
        return bool(self.changes.get("takes_tools", True))


def changes(before: ProviderProfile, after: ProviderProfile) -> dict[str, Any]:
    """Return the fields of a profile that another has changed."""
    both = ((each.name, getattr(after, each.name)) for each in fields(after))
    return {name: value for name, value in both if value != getattr(before, name)}


class ProviderPool:
    """The providers of a bot, with their health and what was learned of them.

    Args:
        providers: The providers by `id`, the primary first.
        cooldowns: The seconds for which a failed one is skipped, by `id`.

    Attributes:
        forms: The plainer forms of requests, by origin and purpose.
        hints: The forms that helped in one turn, and are tried first after the next refusal.
        took_tools: The last list of tools in a request that was answered, by origin.
        told: The plainer forms of which there was a notice, by origin and description.
    """

    def __init__(
        self, providers: Mapping[str, ChatProvider], cooldowns: Mapping[str, float]
    ) -> None:
        self.providers = dict(providers)
        self.forms: dict[tuple[str, Phase], PlainerForm] = {}
        self.hints: dict[tuple[str, Phase], PlainerForm] = {}
        self.took_tools: dict[str, ToolList] = {}
        self.told: set[tuple[str, str]] = set()
        self.health = ProviderHealth({name: cooldowns[name] for name in providers})
        self._told: set[str] = set()

    def add(self, name: str, provider: ChatProvider, cooldown_s: float) -> None:
        """Add a provider, the last in order."""
        self.health.add(name, cooldown_s)
        self.providers[name] = provider

    def profile(self, name: str) -> ProviderProfile:
        """Return the current profile of a provider."""
        return self.providers[name].profile

    def notices(self, name: str, plan: RequestPlan, language: Language) -> Iterator[Notice]:
        """Yield, once for a provider, what its requests with tools go without."""
        profile = self.profile(name)
        if plan.tools and not profile.reasons_with_tools and name not in self._told:
            self._told.add(name)
            keys = ("doctor.reasoning_off", "remedy.reasoning_off")
            said = (text(key, language, model=profile.model, provider=name) for key in keys)
            yield Notice("reasoning_off", " ".join(said))

    def learn(
        self, name: str, profile: ProviderProfile, asked: ProviderProfile | None = None
    ) -> None:
        """Use what an endpoint's answers have shown for a model.

        Another provider with the same model there gets the same changes.

        Args:
            name: The provider's `id`.
            profile: Its corrected profile.
            asked: The profile that was corrected; None: the current one.
        """
        before = self.providers[name].profile
        learned = changes(asked or before, profile)
        for other in self.providers.values():
            known = other.profile
            if known.origin == before.origin:
                other.profile = replace(known, **learned)

    def remember(self, key: tuple[str, Phase], form: PlainerForm) -> None:
        """Keep a plainer form of requests; the oldest of very many goes."""
        self.forms[key] = form
        if len(self.forms) > _MAX_FORMS:
            del self.forms[next(iter(self.forms))]

    @property
    def most_tools(self) -> int | None:
        """The length of the longest tool list that every provider takes; None: no limit."""
        limits = (provider.profile.max_tools for provider in self.providers.values())
        return min((most for most in limits if most is not None), default=None)
