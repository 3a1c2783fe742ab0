"""Requests of several sentences: the whole, and the best sentence for each tool."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.search.word_embedder import WordEmbedder
from tool_search import SearchSettings, Tool, ToolSearchIndex, build_index
from tool_search.search.engines.script_scores import with_best
from tool_search.search.index.ranking import RankedIndex
from tool_search.search.index.storage import sum_impacts
from tool_search.search.text.query import query_sentences
from tool_search.search.text.scripts import OTHER, ToolScripts

TOOLS = (
    Tool(name="convert_currency", description="Converts an amount to another currency."),
    *(
        Tool(name=f"hotel_{part}", description=f"Hotel and room {part}: guests, city, nights.")
        for part in ("search", "booking", "reviews", "prices", "photos", "contacts", "offers")
    ),
)
REQUEST = (
    "We look for a hotel in the city with a room for four guests and three nights. The hotel room "
    "needs photos, reviews, prices and offers of the city. Guests stay three nights in the hotel. "
    "Oh, and convert some currency."
)


_NUMBERS = count()


class CountingEmbedder(WordEmbedder):
    """An embedder that counts its calls."""

    def __init__(self) -> None:
        # Equal tools and embedders share an index, and an index keeps recent vectors.
        super().__init__(f"counting {next(_NUMBERS)}")
        self.batches: list[int] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A row for each text."""
        self.batches.append(len(texts))
        return super().embed(texts)


def built(engine: str, embedder: WordEmbedder | None = None) -> ToolSearchIndex:
    """An index over the tools."""
    chosen = SearchSettings(engine=engine, vector_cache=None)
    given = None if engine == "bm25" else embedder or WordEmbedder()
    return build_index(TOOLS, chosen, embedder=given)


@pytest.mark.parametrize("engine", ["bm25", "hybrid"])
def test_wish_in_passing_is_not_crowded_out(engine: str) -> None:
    found = [match.name for match in built(engine).search(REQUEST, limit=5).matches]
    assert "convert_currency" in found


@pytest.mark.parametrize("engine", ["bm25", "hybrid"])
def test_repeated_word_of_a_query_counts_once(engine: str) -> None:
    index = built(engine)
    once, often = (
        [match.name for match in index.search(query, limit=9).matches]
        for query in ("convert hotel photos", "hotel convert hotel photos hotel")
    )
    assert once[0] == often[0]
    assert set(once) == set(often)


@pytest.mark.parametrize(
    ("query", "sentences"),
    [
        ("Find a hotel in Paris", 0),
        ("Find a cheap hotel. Then book a room by the sea.", 2),
        ("查询明天的天气。然后预订一张火车票！", 2),
        ("Найди отель в Париже. Потом забронируй один номер!", 2),
        ("Open app.py and v1.2.3 of the file", 0),
        ("Hi! Thanks. Find a cheap hotel room", 0),
        ("1. search the hotel rooms\n2. convert money into yen", 2),
        ("", 0),
    ],
)
def test_sentences_of_a_query(query: str, sentences: int) -> None:
    assert len(query_sentences(query)) == sentences


def test_sentence_that_is_written_twice_is_scored_once() -> None:
    assert query_sentences("Find a cheap hotel. Find a cheap hotel.") == ()


@pytest.mark.parametrize("engine", ["bm25", "semantic", "hybrid"])
def test_request_of_200_sentences_is_answered(engine: str) -> None:
    embedder = CountingEmbedder()
    index = built(engine, embedder)
    embedder.batches.clear()
    request = " ".join(f"Sentence {number} wants a hotel room." for number in range(200))
    found = index.search(request, limit=5)
    assert found.matches[0].name.startswith("hotel_")
    assert all(size <= 25 for size in embedder.batches)


@pytest.mark.parametrize("engine", ["bm25", "hybrid"])
@pytest.mark.parametrize("place", [0, 5, 60, 100, 150, 199])
def test_wish_among_200_sentences_is_found(engine: str, place: int) -> None:
    sentences = [f"We walked {number} miles past the mill in the rain." for number in range(200)]
    sentences[place] = "Please convert an amount to another currency."
    found = built(engine).search(" ".join(sentences), limit=5).matches
    assert "convert_currency" in [match.name for match in found]


@pytest.mark.parametrize("pasted", ["hotel room guests night. ", "hotel, room, guests, night, "])
def test_wish_before_or_after_a_very_long_text_is_found(pasted: str) -> None:
    wish = "Convert some currency for me. "
    for request in (wish + pasted * 4_000, pasted * 4_000 + ". " + wish):
        found = built("bm25").search(request, limit=8).matches
        assert "convert_currency" in [match.name for match in found]


@pytest.mark.parametrize("engine", ["semantic", "hybrid"])
def test_all_texts_of_a_search_are_embedded_in_one_batch(engine: str) -> None:
    embedder = CountingEmbedder()
    index = built(engine, embedder)
    embedder.batches.clear()
    index.search([REQUEST, "convert money"], limit=5)
    assert embedder.batches == [6]


def test_best_sentence_is_part_of_the_explanation() -> None:
    index = built("bm25")
    assert isinstance(index, RankedIndex)
    (found,) = index.explain(REQUEST, ["convert_currency"])
    assert sum(word.share for word in found.reasons.words) == pytest.approx(found.sum, abs=1e-5)
    assert {word.word for word in found.reasons.words} == {"convert", "currency"}


@given(
    st.lists(st.lists(st.integers(0, 19), unique=True), min_size=1, max_size=5),
    st.lists(st.sets(st.integers(0, 4), min_size=1), min_size=1, max_size=3),
)
def test_best_sentence_adds_the_same_in_lists_and_arrays(
    documents: list[list[int]], sentences: list[set[int]]
) -> None:
    weighted = [
        (array("d", [doc_id + 0.25 for doc_id in sorted(own)]), 1.0 + place)
        for place, own in enumerate(documents)
        if own
    ]
    parts = [[place for place in sorted(own) if place < len(weighted)] for own in sentences]
    scripts = ToolScripts(bytes([OTHER] * 20))
    whole = list(sum_impacts(weighted, 20))
    listed = with_best(whole.copy(), weighted, parts, scripts)
    assert list(with_best(np.array(whole), weighted, parts, scripts)) == pytest.approx(listed)
    sums = [
        [
            sum(weighted[place][1] / 4 for place in part if doc_id + 0.25 in weighted[place][0])
            for part in parts
        ]
        for doc_id in range(20)
    ]
    expected = [
        own + max(sums[doc_id]) if own >= max(whole) / 8 else own
        for doc_id, own in enumerate(whole)
    ]
    assert listed == pytest.approx(expected)
