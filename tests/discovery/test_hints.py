"""Hints of the search tool: typing errors, and queries in a language that no tool has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.search.word_embedder import WordEmbedder
from tool_search import SearchResult, SearchSettings, Tool, ToolCatalog, ToolSearchTool, build_index

TOOLS = [
    Tool(name="delete_invoice", description="Deletes an invoice of a customer.", server="erp"),
    Tool(name="get_calendar", description="Events of a calendar.", server="office"),
    Tool(name="getWeather", description="Forecast for a city.", server="weather"),
    Tool(name="send_mail", description="Sends a message.", server="mail"),
]
ENGLISH_ONLY = "search.engine: hybrid"


def search(
    *queries: str, tools: Sequence[Tool] = TOOLS, engine: str = "bm25", **how: Any
) -> SearchResult:
    """The result of one call."""
    catalog = ToolCatalog([replace(tool, kind="mcp") for tool in tools])
    settings = SearchSettings(engine=engine, vector_cache=None)
    embedder = WordEmbedder() if settings.embeds else None
    index = build_index(catalog.deferred, settings, embedder=embedder)
    language = how.pop("language", "en-US")
    return ToolSearchTool(index, catalog, language=language).run({"queries": list(queries)}, **how)


@pytest.mark.parametrize(
    ("query", "near"),
    [
        ("invoce", "invoice"),
        ("invioce", "invoice"),
        ("invoiice", "invoice"),
        ("calender of events", "calendar"),
        ("paris wether", "weather"),
        ("delte the invoce of a custmer", "delete, invoice, customer"),
    ],
)
@pytest.mark.parametrize("engine", ["bm25", "hybrid"])
def test_a_typing_error_is_answered_with_the_word_of_a_tool(
    query: str, near: str, engine: str
) -> None:
    tools = [*TOOLS, Tool(name="delete", description="Delete what is there.")]
    hint = search(query, tools=tools, engine=engine).hint
    assert hint is not None
    assert hint.endswith(f"did you mean: {near}")


@pytest.mark.parametrize(
    ("language", "asks"),
    [
        ("en-US", "did you mean: "),
        ("zh-CN", "是不是要找："),
        ("ru-RU", "возможно, имелось в виду: "),
    ],
)
def test_a_result_has_no_more_than_the_word_beside_it(language: str, asks: str) -> None:
    result = search("delete the invoce", language=language)
    assert [match.name for match in result.matches] == ["delete_invoice"]
    assert (result.unmatched, result.hint) == (("invoce",), f"{asks}invoice")


def test_a_russian_word_is_put_right_too() -> None:
    tools = [Tool(name="pay", description="Оплатить квитанцию за квартиру")]
    assert search("оплатить квитнцию", tools=tools).hint == "did you mean: квитанцию"


def test_words_of_tools_that_a_caller_may_not_find_are_not_offered() -> None:
    hint = search("weather invoce", allowed=lambda name: name != "delete_invoice").hint
    assert hint is None
    hidden = [tool for tool in TOOLS if tool.name != "delete_invoice"]
    assert hint == search("weather invoce", tools=hidden).hint


@pytest.mark.parametrize(
    "query",
    [
        "weather 12345", "weather inv0ice", "weather w", "weather Calender", "weather NVOICE",
        "weather 天汽", "weather ινβοιςε", "weather mial", "weather 👍", "weather invoice_x9",
        "weather nvoice", "weather inoviec", "weather invoicing",
    ],
)  # fmt: skip
def test_numbers_names_codes_and_other_words_are_no_typing_errors(query: str) -> None:
    assert "did you mean" not in (search(query).hint or "")


def test_a_word_that_the_query_has_too_is_not_offered() -> None:
    assert search("invoice or invoce").hint is None


def test_several_queries_share_three_words() -> None:
    hint = search("invoce", "wether", "calender", "mesage").hint
    assert hint is not None
    assert hint.endswith("; did you mean: invoice, weather, calendar")


@pytest.mark.parametrize("query", ["删除发票", "удалить счёт", "請求書を削除", "احذف الفاتورة"])
def test_words_of_a_script_that_no_tool_has_name_the_engine_of_meanings(query: str) -> None:
    hint = search(query).hint
    assert hint is not None
    assert "write it in English" in hint
    assert ENGLISH_ONLY in hint
    assert ENGLISH_ONLY not in (search(query, engine="hybrid").hint or "")


def test_a_query_in_a_language_of_the_tools_names_no_engine() -> None:
    chinese = [Tool(name="fapiao", description="删除客户的发票，并通知会计。")]
    assert search("删除天气", tools=chinese).hint is None
    assert ENGLISH_ONLY not in (search("qwzx yyyyy", "add 发 to an invoice").hint or "")
    assert ENGLISH_ONLY not in (search("删除天气", tools=[*TOOLS, *chinese]).hint or "")
    assert ENGLISH_ONLY in (search("delete weather", tools=chinese).hint or "")


@pytest.mark.parametrize(
    "query",
    [
        "invoce " * 20_000,
        "x" * 100_000,
        "mnopq" * 20_000,
        "".join(map(chr, range(97, 123))) * 4_000,
    ],
)
def test_a_huge_query_has_a_short_hint(query: str) -> None:
    assert len(search(query).hint or "") < 100


@given(st.text(max_size=60), st.sampled_from(["", "invoce "]))
def test_any_query_has_a_hint_of_the_tools_own_words(query: str, before: str) -> None:
    hint = search(before + query).hint or ""
    _, _, offered = hint.partition("did you mean: ")
    known = " ".join(f"{tool.name} {tool.description}" for tool in TOOLS).casefold()
    assert all(word in known for word in offered.partition(";")[0].split(", "))
