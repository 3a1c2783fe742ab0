"""An embedder for tests: texts with words in common are similar, and no others."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from hashlib import blake2b
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tool_search.search.text.tokenizer import pieces

__all__ = ["FailingEmbedder", "NotingEmbedder", "WordEmbedder"]


class WordEmbedder:
    """An embedder that counts stems, each at a place of its own while there are places."""

    dimensions = 2_048

    def __init__(self, identity: str = "words") -> None:
        self.identity = identity
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A row for each text."""
        self.asked.extend(texts)
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for piece in pieces(text, max_chars=2_000):
                for word in () if piece.is_stop_word else piece.words:
                    row[_place(word, self.dimensions)] += 1.0
        return rows


class FailingEmbedder(WordEmbedder):
    """An embedder that fails once `is_broken` is set."""

    is_broken = False

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors, or an error."""
        if self.is_broken:
            raise RuntimeError("no memory left")
        return super().embed(texts)


class NotingEmbedder(WordEmbedder):
    """An embedder that settings may name; it records its texts and its threads."""

    texts: ClassVar[list[str]] = []
    threads: ClassVar[set[int]] = set()

    def __init__(self) -> None:
        super().__init__("noting")

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A row for each text."""
        self.texts.extend(texts)
        self.threads.add(threading.get_ident())
        return super().embed(texts)


def _place(word: str, places: int) -> int:
    return int.from_bytes(blake2b(word.encode(), digest_size=4).digest()) % places
