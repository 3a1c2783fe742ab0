"""The `profiles` section of a configuration: facts of the bot's owner about a provider."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from tool_search.config.settings import Settings
from tool_search.core.catalog.naming import NameShape
from tool_search.core.settings import (
    CacheKind,
    MessageRules,
    ProviderKind,
    ProviderStrategy,
    SchemaRules,
)

__all__ = ["ProfileMatch", "ProfileSettings"]


_Glob = Annotated[str, Field(min_length=1, max_length=200)]
_ToolName = Annotated[str, Field(min_length=1, max_length=256)]


class ProfileMatch(Settings):
    """The providers that a profile is for: those that match all keys that are set.

    Attributes:
        type: Their dialect.
        host: Globs of their host, with or without its port; one has to match.
        model: Globs of their model's name, in any case; one has to match.
    """

    type: ProviderKind | None = None
    host: tuple[_Glob, ...] = ()
    model: tuple[_Glob, ...] = ()

    @field_validator("host", "model", mode="before")
    @classmethod
    def _from_one(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("host")
    @classmethod
    def _is_host(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any("/" in host for host in value):
            raise ValueError("must be a host alone, as llm.example.com: no https:// and no path")
        return value

    @model_validator(mode="after")
    def _names_something(self) -> ProfileMatch:
        if not (self.type or self.host or self.model):
            raise ValueError("must name a type, a host or a model")
        return self


class ProfileSettings(Settings):
    """One entry of `profiles`; a key that is left out keeps the known fact.

    Attributes:
        match: The providers that it is for.
        strategy: The strategy that presents tools to them, if their own entry says `auto`:
            a value of `providers[].strategy` other than `auto`.
        max_tools: The longest tool list they take; null: no limit.
        max_output_tokens: The most tokens of a reply that requests ask for: always in
            Anthropic's dialect, which wants a number, in the others if it is set here.
        max_deferred: The most deferred tools, under the strategy `claude`; null: no limit.
        max_tool_bytes: The most UTF-8 bytes of definitions, likewise.
        name_rule: The rule for tool names: `common` is `[a-zA-Z0-9_-]{1,64}`,
            `identifier` the same without `-` or a digit first, of three characters at least.
        cache: The kind of prompt cache; `explicit` writes breakpoints in Anthropic's dialect.
        thinking_bound_to_prefix: True if thinking is refused after the prefix has changed.
        search_form: Of the strategy `openai_responses`: `client`, or `additional` for
            models without tool search.
        gives_reasoning: Of OpenAI Responses: true if requests ask for encrypted reasoning.
        returns_reasoning: Of OpenAI Chat: true if a reply's reasoning goes back with it.
        missing_reasoning: The reasoning that a reply with calls gets if it has none of this
            model (DeepSeek and Kimi take an empty text); null: none is written.
        message_rules: Of OpenAI Chat: the rules of messages; `mistral` for Mistral's models,
            `joined` for Gemini, `alternating` for templates in which roles must alternate.
        schema_rules: The rules of schemas: `moonshot` for Kimi, `acyclic` for Grok and Meta,
            `plain` (names and types alone) for services that refuse more.
        max_schema_levels: The most levels of a schema, the whole one included; null: no limit.
        max_description: The most characters of a tool's description; null: no limit.
        takes_pictures: True if the model sees pictures; false: a line of text is sent in
            their place, and a fallback that sees them is asked about the user's newest.
        takes_stream_options: Of OpenAI Chat: true if a stream may be asked for its usage.
        takes_tool_choice_none: True if `tool_choice` may be `none`; false: a request for an
            answer alone has no tools, and calls and results as text.
        takes_tools: True if the model takes tools; false: every request is such a one.
        set_aside: Names of tools that are not declared, because they refuse the definitions.
    """

    match: ProfileMatch
    strategy: ProviderStrategy = "generic"
    max_tools: Annotated[int, Field(ge=4, le=1_000_000)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    max_deferred: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    max_tool_bytes: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    name_rule: NameShape = "common"
    cache: CacheKind = "automatic"
    thinking_bound_to_prefix: bool = False
    search_form: Literal["client", "additional"] = "client"
    gives_reasoning: bool = False
    returns_reasoning: bool = True
    missing_reasoning: Annotated[str, Field(max_length=1_000)] | None = None
    message_rules: MessageRules = "openai"
    schema_rules: SchemaRules = "json_schema"
    max_schema_levels: Annotated[int, Field(ge=2, le=1_000)] | None = None
    max_description: Annotated[int, Field(ge=16, le=1_000_000)] | None = None
    takes_pictures: bool = True
    takes_stream_options: bool = True
    takes_tool_choice_none: bool = True
    takes_tools: bool = True
    set_aside: Annotated[tuple[_ToolName, ...], Field(max_length=1_000)] = ()

    @property
    def stated(self) -> dict[str, Any]:
        """The values that the entry sets, by key, without `match`."""
        return {name: getattr(self, name) for name in self.model_fields_set - {"match"}}
