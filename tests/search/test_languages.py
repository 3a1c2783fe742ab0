"""Russian and Chinese search, over the labelled sets of `benchmarks/sets`."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.languages import (
    LANGUAGES,
    Outcome,
    mean_recall,
    outcomes,
    read_queries,
    read_tools,
    read_traps,
    violations,
)
from tool_search.core.catalog.tool import Tool
from tool_search.search import SearchSettings, build_index

LEAST_RECALL = 0.9
MIN_QUERIES = {"russian": 150, "chinese": 100}


def answers(language: str, data: Path | None = None) -> tuple[Outcome, ...]:
    """The answers of the default engine to a set."""
    return outcomes(build_index(read_tools(language, data)), read_queries(language))


@pytest.mark.parametrize("language", LANGUAGES)
def test_labels_name_tools_of_their_set(language: str) -> None:
    """A label that names no tool could never be found."""
    names = {tool.name for tool in read_tools(language)}
    queries = read_queries(language)
    labels = [name for query in queries for name in (*query.relevant, *query.rivals)]
    labels += [name for trap in read_traps(language) for name in trap.forbidden if name != "*"]
    assert set(labels) <= names
    assert len({query.query for query in queries}) == len(queries) >= MIN_QUERIES[language]


@pytest.mark.parametrize("language", LANGUAGES)
def test_nine_of_ten_tools_are_among_the_first_five(language: str) -> None:
    assert mean_recall(answers(language)) >= LEAST_RECALL


def test_nine_of_ten_russian_tools_are_found_among_thousands_of_others(shared: Path) -> None:
    assert mean_recall(answers("russian", shared / "data")) >= LEAST_RECALL


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_rival_seldom_comes_first(language: str) -> None:
    judged = [answer for answer in answers(language) if answer.asked.rivals]
    assert sum(answer.has_rival_before for answer in judged) <= len(judged) // 10


def test_a_homophone_never_comes_before_the_word_that_was_written() -> None:
    asked = [answer for answer in answers("chinese") if answer.asked.kind == "homophone"]
    assert asked
    assert not [answer.asked.query for answer in asked if answer.has_rival_before]


@pytest.mark.parametrize("engine", ["bm25", "rank_bm25"])
def test_a_homophone_finds_nothing(engine: str) -> None:
    tools = read_tools("chinese")
    chosen = SearchSettings.model_validate({"engine": engine})
    traps = [trap for trap in read_traps("chinese") if trap.kind == "homophone"]
    names = [tool.name for tool in tools]
    assert traps
    assert violations(build_index(tools, chosen), traps, names) == ()


def test_one_character_of_several_seldom_finds_a_tool() -> None:
    """权力 shares 权 with 权利, and a wish that no tool fits shares something with many."""
    tools = read_tools("chinese")
    traps = [trap for trap in read_traps("chinese") if trap.kind != "homophone"]
    sprung = violations(build_index(tools), traps, [tool.name for tool in tools])
    assert len(sprung) <= len(traps) // 10


@pytest.mark.parametrize("others", [0, 2_500])
def test_a_tool_with_one_of_the_characters_is_no_hit_beside_one_with_the_word(others: int) -> None:
    more = [Tool(name=f"other_{n}", description="Something else.") for n in range(others)]
    tools = [Tool(name="rights", description="权利"), Tool(name="power", description="权力"), *more]
    found = build_index(tools).search("权利", limit=5)
    assert [match.name for match in found.matches] == ["rights"]


def test_one_character_that_is_the_whole_query_finds_its_tools() -> None:
    found = build_index([Tool(name="map", description="地图")]).search("图", limit=5)
    assert [match.name for match in found.matches] == ["map"]


def test_homophones_share_no_character_with_what_they_must_not_find() -> None:
    """Only the sound could find them."""
    texts = {
        tool.name: f"{tool.description}{tool.parameters_json}" for tool in read_tools("chinese")
    }
    for trap in read_traps("chinese"):
        if trap.kind == "homophone":
            forbidden = "".join(texts[name] for name in trap.forbidden)
            assert not set(trap.query) & set(forbidden), trap.query


@pytest.mark.parametrize(
    ("query", "description"),
    [
        ("найди письма", "Находит письма в почтовом ящике."),
        ("удали письма", "Удаляет выбранные письма."),
        ("покажи письма", "Показывает письма по порядку."),
        ("отмени письма", "Отменяет письма до отправки."),
        ("ищи письма", "Ищет письма по слову."),
    ],
)
def test_an_imperative_finds_a_verb_in_the_third_person(query: str, description: str) -> None:
    """Russian aspects have different stems; the object alone would find both tools."""
    tools = [
        Tool(name="a", description="Сортирует письма по дате."),
        Tool(name="b", description=description),
    ]
    found = build_index(tools).search(query, limit=2).matches
    assert [match.name for match in found] == ["b", "a"]
