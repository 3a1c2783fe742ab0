"""The seams of a store: conversations, and what else one may keep.

A store must keep conversations. The other protocols are optional: what a store does not
keep lives in this process's memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple, Protocol, runtime_checkable

from tool_search.conversation.record import ConversationRecord
from tool_search.discovery.state import Discovery
from tool_search.search.learned import Evidence

__all__ = [
    "ConversationKey",
    "ConversationStore",
    "EvidenceStore",
    "Grant",
    "GrantStore",
    "KeptEvidence",
    "KeptGrants",
    "PermissionModeStore",
    "RevisionStore",
    "SetAsideStore",
]

ConversationKey = str
"""Names a conversation in its bot: any text."""


class ConversationStore(Protocol):
    """Keeps conversations; every method may be awaited from any task."""

    async def load(self, key: ConversationKey) -> ConversationRecord | None:
        """The conversation as it was last saved, or None where it is new."""
        ...

    async def append_discoveries(
        self, key: ConversationKey, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        """Adds discoveries at once; gives all of the conversation in their order.

        Entries that are there already keep their place.
        """
        ...

    async def save(self, key: ConversationKey, record: ConversationRecord) -> None:
        """Keeps the conversation; discoveries that were appended meanwhile stay."""
        ...

    async def forget(self, key: ConversationKey) -> None:
        """Erases the conversation, if it is there."""
        ...


@runtime_checkable
class RevisionStore(Protocol):
    """Tells whether another process saved or erased a conversation meanwhile.

    Without it, the last one that saves a conversation has the last word.
    """

    async def revision(self, key: ConversationKey) -> int | None:
        """Return what changes whenever the conversation is saved; None if it is not kept."""
        ...

    async def save_over(
        self, key: ConversationKey, record: ConversationRecord, *, expected: int | None, new: int
    ) -> bool:
        """Keep the conversation as `save` does, if it has the expected revision.

        Args:
            key: The conversation's.
            record: All of it.
            expected: The revision that `record` was made from; None: it was not kept.
            new: Its revision from now on, chosen by the caller at random, and not 0.

        Returns:
            False if it has another revision; nothing has changed then.
        """
        ...


@runtime_checkable
class SetAsideStore(Protocol):
    """Puts a record that cannot be read where nothing reads it until it is forgotten.

    Without it, such a conversation is kept in this process alone.
    """

    async def set_aside(self, key: ConversationKey) -> None:
        """Put all that is kept of the conversation aside: it is new from now on."""
        ...


class KeptEvidence(NamedTuple):
    """All evidence of a store at one moment.

    Attributes:
        revision: Grows with every change of the evidence, whoever makes it.
        entries: In no order.
    """

    revision: int
    entries: tuple[Evidence, ...]


@runtime_checkable
class EvidenceStore(Protocol):
    """Keeps what searches have taught; every method may be awaited from any task.

    Stays within the bounds of `tool_search.search.learned.kept`, give or take what
    was added last.
    """

    async def evidence_revision(self) -> int:
        """The revision of now: a cheap way to see whether there is anything new."""
        ...

    async def load_evidence(self) -> KeptEvidence:
        """All of it."""
        ...

    async def add_evidence(self, entries: Sequence[Evidence]) -> None:
        """Adds successes at once; what is known by its words already grows stronger."""
        ...

    async def forget_evidence(self, tool: str | None = None) -> int:
        """Erases the evidence for one tool, or all of it; gives how much that was."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A rule that a user has allowed for himself.

    Attributes:
        rule: As in the settings: `tool`, `tool(argument=pattern)`, `mcp__server__*`.
        user: Who granted it, and so for whom it holds; None: a user that the bot does not
            know, for whom it holds in the conversation alone.
        conversation: Where it holds; None: everywhere.
        fingerprint: Of the definition it was granted for (`definition_pin`); None: of any
            definition of the bot's own tools, and of no server's.
    """

    rule: str
    user: str | None = None
    conversation: str | None = None
    fingerprint: str | None = None

    def revokes(self, other: Grant) -> bool:
        """True if taking this grant back takes the other back, of whichever definition."""
        return (self.rule, self.user, self.conversation) == (
            other.rule,
            other.user,
            other.conversation,
        )

    def to_dict(self) -> dict[str, str]:
        """Return the grant as a JSON object without what is None."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Grant:
        """Return the grant that `to_dict` wrote.

        Raises:
            ValueError: It is no grant of this version. A grant that says more than is known
                here may mean less than it seems to, so it is none.
        """
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
        revision: Changes with every change of the grants, whoever makes it.
        entries: The oldest first.
    """

    revision: int
    entries: tuple[Grant, ...]


@runtime_checkable
class GrantStore(Protocol):
    """Keeps what users have granted; every method may be awaited from any task.

    `forget` of a conversation erases its grants too.
    """

    async def grant_revision(self) -> int:
        """Return the current revision: asked before each call that needs permission."""
        ...

    async def load_grants(self) -> KeptGrants:
        """Return all grants."""
        ...

    async def add_grants(self, grants: Sequence[Grant], *, source: str | None = None) -> bool:
        """Keep grants, all or none.

        Args:
            grants: What is there already stays as it is.
            source: Names where they come from, such as an older file; from one source
                grants are taken once, so that none comes back after it was revoked.

        Returns:
            True if they were taken.
        """
        ...

    async def revoke_grants(self, grants: Sequence[Grant]) -> int:
        """Take grants back, of whichever definition; return how many those were."""
        ...


@runtime_checkable
class PermissionModeStore(Protocol):
    """Keeps the permission modes of conversations; every method may be awaited from any task.

    `forget` of a conversation erases its mode too.
    """

    async def load_permission_mode(self, key: ConversationKey) -> str | None:
        """Return the mode that was last saved, or None."""
        ...

    async def save_permission_mode(self, key: ConversationKey, mode: str) -> None:
        """Keep a conversation's mode; the conversation needs not be there yet."""
        ...
