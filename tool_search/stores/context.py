"""The context manager of stores that are opened on demand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

__all__ = ["StoreContext"]


class StoreContext(ABC):
    """A store that is open within `async with`."""

    async def __aenter__(self) -> Self:
        """Open the store, so that a problem with it raises at once."""
        try:
            await self.evidence_revision()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @abstractmethod
    async def evidence_revision(self) -> int:
        """Return a number that changes with the evidence."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the store; it cannot be used again."""
