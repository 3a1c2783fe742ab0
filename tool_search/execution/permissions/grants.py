"""What users have granted: once, in a conversation, or always."""

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
    """A JSON file of grants for always, as bots kept them before stores did.

    It is read and never written: `[{"rule": "send_mail", "user": "ann"}]`.

    Args:
        path: Where it is.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser()

    async def load(self) -> tuple[Grant, ...]:
        """Return what the file has; nothing if there is none.

        Raises:
            ConfigurationError: It cannot be read, or holds something else.
        """
        return (await self.content())[0]

    async def content(self) -> tuple[tuple[Grant, ...], str]:
        """Return what the file has, and a name that is this content's alone.

        Raises:
            ConfigurationError: It cannot be read, or holds something else.
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
                "mend or remove the file"
            ) from exc
        return grants, f"{self.path.resolve()} {hashlib.sha256(written).hexdigest()}"


class GrantBook:
    """The grants of a bot.

    They are kept in a store, so that all processes see them and they outlive the bot.
    While the store fails, nothing that it keeps is granted, for it may have been revoked
    there; what is granted meanwhile holds in this process and is kept later.

    Args:
        store: Keeps them; None: the process does, until `keep_in` names a store.
        file: Where an older version kept them; taken into the store once.

    Attributes:
        changes: How often they have changed.
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
        """The grants that hold, as far as they are known by now, oldest first."""
        kept = (g for g in self._kept if not _is_revoked(g, self._unrevoked))
        return tuple(dict.fromkeys((*kept, *self._unwritten)))

    def keep_in(self, store: object) -> None:
        """Keep grants in a bot's store from now on, unless there is a store already.

        Args:
            store: One that keeps no grants leaves them with the process.
        """
        if self._store is None and isinstance(store, GrantStore):
            self._store = store

    async def read(self) -> None:
        """Follow the store: what another process granted or revoked counts from here on."""
        try:
            await self._read()
            self._is_failing = False
        except Exception as exc:  # noqa: BLE001  # stores are pluggable: none may end a turn
            if not self._is_failing:
                _log.warning("grants_unavailable: what is not granted anew is asked: %s", exc)
            self._is_failing = True
            self._know({}, None)

    def holding(self, *, user: str | None, conversation: str) -> tuple[Grant, ...]:
        """Return the grants that hold for a user in a conversation, oldest first.

        A grant of a user that the bot does not know holds in its conversation alone: it
        could be anybody's.
        """
        return tuple(
            grant
            for grant in self.entries
            if grant.user == user
            and grant.conversation in (None, conversation)
            and (grant.user, grant.conversation) != (None, None)
        )

    def rules(self, *, user: str | None, conversation: str) -> tuple[str, ...]:
        """Return the rules that hold for a user in a conversation."""
        held = self.holding(user=user, conversation=conversation)
        return tuple(dict.fromkeys(grant.rule for grant in held))

    async def add(self, *grants: Grant) -> None:
        """Take grants in; while the store fails they hold in this process, and are kept later."""
        self._unwritten.update(dict.fromkeys(grants))
        self.changes += 1
        await self.read()

    async def revoke(self, grant: Grant) -> None:
        """Take a grant back, of whichever definition, at once and in all processes.

        Raises:
            StoreError: The store fails: this process knows, the others will as soon as the
                store is back.
        """
        self._take_back([grant])
        if self._store is not None:
            await self._catch_up(self._store)

    async def forget(self, conversation: str) -> None:
        """Take back what was granted in a conversation."""
        if gone := [grant for grant in self.entries if grant.conversation == conversation]:
            self._take_back(gone)
            await self.read()

    async def _read(self) -> None:
        store = self._store
        if self._file is not None:
            await self._take_in(self._file, store)
        if store is None:
            return
        await self._catch_up(store)
        if await store.grant_revision() != self._revision:
            revision, entries = await store.load_grants()
            self._know(dict.fromkeys(entries), revision)

    def _know(self, kept: dict[Grant, None], revision: int | None) -> None:
        self.changes += kept != self._kept
        self._kept, self._revision = kept, revision

    def _take_back(self, grants: Collection[Grant]) -> None:
        self._unwritten = {g: None for g in self._unwritten if not _is_revoked(g, grants)}
        self._kept = {g: None for g in self._kept if not _is_revoked(g, grants)}
        if self._store is not None:
            self._unrevoked.update(dict.fromkeys(grants))
        self.changes += 1

    async def _catch_up(self, store: GrantStore) -> None:
        """Write what the store does not have yet, revocations first."""
        if revoked := tuple(self._unrevoked):
            await store.revoke_grants(revoked)
            self._unrevoked = {g: None for g in self._unrevoked if g not in revoked}
        if granted := tuple(self._unwritten):
            await store.add_grants(granted)
            # What was taken back meanwhile is no more among the unwritten.
            self._kept.update((g, None) for g in granted if g in self._unwritten)
            self._unwritten = {g: None for g in self._unwritten if g not in granted}

    async def _take_in(self, file: GrantFile, store: GrantStore | None) -> None:
        """Take over what an older version kept in a file; what cannot be read is named."""
        try:
            grants, source = await file.content()
        except ConfigurationError as exc:
            _log.error("no grants of an older version are taken over: %s", exc)
            grants, source = (), ""
        if store is None:
            self._unwritten = dict.fromkeys((*grants, *self._unwritten))
            self.changes += bool(grants)
        elif grants and await store.add_grants(grants, source=source):
            _log.warning(
                "%d grants of %s are in the store now; the file is read no more and can be removed",
                len(grants),
                file.path,
            )
        self._file = None


def _is_revoked(grant: Grant, by: Collection[Grant]) -> bool:
    return any(each.revokes(grant) for each in by)
