"""Texts that are too long, shortened to their two ends."""

from __future__ import annotations

from tool_search.i18n import Language, text

__all__ = ["cut"]


def cut(content: str, *, longest: int, language: Language) -> str:
    """Return a text without its middle if it is too long; a line in its place says so.

    Args:
        content: The text.
        longest: The number of characters to keep, half of them from each end.
        language: The language of the line.
    """
    if len(content) <= longest:
        return content
    half = longest // 2
    noted = text("call.cut", language, count=len(content) - 2 * half)
    return f"{content[:half]}\n{noted}\n{content[len(content) - half :]}"
