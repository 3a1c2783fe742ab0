"""Contents of stores for tests: conversations, discoveries and evidence."""

from __future__ import annotations

from tests.conversations import Chat, tool, toolbox
from tool_search import ConversationRecord, Discovery
from tool_search.search.learned import Evidence
from tool_search.stores import ConversationStore, EvidenceStore

NOW = 2.0e9


def record(*found: str) -> ConversationRecord:
    """A conversation that found these tools."""
    chat = Chat(toolbox(9))
    chat.begin()
    chat.find(*found)
    return chat.session.record()


def discoveries(*names: str) -> list[Discovery]:
    """Discoveries of these tools."""
    return [Discovery(tool=tool(name)) for name in names]


async def loaded_names(store: ConversationStore, key: str) -> list[str]:
    """Return the discoveries of a stored conversation."""
    content = await store.load(key)
    assert content is not None
    return [entry.name for entry in content.discoveries]


def success(tool: str, *words: str, at: float = NOW, strength: float = 1.0) -> Evidence:
    """Return evidence that these words led to a tool."""
    return Evidence(tool=tool, words=tuple(sorted(words)), at=at, strength=strength)


async def kept_in(store: EvidenceStore) -> set[Evidence]:
    return set((await store.load_evidence()).entries)
