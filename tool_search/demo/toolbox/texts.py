"""Plain text: counting, cases, lines, comparing."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import difflib
import re
import textwrap
import unicodedata
from collections import Counter
from typing import Literal

from tool_search.demo.toolbox.arguments import choose, require_length, require_within

Case = Literal["lower", "upper", "title", "sentence", "snake", "kebab", "camel", "pascal"]

_MAX_CHARS = 100_000
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# Compiled on first use: it takes longer than all else that importing this module does.
_WORD = rf"[{_HAN}]|[^\W_{_HAN}]+(?:['’-][^\W_{_HAN}]+)*"
_CASE_WORD = r"[A-ZА-ЯЁ]+(?![a-zа-яё])|[A-ZА-ЯЁ]?[a-zа-яё]+|\d+|[^\W\d_A-Za-zА-Яа-яЁё]+"


def count_words(text: str) -> dict[str, int]:
    """Count words, characters, lines and sentences of a text. 统计字数、词数、行数和句数。

    Args:
        text: The text, 文本; a Chinese character counts as one word.
    """
    require_length("text", text, 0, _MAX_CHARS)
    sentences = [part for part in re.split(r"[.!?。！？…]+", text) if part.strip()]
    return {
        "words": len(re.findall(_WORD, text)),
        "characters": len(text),
        "characters_without_spaces": len("".join(text.split())),
        "lines": len(text.splitlines()),
        "sentences": len(sentences),
    }


def word_frequency(text: str, count: int = 10) -> list[list[str | int]]:
    """List the most frequent words of a text. 统计文本中出现最多的词。

    Args:
        text: The text, 文本; upper and lower case count as one.
        count: How many words to list, 个数; 1 to 1000.

    Returns:
        Pairs of a word and its number, most frequent first, equal ones in order of the text.
    """
    require_length("text", text, 0, _MAX_CHARS)
    require_within("count", count, 1, 1000)
    frequency = Counter(word.lower() for word in re.findall(_WORD, text))
    return [[word, number] for word, number in frequency.most_common(count)]


def reading_time(text: str) -> float:
    """Estimate how many minutes reading a text takes. 估算阅读所需分钟数。

    Args:
        text: The text, 文本; at 230 words or 400 Chinese characters a minute.
    """
    require_length("text", text, 0, _MAX_CHARS)
    han = len(re.findall(rf"[{_HAN}]", text))
    words = len(re.findall(_WORD, text)) - han
    return round(words / 230 + han / 400, 2)


def change_case(text: str, case: Case) -> str:
    """Change the case of a text or of an identifier. 转换大小写和命名风格。

    Args:
        text: The text, 文本.
        case: The case wanted, 目标格式; snake, kebab, camel and pascal are for identifiers.
    """
    require_length("text", text, 0, _MAX_CHARS)
    words = [word.lower() for word in re.findall(_CASE_WORD, text)]
    capitals = [word.capitalize() for word in words]
    forms: dict[Case, str] = {
        "lower": text.lower(),
        "upper": text.upper(),
        # str.title would write Don'T.
        "title": re.sub(r"\b\w[\w'’]*", lambda match: match[0].capitalize(), text),
        "sentence": text[:1].upper() + text[1:].lower(),
        "snake": "_".join(words),
        "kebab": "-".join(words),
        "camel": "".join(words[:1] + capitals[1:]),
        "pascal": "".join(capitals),
    }
    return choose("case", case, forms)


def slugify(text: str) -> str:
    """Turn a title into a slug for a web address. 把标题转换成网址用的短名。

    Args:
        text: The title, 标题; accents are dropped, other scripts are kept.
    """
    require_length("text", text, 0, _MAX_CHARS)
    plain = remove_accents(text).lower()
    return "-".join(re.findall(r"[^\W_]+", plain))


def remove_accents(text: str) -> str:
    """Remove the accents from Latin letters. 去掉拉丁字母的重音符号。

    Args:
        text: The text, 文本, such as "Café".
    """
    require_length("text", text, 0, _MAX_CHARS)
    kept: list[str] = []
    for character in unicodedata.normalize("NFD", text):
        # й is a letter of its own in Russian, not an и with an accent.
        on_latin = bool(kept) and unicodedata.name(kept[-1], "").startswith("LATIN")
        if not (unicodedata.combining(character) and on_latin):
            kept.append(character)
    return unicodedata.normalize("NFC", "".join(kept))


def is_palindrome(text: str) -> bool:
    """Tell whether a text reads the same backwards. 判断是否为回文。

    Args:
        text: The text, 文本; case, spaces and punctuation do not count.
    """
    require_length("text", text, 1, _MAX_CHARS)
    letters = [character for character in text.casefold() if character.isalnum()]
    return bool(letters) and letters == letters[::-1]


def sort_lines(text: str, descending: bool = False, numeric: bool = False) -> str:
    """Sort the lines of a text. 对文本的行排序。

    Args:
        text: The lines, 多行文本.
        descending: True for the reverse order, 降序.
        numeric: True to sort by the number that each line starts with, 按数字排序.
    """
    require_length("text", text, 0, _MAX_CHARS)
    lines = text.splitlines()
    if not numeric:
        return "\n".join(sorted(lines, key=str.casefold, reverse=descending))
    return "\n".join(sorted(lines, key=_leading_number, reverse=descending))


def remove_duplicate_lines(text: str) -> str:
    """Remove lines that occurred before. 去除重复的行。

    Args:
        text: The lines, 多行文本; the first of equal lines stays in its place.
    """
    require_length("text", text, 0, _MAX_CHARS)
    return "\n".join(dict.fromkeys(text.splitlines()))


def wrap_text(text: str, width: int = 72) -> str:
    """Break a text into lines of at most some width. 按指定宽度自动换行。

    Args:
        text: The text, 文本; its own line breaks are kept.
        width: The most characters a line may have, 行宽; 1 to 1000.
    """
    require_length("text", text, 0, _MAX_CHARS)
    require_within("width", width, 1, 1000)
    return "\n".join(textwrap.fill(line, width) for line in text.splitlines())


def diff_texts(old: str, new: str) -> str:
    """Show the line differences of two texts. 比较两段文本的差异。

    Args:
        old: The text before, 旧文本.
        new: The text after, 新文本; each at most 2000 lines.

    Returns:
        A unified diff, empty if the texts are equal.
    """
    require_length("old", old, 0, _MAX_CHARS)
    require_length("new", new, 0, _MAX_CHARS)
    before, after = old.splitlines(), new.splitlines()
    require_length("the lines of old", before, 0, 2000)
    require_length("the lines of new", after, 0, 2000)
    return "\n".join(difflib.unified_diff(before, after, "old", "new", lineterm=""))


def edit_distance(first: str, second: str) -> int:
    """Count the letter edits between two texts (Levenshtein). 计算两个字符串的编辑距离。

    Args:
        first: One text, 第一段; at most 1000 characters.
        second: The other, 第二段; at most 1000 characters.
    """
    require_length("first", first, 0, 1000)
    require_length("second", second, 0, 1000)
    row = list(range(len(second) + 1))
    for i, left in enumerate(first, 1):
        diagonal, row[0] = row[0], i
        for j, right in enumerate(second, 1):
            best = min(row[j] + 1, row[j - 1] + 1, diagonal + (left != right))
            diagonal, row[j] = row[j], best
    return row[-1]


def _leading_number(line: str) -> float:
    match = re.match(r"\s*[-+]?\d{1,300}(?:\.\d{1,300})?", line, re.ASCII)
    if match is None:
        raise ValueError(f"line {line[:80]!r} does not start with a number; use numeric=false")
    return float(match[0])


TOOLS = (
    count_words,
    word_frequency,
    reading_time,
    change_case,
    slugify,
    remove_accents,
    is_palindrome,
    sort_lines,
    remove_duplicate_lines,
    wrap_text,
    diff_texts,
    edit_distance,
)
