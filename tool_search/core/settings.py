"""The values that a conversation reads; settings read them from files.

These are the kinds of providers, the names of strategies with their facts, and plain values.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from tool_search.errors import ConfigurationError, UnsupportedStrategyError
from tool_search.i18n import LANGUAGES

__all__ = [
    "AUTO",
    "KINDS",
    "KINDS_LISTED",
    "MAX_RESULT_CHARS",
    "CacheKind",
    "ConversationSettings",
    "DefinitionsRole",
    "Dialect",
    "HiddenTools",
    "HistoryLimits",
    "LanguageChoice",
    "ListingForm",
    "MessageRules",
    "ProviderKind",
    "ProviderStrategy",
    "SchemaMode",
    "SchemaRules",
    "SearchForm",
    "StrategyChoice",
    "StrategyFacts",
    "StrategyName",
    "current_strategy_name",
    "dialect_of",
    "nearest_kind",
    "registered_strategy",
]

# The kinds of providers: one table for configurations, strings, profiles and commands.
#
# And the values of what is known of a provider, for settings and profiles.


Dialect = Literal["anthropic", "openai_chat", "openai_responses"]
SearchForm = Literal["client", "deferred", "hosted"]
CacheKind = Literal["explicit", "automatic", "none"]
"""`explicit`: requests mark the prefixes to cache; `automatic`: equal prefixes are cached;
`none`: nothing is cached."""

MessageRules = Literal["openai", "mistral", "joined", "alternating"]
"""`mistral`: ids of calls have nine letters or digits, a reply follows results, and it has text
or calls; `joined`: replies in a row are one; `alternating`: so they are, ids are Mistral's, a
reply follows results, and the first message is the user's."""

SchemaRules = Literal["json_schema", "moonshot", "acyclic", "plain"]
"""`moonshot`: the subset of JSON Schema that Moonshot's validator takes; `acyclic`: no schema
refers back to what it stands in; `plain`: names and types alone."""

KINDS: Mapping[str, Dialect] = MappingProxyType(
    {
        "anthropic": "anthropic",
        "openai-responses": "openai_responses",
        "openai": "openai_responses",
        "openai-chat": "openai_chat",
    }
)
"""The dialect of each kind, as a user names it; `_` is read as `-`."""

KINDS_LISTED = "anthropic, openai-responses (or openai), openai-chat"


def dialect_of(kind: str) -> Dialect:
    """Return the dialect that a kind means.

    Raises:
        ConfigurationError: The kind is unknown; the message names the nearest one.

    >>> dialect_of("openai"), dialect_of("openai_chat")
    ('openai_responses', 'openai_chat')
    """
    found = KINDS.get(str(kind).replace("_", "-"))
    if found is None:
        raise ConfigurationError(f"{kind!r} is not a kind of provider: {_allow(kind)}")
    return found


def nearest_kind(word: str) -> str | None:
    """Return the known kind that a word is most like, or None."""
    return next(iter(get_close_matches(str(word).replace("_", "-").lower(), KINDS, n=1)), None)


def _allow(kind: str) -> str:
    near = nearest_kind(kind)
    return f"use one of {KINDS_LISTED}" + (f"; did you mean {near!r}?" if near else "")


def _read_kind(value: object) -> object:
    """Return a setting's dialect; leave what is not text to the type's own check."""
    if not isinstance(value, str):
        return value
    if (found := KINDS.get(value.replace("_", "-"))) is None:
        raise ValueError(_allow(value))
    return found


ProviderKind = Annotated[Dialect, BeforeValidator(_read_kind)]
"""A setting that takes each kind of the table and holds its dialect."""


# Names of strategies in settings, and the facts that a strategy's class states.
#
# The modules of settings and providers know no strategy. They read these facts.


StrategyName = str
"""The name of a strategy; a configuration and a profile check it against the registry."""
DefinitionsRole = Literal["system", "developer"]
AUTO: Literal["auto"] = "auto"
"""The choice that leaves the strategy to what is known of the provider."""

_log = logging.getLogger(__name__)
# Strategies are above settings in the order of imports, so the registry is named by a string.
_REGISTRY = "tool_search.core.strategies.base"
_FORMER_NAMES: Mapping[str, str] = {"late_tools": "tools_in_messages"}


class StrategyFacts(Protocol):
    """The facts that a strategy's class states as class attributes."""

    @property
    def name(self) -> StrategyName:
        """The name in configurations and profiles."""

    @property
    def list_grows(self) -> bool:
        """True if discoveries are appended to the tool list; False if it stays."""

    @property
    def sends_definitions_in_messages(self) -> bool:
        """True if definitions follow the message that found them."""

    @property
    def definitions_role(self) -> DefinitionsRole:
        """The role of a message of OpenAI Chat that holds definitions."""

    @property
    def dialect(self) -> Dialect | None:
        """The only dialect that can write the requests; None: any."""

    @property
    def requires(self) -> str:
        """The model that it needs, for the error; empty: any model will do."""

    @property
    def rejected_by(self) -> re.Pattern[str] | None:
        """A service's words if it does not know the feature; None: none are known."""

    @property
    def uses_limits(self) -> bool:
        """True if `max_deferred` and `max_tool_bytes` of a profile apply."""


def current_strategy_name(name: str) -> str:
    """Return a strategy's name; for a former name the current one, with a line in the log."""
    current = _FORMER_NAMES.get(name)
    if current is None:
        return name
    _log.warning("strategy %r is now named %r; the old name still works", name, current)
    return current


