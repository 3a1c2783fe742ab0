"""A linear map of meaning, learned from searches that led to a tool that was then called.

The similarity of a query q and a tool t is q·t; the map adds q·S·t, with S symmetric. S is the
minimum of a convex loss, so it depends on the evidence and on nothing else: the cross-entropy
of the called tool among all, with what is called often set apart as a prior, plus the square
of S, which holds it near 0. Constants are chosen in `benchmarks/learning.md`.

Source of the prior: Menon et al., "Long-tail learning via logit adjustment", ICLR 2021.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Sequence
from hashlib import shake_128
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tool_search.search.vectors.vectors import Matrix, Vector, normalize_rows

__all__ = ["LearnedMap", "from_texts", "to_text", "train_map"]

_TEMPERATURE = np.float32(0.05)
_HELD = np.float32(0.1)
_STEPS = 80
_BATCH = 1_024
# Wider vectors are mapped within the space of their main directions.
_MAX_WIDTH = 768
_RANK = 384
_POWERS = 8
_MAX_TOOLS = 1_500
_LARGEST = np.float32(127)
_GOLDEN = 0.6180339887498949


class LearnedMap(NamedTuple):
    """A learned change of similarities.

    Attributes:
        change: The symmetric matrix S.
        basis: The directions that S is about, as columns; None for all.
    """

    change: Matrix
    basis: Matrix | None = None

    @property
    def dimensions(self) -> int:
        """The width of the vectors that it maps."""
        return len(self.change if self.basis is None else self.basis)

    def moved(self, vector: Vector) -> Vector:
        """Return S·q: its product with a tool's vector is the change of their similarity."""
        # einsum and not BLAS, whose threads take 100 times as long where cores are busy.
        inner = vector if self.basis is None else np.einsum("ij,i->j", self.basis, vector)
        inner = np.einsum("ij,j->i", self.change, inner)
        result: Vector = inner if self.basis is None else np.einsum("ij,j->i", self.basis, inner)
        return result


def to_text(vector: Vector, embedder: str) -> str:
    """Return a vector as evidence keeps it, in 8 bits a number; empty if it is 0.

    Args:
        vector: The vector.
        embedder: The key of what made it.
    """
    largest = np.abs(vector).max(initial=0.0)
    if not 0 < largest < np.inf:
        return ""
    steps = np.round(vector * (_LARGEST / largest)).astype(np.int8)
    return embedder + binascii.b2a_base64(steps.tobytes(), newline=False).decode()


def from_texts(
    texts: Iterable[str], embedder: str, dimensions: int
) -> tuple[Matrix, NDArray[np.intp]]:
    """Return the vectors that `to_text` wrote, of unit length, and the places of their texts.

    What is no vector of this embedder is left out.
    """
    size, content = 4 * -(-dimensions // 3), bytearray()
    places = []
    for place, text in enumerate(texts):
        written = text.removeprefix(embedder)
        if written == text or len(written) != size:
            continue
        try:
            steps = binascii.a2b_base64(written)
        except ValueError:
            continue
        if len(steps) == dimensions and any(steps):
            content += steps
            places.append(place)
    if not places:
        return np.zeros((0, dimensions), np.float32), np.array(places, np.intp)
    rows = np.frombuffer(bytes(content), np.int8).reshape(-1, dimensions)
    return normalize_rows(rows.astype(np.float32)), np.array(places, np.intp)


def train_map(
    queries: Matrix, called: Sequence[int], weights: Sequence[float], tools: Matrix
) -> LearnedMap:
    """Return the map that a training with these searches ends with; the same for the same ones.

    Args:
        queries: The vectors of the queries, as rows.
        called: The row of the called tool of each query.
        weights: The weight of each query, from 0 to 1.
        tools: The vectors of the tools, as rows.
    """
    shares = np.asarray(weights, np.float32)
    tools, labels = _reduced(tools, np.asarray(called, np.intp))
    basis = None
    prior = np.log1p(np.bincount(labels, weights=shares, minlength=len(tools))).astype(np.float32)
    # Spread evenly, and without the import of `numpy.random`, which holds the interpreter.
    order = (np.arange(len(queries)) * _GOLDEN % 1.0).argsort()
    inner, inner_tools = queries, tools
    if queries.shape[1] > _MAX_WIDTH:
        basis = _main_directions(np.concatenate((queries, tools)))
        inner, inner_tools = queries @ basis, tools @ basis
    change = np.zeros((inner.shape[1],) * 2, np.float32)
    before = change
    step = 1.0 / (_HELD + _steepness(inner, shares))
    for number in range(_STEPS):
        first = number * _BATCH
        rows = order[np.arange(first, first + min(_BATCH, len(order))) % len(order)]
        # Accelerated by Nesterov's rule.
        ahead = change + (number / (number + 3.0)) * (change - before)
        logits = queries[rows] @ tools.T + inner[rows] @ ahead @ inner_tools.T
        logits = (logits / _TEMPERATURE + prior).astype(np.float32, copy=False)
        slope = _slope(logits, labels[rows], shares[rows]) @ inner_tools
        slope = inner[rows].T @ slope / (_TEMPERATURE * len(rows))
        before = change
        change = (ahead - step * (0.5 * (slope + slope.T) + _HELD * ahead)).astype(np.float32)
    return LearnedMap(change, basis)


def _slope(logits: Matrix, labels: NDArray[np.intp], shares: NDArray[np.float32]) -> Matrix:
    """Return the derivative of the loss by each logit."""
    chances: Matrix = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    chances[np.arange(len(labels)), labels] -= 1.0
    chances *= shares[:, None]
    return chances


def _reduced(tools: Matrix, labels: NDArray[np.intp]) -> tuple[Matrix, NDArray[np.intp]]:
    """Return the called tools and so many others that a training ends in time."""
    if len(tools) <= _MAX_TOOLS:
        return tools, labels
    kept, labels = np.unique(labels, return_inverse=True)
    others = np.setdiff1d(np.arange(len(tools)), kept)
    room = max(_MAX_TOOLS - len(kept), 0)
    chosen = others[np.linspace(0, len(others) - 1, room).astype(np.intp)]
    return tools[np.concatenate((kept, chosen))], labels


def _steepness(queries: Matrix, shares: NDArray[np.float32]) -> np.float32:
    """Return the largest curvature that the cross-entropy can have along a step."""
    vector = queries.sum(axis=0)
    for _ in range(_POWERS):
        vector = queries.T @ (shares * (queries @ vector))
        vector /= max(float(np.linalg.norm(vector)), 1e-12)
    largest = vector @ (queries.T @ (shares * (queries @ vector)))
    return np.float32(0.5 * largest / (_TEMPERATURE**2 * len(queries)))


def _main_directions(vectors: Matrix) -> Matrix:
    """Return the main directions of vectors, as columns.

    Source: N. Halko, P. Martinsson, J. Tropp, "Finding structure with randomness", 2011.
    """
    # Signs as good as random, the same everywhere.
    bits = np.frombuffer(shake_128(b"").digest(vectors.shape[1] * _RANK // 8), np.uint8)
    sketch: Matrix = (np.unpackbits(bits).reshape(-1, _RANK) * 2.0 - 1.0).astype(np.float32)
    for _ in range(2):
        sketch, _ = np.linalg.qr(vectors.T @ (vectors @ sketch))
    return sketch
