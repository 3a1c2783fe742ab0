"""The kinds of providers: one table for configurations, strings, profiles and commands.

And the values of what is known of a provider, for settings and profiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import BeforeValidator

from tool_search.errors import ConfigurationError

__all__ = [
    "KINDS",
    "KINDS_LISTED",
    "CacheKind",
    "Dialect",
    "MessageRules",
    "ProviderKind",
    "SchemaRules",
    "SearchForm",
    "dialect_of",
    "nearest_kind",
]

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


def _read(value: object) -> object:
    """Return a setting's dialect; leave what is not text to the type's own check."""
    if not isinstance(value, str):
        return value
    if (found := KINDS.get(value.replace("_", "-"))) is None:
        raise ValueError(_allow(value))
    return found


ProviderKind = Annotated[Dialect, BeforeValidator(_read)]
"""A setting that takes each kind of the table and holds its dialect."""
