"""Behaviour of the token estimate, and its closeness to known true counts."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search.core.catalog.tool import estimate_tokens, most_tokens

ANY_TEXT = st.text(st.characters(codec=None), max_size=200)
AWKWARD_TEXT = st.text("aA1. \n_é中я😀\ud800\ufe0f", max_size=60)
TEXTS = ANY_TEXT | AWKWARD_TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A text, the tokens that o200k_base makes of it, and how far off we may be.

    The counts were measured with the rank file that ``benchmarks/tokens.md`` names.
    """

    text: str
    tokens: int
    tolerance: float = 0.1


KNOWN = {
    "english chat": Case(
        text="Find the cheapest direct flight from Lisbon to Oslo next Friday and add it to "
        "my calendar.",
        tokens=18,
    ),
    "english tool": Case(
        text='{"name":"get_order_status","description":"Look up where an order is and when it '
        'arrives.","parameters":{"type":"object","properties":{"order_id":{"type":"string",'
        '"description":"The order\'s number, as printed on the receipt"},"include_items":'
        '{"type":"boolean"}},"required":["order_id"]}}',
        tokens=63,
    ),
    "chinese tool": Case(
        text='{"name":"query_weather","description":"查询指定城市未来几天的天气预报","parameters":'
        '{"type":"object","properties":{"city":{"type":"string","description":"城市名称"},'
        '"days":{"type":"integer","description":"预报天数，最多十五天"}},"required":["city"]}}',
        tokens=62,
    ),
    "russian tool": Case(
        text='{"name":"play_music","description":"Включает песню или альбом на выбранной колонке"'
        ',"parameters":{"type":"object","properties":{"title":{"type":"string","description":'
        '"Название песни или альбома"}},"required":["title"]}}',
        tokens=51,
    ),
    "russian chat": Case(
        text="Поставь, пожалуйста, таймер на десять минут и напомни выключить духовку.",
        tokens=21,
    ),
    "chinese chat": Case(
        text="请帮我把今天下午的会议改到明天上午十点，并通知所有参会的人。", tokens=22
    ),
    "mixed chat": Case(
        text="Завтра deploy в 18:00, проверь logs на staging-2 и напиши в Slack 🙂", tokens=23
    ),
    "french chat": Case(
        text="La réunion a été déplacée à jeudi, pouvez-vous prévenir l'équipe ?",
        tokens=15,
        tolerance=0.3,
    ),
    "japanese chat": Case(text="会議の資料を今日中に送ってください。", tokens=12, tolerance=0.2),
    "korean chat": Case(text="회의 자료를 오늘 안에 보내 주세요.", tokens=9, tolerance=0.2),
    "python code": Case(
        text="def area(width: float, height: float) -> float:\n    return width * height\n",
        tokens=19,
    ),
    "figures": Case(text="2026-11-21T09:45:00Z, 192 items, total 15480.50 EUR", tokens=25),
}


@pytest.mark.parametrize("case", KNOWN.values(), ids=KNOWN.keys())
def test_estimate_of_known_text_is_within_tolerance(case: Case) -> None:
    assert estimate_tokens(case.text) == pytest.approx(case.tokens, rel=case.tolerance)


def test_estimate_of_empty_text_is_zero() -> None:
    assert estimate_tokens("") == 0


@pytest.mark.parametrize(
    "text", [" ", "\n", "a", ".", "я", "中", "\u0300", "\ufe0f", "ạ", "\x00", "\ud800"], ids=ascii
)
def test_estimate_of_one_character_is_one_or_two(text: str) -> None:
    assert 1 <= estimate_tokens(text) <= 2


@given(TEXTS)
def test_estimate_of_any_text_is_positive_and_bounded(text: str) -> None:
    assert bool(text) <= estimate_tokens(text) <= 3 * len(text)


@given(TEXTS)
def test_estimate_of_same_text_is_same(text: str) -> None:
    assert estimate_tokens(text) == estimate_tokens("".join(list(text)))


@given(TEXTS, TEXTS)
def test_estimate_of_joined_texts_exceeds_sum_by_two_at_most(first: str, second: str) -> None:
    """A catalog weighs about what its definitions weigh: never more than a joint each."""
    total = estimate_tokens(first) + estimate_tokens(second)
    assert total - 4 <= estimate_tokens(first + second) <= total + 2


@given(TEXTS, TEXTS)
def test_estimate_of_longer_text_is_not_smaller(first: str, second: str) -> None:
    """More text is never lighter, but for one token of rounding."""
    assert estimate_tokens(first + second) >= estimate_tokens(first) - 1


@given(st.lists(st.sampled_from([case.text for case in KNOWN.values()]), max_size=30))
def test_estimate_of_lines_is_about_the_sum_of_lines(lines: list[str]) -> None:
    total = sum(map(estimate_tokens, lines))
    assert estimate_tokens("\n".join(lines)) == pytest.approx(total, rel=0.05, abs=2)


def test_estimate_by_script_orders_latin_cyrillic_han() -> None:
    english = estimate_tokens("show the weather for next week"[:24])
    russian = estimate_tokens("покажи погоду на следующую неделю"[:24])
    chinese = estimate_tokens("请告诉我下个星期北京的天气情况以及是否需要带伞出门"[:24])
    assert english < russian < chinese


def test_estimate_of_snake_case_does_not_charge_underscores() -> None:
    assert estimate_tokens("get_user_order_by_id") == estimate_tokens("get user order by id")


def test_estimate_of_compact_json_is_below_indented_json() -> None:
    compact = '{"type":"object","properties":{"city":{"type":"string"}}}'
    indented = '{\n  "type": "object",\n  "properties": {\n    "city": {"type": "string"}\n  }\n}'
    assert estimate_tokens(compact) < estimate_tokens(indented)


def test_estimate_of_unbroken_run_grows_with_its_length() -> None:
    """A word, number or rule without a break is not taken for one token."""
    for character in ("a", "A", "7", "-", " ", "\n", "я"):
        assert estimate_tokens(character * 6_400) >= 40


def test_most_tokens_count_each_digit_and_more_of_chinese() -> None:
    digits, chinese = "1234567 89", "今天天气怎么样，请告诉我一下好吗"
    assert most_tokens(digits) >= 9 > estimate_tokens(digits)
    assert most_tokens(chinese) > 1.15 * estimate_tokens(chinese)
    assert most_tokens("no figure at all") == estimate_tokens("no figure at all")


def test_estimate_of_big_text_is_linear() -> None:
    definition = KNOWN["english tool"].text + "\n"
    copies = 5_000_000 // len(definition)
    expected = copies * KNOWN["english tool"].tokens
    assert estimate_tokens(definition * copies) == pytest.approx(expected, rel=0.05)
