"""The languages of a catalog's descriptions, and what the search tool says about them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conversations import Chat
from tool_search import RequestPlan, Tool, ToolCatalog, ToolSearchTool, build_index
from tool_search.i18n import LANGUAGES
from tool_search.search.discovery.listing import DescribedIn, languages_of, languages_text

TEXTS = {
    "en": "Sends a message to the members of a list.",
    "zh": "向列表成员发送 GitHub 消息。",
    "ru": "Отправляет сообщение участникам списка в Slack.",
    "uk": "Надсилає повідомлення учасникам списку.",
    "ja": "メンバーにメッセージを送信する。",
    "ko": "구성원에게 메시지를 보냅니다.",
    "de": "Sendet eine Nachricht an die Mitglieder des Vereins mit der Post.",
    "fr": "Envoie un message aux membres de la liste pour les clients.",
    "es": "Obtiene las reseñas de los productos con un filtro.",
    "pt": "Obtém os dados da conta e as mensagens do utilizador.",
    "it": "Mostra il saldo del conto e gli ordini della settimana.",
    "ar": "يرسل رسالة إلى أعضاء القائمة",
    "he": "שולח הודעה לחברי הרשימה",
    "hi": "सूची के सदस्यों को संदेश भेजता है",
    "th": "ส่งข้อความถึงสมาชิก",
    "el": "Στέλνει μήνυμα στα μέλη της λίστας",
}


def described(**counts: int) -> list[Tool]:
    """So many tools with a description in each language."""
    return [
        Tool(name=f"{code}_{n}", description=TEXTS[code])
        for code, count in counts.items()
        for n in range(count)
    ]


def description(tools: list[Tool], language: Any = "en-US") -> str:
    """The search tool's text for a catalog."""
    catalog = ToolCatalog(tools)
    tool = ToolSearchTool(build_index(catalog.deferred), catalog, language=language)
    return tool.definition().description


def searching(plan: RequestPlan) -> Tool:
    """The search tool as a request declares it."""
    return next(each.tool for each in plan.tools if each.tool.name == "tool_search")


@pytest.mark.parametrize("code", TEXTS)
def test_the_language_of_one_tool_is_known(code: str) -> None:
    assert languages_of(described(**{code: 1})) == DescribedIn(languages=(code,))


@pytest.mark.parametrize(
    ("counts", "languages", "is_mostly_first", "has_more"),
    [
        ({"en": 90, "zh": 10}, ("en", "zh"), True, False),
        ({"en": 98, "zh": 2}, ("en",), True, False),
        ({"en": 50, "zh": 50}, ("en", "zh"), False, False),
        ({"zh": 80, "en": 10, "ru": 10}, ("zh", "en", "ru"), True, False),
        ({"en": 5, "zh": 4, "ru": 3, "de": 2, "fr": 1}, ("en", "zh"), False, True),
    ],
)
def test_shares_decide_which_languages_are_named(
    counts: dict[str, int], languages: tuple[str, ...], *, is_mostly_first: bool, has_more: bool
) -> None:
    found = languages_of(described(**counts))
    assert found == DescribedIn(
        languages=languages, is_mostly_first=is_mostly_first, has_more=has_more
    )


def test_short_descriptions_without_grammar_count_for_the_catalogs_latin_language() -> None:
    short = [Tool(name=f"s{n}", description="Mail API") for n in range(20)]
    assert languages_of(short).languages == ("en",)
    assert languages_of([*described(fr=5), *short]).languages == ("fr",)


def test_tools_in_two_languages_each_need_one() -> None:
    both = [Tool(name=f"b{n}", description=f"{TEXTS['en']} {TEXTS['zh']}") for n in range(9)]
    assert languages_of(both).languages == ("en",)
    assert languages_of([*both, *described(zh=2)]).languages == ("zh",)


def test_tools_without_descriptions_have_no_language() -> None:
    assert languages_of([Tool(name="send_mail"), Tool(name="x")]) == DescribedIn(
        has_names_only=True
    )
    assert "names and no descriptions" in description([Tool(name="send_mail")])


def test_a_script_without_a_name_is_other_languages() -> None:
    georgian = [Tool(name=f"g{n}", description="აგზავნის შეტყობინებას") for n in range(5)]
    found = languages_of([*described(en=5), *georgian])
    assert found == DescribedIn(languages=("en",), is_mostly_first=False, has_more=True)
    assert "English and other languages" in description([*described(en=5), *georgian])
    assert "described" not in description(georgian)


def test_an_empty_catalog_says_nothing_of_languages() -> None:
    assert languages_text(languages_of([]), "en-US") == ""


@pytest.mark.parametrize(
    ("language", "one", "mostly", "several"),
    [
        ("en-US", "described in English: write every query in English",
         "mostly in English, some in Chinese:", "described in English, Chinese and Russian:"),
        ("zh-CN", "用英语描述：无论对话使用什么语言，查询都请用英语写",
         "大多用英语描述，少数用中文描述", "用英语、中文和俄语描述"),
        ("ru-RU", "описаны на английском: пишите каждый запрос на английском",
         "описано на английском, некоторые на китайском", "на английском, китайском и русском:"),
    ],
)  # fmt: skip
def test_the_search_tool_asks_for_queries_in_the_tools_languages(
    language: str, one: str, mostly: str, several: str
) -> None:
    assert one in description(described(en=5), language)
    assert mostly in description(described(en=9, zh=1), language)
    assert several in description(described(en=4, zh=3, ru=2), language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_a_name_in_each(language: Any) -> None:
    for code in TEXTS:
        assert languages_text(languages_of(described(**{code: 3})), language)


def test_tools_with_roles_give_away_no_language() -> None:
    secret = [Tool(name=f"s{n}", description=TEXTS["zh"], roles=["boss"]) for n in range(9)]
    assert "Chinese" not in description([*described(en=3), *secret])


def test_the_text_is_frozen_with_the_conversation_and_survives_a_restart() -> None:
    chat = Chat(described(en=30))
    assert "English" in searching(chat.turn()).description
    before = searching(chat.turn())
    changed = searching(chat.turn(tools=described(zh=30)))
    again = searching(chat.restarted(described(zh=30)).turn())
    assert before == changed == again


def test_many_tools_are_judged_by_a_sample() -> None:
    mixed = described(en=3000, zh=3000)
    assert set(languages_of(mixed).languages) == {"en", "zh"}


@given(st.lists(st.text(max_size=60), max_size=20))
def test_any_descriptions_give_a_text(texts: list[str]) -> None:
    tools = [Tool(name=f"t{n}", description=text) for n, text in enumerate(texts)]
    found = languages_of(tools)
    for language in LANGUAGES:
        assert isinstance(languages_text(found, language), str)
    assert len(found.languages) <= 3
