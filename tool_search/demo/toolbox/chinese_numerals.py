"""Chinese numerals: ordinary, capital, and amounts of money in capitals."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal

from tool_search.demo.toolbox.arguments import require_length, require_within

_LIMIT = 10**16 - 1
_ORDINARY = ("零一二三四五六七八九", "十百千")
_CAPITAL = ("零壹贰叁肆伍陆柒捌玖", "拾佰仟")
_DIGIT_VALUES = {
    character: value
    for digits in ("零一二三四五六七八九", "零壹贰叁肆伍陆柒捌玖", "〇一两三四五六七八九")
    for value, character in enumerate(digits)
}
# Speech omits the last unit: 二百五 is 250, while 205 is 二百零五.
_SPOKEN = re.compile(r".*([百佰千仟万亿])[一壹二贰两三叁四肆五伍六陆七柒八捌九玖]")
_LEFT_OUT = {"百": "十", "佰": "十", "千": "百", "仟": "百", "万": "千", "亿": "千万"}
_UNIT_VALUES = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}


def number_to_chinese(number: int, capital: bool = False) -> str:
    """Write a whole number in Chinese numerals. 把整数写成中文数字。

    Args:
        number: Below 10^16 either way, 整数.
        capital: True for the capital numerals of bank forms (大写数字, 壹贰叁).
    """
    require_within("number", number, -_LIMIT, _LIMIT)
    sign = "负" if number < 0 else ""
    text = _chinese(abs(number), *(_CAPITAL if capital else _ORDINARY))
    # 十二 rather than 一十二, in speech only.
    return sign + (text[1:] if text.startswith("一十") else text)


def chinese_to_number(text: str) -> int:
    """Read a Chinese numeral as a number. 把中文数字读成阿拉伯数字。

    Args:
        text: Such as "一万二千三百", "二〇二四" or "壹佰", 中文数字; below 10^16.
            A last digit without its unit is read as in speech: 二百五 is 250.
    """
    require_length("text", text, 1, 60)
    body = text.removeprefix("负")
    if body and all(character in _DIGIT_VALUES for character in body):
        number = int("".join(str(_DIGIT_VALUES[character]) for character in body))
    else:
        spoken = _SPOKEN.fullmatch(body)
        number = _read(body + _LEFT_OUT[spoken[1]] if spoken else body, text)
    require_within("text", number, 0, _LIMIT)
    return -number if text.startswith("负") else number


def rmb_uppercase(amount: float) -> str:
    """Write a sum of yuan in Chinese capital numerals. 人民币金额转大写，如壹佰元整。

    Args:
        amount: The sum in yuan, 金额（元）; rounded to the fen, below 10^13 either way.
    """
    require_within("amount", amount, -(10**13), 10**13)
    exact = Decimal(repr(amount)).quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)
    yuan, fen = divmod(int(abs(exact) * 100), 100)
    sign = "负" if exact < 0 else ""
    digits = _CAPITAL[0]
    text = _chinese(yuan, *_CAPITAL) + "元" if yuan else ""
    if fen == 0:
        return sign + (text or "零元") + "整"
    if fen % 10 == 0:
        return f"{sign}{text}{digits[fen // 10]}角整"
    if fen >= 10:
        return f"{sign}{text}{digits[fen // 10]}角{digits[fen % 10]}分"
    return f"{sign}{text}{'零' if yuan else ''}{digits[fen]}分"


def _chinese(number: int, digits: str, units: str) -> str:
    """Split at 亿, then 万, then digit by digit; 零 stands for skipped places."""
    for value, unit in (
        (10**8, "亿"),
        (10**4, "万"),
        *zip((1000, 100, 10), units[::-1], strict=True),
    ):
        if number >= value:
            head, rest = divmod(number, value)
            gap = digits[0] if 0 < rest < value // 10 else ""
            tail = _chinese(rest, digits, units) if rest else ""
            return _chinese(head, digits, units) + unit + gap + tail
    return digits[number]


def _read(body: str, text: str) -> int:
    for value, unit in ((10**8, "亿"), (10**4, "万")):
        head, found, tail = body.rpartition(unit)
        if found:
            number = _read(head, text) * value
            rest = _read(tail, text) if tail else 0
            if number and rest < value:
                return number + rest
            raise ValueError(f"text {text!r} is not a Chinese numeral")
    return _read_thousands(body, text)


def _read_thousands(section: str, text: str) -> int:
    total, digit, ceiling = 0, 0, 10_000
    for character in section:
        if character in _DIGIT_VALUES and not digit:
            digit = _DIGIT_VALUES[character]
            continue
        unit = _UNIT_VALUES.get(character, ceiling)
        # 十 alone is 10; every other unit needs its digit, and units go down.
        if unit >= ceiling or (unit != 10 and not digit):
            raise ValueError(f"text {text!r} is not a Chinese numeral at {character!r}")
        total += (digit or 1) * unit
        digit, ceiling = 0, unit
    if not section:
        raise ValueError(f"text {text!r} is not a Chinese numeral: a number is missing")
    return total + digit


TOOLS = (number_to_chinese, chinese_to_number, rmb_uppercase)
