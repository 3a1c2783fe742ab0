"""Verb synonyms, and aliases."""

from __future__ import annotations

import pytest

from tool_search.core.catalog.tool import Tool
from tool_search.search import build_index
from tool_search.search.text.synonyms import synonyms_of

TOOLS = (
    Tool(name="delete_file", description="A file goes."),
    Tool(name="send_invoice", description="An invoice by post."),
    Tool(name="查询天气", description="城市天气"),
    Tool(name="покупка_билета", description="Купить билет на поезд."),
    Tool(name="zap", description="Qwzx.", aliases=["cleanup_cache"]),
)


def names(query: str, *tools: Tool) -> list[str]:
    """The names that a search finds."""
    found = build_index(tools or TOOLS).search(query, limit=5).matches
    return [match.name for match in found]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("remove", "delete_file"),
        ("删除", "delete_file"),
        ("удалить", "delete_file"),
        ("发送", "send_invoice"),
        ("fetch", "查询天气"),
        ("purchase", "покупка_билета"),
        ("cache cleanup", "zap"),
        ("cleanup_cache", "zap"),
    ],
)
def test_search_finds_an_action_by_another_word(query: str, expected: str) -> None:
    assert names(query)[:1] == [expected]


def test_search_asked_word_comes_before_a_related_one() -> None:
    tools = (Tool(name="erase_note"), Tool(name="remove_note"), Tool(name="delete_note"))
    assert names("remove note", *tools)[0] == "remove_note"


def test_search_object_counts_more_than_a_related_action() -> None:
    tools = (Tool(name="remove_user"), Tool(name="archive_message"))
    assert names("delete message", *tools)[0] == "archive_message"


def test_synonyms_are_mutual_and_never_the_term_itself() -> None:
    # The table is connected enough to be walked from a few of its actions.
    terms, waiting = set[str](), ["delet", "send", "find", "creat", "calcul"]
    while waiting:
        term = waiting.pop()
        terms.add(term)
        waiting += set(synonyms_of(term)) - terms
    assert len(terms) > 50
    assert all(term in synonyms_of(other) for term in terms for other in synonyms_of(term))
    assert all(term not in synonyms_of(term) for term in terms)
    assert synonyms_of("weather") == ()
