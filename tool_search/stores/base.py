"""Protocols of stores: conversations, and optionally evidence, grants and modes.

A store must keep conversations. The other protocols are optional: data that the store does
not support stays in this process's memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple, Protocol, runtime_checkable

from tool_search.core.discoveries import Discovery
from tool_search.search.learned import Evidence
from tool_search.stores.record import ConversationRecord

__all__ = [
    "ConversationKey",
    "ConversationStore",
    "EvidenceSaltStore",
    "EvidenceStore",
    "Grant",
    "GrantStore",
    "KeptEvidence",
    "KeptGrants",
    "PermissionModeStore",
    "RevisionStore",
    "SetAsideStore",
    "TurnLockStore",
]

ConversationKey = str
"""The name of a conversation in its bot: any text."""


class ConversationStore(Protocol):
    """A store of conversations; every method may be awaited from any task."""

    async def load(self, key: ConversationKey) -> ConversationRecord | None:
        """Return the conversation as last saved, or None if it is new."""
        ...

    async def append_discoveries(
        self, key: ConversationKey, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        """Add discoveries in one step; return all discoveries of the conversation in order.

        Known entries keep their place.
        """
        ...

    async def save(self, key: ConversationKey, record: ConversationRecord) -> None:
        """Save the conversation; discoveries that were appended meanwhile stay."""
        ...

    async def forget(self, key: ConversationKey) -> None:
        """Erase the conversation, if it exists."""
        ...


@runtime_checkable
class RevisionStore(Protocol):
    """A store that detects changes of a conversation by another process.

    Without it, the last save wins.
    """

    async def revision(self, key: ConversationKey) -> int | None:
        """Return a number that changes with every save, or None if there is no conversation."""
        ...

    async def save_over(
        self, key: ConversationKey, record: ConversationRecord, *, expected: int | None, new: int
    ) -> bool:
        """Save the conversation if it has the expected revision.

        Args:
            key: The conversation's key.
            record: The whole conversation.
            expected: The revision that `record` was made from; None: it did not exist.
            new: The new revision: a random number other than 0.

        Returns:
            False if the revision differs; then nothing has changed.
        """
        ...


@runtime_checkable
class SetAsideStore(Protocol):
    """A store that can set unreadable records aside until they are forgotten.

    Without it, such a conversation is kept only in this process.
    """

    async def set_aside(self, key: ConversationKey) -> None:
        """Set all data of the conversation aside, so that it is new from now on."""
        ...


@runtime_checkable
class TurnLockStore(Protocol):
    """A store that lets one worker at a time answer a conversation.

    Without it, workers that serve one conversation at once both answer it.
    """

    async def lock_turn(self, key: ConversationKey, *, holder: str, lease_s: float) -> bool:
        """Take or renew the lock of a conversation's turns.

        Args:
            key: The conversation's key.
            holder: The name of the turn, different from any other.
            lease_s: Seconds after which the lock ends by itself if it is not renewed.

        Returns:
            False if another holder has the lock.
        """
        ...

    async def unlock_turn(self, key: ConversationKey, *, holder: str) -> None:
        """Release the lock, if the holder has it."""
        ...


class KeptEvidence(NamedTuple):
    """All evidence of a store at one moment.

    Attributes:
        revision: A number that grows with every change of the evidence by any process.
        entries: The evidence, in any order.
    """

    revision: int
    entries: tuple[Evidence, ...]


@runtime_checkable
class EvidenceStore(Protocol):
    """A store of evidence from searches; every method may be awaited from any task.

    It keeps the bounds of `tool_search.search.learned.select_evidence`, apart from the last
    addition.
    """

    async def evidence_revision(self) -> int:
        """Return the current revision; a cheap check for changes."""
        ...

    async def load_evidence(self) -> KeptEvidence:
        """Return all evidence."""
        ...

    async def add_evidence(self, entries: Sequence[Evidence]) -> None:
        """Add successes in one step; evidence for known words grows stronger."""
        ...

    async def forget_evidence(self, tool: str | None = None) -> int:
        """Erase the evidence for one tool, or all of it; return the number of entries."""
        ...


@runtime_checkable
class EvidenceSaltStore(Protocol):
    """A store of evidence that keeps a salt for the hashes of users and conversations.

    Without it, evidence has no source: all users are one.
    """

    async def evidence_salt(self) -> bytes:
        """Return 16 to 64 random bytes that are the same as long as the evidence exists."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A rule that a user has allowed for their own calls.

    Attributes:
        rule: A rule as in the settings: `tool`, `tool(argument=pattern)`, `mcp__server__*`.
        user: The user who granted it and whose calls it covers; None: an unknown user, in
            the conversation alone.
        conversation: The conversation that it covers; None: all.
        fingerprint: The fingerprint of the granted definition (`definition_pin`); None: any
            definition of the bot's own tools, and none of a server's.
    """

    rule: str
    user: str | None = None
    conversation: str | None = None
    fingerprint: str | None = None

    def revokes(self, other: Grant) -> bool:
        """Return True if revoking this grant also revokes the other, for any definition."""
        return (self.rule, self.user, self.conversation) == (
            other.rule,
            other.user,
            other.conversation,
        )

    def to_dict(self) -> dict[str, str]:
        """Return the grant as a JSON object without None values."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Grant:
        """Return the grant that `to_dict` wrote.

        Raises:
            ValueError: It is not a grant of this version.
        """
        # An unknown field may narrow the grant: reading it without the field could widen it.
        unknown = sorted(map(str, set(content) - {each.name for each in fields(cls)}))
        if unknown:
            raise ValueError(f"a grant has no {unknown[0]!r}")
        for name, value in content.items():
            if not isinstance(value, str) and (name == "rule" or value is not None):
                raise ValueError(f"a grant's {name} must be a string, not {value!r}")
        if not content.get("rule"):
            raise ValueError("a grant must have a rule")
        return cls(**content)


class KeptGrants(NamedTuple):
    """All grants of a store at one moment.

    Attributes:
        revision: A number that changes with every change of the grants by any process.
        entries: The grants, oldest first.
    """

    revision: int
    entries: tuple[Grant, ...]


@runtime_checkable
class GrantStore(Protocol):
    """A store of users' grants; every method may be awaited from any task.

    `forget` of a conversation erases its grants too.
    """

    async def grant_revision(self) -> int:
        """Return the current revision; read before each call that needs permission."""
        ...

    async def load_grants(self) -> KeptGrants:
        """Return all grants."""
        ...

    async def add_grants(self, grants: Sequence[Grant], *, source: str | None = None) -> bool:
        """Keep grants, all or none.

        Args:
            grants: The grants; existing ones stay as they are.
            source: The name of their source, such as an older file. A source is accepted
                once, so that no revoked grant comes back.

        Returns:
            True if they were added.
        """
        ...

    async def revoke_grants(self, grants: Sequence[Grant]) -> int:
        """Revoke grants for all definitions; return the number of revoked grants."""
        ...


@runtime_checkable
class PermissionModeStore(Protocol):
    """A store of permission modes; every method may be awaited from any task.

    `forget` of a conversation erases its mode too.
    """

    async def load_permission_mode(self, key: ConversationKey) -> str | None:
        """Return the last saved mode, or None."""
        ...

    async def save_permission_mode(self, key: ConversationKey, mode: str) -> None:
        """Save a conversation's mode; the conversation need not exist yet."""
        ...
