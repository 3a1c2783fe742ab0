"""A store in Redis, for workers on any number of machines."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from tool_search.core.discovery.state import Discovery
from tool_search.errors import ConfigurationError
from tool_search.search.learned import Evidence
from tool_search.stores.base import ConversationKey, Grant, KeptEvidence, KeptGrants
from tool_search.stores.context import StoreContext
from tool_search.stores.erasure import Erased, Export, Selection
from tool_search.stores.record import ConversationRecord
from tool_search.stores.redis.connection import RedisConnection
from tool_search.stores.redis.conversations import RedisConversations
from tool_search.stores.redis.erasure import RedisErasure
from tool_search.stores.redis.evidence import RedisEvidence
from tool_search.stores.redis.grants import RedisGrants
from tool_search.stores.redis.keys import Keys
from tool_search.stores.redis.scripts import LOCK, UNLOCK
from tool_search.stores.redis.server import NodeFacts, node_facts

__all__ = ["RedisStore"]

_DAY_MS = 86_400_000
_REVISION_BITS = 62


class RedisStore(StoreContext):
    """A store of conversations, evidence, grants and modes in Redis 7 or later.

    Each change is one atomic step on the server, single node or cluster. The connection is
    opened on demand. Close the store after use.

    Every method raises StoreError if the server cannot be reached for `patience_s`, or refuses
    a request. The next call tries again.

    Args:
        url: The address of the server, or of any node of a cluster, such as
            `redis://user:password@localhost:6379/0`.
        prefix: The beginning of all keys, without braces; bots with different prefixes may
            share a server.
        keep_days: Days that a conversation is kept after its last use, by the server's clock;
            None: forever.
        patience_s: Seconds to try a request again, and to wait for one answer.

    Raises:
        ConfigurationError: The address or the prefix cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "tool-search",
        keep_days: float | None = None,
        patience_s: float = 5.0,
    ) -> None:
        if not prefix or "{" in prefix or "}" in prefix:
            raise ConfigurationError(
                f"the prefix of a store in Redis must be a text without braces, not {prefix!r}"
            )
        self._keys = Keys(prefix)
        self._connection = RedisConnection(url, self._keys, patience_s=patience_s)
        self._keep_ms = 0 if keep_days is None else max(1, round(keep_days * _DAY_MS))
        self._conversations = RedisConversations(self._connection, self._keys, self._keep_ms)
        self._evidence = RedisEvidence(self._connection, self._keys)
        self._grants = RedisGrants(self._connection, self._keys)
        self._erasure = RedisErasure(
            self._connection,
            self._keys,
            conversations=self._conversations,
            evidence=self._evidence,
            grants=self._grants,
        )

    @property
    def address(self) -> str:
        """The address without user and password."""
        return self._connection.address

    def __repr__(self) -> str:
        return f"RedisStore({self._connection.address!r})"

    async def try_write(self) -> None:
        """Check that the server accepts writes of this user; nothing changes.

        Raises:
            StoreError: It does not, or cannot be reached.
        """
        await self._connection.try_write()

    async def aclose(self) -> None:
        """Close the connection; the store cannot be used again."""
        await self._connection.aclose()

    async def load(self, key: ConversationKey) -> ConversationRecord | None:
        """Return the conversation as last saved, with all discoveries.

        Raises:
            UnreadableRecordError: The stored data is not a record of this version.
        """
        return await self._conversations.load(key)

    async def append_discoveries(
        self, key: ConversationKey, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        """Add discoveries; return all discoveries of the conversation in order."""
        return await self._conversations.append(key, entries)

    async def save(self, key: ConversationKey, record: ConversationRecord) -> None:
        """Save the conversation."""
        new = secrets.randbits(_REVISION_BITS) | 1
        await self._conversations.save(key, record, expected="*", new=new)

    async def revision(self, key: ConversationKey) -> int | None:
        """Return a number that changes with every save, or None if there is no conversation."""
        return await self._conversations.revision(key)

    async def save_over(
        self, key: ConversationKey, record: ConversationRecord, *, expected: int | None, new: int
    ) -> bool:
        """Save the conversation, unless another worker saved or erased it meanwhile."""
        found = "-" if expected is None else str(expected)
        return await self._conversations.save(key, record, expected=found, new=new)

    async def set_aside(self, key: ConversationKey) -> None:
        """Set unreadable data aside; `forget` erases it."""
        await self._conversations.set_aside(key)

    async def forget(self, key: ConversationKey) -> None:
        """Erase the conversation and its grants, if it exists."""
        await self._grants.erase(lambda grant: grant.conversation == key)
        await self._conversations.forget(key)

    async def erase(self, selection: Selection, *, export: Export | None = None) -> Erased:
        """Erase all selected data; return the numbers of entries.

        The server may have it in its files until `rewrite_files`.

        Args:
            selection: The data to erase.
            export: Writes the data first, in a thread. A conversation that goes on meanwhile
                is not erased, and a StoreError says so at the end.

        Raises:
            Exception: Any exception of `export`; then nothing was erased.
        """
        return await self._erasure.erase(selection, export)

    async def rewrite_files(self) -> str:
        """Let the server write its files anew, so that nothing erased is left in them.

        Returns:
            The reason why something may be left; empty if there is none.
        """
        return await self._erasure.rewrite()

    async def node_facts(self) -> tuple[NodeFacts, ...]:
        """Return the facts of each node of the server, as operators set them."""
        return await node_facts(self._connection)

    async def conversations(self, *, since: float | None = None) -> tuple[ConversationKey, ...]:
        """Return all conversations, sorted.

        Args:
            since: Only those that were last used at this time or later, in seconds since 1970
                by the server's clock. A conversation of an early version has no time, and is
                among them.
        """
        return await self._conversations.list_keys(since)

    async def lock_turn(self, key: ConversationKey, *, holder: str, lease_s: float) -> bool:
        """Take or renew the lock of a conversation's turns; return False if another has it."""
        lease_ms = max(1, round(lease_s * 1000))
        return bool(await self._connection.run(LOCK, self._keys.lock(key), holder, lease_ms))

    async def unlock_turn(self, key: ConversationKey, *, holder: str) -> None:
        """Release the lock, if the holder has it."""
        await self._connection.run(UNLOCK, self._keys.lock(key), holder)

    async def evidence_revision(self) -> int:
        """Return a number that grows with every change of the evidence."""
        return await self._evidence.revision()

    async def load_evidence(self) -> KeptEvidence:
        """Return all evidence."""
        return await self._evidence.load()

    async def evidence_salt(self) -> bytes:
        """Return the salt of the hashes in the evidence."""
        return await self._evidence.salt()

    async def add_evidence(self, entries: Sequence[Evidence]) -> None:
        """Add successes."""
        if entries:
            await self._evidence.add(entries)

    async def forget_evidence(self, tool: str | None = None) -> int:
        """Erase the evidence for one tool, or all of it; return the number of entries."""
        return await self._evidence.forget(tool)

    async def grant_revision(self) -> int:
        """Return a number that changes with the grants."""
        return await self._grants.revision()

    async def load_grants(self) -> KeptGrants:
        """Return all grants."""
        return await self._grants.load()

    async def add_grants(self, grants: Sequence[Grant], *, source: str | None = None) -> bool:
        """Add grants; accept each source once."""
        is_added = await self._grants.add(grants, source)
        if self._keep_ms:
            await self._grants.erase_expired(self._keep_ms, self._conversations.is_there)
        return is_added

    async def revoke_grants(self, grants: Sequence[Grant]) -> int:
        """Revoke grants for all definitions; return the number of revoked grants."""
        return await self._grants.erase(lambda known: any(grant.revokes(known) for grant in grants))

    async def load_permission_mode(self, key: ConversationKey) -> str | None:
        """Return the last saved mode, or None."""
        return await self._conversations.load_mode(key)

    async def save_permission_mode(self, key: ConversationKey, mode: str) -> None:
        """Save a conversation's mode."""
        await self._conversations.save_mode(key, mode)
