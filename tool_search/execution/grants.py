"""What users have granted: once, in a conversation, or always."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from tool_search.errors import ConfigurationError

__all__ = ["Grant", "GrantBook", "GrantFile", "GrantStore", "Scope"]

Scope = Literal["once", "conversation", "always"]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A rule that a user has allowed for himself.

    Attributes:
        rule: As in the settings: `tool`, `tool(pattern)`, `mcp__server__*`.
        user: Who granted it, and so for whom it holds; None: the bot's only user.
        conversation: Where; None: everywhere.
    """

    rule: str
    user: str | None = None
    conversation: str | None = None


class GrantStore(Protocol):
    """Keeps what was granted for always."""

    async def load(self) -> Iterable[Grant]:
        """All that is kept."""
        ...

    async def save(self, grants: Iterable[Grant]) -> None:
        """Keeps these, and nothing else."""
        ...


class GrantFile:
    """A JSON file: `[{"rule": "send_mail", "user": "ann"}]`.

    Args:
        path: Where it is; folders are made.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).expanduser()

    async def load(self) -> tuple[Grant, ...]:
        """What the file has; nothing where there is none.

        Raises:
            ConfigurationError: It cannot be read, or holds something else.
        """
        return await asyncio.to_thread(self._load)

    async def save(self, grants: Iterable[Grant]) -> None:
        """Writes the file anew, whole or not at all.

        Raises:
            OSError: It cannot be written.
        """
        kept = [{"rule": g.rule, "user": g.user} for g in grants if g.conversation is None]
        await asyncio.to_thread(self._save, json.dumps(kept, ensure_ascii=False, indent=1))

    def _load(self) -> tuple[Grant, ...]:
        try:
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            return tuple(Grant(rule=str(g["rule"]), user=g["user"]) for g in kept)
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, TypeError, KeyError) as exc:
            raise ConfigurationError(
                f"permissions.grants: {self._path} cannot be read as grants: {exc}; "
                "mend or remove the file"
            ) from exc

    def _save(self, content: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}.new")
        beside.write_text(content, encoding="utf-8")
        beside.replace(self._path)


class GrantBook:
    """The grants of a bot.

    Args:
        store: Keeps those for always; None: the process does.

    Attributes:
        changes: How often they have changed.
    """

    def __init__(self, store: GrantStore | None = None) -> None:
        self._store = store
        self._grants: dict[Grant, None] = {}
        self.changes = 0
        self._is_read = store is None

    @property
    def entries(self) -> tuple[Grant, ...]:
        """All grants that are known by now, oldest first."""
        return tuple(self._grants)

    async def read(self) -> None:
        """Reads what is kept, at the first call.

        What cannot be read is left alone: then grants hold until the bot ends.
        """
        if self._is_read or self._store is None:
            return
        self._is_read = True
        self.changes += 1
        try:
            self._grants = dict.fromkeys([*await self._store.load(), *self._grants])
        except (ConfigurationError, OSError) as exc:
            _log.error("grants are not saved this time: %s", exc)
            self._store = None

    def rules(self, *, user: str | None, conversation: str) -> tuple[str, ...]:
        """The rules that hold for a user in a conversation."""
        return tuple(
            grant.rule
            for grant in self._grants
            if grant.user == user and grant.conversation in (None, conversation)
        )

    async def add(self, grant: Grant) -> None:
        """Takes a grant in; one for always is kept, as far as it can be."""
        self._grants[grant] = None
        self.changes += 1
        if grant.conversation is None:
            await self._keep()

    async def revoke(self, grant: Grant) -> None:
        """Takes a grant back."""
        self._grants.pop(grant, None)
        self.changes += 1
        if grant.conversation is None:
            await self._keep()

    async def forget(self, conversation: str) -> None:
        """Takes back what was granted in a conversation."""
        kept = (grant for grant in self._grants if grant.conversation != conversation)
        self._grants = dict.fromkeys(kept)
        self.changes += 1

    async def _keep(self) -> None:
        if self._store is None:
            return
        try:
            await self._store.save(g for g in self._grants if g.conversation is None)
        except OSError:
            _log.exception("a grant could not be saved; it holds until the bot ends")
