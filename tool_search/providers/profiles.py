"""Profiles: the capabilities of one model at one endpoint, without behaviour.

The table in `known` has the known facts; a configuration's `profiles` replace them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

from tool_search.catalog.names import COMMON, NameRule
from tool_search.catalog.tool import Tool
from tool_search.config.bot import ProviderConfig, SearchForm
from tool_search.config.kinds import dialect_of
from tool_search.config.providers import (
    CacheKind,
    Dialect,
    MessageRules,
    ProfileSettings,
    SchemaRules,
    StrategyChoice,
)
from tool_search.config.strategies import (
    AUTO,
    StrategyFacts,
    current_strategy_name,
    registered_strategy,
)
from tool_search.errors import UnsupportedStrategyError
from tool_search.messages import Phase, StrategyName
from tool_search.providers.known import (
    OWN_HOSTS,
    ProviderFacts,
    is_known_model,
    known_facts,
    stated_facts,
)

__all__ = ["ProviderProfile", "profile_for", "profile_of"]

_log = logging.getLogger(__name__)
_NO_PROFILES: Mapping[str, ProfileSettings] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderProfile:
    """The capabilities of one provider and model.

    Attributes:
        dialect: The wire format.
        model: The model's name.
        origin: The source of its replies; native blocks go back only to the same origin.
        strategy: The name of the strategy that presents tools to it.
        max_tools: The longest tool list it takes; None: no limit is known.
        max_output_tokens: The most tokens of a reply, thinking included; None: not known.
        max_deferred: The most deferred tools.
        max_tool_bytes: The most UTF-8 bytes of tool definitions.
        name_rule: The rule for its tool names, with those that the service keeps.
        cache: The kind of its prompt cache.
        thinking_bound_to_prefix: True if its thinking is refused after `tools`, the system
            text or earlier messages have changed.
        search_form: The form of an OpenAI Responses search: as in the configuration, or
            `additional`: our search is an ordinary function, and definitions come in items
            of their own.
        keeps_replies: True if the service keeps replies, so that a request may continue
            from the last one.
        gives_reasoning: True if requests ask for the model's encrypted reasoning, to send
            it back.
        takes_strict: Of OpenAI Chat: True if a function may ask for arguments that follow
            its schema strictly.
        returns_reasoning: Of OpenAI's dialects: True if a reply's reasoning goes back with
            it, under the name it came by (Chat) or as the items that came (Responses).
        missing_reasoning: The text for a reply with calls that has no reasoning of this
            origin; None: none is written.
        reasoning_in_answers: Of OpenAI Chat: True if replies without calls get it too.
        missing_signature: Of OpenAI Chat: Google's signature for a call of another model;
            None: none is written.
        states_effort: Of OpenAI Chat: True if a request with such a reply states a
            `reasoning_effort`.
        reasons_with_tools: Of OpenAI Chat: True if the model may reason in a request with
            tools; False: such a request has `reasoning_effort: none`.
        takes_result_pictures: Of OpenAI Responses: True if a call's result may have pictures;
            False: they come in a message of the user's after it.
        message_rules: Of OpenAI Chat: the rules that its messages keep.
        empty_content: Of OpenAI Chat: the `content` of a reply with nothing but calls.
        max_calls: Of OpenAI Chat: the most calls of a reply; one with more is sent as several,
            each with its results. None: no limit is known.
        names_results: Of OpenAI Chat: True if a result has the name of its function.
        takes_system: Of OpenAI Chat: False if the system text goes into the first message of
            the user's.
        schema_rules: The rules that its schemas keep.
        max_schema_levels: The most levels of a schema, the whole one included; None: no limit
            is known.
        max_description: The most characters of a tool's description; None: likewise.
        max_pictures: The most pictures of a request; None: no limit is known.
        takes_pictures: True if the model sees pictures; False: they are left out.
        takes_stream_options: Of OpenAI Chat: True if a stream may be asked for its usage.
        streams_calls: True if calls come in a stream; False: a request with tools has none.
        takes_tool_choice_none: True if `tool_choice` may be `none`; False: a request for an
            answer alone is written as if the model took no tools.
        takes_tools: True if the model takes tools; False: requests have none, and the calls
            and results of the history as text.
        sends_extra_body: True if requests have the fields of `extra_body`.
        set_fields: Fields that requests have as the service's own words want them, by their
            place, as `reasoning.effort`; None: left out.
        set_aside: The tools that are not declared, because the endpoint refuses their
            definitions: names of a configuration, `shown_fingerprint`s of refusals.
    """

    dialect: Dialect
    model: str
    origin: str
    strategy: StrategyName = "generic"
    max_tools: int | None = None
    max_output_tokens: int | None = None
    max_deferred: int | None = None
    max_tool_bytes: int | None = None
    name_rule: NameRule = COMMON
    cache: CacheKind = "automatic"
    thinking_bound_to_prefix: bool = False
    search_form: SearchForm | Literal["additional"] = "client"
    keeps_replies: bool = False
    gives_reasoning: bool = False
    takes_strict: bool = False
    returns_reasoning: bool = True
    missing_reasoning: str | None = None
    reasoning_in_answers: bool = False
    missing_signature: str | None = None
    states_effort: bool = False
    reasons_with_tools: bool = True
    takes_result_pictures: bool = True
    message_rules: MessageRules = "openai"
    empty_content: str | None = None
    max_calls: int | None = None
    names_results: bool = False
    takes_system: bool = True
    schema_rules: SchemaRules = "json_schema"
    max_schema_levels: int | None = None
    max_description: int | None = None
    max_pictures: int | None = None
    takes_pictures: bool = True
    takes_stream_options: bool = True
    streams_calls: bool = True
    takes_tool_choice_none: bool = True
    takes_tools: bool = True
    sends_extra_body: bool = True
    set_fields: tuple[tuple[str, str | float | bool | None], ...] = ()
    set_aside: frozenset[str] = frozenset()

    def sets_aside(self, tool: Tool) -> bool:
        """True if a tool is not declared to this provider."""
        known = self.set_aside
        return bool(known) and (tool.name in known or tool.shown_fingerprint in known)

    def declares_tools(self, phase: Phase) -> bool:
        """True if a request of this purpose may have tools."""
        return self.takes_tools and (phase != "final" or self.takes_tool_choice_none)

    @property
    def facts(self) -> StrategyFacts:
        """The facts of the strategy that is registered under this profile's name for it.

        Raises:
            UnsupportedStrategyError: There is none.
        """
        return registered_strategy(self.strategy)

    @property
    def is_native(self) -> bool:
        """True if its strategy is of one dialect alone, not a plain tool list."""
        return self.facts.dialect is not None

    @property
    def family(self) -> str:
        """The dialect and the strategy; providers of one family can share bytes of lists."""
        return f"{self.dialect}/{self.strategy}"

    def generic(self) -> ProviderProfile:
        """Return the same provider with the generic strategy."""
        return replace(self, strategy="generic")


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
        takes_cheapest: True if `auto` may be the bridge, whose found tools are called through
            `call_tool`, for a vendor at which it costs less: as for the providers of a
            configuration. A loop of one's own has found tools declared, under their names.

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
    responses = dialect == "openai_responses"
    reasons = responses and _passes_reasoning_on(strategy, chosen, facts)
    return ProviderProfile(
        dialect=dialect,
        model=model,
        # Signatures, reasoning and kept replies are bound to the model that wrote them, and one
        # gateway has many models at one host.
        origin=f"{dialect}:{host}/{model}",
        strategy=chosen.name,
        max_tools=facts.get("max_tools"),
        max_output_tokens=facts.get("max_output_tokens"),
        max_deferred=facts.get("max_deferred") if chosen.uses_limits else None,
        max_tool_bytes=facts.get("max_tool_bytes") if chosen.uses_limits else None,
        name_rule=NameRule(facts.get("name_rule", "common")).keeping(*facts.get("kept_names", ())),
        cache=facts.get("cache", "automatic"),
        thinking_bound_to_prefix=facts.get("thinking_bound_to_prefix", False),
        search_form=_search_form(search_form, chosen, facts, f"{model!r} at {host}"),
        keeps_replies=keeps_replies and responses,
        gives_reasoning=facts.get("gives_reasoning", reasons),
        takes_strict=facts.get("takes_strict", False),
        returns_reasoning=facts.get("returns_reasoning", True),
        missing_reasoning=facts.get("missing_reasoning"),
        reasoning_in_answers=facts.get("reasoning_in_answers", False),
        missing_signature=facts.get("missing_signature"),
        reasons_with_tools=facts.get("reasons_with_tools", True),
        takes_result_pictures=facts.get("takes_result_pictures", True),
        message_rules=facts.get("message_rules", "openai"),
        empty_content=facts.get("empty_content"),
        max_calls=facts.get("max_calls"),
        schema_rules=facts.get("schema_rules", "json_schema"),
        max_schema_levels=facts.get("max_schema_levels"),
        max_description=facts.get("max_description"),
        takes_pictures=facts.get("takes_pictures", True),
        takes_stream_options=facts.get("takes_stream_options", True),
        streams_calls=facts.get("streams_calls", True),
        takes_tool_choice_none=facts.get("takes_tool_choice_none", True),
        takes_tools=facts.get("takes_tools", True),
        set_aside=frozenset(facts.get("set_aside", ())),
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
