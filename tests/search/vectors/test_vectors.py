"""Vectors of texts: requests to an embedder, refused results, exact sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.search.word_embedder import WordEmbedder
from tool_search.errors import SearchError
from tool_search.search.vectors.vectors import (
    embed_texts,
    from_bytes,
    normalize_rows,
    round_components,
    to_bytes,
)


class Returning:
    """An embedder that returns one value for any texts."""

    identity = "returning"
    dimensions = 3

    def __init__(self, returned: Any) -> None:
        self._returned = returned

    def embed(self, texts: Sequence[str]) -> Any:
        """What it was given; an error is raised."""
        if isinstance(self._returned, Exception):
            raise self._returned
        return self._returned


def test_embedded_rows_have_unit_length() -> None:
    rows = embed_texts(Returning([[3, 4, 0], [0, 0, 9]]), ["a", "b"])
    assert rows.tolist() == [[pytest.approx(0.6), pytest.approx(0.8), 0], [0, 0, 1]]


def test_embedded_zero_vector_has_cosine_0_to_everything() -> None:
    rows = embed_texts(Returning([[0, 0, 0], [1, 2, 3]]), ["a", "b"])
    assert rows[0].tolist() == [0, 0, 0]
    assert float(rows[0] @ rows[1]) == 0


def test_embedded_huge_numbers_have_unit_length() -> None:
    rows = embed_texts(Returning([[3e30, 4e30, 0]]), ["a"])
    assert rows[0].tolist() == [pytest.approx(0.6), pytest.approx(0.8), 0]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([[1, 2, 3, 4]], r"\(1, 4\) numbers for 1 texts, and must return \(1, 3\)"),
        ([[1, 2, 3], [1, 2, 3]], r"\(2, 3\) numbers for 1 texts"),
        ([1, 2, 3], r"\(3,\) numbers"),
        ([[1, math.nan, 3]], "NaN or infinity"),
        ([[1, math.inf, 3]], "NaN or infinity"),
        ([[1, 2], [3]], "failed: ValueError"),
        (None, "failed: TypeError|returned"),
        (["text"], "failed: ValueError"),
        (RuntimeError("out of memory"), "failed: RuntimeError: out of memory"),
    ],
)
def test_embedded_says_what_is_wrong_with_an_embedder(returned: Any, message: str) -> None:
    with pytest.raises(SearchError, match=message) as caught:
        embed_texts(Returning(returned), ["a"])
    assert "'returning'" in str(caught.value)


def test_embedded_keeps_the_error_of_an_embedder_as_its_cause() -> None:
    cause = RuntimeError("gone")
    with pytest.raises(SearchError) as caught:
        embed_texts(Returning(cause), ["a"])
    assert caught.value.__cause__ is cause


def test_embedded_texts_without_letters_are_not_asked_for() -> None:
    """An embedder never gets an empty text; such a text is similar to nothing."""
    embedder = WordEmbedder()
    rows = embed_texts(embedder, ["", "?!", "mail", "\ud800"])
    assert embedder.asked == ["mail"]
    assert [bool(row.any()) for row in rows] == [False, False, True, False]


def test_embedded_long_texts_are_cut_and_surrogates_replaced() -> None:
    embedder = WordEmbedder()
    embed_texts(embedder, ["mail\udfff" * 100_000])
    assert len(embedder.asked[0]) == 2_000
    embedder.asked[0].encode()


_ROWS = st.lists(st.floats(-1, 1, width=32), min_size=24, max_size=24)


@settings(max_examples=50)
@given(first=_ROWS, second=_ROWS, order=st.permutations(range(24)))
def test_exact_products_add_up_the_same_in_any_order(
    first: list[float], second: list[float], order: list[int]
) -> None:
    one, other = round_components(normalize_rows(np.array([first, second], np.float32)))
    products = (one * other).astype(np.float32)
    assert sum(products[order], np.float32(0)) == sum(products, np.float32(0))
    assert float(one @ other) == math.fsum(products.tolist())


@given(_ROWS)
def test_exact_vectors_survive_being_written(row: list[float]) -> None:
    vector = round_components(normalize_rows(np.array([row], np.float32)))[0]
    again = from_bytes(to_bytes(vector), 24)
    assert again is not None
    assert again.tolist() == vector.tolist()


@pytest.mark.parametrize("content", [b"", b"\0" * 47, b"\xff\x7f" * 24])
def test_from_bytes_refuses_what_is_no_vector(content: bytes) -> None:
    assert from_bytes(content, 24) is None
