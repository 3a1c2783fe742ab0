"""The vector store in memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tool_search.search.vectors.store import ExactVectorStore, VectorStore
from tool_search.search.vectors.vectors import normalize_rows, round_components

_IDS = [f"tool_{number}" for number in range(12)]


def vector(*numbers: float) -> NDArray[np.float32]:
    """A unit vector of these proportions."""
    found: NDArray[np.float32] = round_components(normalize_rows(np.array([numbers], np.float32)))[
        0
    ]
    return found


def filled(*names: str) -> ExactVectorStore:
    """A store in which every id has the same vector."""
    return ExactVectorStore().updated(added={name: vector(1, 0) for name in names}, removed=())


def test_search_orders_by_similarity_and_maps_back_to_ids() -> None:
    store: VectorStore = ExactVectorStore().updated(
        added={"far": vector(0, 1), "near": vector(1, 0), "between": vector(1, 1)}, removed=()
    )
    found = store.search(vector(1, 0), limit=2)
    assert found == [("near", 1.0), ("between", pytest.approx(0.7071, abs=1e-3))]


def test_search_orders_equal_ones_by_id_at_the_cut_too() -> None:
    """The choice among ties at the limit does not depend on their order."""
    store = filled("c", "a", "d", "b")
    assert [name for name, _ in store.search(vector(1, 0), limit=2)] == ["a", "b"]


@pytest.mark.parametrize("limit", [0, -1])
def test_search_limit_of_nothing_finds_nothing(limit: int) -> None:
    assert filled("a").search(vector(1, 0), limit=limit) == []


def test_search_empty_store_finds_nothing() -> None:
    assert ExactVectorStore().search(vector(1, 0), limit=3) == []


def test_updated_leaves_the_old_store_as_it_was() -> None:
    store = filled("a", "b")
    store.updated(added={"a": vector(0, 1), "c": vector(1, 0)}, removed=["b"])
    assert store.search(vector(1, 0), limit=9) == [("a", 1.0), ("b", 1.0)]


def test_updated_removes_nothing_that_is_added_too() -> None:
    store = filled("a").updated(added={"a": vector(0, 1)}, removed=["a", "unknown"])
    assert store.search(vector(0, 1), limit=9) == [("a", 1.0)]


_CHANGES = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(_IDS), st.integers(0, 6)), st.sets(st.sampled_from(_IDS))
    ),
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(changes=_CHANGES, limit=st.integers(1, 14))
def test_search_finds_as_sorting_everything_would(
    changes: list[tuple[dict[str, int], set[str]]], limit: int
) -> None:
    """This holds for any history of a store, reused places included."""
    store, kept = ExactVectorStore(), dict[str, NDArray[np.float32]]()
    for angles, removed in changes:
        added = {name: vector(angle, 6 - angle, -1) for name, angle in angles.items()}
        store = store.updated(added=added, removed=removed)
        kept = {name: row for name, row in kept.items() if name not in removed} | added
    asked = vector(2, 3, -1)
    expected = sorted(
        ((n, float(row @ asked)) for n, row in kept.items()), key=lambda i: (-i[1], i[0])
    )
    assert store.search(asked, limit=limit) == expected[:limit]
    assert len(store) == len(kept)


def test_search_many_vectors_that_came_in_parts() -> None:
    rows = {f"tool_{n:04}": vector(n, 2_500 - n, 1) for n in range(2_500)}
    names, store = list(rows), ExactVectorStore()
    for start, stop in ((0, 1_000), (1_000, 2_200), (2_200, 2_500)):
        store = store.updated(added={n: rows[n] for n in names[start:stop]}, removed=())
    asked = vector(1, 1, 0)
    expected = sorted(((n, float(row @ asked)) for n, row in rows.items()), key=_by_similarity)
    assert store.search(asked, limit=50) == expected[:50]


def _by_similarity(found: tuple[str, float]) -> tuple[float, str]:
    return -found[1], found[0]
