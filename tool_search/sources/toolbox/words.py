"""Texts: words, passwords, addresses."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import re
import secrets
import string
import uuid
from collections import Counter

from tool_search.sources.toolbox.arguments import require_length, require_within

_MAX_CHARS = 100_000
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# Compiled on first use: it takes longer than all else that importing this module does.
_WORD = rf"[{_HAN}]|[^\W_{_HAN}]+(?:['’-][^\W_{_HAN}]+)*"
_EMAIL = (
    r"(?!\.)[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}(?<!\.)@"
    r"((?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63})"
)


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


def generate_password(length: int = 16, symbols: bool = True) -> str:
    """Generate a random password. 生成随机密码。

    Args:
        length: How many characters, 长度; 8 to 128.
        symbols: True to use signs beside letters and digits, 是否含符号.
    """
    require_within("length", length, 8, 128)
    groups = [string.ascii_lowercase, string.ascii_uppercase, string.digits]
    groups += ["!#$%&*+-=?@_"] if symbols else []
    characters = [secrets.choice(group) for group in groups]
    characters += [secrets.choice("".join(groups)) for _ in range(length - len(groups))]
    secrets.SystemRandom().shuffle(characters)
    return "".join(characters)


def generate_uuid(name: str | None = None) -> str:
    """Generate a UUID, random or from a name. 生成 UUID。

    Args:
        name: If given, the UUID (version 5, DNS namespace) that always belongs to this name, 名称.
    """
    if name is None:
        return str(uuid.uuid4())
    require_length("name", name, 1, 1000)
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def validate_email(address: str) -> bool:
    """Tell whether an e-mail address is well formed. 判断电子邮箱格式是否正确。

    Args:
        address: The address, 邮箱地址; nobody is asked whether it exists.
    """
    require_length("address", address, 1, 500)
    local, _, _ = address.partition("@")
    return len(address) <= 254 and ".." not in local and bool(re.fullmatch(_EMAIL, address))
