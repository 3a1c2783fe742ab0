"""The first difference of two prompts of one conversation, for tests."""

from tool_search.providers.prefix_change import (
    Difference,
    PrefixCause,
    PrefixChange,
    first_difference,
    prefix_change,
)

__all__ = [
    "Difference",
    "PrefixCause",
    "PrefixChange",
    "first_difference",
    "prefix_change",
]
