"""The stored words of a query, their decay, and the bounds on evidence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search.search import learned
from tool_search.search.learned import (
    HALF_LIFE_S,
    MAX_PER_TOOL,
    Evidence,
    evidence_of,
    evidence_words,
    merge_evidence,
    select_evidence,
)

NOW = 2.0e9
WORDS = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4, unique=True)
EVIDENCE = st.builds(
    Evidence,
    tool=st.sampled_from(["t1", "t2", "t3"]),
    words=WORDS.map(lambda words: tuple(sorted(words))),
    at=st.floats(NOW - 10 * HALF_LIFE_S, NOW),
    strength=st.floats(0.1, 4.0),
)


def test_words_are_sorted_stems_without_function_words() -> None:
    assert evidence_words("Could you forecast the weathers of Berlin?") == (
        "berlin",
        "forecast",
        "weather",
    )


def test_chinese_is_kept_as_characters_and_pairs() -> None:
    assert set(evidence_words("查天气")) == {"查", "天", "气", "查天", "天气"}


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("call +49 30 1234567 now", {"call", "now"}),
        ("delete order 4711", {"delet", "order"}),
        ("ticket ABC123DEF", {"ticket", "abc", "def"}),
        ('mail "my secret plan" to her', {"mail"}),
        ("发送“绝密计划”邮件", {"发", "送", "发送", "邮", "件", "邮件"}),
        ("upload to s3 as mp4", {"upload", "s3", "mp4"}),
    ],
)
def test_numbers_and_quotations_are_not_kept(query: str, words: set[str]) -> None:
    """They are values of one person, not what a tool is for."""
    assert set(evidence_words(query)) == words


def test_a_long_query_is_kept_in_part() -> None:
    words = evidence_words(
        " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(500))
    )
    assert len(words) == 64
    assert all(len(word) <= 64 for word in evidence_words("x" * 100_000))


@pytest.mark.parametrize("query", ["", "!!!", "12345", '"quoted"', "\ud800", "🙂"])
def test_a_query_without_words_is_no_evidence(query: str) -> None:
    assert list(evidence_of(query, "t", now=NOW)) == []


def test_strength_halves_in_ninety_days() -> None:
    entry = Evidence(tool="t", words=("a",), at=NOW, strength=2.0)
    assert [entry.strength_at(NOW + n * 90 * 86_400) for n in range(3)] == [2.0, 1.0, 0.5]


def test_evidence_of_tomorrow_is_no_stronger() -> None:
    assert Evidence(tool="t", words=("a",), at=NOW + 60).strength_at(NOW) == 1.0


@given(EVIDENCE, st.floats(0, 1e9), st.floats(0, 1e9))
def test_strength_never_grows_with_time(entry: Evidence, first: float, more: float) -> None:
    assert entry.strength_at(NOW + first + more) <= entry.strength_at(NOW + first)


@given(st.lists(EVIDENCE), st.randoms())
def test_what_is_kept_is_bounded_and_the_strongest(entries: list[Evidence], chance: object) -> None:
    unique = list(merge_evidence((), entries).values())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learned, "MAX_EVIDENCE", 6)
        patch.setattr(learned, "MAX_PER_TOOL", 3)
        chosen = select_evidence(unique, NOW)
        assert select_evidence(reversed(unique), NOW) == chosen
    assert len(chosen) <= 6
    assert all([entry.tool for entry in chosen].count(name) <= 3 for name in ("t1", "t2", "t3"))
    strengths = [entry.strength_at(NOW) for entry in chosen]
    assert strengths == pytest.approx(sorted(strengths, reverse=True))


def test_no_tool_takes_the_place_of_all_others() -> None:
    busy = [Evidence(tool="busy", words=(f"w{n}",), at=NOW) for n in range(1_000)]
    rare = Evidence(tool="rare", words=("w",), at=NOW - HALF_LIFE_S)
    assert len(select_evidence([*busy, rare], NOW)) == MAX_PER_TOOL + 1
