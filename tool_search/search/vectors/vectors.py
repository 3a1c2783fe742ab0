"""Vectors of texts: checked, of unit length, and exact in sums.

Components are multiples of 2**-11. The product of two is a multiple of 2**-22, and a sum of
products of two unit vectors stays in the range in which single precision holds all of
these: a similarity is exact, the same in any order of adding, on any machine.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tool_search.errors import SearchError
from tool_search.search.vectors.embedder import Embedder

__all__ = [
    "Matrix",
    "Vector",
    "embed_texts",
    "from_bytes",
    "normalize_rows",
    "round_components",
    "to_bytes",
]

Vector: TypeAlias = NDArray[np.float32]
"""One vector, of unit length or all 0."""
Matrix: TypeAlias = NDArray[np.float32]
"""Vectors as rows."""

_MAX_TEXT_CHARS = 2_000
_STEPS = np.float32(2048)


def embed_texts(embedder: Embedder, texts: Sequence[str]) -> Matrix:
    """Return unit vectors of the texts, in their order.

    The vector of a text without letter or digit is 0.

    Args:
        embedder: Makes the vectors.
        texts: Texts of any length; the first 2,000 characters of each count.

    Raises:
        SearchError: The embedder failed, or did not return a matrix of finite numbers with
            a row for each text and its `dimensions`.
    """
    cleaned = [text[:_MAX_TEXT_CHARS].encode("utf-8", "replace").decode("utf-8") for text in texts]
    filled = [place for place, text in enumerate(cleaned) if any(map(str.isalnum, text))]
    matrix = np.zeros((len(texts), embedder.dimensions), np.float32)
    if filled:
        matrix[filled] = normalize_rows(
            _call_embedder(embedder, [cleaned[place] for place in filled])
        )
    return matrix


def _call_embedder(embedder: Embedder, texts: Sequence[str]) -> Matrix:
    try:
        matrix: Matrix = np.asarray(embedder.embed(texts), dtype=np.float32)
    except (Exception, CancelledError, SystemExit) as exc:
        # Neither of the last two may end a turn: the embedder's own task was cancelled.
        raise SearchError(
            f"the embedder {embedder.identity!r} failed: {type(exc).__name__}: {exc}"
        ) from exc
    wanted = (len(texts), embedder.dimensions)
    if matrix.shape != wanted:
        raise SearchError(
            f"the embedder {embedder.identity!r} returned {matrix.shape} numbers for "
            f"{len(texts)} texts, and must return {wanted}: a row for each, of its dimensions"
        )
    if not np.isfinite(matrix).all():
        raise SearchError(
            f"the embedder {embedder.identity!r} returned a vector with NaN or infinity"
        )
    return matrix


def normalize_rows(matrix: Matrix) -> Matrix:
    """Return the rows, each divided by its length; rows of 0 stay."""
    # Scaled first: the square of a large number overflows single precision.
    largest = np.abs(matrix).max(axis=1, keepdims=True, initial=0.0)
    scaled = matrix / np.where(largest > 0, largest, 1.0)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    rows: Matrix = (scaled / np.where(lengths > 0, lengths, 1.0)).astype(np.float32, copy=False)
    return rows


def round_components(matrix: Matrix) -> Matrix:
    """Return the rows with each component rounded to a multiple of 2**-11."""
    rows: Matrix = (np.round(matrix * _STEPS) / _STEPS).astype(np.float32, copy=False)
    return rows


def to_bytes(vector: Vector) -> bytes:
    """Return a rounded vector as bytes, two for each component."""
    return (vector * _STEPS).astype("<i2").tobytes()


def from_bytes(content: bytes, dimensions: int) -> Vector | None:
    """Return the vector that `to_bytes` wrote, or None if the bytes are not one."""
    if len(content) != 2 * dimensions:
        return None
    steps = np.frombuffer(content, "<i2")
    if np.abs(steps.astype(np.int32)).max(initial=0) > _STEPS:
        return None
    vector: Vector = steps.astype(np.float32) / _STEPS
    return vector
