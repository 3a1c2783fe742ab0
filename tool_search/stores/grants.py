"""Grants of a store, over four primitives.

A grant is stored as JSON; one with fields that this version does not know is skipped.
"""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tool_search.errors import StoreError
from tool_search.stores.base import Grant, KeptGrants
from tool_search.stores.sections import Revision, Sections, as_number

__all__ = ["StoredGrants", "read_grant", "read_grants"]

_MAX_TRIES = 50
_log = logging.getLogger(__name__)


class StoredGrants(Sections, ABC):
    """The grants of a store; a store has `GrantStore` by it."""

    @abstractmethod
    async def _grant_revision(self) -> Revision:
        """Return a number that changes with the grants."""

    @abstractmethod
    async def _grants(self) -> tuple[Revision, Sequence[str | bytes]]:
        """Return the revision, and the texts of all grants, oldest first."""

    @abstractmethod
    async def _add_grants(self, grants: Mapping[str, Grant], source: str | None) -> bool:
        """Keep grants by their texts; those that are there stay as they are.

        Returns:
            False, with nothing kept, if the source was accepted before.
        """

    @abstractmethod
    async def _erase_grants(self, revision: Revision, texts: Sequence[str | bytes]) -> bool:
        """Erase grants by their texts; return False if the revision differs."""

    async def grant_revision(self) -> int:
        """Return a number that changes with the grants."""
        return as_number(await self._section(self._grant_revision, "read")) or 0

    async def load_grants(self) -> KeptGrants:
        """Return the grants that can be read, oldest first."""
        revision, texts = await self._section(self._grants, "read")
        return KeptGrants(as_number(revision) or 0, tuple(read_grants(texts).values()))

    async def add_grants(self, grants: Sequence[Grant], *, source: str | None = None) -> bool:
        """Add grants; accept each source once."""
        # Canonical JSON in ASCII, which identifies a grant.
        texts = {json.dumps(grant.to_dict(), sort_keys=True): grant for grant in grants}
        return await self._section(partial(self._add_grants, texts, source), "write")

    async def revoke_grants(self, grants: Sequence[Grant]) -> int:
        """Revoke grants for all definitions; return the number of revoked grants."""

        def is_revoked(known: Grant) -> bool:
            return any(grant.revokes(known) for grant in grants)

        return await self._section(partial(self._erase_grants_that, is_revoked), "durable")

    async def _erase_grants_that(self, is_erased: Callable[[Grant], bool]) -> int:
        """Erase the grants that a function selects; return their number."""
        for _ in range(_MAX_TRIES):
            revision, texts = await self._grants()
            gone = [text for text, grant in read_grants(texts).items() if is_erased(grant)]
            if not gone or await self._erase_grants(revision, gone):
                return len(gone)
        raise StoreError(
            "the grants are changed by other processes all the time; try again", fault="locked"
        )


def read_grant(text: str | bytes) -> Grant | None:
    """Return the grant of a stored text, or None if it cannot be read."""
    try:
        return Grant.from_dict(json.loads(text))
    except (ValueError, TypeError, AttributeError, RecursionError) as exc:
        _log.error("a stored grant cannot be read; it is skipped: %s", exc)
        return None


def read_grants(texts: Sequence[str | bytes]) -> dict[str | bytes, Grant]:
    """Return the grants that can be read by their texts."""
    grants = ((text, read_grant(text)) for text in texts)
    return {text: grant for text, grant in grants if grant is not None}
