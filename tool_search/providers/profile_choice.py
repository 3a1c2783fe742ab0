"""The profile of a model at an endpoint: facts of the table, the user's, and the strategy."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal
from urllib.parse import urlsplit

from tool_search.config.bot import ProviderConfig
from tool_search.config.providers import ProfileSettings
from tool_search.core.catalog.naming import NameRule
from tool_search.core.profiles import ProviderProfile
from tool_search.core.settings import (
    AUTO,
    Dialect,
    SearchForm,
    StrategyChoice,
    StrategyFacts,
    current_strategy_name,
    dialect_of,
    registered_strategy,
)
from tool_search.errors import UnsupportedStrategyError
from tool_search.providers.known import (
    OWN_HOSTS,
    ProviderFacts,
    is_known_model,
    known_facts,
    stated_facts,
)

__all__ = ["profile_for", "profile_of"]

_log = logging.getLogger(__name__)
# Facts that a profile has under their names, as they are.
_SAME_IN_PROFILES = frozenset(ProviderFacts.__annotations__) & {
    each.name for each in fields(ProviderProfile)
} - {"strategy", "search_form", "name_rule", "gives_reasoning", "set_aside"}
_NO_PROFILES: Mapping[str, ProfileSettings] = MappingProxyType({})


def profile_of(
    config: ProviderConfig, profiles: Mapping[str, ProfileSettings] = _NO_PROFILES
) -> ProviderProfile:
    """Return the profile of a configured provider.

    Args:
        config: The provider's entry.
        profiles: The configuration's `profiles`.

    Raises:
        UnsupportedStrategyError: The model cannot use the strategy of the entry.
    """
    profile = profile_for(
        config.type,
        config.model,
        base_url=config.base_url,
        strategy=config.strategy,
        search_form=config.tool_search,
        keeps_replies=config.previous_response_id,
        profiles=profiles,
        takes_cheapest=True,
    )
    # The owner's word; a null too, which takes ours away.
    stated = "reasoning_effort" in config.extra_body
    return replace(profile, reasons_with_tools=True) if stated else profile


def profile_for(
    dialect: str,
    model: str,
    *,
    base_url: str | None = None,
    strategy: StrategyChoice | StrategyFacts = AUTO,
    search_form: SearchForm = "client",
    keeps_replies: bool = False,
    profiles: Mapping[str, ProfileSettings] = _NO_PROFILES,
    takes_cheapest: bool = False,
) -> ProviderProfile:
    """Return the profile of a model at an endpoint.

    An endpoint with the dialect of another vendor gets the generic strategy, unless
    `strategy` or a profile names another: many take the dialect without tool search.

    Args:
        dialect: The kind of provider: `anthropic`, `openai-responses` (or `openai`) or
            `openai-chat`.
        model: The model's name.
        base_url: The endpoint; None: the vendor's own.
        strategy: The name of a registered strategy, or a strategy's class, registered or
            not; `auto`: the strategy of `profiles`, or else the best that is known to work.
        search_form: `tool_search` of a provider's configuration.
        keeps_replies: `previous_response_id` of a provider's configuration.
        profiles: A configuration's `profiles`, which replace known facts.
        takes_cheapest: True if `auto` may be the bridge where that costs less, as for providers
            of a configuration; a loop of one's own has found tools declared by their names.

    Raises:
        ConfigurationError: The kind is unknown.
        UnsupportedStrategyError: The strategy is unknown, or the model cannot use it.
    """
    dialect = dialect_of(dialect)
    host = (_host(base_url) if base_url else "") or OWN_HOSTS[dialect]
    stated = stated_facts(profiles, dialect, host, model)
    facts: ProviderFacts = {**known_facts(dialect, host, model), **stated}
    chosen = _strategy(dialect, model, strategy, facts, takes_cheapest=takes_cheapest)
    # Who names a strategy has said what the model can do.
    if not stated and strategy == AUTO and host == OWN_HOSTS[dialect]:
        _warn_if_unknown(model, chosen.name)
    is_responses = dialect == "openai_responses"
    reasons = is_responses and _passes_reasoning_on(strategy, chosen, facts)
    return replace(
        _profile(dialect, model, host, chosen, facts),
        search_form=_search_form(search_form, chosen, facts, f"{model!r} at {host}"),
        keeps_replies=keeps_replies and is_responses,
        gives_reasoning=facts.get("gives_reasoning", reasons),
    )


def _profile(
    dialect: Dialect, model: str, host: str, strategy: StrategyFacts, facts: ProviderFacts
) -> ProviderProfile:
    """Return the profile that facts state; what is not known is as `ProviderProfile` has it."""
    known: dict[str, Any] = {key: fact for key, fact in facts.items() if key in _SAME_IN_PROFILES}
    if not strategy.uses_limits:
        known.update(max_deferred=None, max_tool_bytes=None)
    return ProviderProfile(
        dialect=dialect,
        model=model,
        # Signatures, reasoning and kept replies are bound to the model that wrote them, and one
        # gateway has many models at one host.
        origin=f"{dialect}:{host}/{model}",
        strategy=strategy.name,
        name_rule=NameRule(facts.get("name_rule", "common")).keeping(*facts.get("kept_names", ())),
        set_aside=frozenset(facts.get("set_aside", ())),
        **known,
    )


@lru_cache(maxsize=256)
def _warn_if_unknown(model: str, strategy: str) -> None:
    # Cached, so that each model is named once. At other endpoints most models are unknown.
    if not is_known_model(model):
        _log.warning(
            "model_not_known: the model %r is in no row of the table of known models: with the "
            "strategy %r it sees the search tool and the tools that it found; if it can do more, "
            "say so under `profiles`, and if it is misspelt, correct it",
            model,
            strategy,
        )


def _strategy(
    dialect: Dialect,
    model: str,
    asked: StrategyChoice | StrategyFacts,
    facts: ProviderFacts,
    *,
    takes_cheapest: bool,
) -> StrategyFacts:
    """Return the strategy that was asked for, or the best that is known to work."""
    stated = facts.get("strategy")
    wanted = stated if asked == AUTO else asked
    native = facts.get("native")
    if wanted is None:
        if native is not None and facts.get("knows_native"):
            return registered_strategy(native)
        cheapest = facts.get("without_native", "generic") if takes_cheapest else "generic"
        return registered_strategy(cheapest)
    if isinstance(wanted, str):
        wanted = registered_strategy(current_strategy_name(wanted))
    if wanted.dialect not in (None, dialect):
        raise UnsupportedStrategyError(
            f"strategy {wanted.name!r} needs type {wanted.dialect}, not {dialect!r} (model "
            f"{model!r}); use auto, generic or bridge, or name the type in the profile's match"
        )
    if wanted.requires and wanted.name not in (native, stated):
        raise UnsupportedStrategyError(
            f"strategy {wanted.name!r} needs {wanted.requires}, and {model!r} is not known to be "
            "one; use auto or generic, or name the strategy in profiles"
        )
    return wanted


def _passes_reasoning_on(
    asked: StrategyChoice | StrategyFacts, chosen: StrategyFacts, facts: ProviderFacts
) -> bool:
    """True if the model reasons and the endpoint passes its family's features on."""
    # A user who names a strategy of one dialect knows that the endpoint passes it on.
    is_named = asked != AUTO and chosen.dialect is not None
    return facts.get("reasons", False) and (facts.get("knows_native", False) or is_named)


def _search_form(
    asked: SearchForm, strategy: StrategyFacts, facts: ProviderFacts, model: str
) -> SearchForm | Literal["additional"]:
    """Return how definitions come; only Responses has several forms."""
    has_forms = strategy.sends_definitions_in_messages and strategy.dialect == "openai_responses"
    if has_forms and facts.get("search_form") != "additional":
        return asked
    if asked != "client":
        had = "no tool search" if has_forms else f"the strategy {strategy.name}"
        raise UnsupportedStrategyError(
            f"tool_search: {asked} needs the strategy openai_responses and a model with tool "
            f"search (gpt-5.4 or later, but not its nano); {model} has {had}; leave tool_search out"
        )
    return facts.get("search_form", "client")


def _host(address: str) -> str:
    """Return the host, with a port other than the scheme's own, without user and password."""
    parts = urlsplit(address)
    usual = {"https": 443, "http": 80}.get(parts.scheme)
    try:
        port = parts.port
    except ValueError:
        port = None
    name = parts.hostname or ""
    return f"{name}:{port}" if port not in (None, usual) else name
