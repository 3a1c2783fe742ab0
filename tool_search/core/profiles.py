"""Profiles: the capabilities of one model at one endpoint, without behaviour.

`profile_choice.profile_for` makes one from the known facts and a configuration's `profiles`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tool_search.core.catalog.naming import COMMON, NameRule
from tool_search.core.catalog.tool import Tool
from tool_search.core.exports import moved_to_top
from tool_search.core.messages import Phase, StrategyName
from tool_search.core.settings import (
    CacheKind,
    Dialect,
    MessageRules,
    SchemaRules,
    SearchForm,
    StrategyFacts,
    registered_strategy,
)

__all__ = ["ProviderProfile"]

if not TYPE_CHECKING:
    __getattr__ = moved_to_top(__name__, "profile_for")


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
        returns_reasoning: True if a reply's reasoning goes back with it, under the name it
            came by (Chat) or as the blocks or items that came.
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
        takes_system: False if the system text goes into the user's first message.
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
