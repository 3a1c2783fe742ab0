"""The values that a conversation reads; settings read them from files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tool_search.i18n import LANGUAGES

__all__ = [
    "MAX_RESULT_CHARS",
    "ConversationSettings",
    "HiddenTools",
    "HistoryLimits",
    "LanguageChoice",
    "ListingForm",
    "SchemaMode",
]

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
