"""The protocol of an embedder, and loading one by the name in a configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tool_search.errors import SearchError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Embedder", "EmbeddingProgress", "load_embedder"]

EmbeddingProgress = Callable[[int, int], None]
"""Called with the number of embedded tools and the number of tools to embed."""


@runtime_checkable
class Embedder(Protocol):
    """Makes a vector of a text, so that texts of one meaning have similar vectors.

    Deterministic: the vector of a text does not depend on the rest of its batch. May raise: an
    index is then not built, or a search fails, with that error as the cause. May be called
    from several threads.
    """

    @property
    def identity(self) -> str:
        """The model with its version: vectors are cached under this name."""
        ...

    @property
    def dimensions(self) -> int:
        """The number of components of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> ArrayLike:
        """Return a matrix with one row for each text, in their order; of any length.

        Args:
            texts: At least one text, none of them empty, each of at most 2,000 characters.
        """
        ...


def load_embedder(reference: str | None) -> Embedder:
    """Return the embedder that a configuration names; the shipped one for None.

    Args:
        reference: `module:name` of an embedder, or of a class or function that makes one
            without an argument.

    Raises:
        SearchError: It cannot be imported or made, or is not an embedder.
    """
    if reference is None:
        from tool_search.search.vectors.universal_sentence_encoder import (  # noqa: PLC0415 - numpy
            universal_sentence_encoder,
        )

        return universal_sentence_encoder()
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


def _is_factory(found: object) -> bool:
    return isinstance(found, Callable) and not isinstance(found, Embedder)  # type: ignore[arg-type]
