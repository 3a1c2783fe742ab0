"""Vectors of models that run in this process: sentence-transformers and fastembed.

The packages load a model from a folder or from the Hugging Face hub; both are extras.
Packages: sentence-transformers 5 or later (`encode_query`, `encode_document`), fastembed
0.7 or later (`query_embed`, `embed`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from tool_search.errors import SearchError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tool_search.config.search import EmbedderSettings

__all__ = ["FastembedEmbedder", "SentenceTransformersEmbedder"]

_BATCH = 64


class _LocalEmbedder:
    """An `Embedder` on a package; a model takes one call at a time."""

    is_local = True
    kind: str
    package: str

    def __init__(self, settings: EmbedderSettings) -> None:
        self._prefixes = settings.query_prefix, settings.document_prefix
        self._batch_size = settings.batch_size or _BATCH
        self._lock = Lock()
        try:
            module = import_module(self.package)
        except ImportError as exc:
            raise SearchError(
                f"search.embedder.kind {self.kind!r} needs the package {self.kind}: "
                f"pip install 'tool-search-middleware[{self.kind}]'; in a clone: "
                f"pip install '.[{self.kind}]'"
            ) from exc
        try:
            self._load(module, settings.model)
        except Exception as exc:
            raise SearchError(
                f"the model {settings.model!r} cannot be loaded by {self.kind}: "
                f"{type(exc).__name__}: {exc}"
            ) from exc
        self.identity = f"{self.kind} {_release(self.kind)} {settings.model} {self._prefixes!r}"
        self.dimensions = settings.dimensions or self._measure()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts of tools; see `Embedder.embed`."""
        with self._lock:
            return self._encode([self._prefixes[1] + text for text in texts], is_query=False)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of queries; see `Embedder.embed`."""
        with self._lock:
            return self._encode([self._prefixes[0] + text for text in texts], is_query=True)

    def _measure(self) -> int:
        return int(self.embed(["size"]).shape[1])

    def _load(self, module: Any, model: str) -> None:
        raise NotImplementedError

    def _encode(self, texts: list[str], *, is_query: bool) -> NDArray[np.float32]:
        raise NotImplementedError


class SentenceTransformersEmbedder(_LocalEmbedder):
    """An `Embedder` on sentence-transformers.

    A model's own prompts for queries and documents are used.

    Args:
        settings: The `embedder` section.

    Raises:
        SearchError: The package is not installed, or the model cannot be loaded.
    """

    kind, package = "sentence-transformers", "sentence_transformers"

    def _load(self, module: Any, model: str) -> None:
        self._model: Any = module.SentenceTransformer(model)

    def _encode(self, texts: list[str], *, is_query: bool) -> NDArray[np.float32]:
        encode: Callable[..., Any] = (
            self._model.encode_query if is_query else self._model.encode_document
        )
        rows = encode(
            texts, batch_size=self._batch_size, show_progress_bar=False, convert_to_numpy=True
        )
        return np.asarray(rows, np.float32)


class FastembedEmbedder(_LocalEmbedder):
    """An `Embedder` on fastembed, which runs models by ONNX Runtime.

    Args:
        settings: The `embedder` section.

    Raises:
        SearchError: The package is not installed, or the model cannot be loaded.
    """

    kind, package = "fastembed", "fastembed"

    def _load(self, module: Any, model: str) -> None:
        # More threads make one sentence slower on a busy machine, and the model is shared.
        self._model: Any = module.TextEmbedding(model_name=model, threads=1)

    def _encode(self, texts: list[str], *, is_query: bool) -> NDArray[np.float32]:
        if is_query:
            rows = list(self._model.query_embed(texts))
        else:
            rows = list(self._model.passage_embed(texts, batch_size=self._batch_size))
        return np.asarray(rows, np.float32)


def _release(package: str) -> str:
    """Return the version, which is part of a vector's identity."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
