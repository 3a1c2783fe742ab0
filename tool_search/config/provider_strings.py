"""Providers named by a string, `kind:model`, and the keys that they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import SecretStr

from tool_search.config.bot import ProviderConfig
from tool_search.config.kinds import KINDS, KINDS_LISTED, nearest_kind
from tool_search.errors import ConfigurationError

__all__ = ["api_keys", "provider_from_string"]

_EXAMPLE = "'anthropic:claude-sonnet-4-6'"
# How models begin that only one vendor has; a compatible endpoint may have any.
_VENDORS = {"claude": "anthropic", "gpt": "openai", "chatgpt": "openai"}


def provider_from_string(text: str, configured: Iterable[ProviderConfig] = ()) -> ProviderConfig:
    """Return the configuration that a string means; its `id` is the string.

    Args:
        text: `kind:model`. With `configured` also the `id` of an entry, for the entry
            itself, or `id:model`, for another model with the settings of that entry.
        configured: The entries of a configuration.

    Raises:
        ConfigurationError: The string has another form, or its kind is unknown.

    >>> provider_from_string("openai:gpt-5.4").type
    'openai_responses'
    """
    if not isinstance(text, str):
        raise ConfigurationError(f"a provider must be a string such as {_EXAMPLE}, not {text!r}")
    entries = {entry.id: entry for entry in configured}
    if text in entries:
        return entries[text]
    for name in sorted(entries, key=len, reverse=True):
        if text.startswith(f"{name}:"):
            model = _checked_model(text, text[len(name) + 1 :])
            return entries[name].model_copy(update={"id": text, "model": model})
    kind, separator, model = text.partition(":")
    dialect = KINDS.get(kind.strip().replace("_", "-"))
    if not separator or dialect is None:
        raise ConfigurationError(_wrong_form(text, list(entries)))
    return ProviderConfig(id=text, type=dialect, model=_checked_model(text, model))


def api_keys(
    providers: Iterable[ProviderConfig], environment: Mapping[str, str] | None = None
) -> dict[str, SecretStr]:
    """Return the key of every provider by its `id`.

    Args:
        providers: The providers.
        environment: The variables; None: those of this process.

    Raises:
        ConfigurationError: Keys are missing; the message names each variable.
    """
    keys, missing = {}, []
    for provider in providers:
        try:
            keys[provider.id] = provider.api_key(environment)
        except ConfigurationError as exc:
            missing.append(str(exc))
    if missing:
        raise ConfigurationError("\n".join(missing))
    return keys


def _checked_model(text: str, model: str) -> str:
    if not model.strip():
        raise ConfigurationError(
            f"provider {text!r} names no model after the colon; write kind:model, such as "
            f"{_EXAMPLE}"
        )
    return model.strip()


def _wrong_form(text: str, ids: list[str]) -> str:
    kind, separator, model = text.partition(":")
    near = nearest_kind(kind)
    if not separator:
        vendor = next((v for begin, v in _VENDORS.items() if text.startswith(begin)), None)
        near, model = vendor or near, text if vendor else "<model>"
    problem = f"provider {text!r} must have the form kind:model, such as {_EXAMPLE}"
    known = f"kinds are {KINDS_LISTED}"
    if ids:
        known += f"; configured ids are {', '.join(map(repr, ids))}"
    return f"{problem}; {known}" + (f"; did you mean '{near}:{model}'?" if near else "")
