"""Texts that are too long, shortened to their two ends."""

from __future__ import annotations

from tool_search.i18n import Language, text

__all__ = ["cut"]


def cut(content: str, *, longest: int, language: Language) -> str:
    """Return a text without its middle, and with a line that says so, if it is too long.

    Args:
        content: The text.
        longest: Characters that are kept, half of them from each end.
        language: Of the words in the middle.
    """
    if len(content) <= longest:
        return content
    half = longest // 2
    noted = text("call.cut", language, count=len(content) - 2 * half)
    return f"{content[:half]}\n{noted}\n{content[len(content) - half :]}"