def registered_strategy(name: str) -> StrategyFacts:
    """Return the facts of the strategy that is registered under a name.

    Raises:
        UnsupportedStrategyError: There is none; the message has the known names.
    """
    facts: StrategyFacts = import_module(_REGISTRY).strategy_class(name)
    return facts


def _check_name(name: str) -> str:
    current = current_strategy_name(name)
    try:
        registered_strategy(current)
    except UnsupportedStrategyError as exc:
        raise ValueError(str(exc)) from exc
    return current


def _check_choice(name: str) -> str:
    return name if name == AUTO else _check_name(name)


ProviderStrategy = Annotated[str, AfterValidator(_check_name)]
"""The name of a registered strategy."""
StrategyChoice = Annotated[str, AfterValidator(_check_choice)]
"""`auto`, or the name of a registered strategy."""


SchemaMode = Literal["full", "skills_like", "tool_search", "auto", "shadow"]
ListingForm = Literal["auto", "none", "servers", "names", "summaries"]
if TYPE_CHECKING:
    LanguageChoice = str
else:
    LanguageChoice = Literal["auto", *LANGUAGES]
HiddenTools = Literal["keep", "strict"]
MAX_RESULT_CHARS = 30_000
"""Characters of a tool's result, where nothing else is set."""

_MIN_TOKENS = 1_000
_MAX_TOKENS = 100_000_000
_MAX_TURNS = 1_000_000
_MIN_RESULT = 200
_MAX_RESULT = 10_000_000
_PLAIN = ConfigDict(frozen=True, extra="forbid", strict=True)


class ConversationSettings(BaseModel):
    """The settings of a conversation, all of them plain values.

    Attributes:
        tool_schema_mode: `full`, `skills_like`, `tool_search`, `auto`, or `shadow`: as `full`,
            and what a search would have found is kept for `tool-search replay`.
        threshold: `auto` searches above this number of active tools.
        threshold_tokens: `auto` searches also above this number of tokens; null: no such limit.
        max_results: The largest number of matches of one query.
        max_results_total: The largest number of matches of a search with `queries`, of one
            too unless `max_results` is below 5; it is at least `max_results` and the number
            of queries.
        always_loaded_tools: Core tools: names, `server:*`, or globs.
        auto_always_load_builtin: True if built-in tools are core.
        search_tool_name: The name by which the model calls searches.
        listing: The form in which the system text lists the tools that wait to be found:
            `summaries`, `names`, `servers` (or other groups, with words of their tools'
            names), or `none`. A form over `listing_tokens` gives way to the next shorter
            one; `auto` begins with `summaries`.
        listing_tokens: The tokens of the listing; 0: none.
        preload: The largest number of tools that are loaded for a user's message before its
            first request, without a search of the model; 0: none.
        preload_score: From 0 to 1; such a tool scores at least this for the message.
        second_chance: True if an answer which says that there is no tool for the message is
            followed by one search with the message, and by one more request if a tool scores
            `preload_score` in it; at most once a turn.
        language: The language of all text for models and people; `auto` takes the user's.
        boundary_text: True if a line of text follows the references of a search on Claude,
            which otherwise now and then ends its turn there.
        max_description_chars: Characters of a description that a model is sent, of a
            server's tool.
        max_schema_text_chars: The same of each title, description, or example in a schema.
    """

    model_config = _PLAIN

    tool_schema_mode: SchemaMode = "auto"
    threshold: Annotated[int, Field(ge=0, le=1_000_000)] = 25
    threshold_tokens: Annotated[int, Field(ge=0, le=100_000_000)] | None = None
    max_results: Annotated[int, Field(ge=1, le=100)] = 5
    max_results_total: Annotated[int, Field(ge=1, le=500)] = 8
    always_loaded_tools: tuple[str, ...] = ()
    auto_always_load_builtin: bool = True
    search_tool_name: Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$")] = (
        "tool_search"
    )
    listing: ListingForm = "auto"
    listing_tokens: Annotated[int, Field(ge=0, le=100_000)] = 400
    preload: Annotated[int, Field(ge=0, le=20)] = 0
    preload_score: Annotated[float, Field(ge=0, le=1)] = 0.7
    second_chance: bool = False
    language: LanguageChoice = "auto"
    boundary_text: bool = True
    max_description_chars: Annotated[int, Field(ge=100, le=1_000_000)] = 8_000
    max_schema_text_chars: Annotated[int, Field(ge=100, le=1_000_000)] = 2_000


class HistoryLimits(BaseModel):
    """The limits of a conversation in requests.

    The recorded history stays whole.

    Attributes:
        max_tokens: The largest number of tokens, estimated, that the messages of a request should
            have when a user's turn begins; beyond, requests are brought to half of it: results of
            earlier turns are shortened, then the oldest turns are left out. null: no limit.
        keep_turns: The turns that requests always carry; older ones are left out as soon as
            there are half as many again, so that the beginning of requests changes seldom. null:
            all turns.
        longest_result: Characters of one tool's result; a longer one keeps its head and
            its tail. null: no limit.
    """

    model_config = _PLAIN

    max_tokens: Annotated[int, Field(ge=_MIN_TOKENS, le=_MAX_TOKENS)] | None = None
    keep_turns: Annotated[int, Field(ge=1, le=_MAX_TURNS)] | None = None
    longest_result: Annotated[int, Field(ge=_MIN_RESULT, le=_MAX_RESULT)] | None = MAX_RESULT_CHARS
