"""The protocol of an embedder, and loading one by the name in a configuration."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tool_search.errors import SearchError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tool_search.config.search import EmbedderSettings

__all__ = ["Embedder", "EmbeddingError", "EmbeddingProgress", "load_embedder"]

# Adapters are a higher layer, and import other packages: they are loaded when chosen.
_KINDS: Mapping[str, str] = {
    "openai": "tool_search.adapters.embeddings.openai:build",
    "sentence-transformers": "tool_search.adapters.embeddings.local:SentenceTransformersEmbedder",
    "fastembed": "tool_search.adapters.embeddings.local:FastembedEmbedder",
}
_lock = Lock()
_by_settings: dict[EmbedderSettings, Embedder] = {}

EmbeddingProgress = Callable[[int, int], None]
"""Called with the number of embedded tools and the number of tools to embed."""


class EmbeddingError(SearchError):
    """The failure of an embedder.

    Attributes:
        is_passing: True if another try may help, as after a rate limit.
        retry_after_s: The seconds to wait before it; None if the service names none.
    """

    def __init__(
        self, message: str, *, is_passing: bool = False, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.is_passing = is_passing
        self.retry_after_s = retry_after_s


@runtime_checkable
class Embedder(Protocol):
    """Makes a vector of a text, so that texts of one meaning have similar vectors.

    Deterministic: the vector of a text does not depend on the rest of its batch. May raise, as
    an `EmbeddingError` if another try may help: `hybrid` then searches by words, `semantic`
    fails with that error as the cause. May be called from several threads.

    `embed` may be a coroutine function; it runs on an event loop of its own, the same one for
    each call. Two parts are optional: `embed_queries`, with the same arguments, for models
    that embed queries differently, and `is_local`, True if it never waits for a network and
    needs no thread that can be left alone.
    """

    @property
    def identity(self) -> str:
        """The model with its version: vectors are cached under this name."""
        ...

    @property
    def dimensions(self) -> int:
        """The number of components of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> ArrayLike | Awaitable[ArrayLike]:
        """Return a matrix with one row for each text, in their order; of any length.

        Args:
            texts: At least one text, none of them empty, each of at most 2,000 characters.
        """
        ...


def load_embedder(reference: str | EmbedderSettings | None) -> Embedder:
    """Return the embedder that a configuration names; the shipped one for None.

    Args:
        reference: The `embedder` section, or `module:name` of an embedder, or of a class or
            function that makes one without an argument. A section has one embedder in a
            process, which all indexes share.

    Raises:
        SearchError: It cannot be imported or made, or is not an embedder.
        ConfigurationError: The section cannot be followed.
    """
    if reference is None:
        from tool_search.search.vectors.universal_sentence_encoder import (  # noqa: PLC0415 - numpy
            universal_sentence_encoder,
        )

        return universal_sentence_encoder()
    if not isinstance(reference, str):
        return _load_kind(reference)
    module, _, name = reference.partition(":")
    try:
        found = getattr(import_module(module), name)
        made: object = found() if isinstance(found, type) or _is_factory(found) else found
    except Exception as exc:
        raise SearchError(
            f"search.embedder {reference!r} cannot be loaded: {type(exc).__name__}: {exc}"
        ) from exc
    if not isinstance(made, Embedder):
        raise SearchError(
            f"search.embedder {reference!r} is not an Embedder: it must have identity, dimensions "
            f"and embed(texts), and is {made!r}"
        )
    return made


def _load_kind(settings: EmbedderSettings) -> Embedder:
    """Return the embedder of a section; the same one for equal sections."""
    with _lock:
        known = _by_settings.get(settings)
        if known is None:
            module, _, name = _KINDS[settings.kind].partition(":")
            try:
                build = getattr(import_module(module), name)
            except ImportError as exc:
                raise SearchError(f"search.embedder cannot be loaded: {exc}") from exc
            known = _by_settings[settings] = build(settings)
        return known


def _is_factory(found: object) -> bool:
    return isinstance(found, Callable) and not isinstance(found, Embedder)  # type: ignore[arg-type]
