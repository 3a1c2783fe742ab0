"""Numbers in words and letters: Roman, English, Russian, ordinals."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

from tool_search.demo.toolbox.arguments import require_within

_LIMIT = 10**15 - 1
_ROMAN = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
    (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)  # fmt: skip
_ENGLISH = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)  # fmt: skip
_ENGLISH_TENS = (
    "-", "-", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
)  # fmt: skip
_ENGLISH_SCALES = ("", "thousand", "million", "billion", "trillion")
_RUSSIAN = (
    "ноль", "один", "два", "три", "четыре", "пять", "шесть", "семь", "восемь", "девять",
    "десять", "одиннадцать", "двенадцать", "тринадцать", "четырнадцать", "пятнадцать",
    "шестнадцать", "семнадцать", "восемнадцать", "девятнадцать",
)  # fmt: skip
_RUSSIAN_TENS = (
    "-", "-", "двадцать", "тридцать", "сорок", "пятьдесят", "шестьдесят", "семьдесят",
    "восемьдесят", "девяносто",
)  # fmt: skip
_RUSSIAN_HUNDREDS = (
    "-", "сто", "двести", "триста", "четыреста", "пятьсот", "шестьсот", "семьсот",
    "восемьсот", "девятьсот",
)  # fmt: skip
# The forms after 1, after 2 to 4, and after all others.
_RUSSIAN_SCALES = (
    ("", "", ""),
    ("тысяча", "тысячи", "тысяч"),
    ("миллион", "миллиона", "миллионов"),
    ("миллиард", "миллиарда", "миллиардов"),
    ("триллион", "триллиона", "триллионов"),
)


def integer_to_roman(number: int) -> str:
    """Write a number in Roman numerals. 把整数写成罗马数字。

    Args:
        number: From 1 to 3999, 整数.
    """
    require_within("number", number, 1, 3999)
    letters = []
    for value, letter in _ROMAN:
        count, number = divmod(number, value)
        letters.append(letter * count)
    return "".join(letters)


def roman_to_integer(numeral: str) -> int:
    """Read a Roman numeral as a number. 把罗马数字读成整数。

    Args:
        numeral: Such as "MCMXCIV", 罗马数字; upper or lower case.
    """
    rest = numeral.strip().upper()
    total = 0
    for value, letter in _ROMAN:
        while rest.startswith(letter):
            total += value
            rest = rest[len(letter) :]
    # Writing it again refuses what only looks Roman, such as IIII.
    if rest or not 1 <= total <= 3999 or integer_to_roman(total) != numeral.strip().upper():
        raise ValueError(f"numeral {numeral!r} is not a Roman numeral from I to MMMCMXCIX")
    return total


def number_to_english_words(number: int) -> str:
    """Spell a whole number in English words. 把整数写成英文单词。

    Args:
        number: Below a quadrillion (10^15) either way, 整数.
    """
    require_within("number", number, -_LIMIT, _LIMIT)
    if number < 0:
        return f"minus {number_to_english_words(-number)}"
    if number == 0:
        return _ENGLISH[0]
    words = [
        f"{_english_hundreds(group)} {_ENGLISH_SCALES[scale]}".strip()
        for scale, group in _thousands(number)
    ]
    return " ".join(words)


def number_to_russian_words(number: int) -> str:
    """Spell a whole number in Russian words (число прописью). 把整数写成俄文单词。

    Args:
        number: Below a quadrillion (10^15) either way, 整数, целое число.
    """
    require_within("number", number, -_LIMIT, _LIMIT)
    if number < 0:
        return f"минус {number_to_russian_words(-number)}"
    if number == 0:
        return _RUSSIAN[0]
    words = [
        f"{_russian_hundreds(group, feminine=scale == 1)} {_russian_scale(group, scale)}".strip()
        for scale, group in _thousands(number)
    ]
    return " ".join(words)


def ordinal_number(number: int) -> str:
    """Write a number as an English ordinal such as 21st. 写成英文序数词缩写。

    Args:
        number: 0 or more, 整数.
    """
    require_within("number", number, 0, _LIMIT)
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else suffix}"


def _thousands(number: int) -> list[tuple[int, int]]:
    """Return the groups of three digits other than 0, each with its power of a thousand."""
    groups = []
    scale = 0
    while number:
        number, group = divmod(number, 1000)
        if group:
            groups.append((scale, group))
        scale += 1
    return groups[::-1]


def _english_hundreds(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    words = [f"{_ENGLISH[hundreds]} hundred"] if hundreds else []
    if rest < 20:
        words += [_ENGLISH[rest]] if rest else []
    else:
        tens, ones = divmod(rest, 10)
        words.append(_ENGLISH_TENS[tens] + (f"-{_ENGLISH[ones]}" if ones else ""))
    return " ".join(words)


def _russian_hundreds(number: int, *, feminine: bool) -> str:
    hundreds, rest = divmod(number, 100)
    words = [_RUSSIAN_HUNDREDS[hundreds]] if hundreds else []
    if rest >= 20:
        tens, rest = divmod(rest, 10)
        words.append(_RUSSIAN_TENS[tens])
    if rest:
        words.append(
            {1: "одна", 2: "две"}.get(rest, _RUSSIAN[rest]) if feminine else _RUSSIAN[rest]
        )
    return " ".join(words)


def _russian_scale(group: int, scale: int) -> str:
    one, few, many = _RUSSIAN_SCALES[scale]
    if group % 100 in range(11, 15):
        return many
    return {1: one, 2: few, 3: few, 4: few}.get(group % 10, many)


TOOLS = (
    integer_to_roman,
    roman_to_integer,
    number_to_english_words,
    number_to_russian_words,
    ordinal_number,
)
