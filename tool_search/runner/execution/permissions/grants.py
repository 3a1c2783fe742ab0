"""Grants of users: once, in a conversation, or always."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
from collections.abc import Collection
from pathlib import Path
from typing import Literal

from tool_search.errors import ConfigurationError
from tool_search.stores.base import Grant, GrantStore

__all__ = ["Grant", "GrantBook", "GrantFile", "GrantStore", "Scope"]

Scope = Literal["once", "conversation", "always"]
_log = logging.getLogger(__name__)


class GrantFile:
    """A JSON file of permanent grants, which older versions wrote.

    It is read and never written: `[{"rule": "send_mail", "user": "ann"}]`.

    Args:
        path: The file; `~` is expanded.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser()

    async def load(self) -> tuple[Grant, ...]:
        """Return the grants in the file; none if there is no file.

        Raises:
            ConfigurationError: The file cannot be read, or does not contain grants.
        """
        return (await self.content())[0]

    async def content(self) -> tuple[tuple[Grant, ...], str]:
        """Return the grants in the file, and a name that is unique to this content.

        Raises:
            ConfigurationError: The file cannot be read, or does not contain grants.
        """
        return await asyncio.to_thread(self._content)

    def _content(self) -> tuple[tuple[Grant, ...], str]:
        try:
            written = self.path.read_bytes()
            entries = json.loads(written)
            grants = tuple(Grant.from_dict({"rule": g["rule"], "user": g["user"]}) for g in entries)
        except FileNotFoundError:
            return (), ""
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as exc:
            raise ConfigurationError(
                f"permissions.grants: {self.path} cannot be read as grants: {exc}; "
                "fix or remove the file"
            ) from exc
        return grants, f"{self.path.resolve()} {hashlib.sha256(written).hexdigest()}"


class GrantBook:
    """The grants of a bot.

    They are in a store, so that all processes see them and they outlive the bot. While the
    store fails, none of its grants count, because they may have been revoked there; new
    grants count in this process and are written later.

    Args:
        store: The store; None: this process's memory, until `keep_in` names a store.
        file: The file of an older version; imported into the store once.

    Attributes:
        changes: The number of changes so far.
    """

    def __init__(self, store: GrantStore | None = None, *, file: GrantFile | None = None) -> None:
        self._store = store
        self._file = file
        self._revision: int | None = None
        self._kept: dict[Grant, None] = {}
        self._unwritten: dict[Grant, None] = {}
        self._unrevoked: dict[Grant, None] = {}
        self._is_failing = False
        self.changes = 0

    @property
    def entries(self) -> tuple[Grant, ...]:
        """The current grants as last read, oldest first."""
        kept = (g for g in self._kept if not _is_revoked(g, self._unrevoked))
        return tuple(dict.fromkeys((*kept, *self._unwritten)))

    def keep_in(self, store: object) -> None:
        """Keep grants in a bot's store from now on, unless there is a store already.

        Args:
            store: The bot's store; ignored if it does not support grants.
        """
        if self._store is None and isinstance(store, GrantStore):
            self._store = store

    async def read(self) -> None:
        """Read changes of other processes from the store; log a failure of the store."""
        try:
            await self._read_store()
            self._is_failing = False
        except Exception as exc:  # noqa: BLE001  # stores are pluggable: none may end a turn
            if not self._is_failing:
                _log.warning("grants_unavailable: users are asked again for now: %s", exc)
            self._is_failing = True
            self._set_kept({}, None)

    def holding(self, *, user: str | None, conversation: str) -> tuple[Grant, ...]:
        """Return the grants that count for a user in a conversation, oldest first.

        A grant of an unknown user counts only in its conversation: that user could be
        anybody.
        """
        return tuple(
            grant
            for grant in self.entries
            if grant.user == user
            and grant.conversation in (None, conversation)
            and (grant.user, grant.conversation) != (None, None)
        )

    def rules(self, *, user: str | None, conversation: str) -> tuple[str, ...]:
        """Return the granted rules that count for a user in a conversation."""
        held = self.holding(user=user, conversation=conversation)
        return tuple(dict.fromkeys(grant.rule for grant in held))

    async def add(self, *grants: Grant) -> None:
        """Add grants; while the store fails, they count in this process and are written later."""
        self._unwritten.update(dict.fromkeys(grants))
        self.changes += 1
        await self.read()

    async def revoke(self, grant: Grant) -> None:
        """Revoke a grant for all definitions, at once and in all processes.

        Raises:
            StoreError: The store fails: the revocation counts in this process, and in others
                when the store is back.
        """
        self._revoke_locally([grant])
        if self._store is not None:
            await self._write_pending(self._store)

    async def forget(self, conversation: str) -> None:
        """Revoke the grants of a conversation."""
        if gone := [grant for grant in self.entries if grant.conversation == conversation]:
            self._revoke_locally(gone)
            await self.read()

    async def _read_store(self) -> None:
        store = self._store
        if self._file is not None:
            await self._import_file(self._file, store)
        if store is None:
            return
        await self._write_pending(store)
        if await store.grant_revision() != self._revision:
            revision, entries = await store.load_grants()
            self._set_kept(dict.fromkeys(entries), revision)

    def _set_kept(self, kept: dict[Grant, None], revision: int | None) -> None:
        self.changes += kept != self._kept
        self._kept, self._revision = kept, revision

    def _revoke_locally(self, grants: Collection[Grant]) -> None:
        self._unwritten = {g: None for g in self._unwritten if not _is_revoked(g, grants)}
        self._kept = {g: None for g in self._kept if not _is_revoked(g, grants)}
        if self._store is not None:
            self._unrevoked.update(dict.fromkeys(grants))
        self.changes += 1

    async def _write_pending(self, store: GrantStore) -> None:
        """Write pending changes to the store, revocations first."""
        if revoked := tuple(self._unrevoked):
            await store.revoke_grants(revoked)
            self._unrevoked = {g: None for g in self._unrevoked if g not in revoked}
        if granted := tuple(self._unwritten):
            await store.add_grants(granted)
            # A grant that was revoked meanwhile has left `_unwritten`.
            self._kept.update((g, None) for g in granted if g in self._unwritten)
            self._unwritten = {g: None for g in self._unwritten if g not in granted}

    async def _import_file(self, file: GrantFile, store: GrantStore | None) -> None:
        """Import the grants of an older version's file; log a file that cannot be read."""
        try:
            grants, source = await file.content()
        except ConfigurationError as exc:
            _log.error("grants of an older version are not imported: %s", exc)
            grants, source = (), ""
        if store is None:
            self._unwritten = dict.fromkeys((*grants, *self._unwritten))
            self.changes += bool(grants)
        elif grants and await store.add_grants(grants, source=source):
            _log.warning(
                "%d grants of %s were imported into the store; the file can be removed",
                len(grants),
                file.path,
            )
        self._file = None


def _is_revoked(grant: Grant, by: Collection[Grant]) -> bool:
    return any(each.revokes(grant) for each in by)
