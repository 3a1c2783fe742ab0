"""The sections `limits`, of what comes in, and `history`, of a conversation in requests."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tool_search.config.search import Settings

__all__ = ["MAX_RESULT_CHARS", "HistorySettings", "LimitSettings"]

_Seconds = Annotated[float, Field(gt=0, le=31_536_000, allow_inf_nan=False)]


class LimitSettings(Settings):
    """The `limits` section: bounds of what comes in, whoever sends it.

    Attributes:
        max_bytes: Bytes of one body, message of an MCP server, or event of a stream, unpacked.
        max_items: Values in its JSON.
        max_depth: Levels of its JSON.
        body_timeout_s: Seconds for one body, from its first byte on; a stream of events and a
            download that is passed on may last.
        silence_s: Seconds of silence in a stream of an MCP server.
    """

    max_bytes: Annotated[int, Field(ge=10_000, le=2_000_000_000)] = 32_000_000
    max_items: Annotated[int, Field(ge=1_000, le=100_000_000)] = 500_000
    max_depth: Annotated[int, Field(ge=10, le=400)] = 400
    body_timeout_s: _Seconds = 300.0
    silence_s: _Seconds = 86_400.0


MAX_RESULT_CHARS = 30_000
"""Characters of a tool's result, where nothing else is set."""

_MIN_TOKENS = 1_000
_MAX_TOKENS = 100_000_000
_MAX_TURNS = 1_000_000
_MIN_RESULT = 200
_MAX_RESULT = 10_000_000


class HistorySettings(Settings):
    """The `history` section: limits of a conversation in requests.

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

    max_tokens: Annotated[int, Field(ge=_MIN_TOKENS, le=_MAX_TOKENS)] | None = None
    keep_turns: Annotated[int, Field(ge=1, le=_MAX_TURNS)] | None = None
    longest_result: Annotated[int, Field(ge=_MIN_RESULT, le=_MAX_RESULT)] | None = MAX_RESULT_CHARS
