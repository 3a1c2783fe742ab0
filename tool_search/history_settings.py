"""The section `history`: how much of a conversation a request carries."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tool_search.search_settings import Settings

__all__ = ["LONGEST_RESULT", "HistorySettings"]

LONGEST_RESULT = 30_000
"""Characters of a tool's result, where nothing else is set."""

_MIN_RESULT = 200
_MAX_RESULT = 10_000_000


class HistorySettings(Settings):
    """The `history` section: how much of a conversation a request carries.

    Attributes:
        longest_result: Characters of one tool's result; a longer one keeps its head and
            its tail. null: no limit.
    """

    longest_result: Annotated[int, Field(ge=_MIN_RESULT, le=_MAX_RESULT)] | None = LONGEST_RESULT
