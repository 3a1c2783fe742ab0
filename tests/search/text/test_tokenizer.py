"""The terms that texts are cut into."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search.search.text.stop_words import STOP_WORDS
from tool_search.search.text.tokenizer import pieces


def terms(text: str) -> set[str]:
    """Every term of a text."""
    return {
        term
        for piece in pieces(text, max_chars=10_000)
        for term in (*piece.words, *piece.compounds)
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("createGitHubIssue", {"creat", "git", "hub", "github", "issu", "creategithubissu"}),
        ("send_e-mail", {"send", "mail", "email", "sendemail"}),
        ("mcp__files__read", {"mcp", "file", "read"}),
        ("HTTPServer", {"http", "server", "httpserver"}),
        ("userIDs", {"user", "id"}),
        ("s3 k8s IPv4", {"s3", "k8s", "ipv4"}),
        ("page2", {"page", "2", "page2"}),
        ("2024-09-20", {"2024", "09", "20"}),
        ("ＡＢＣ　１２３", {"abc", "123"}),
        ("café", {"cafe"}),
        ("Ёлки", {"елк"}),
        ("получитьПогоду", {"получ", "погод"}),
        ("天气预报", {"天", "气", "预", "报", "天气", "气预", "预报"}),
        ("火 车 票", {"火", "车", "票", "火车", "车票"}),
        ("使用Python写入", {"python", "写入"}),
        ("東京タワー", {"东京", "タワ"}),
        ("查詢天氣", {"查询", "天气"}),
        ("図書館", {"図书", "书馆"}),
        ("날씨 예보", {"날씨", "예보"}),
        ("it's don't", {"it", "don"}),
    ],
)
def test_pieces_have_terms(text: str, expected: set[str]) -> None:
    assert expected <= terms(text)


@pytest.mark.parametrize(
    "words",
    [
        ("converts", "converting", "converted"),
        ("погода", "погоду", "погоды", "погодой"),
        ("удалить", "удалил", "удалили"),
    ],
)
def test_pieces_of_inflected_words_share_a_term(words: tuple[str, ...]) -> None:
    assert len(set.union(*map(terms, words))) == 1


@pytest.mark.parametrize("verb", ["get", "find", "open", "run", "show", "make", "list", "set"])
def test_function_words_leave_out_verbs_that_name_tools(verb: str) -> None:
    assert verb not in STOP_WORDS


@pytest.mark.parametrize("text", ["the", "Пожалуйста", "ВСЁ", "的", "请帮我"])
def test_pieces_mark_function_words(text: str) -> None:
    assert all(piece.is_stop_word for piece in pieces(text, max_chars=100))


def test_pieces_look_at_the_beginning_only() -> None:
    assert [piece.original for piece in pieces("one two three", max_chars=7)] == ["one", "two"]


@given(st.text(max_size=200))
def test_pieces_of_any_text_are_plain_terms(text: str) -> None:
    for term in terms(text):
        assert term
        assert not any(char.isspace() for char in term)
        term.encode()
