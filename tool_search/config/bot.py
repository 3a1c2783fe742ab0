"""The settings of a bot: the top level of `bot.yaml`, and `providers`, by strings too."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import (
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from tool_search.config.conversation import HistorySettings, ToolSearchConfig, bound_embedder
from tool_search.config.limits import LimitSettings, TelemetrySettings
from tool_search.config.mcp import MCPServerSettings, checked_names
from tool_search.config.permissions import PermissionSettings
from tool_search.config.providers import ProfileSettings
from tool_search.config.settings import Settings
from tool_search.config.stores import StoreSettings
from tool_search.core.settings import (
    KINDS,
    KINDS_LISTED,
    Dialect,
    ProviderKind,
    SearchForm,
    StrategyChoice,
    nearest_kind,
)
from tool_search.errors import ConfigurationError

__all__ = ["BotConfig", "ProviderConfig", "ToolSearchConfig", "api_keys", "provider_from_string"]

_Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
_KEY_ENVIRONMENT: dict[Dialect, str] = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai_chat": "OPENAI_API_KEY",
    "openai_responses": "OPENAI_API_KEY",
}
_EXAMPLE = "'anthropic:claude-sonnet-4-6'"
# How models begin that only one vendor has; a compatible endpoint may have any.
_VENDORS = {"claude": "anthropic", "gpt": "openai", "chatgpt": "openai"}


class ProviderConfig(Settings):
    """One entry of `providers`.

    Attributes:
        id: The provider's name in `runner.use` and in errors.
        type: Its kind: `anthropic`, `openai-responses` (or `openai`) or `openai-chat`.
        model: The model's name.
        api_key_env: The environment variable with its key; null: it needs none.
        base_url: Another endpoint than the dialect's own.
        strategy: The strategy that presents tools to it: `auto`, `generic`, `bridge`, `claude`,
            `openai_responses`, `tools_in_messages`, or a registered one.
        tool_search: Of OpenAI Responses: `client` (definitions come with the results of
            our own search), `deferred` (the same, and the catalog is declared with
            `defer_loading`, a namespace for each server), `hosted` (declared so, and
            the service searches).
        previous_response_id: Of OpenAI Responses: the service keeps replies, and a
            request goes on from the last one instead of repeating the history.
        first_byte_timeout_s: Seconds before a reply begins; keep-alives and events before
            its first words do not count. Also the longest silence while the model thinks.
            Where `timeout_s` alone is set: ten times it, at least 120 and at most 600.
        timeout_s: Seconds without anything new, once a reply has begun, before the provider
            counts as failed; keep-alives are not new.
        reply_timeout_s: Seconds for a whole reply; null: no limit.
        cooldown_s: Seconds before a failed one is tried again.
        extra_body: More fields for every request's body.
    """

    # A value in the place of a key's name may be the key itself.
    model_config = ConfigDict(hide_input_in_errors=True)

    id: Annotated[str, Field(min_length=1)]
    type: ProviderKind
    model: Annotated[str, Field(min_length=1)]
    api_key_env: str | None = None
    # An address may hold a password, and fields of a body a key: neither is printed.
    base_url: str | None = Field(default=None, repr=False)
    strategy: StrategyChoice = "auto"
    tool_search: SearchForm = "client"
    previous_response_id: bool = False
    first_byte_timeout_s: _Seconds = 600.0
    timeout_s: _Seconds = 60.0
    reply_timeout_s: _Seconds | None = None
    cooldown_s: Annotated[float, Field(ge=0, le=86_400)] = 60.0
    extra_body: Mapping[str, Any] = Field(default_factory=dict, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _default_key(cls, value: Any) -> Any:
        if isinstance(value, dict) and "api_key_env" not in value:
            dialect = KINDS.get(str(value.get("type")).replace("_", "-"))
            return {**value, "api_key_env": _KEY_ENVIRONMENT[dialect] if dialect else None}
        return value

    @model_validator(mode="before")
    @classmethod
    def _default_first_byte(cls, value: Any) -> Any:
        if isinstance(value, dict) and "first_byte_timeout_s" not in value:
            silence = value.get("timeout_s")
            if isinstance(silence, int | float):
                return {**value, "first_byte_timeout_s": min(max(10.0 * silence, 120.0), 600.0)}
        return value

    @field_validator("api_key_env")
    @classmethod
    def _is_variable(cls, value: str | None) -> str | None:
        if value is not None and not value.isidentifier():
            raise ValueError("must be the name of an environment variable, not the key itself")
        return value

    @field_validator("base_url")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://")
        return value

    @field_validator("tool_search", "previous_response_id")
    @classmethod
    def _is_of_responses(cls, value: object, info: ValidationInfo) -> object:
        kind = info.data.get("type")
        if kind not in (None, "openai_responses"):
            raise ValueError(f"is for providers of type openai_responses, not {kind}")
        return value

    def api_key(self, environment: Mapping[str, str] | None = None) -> SecretStr:
        """Return the key from the environment; `unused` if none is needed.

        Raises:
            ConfigurationError: The variable is not set.
        """
        if self.api_key_env is None:
            return SecretStr("unused")
        key = (os.environ if environment is None else environment).get(self.api_key_env, "")
        if not key.strip():
            raise ConfigurationError(
                f"provider {self.id!r}: the environment variable {self.api_key_env} is not set; "
                "set it to the API key, or name another variable in api_key_env "
                "(null for an endpoint that needs no key)"
            )
        return SecretStr(key.strip())


class BotConfig(Settings):
    """A whole bot: the content of `bot.yaml`.

    Attributes:
        tool_search: The section of that name, with `tool_schema_mode`.
        system_prompt: The system prompt.
        max_steps: The largest number of requests in which one turn may call tools.
        turn_timeout_s: Seconds for a whole turn, its calls and waiting included; null: no limit.
        max_concurrent_turns: The largest number of turns at the same time; more wait.
        store: The storage of conversations and of learned queries.
        history: The limits of a conversation in requests.
        permissions: The rules for calls, and the questions to the user.
        telemetry: Spans, metrics, and a monitor of the event loop.
        limits: The bounds of what comes in over a network, or from a server's process.
        providers: The first is primary, the rest are fallbacks, in order.
        tools: Python modules that hold tools.
        mcpServers: MCP servers by name, whose tools the bot has too.
        profiles: Facts about providers, in addition to the known ones or in place of them.
    """

    model_config = ConfigDict(hide_input_in_errors=True)

    tool_search: ToolSearchConfig = ToolSearchConfig()
    system_prompt: str = ""
    max_steps: Annotated[int, Field(ge=1, le=1000)] = 20
    turn_timeout_s: _Seconds | None = None
    max_concurrent_turns: Annotated[int, Field(ge=1, le=100_000)] = 64
    store: StoreSettings = StoreSettings()
    history: HistorySettings = HistorySettings()
    permissions: PermissionSettings = PermissionSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    limits: LimitSettings = LimitSettings()
    providers: tuple[ProviderConfig, ...] = ()
    tools: tuple[str, ...] = ()
    mcp_servers: Mapping[str, MCPServerSettings] = Field(default_factory=dict, alias="mcpServers")
    profiles: Mapping[str, ProfileSettings] = Field(default_factory=dict)

    _bound_embedder = model_validator(mode="after")(bound_embedder)

    @field_validator("mcp_servers")
    @classmethod
    def _servers_are_named(
        cls, value: Mapping[str, MCPServerSettings]
    ) -> Mapping[str, MCPServerSettings]:
        return checked_names(value)

    @field_validator("providers")
    @classmethod
    def _ids_differ(cls, value: tuple[ProviderConfig, ...]) -> tuple[ProviderConfig, ...]:
        ids = [provider.id for provider in value]
        twice = sorted({name for name in ids if ids.count(name) > 1})
        if twice:
            raise ValueError(f"two providers have the id {twice[0]!r}")
        return value


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
