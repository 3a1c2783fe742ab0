"""Names of a store's keys in Redis; the keys of one script are in one slot of a cluster.

The part in braces is the hash tag, which alone decides the slot.
Source: Redis cluster specification, "Hash tags".
"""

from __future__ import annotations

import json
from hashlib import blake2b

from tool_search.stores.base import ConversationKey

__all__ = ["Keys", "read_key", "written_key"]

_PARTS = ("head", "messages", "found", "mode", "aside")


class Keys:
    """The keys of one store.

    Args:
        prefix: The beginning of every key; stores with different prefixes share a server.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.version = (f"{prefix}:{{store}}:version",)
        self.probe = (f"{prefix}:{{store}}:probe",)
        self.grants = tuple(
            f"{prefix}:{{grants}}:{part}" for part in ("entries", "sources", "meta")
        )
        self.evidence = tuple(
            f"{prefix}:{{evidence}}:{part}" for part in ("entries", "times", "meta")
        )
        self.heads = f"{_literal(prefix)}:{{*}}:head"
        self.staging = f"{_literal(prefix)}:{{*}}:staged:*"

    def conversation(self, key: ConversationKey) -> tuple[str, ...]:
        """Return the keys of a conversation: head, messages, discoveries, mode, set aside."""
        return self._of_tag(_digest(key))

    def of_head(self, head: str) -> tuple[str, ...]:
        """Return the keys of the conversation whose first key this is."""
        return self._of_tag(self.tag(head))

    def tag(self, key: str) -> str:
        """Return the hash tag of one of this store's keys."""
        return key[len(self._prefix) :].partition("{")[2].partition("}")[0]

    def _of_tag(self, tag: str) -> tuple[str, ...]:
        return tuple(f"{self._prefix}:{{{tag}}}:{part}" for part in _PARTS)

    def staged(self, key: ConversationKey, revision: int) -> str:
        """Return the key of the messages that a save sends first, because they are many."""
        return f"{self._prefix}:{{{_digest(key)}}}:staged:{revision}"

    def lock(self, key: ConversationKey) -> tuple[str]:
        """Return the key of the lock of a conversation's turns."""
        return (f"{self._prefix}:{{{_digest(key)}}}:lock",)


def written_key(key: ConversationKey) -> str:
    """Return a conversation's key as ASCII text, unpaired surrogates included."""
    return json.dumps(key)


def read_key(written: bytes) -> ConversationKey:
    """Return the key that `written_key` wrote, or the bytes as text if another program did."""
    try:
        return str(json.loads(written))
    except ValueError:
        return repr(written)


def _digest(key: ConversationKey) -> str:
    # Keys may have braces, line ends and any length; a digest has none of that.
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _literal(text: str) -> str:
    """Return a text as a pattern of SCAN that matches only it."""
    return "".join(f"\\{char}" if char in "*?[]^-\\" else char for char in text)
