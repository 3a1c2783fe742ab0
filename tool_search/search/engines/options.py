"""The arguments that every engine is built with."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tool_search.search.text.tokenizer import Segmenter, jieba_segmenter
from tool_search.search.vectors.embedder import Embedder, EmbeddingProgress
from tool_search.search.vectors.store import VectorStore

if TYPE_CHECKING:
    # Loading pydantic takes longer than indexing 1,000 tools.
    from tool_search.config.search import SearchSettings
    from tool_search.search.vectors.cache import VectorCache

__all__ = ["EngineOptions", "garbage_collection_off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Settings and parts of an engine.

    Attributes:
        segmenter: The name of the segmenter of Chinese: `builtin` or `jieba`.
        settings: The `search` section; None for the defaults.
        embedder: Replaces the embedder that the settings name.
        vector_cache: Replaces the vector cache that the settings name.
        vector_store: The store that searches vectors; None for one in memory.
        progress: Called while tools are embedded.
    """

    segmenter: str = "builtin"
    settings: SearchSettings | None = None
    embedder: Embedder | None = None
    vector_cache: VectorCache | None = None
    vector_store: VectorStore | None = None
    progress: EmbeddingProgress | None = None

    def load_segmenter(self) -> Segmenter | None:
        """Return the chosen segmenter; None for characters and bigrams.

        Raises:
            SearchError: jieba is chosen and not installed.
        """
        return jieba_segmenter() if self.segmenter == "jieba" else None


@contextmanager
def garbage_collection_off() -> Iterator[None]:
    """Pause the garbage collector, which would visit all new objects in vain."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
