"""Similarity of a tool and a text, by shared words.

Words are compared by their first five letters, which joins the forms of one word in
English and Russian, and Chinese by pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tool_search.testing.view import VisibleTool

__all__ = ["likeness", "words"]

_WORD = re.compile(r"[^\W\d_]+|\d+")
_CJK = re.compile(r"[\u3400-\u9fff\u3040-\u30ff\uac00-\ud7af]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_STEM = 5
_NAME_WEIGHT = 2

_FUNCTION_WORDS = frozenset(
    """
    a about all an and any are as at be by can could do does for from get give has have how i in is
    it its many me much my of on one or please show tell that the them there this to use what when
    where which who will with would you your
    и в на по с к о у за из что как это мне мой какой какая какое какие сколько пожалуйста для
    怎么 什么 一下 一个 可以 请问 帮我 我的 多少 告诉 现在 怎样 样子 给我
    """.split()  # noqa: SIM905 - a list of words reads best as words
)


def likeness(tool: VisibleTool, asked: set[str]) -> int:
    """Return the weight of the words that a tool shares; words of its name count double."""
    named = words(tool.name)
    properties = tool.parameters.get("properties")
    described = words(f"{tool.description} {' '.join(properties or ())}") - named
    score = _NAME_WEIGHT * len(asked & named)
    return score + sum(_NAME_WEIGHT if _CJK.match(word) else 1 for word in asked & described)


def words(text: str) -> set[str]:
    """Return the content words of a text, cut to the compared length."""
    plain = unicodedata.normalize("NFKC", _CAMEL.sub(" ", text)).replace("_", " ").lower()
    found: set[str] = set()
    for word in _WORD.findall(plain):
        for run in _CJK.findall(word):
            found.update(run[i : i + 2] for i in range(max(1, len(run) - 1)))
        rest = _CJK.sub("", word)
        if len(rest) > 1 and rest not in _FUNCTION_WORDS:
            found.add(rest[:_STEM])
    return found - _FUNCTION_WORDS
