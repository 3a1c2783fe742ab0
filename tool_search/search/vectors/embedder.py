"""What makes vectors of texts, and how one is named in a configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tool_search.errors import SearchError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Embedder", "EmbeddingProgress", "load_embedder"]

EmbeddingProgress = Callable[[int, int], None]
"""Told how many of how many tools have their vectors, while these are made."""


@runtime_checkable
class Embedder(Protocol):
    """Makes a vector of a text, so that texts of one meaning have similar vectors.

    Deterministic: a text has one vector, whatever stands beside it in a batch. May
    raise: an index is then not built, or a search fails, with that error as the cause.
    May be called from several threads.
    """

    @property
    def identity(self) -> str:
        """Which model this is, with its version: vectors are kept under this name."""
        ...

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        ...

    def embed(self, texts: Sequence[str]) -> ArrayLike:
        """A matrix with a vector for each text, in their order; of any length.

        Args:
            texts: At least one, none of them empty, each of at most 2,000 characters.
        """
        ...


def load_embedder(reference: str | None) -> Embedder:
    """The embedder that a configuration names; the shipped one for None.

    Args:
        reference: `module:name`, an embedder or what makes one without an argument.

    Raises:
        SearchError: It cannot be imported or made, or is no embedder.
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
            f"search.embedder {reference!r} is no embedder: it needs identity, dimensions and "
            f"embed(texts), and is {made!r}"
        )
    return made


def _is_factory(found: object) -> bool:
    return isinstance(found, Callable) and not isinstance(found, Embedder)  # type: ignore[arg-type]
