"""Contents of stores for tests: conversations, discoveries and evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


KEPT = Path(__file__).parent / "kept"
"""Files of earlier versions: what a store had, and what was read from it."""


async def all_in(store: Any) -> dict[str, Any]:
    """Return what `kept/` has of a store, which an earlier version of the library wrote."""
    loaded = {key: await store.load(key) for key in ("rich", "found", "aside")}
    learned = (await store.load_evidence()).entries
    return {
        "records": {key: record and record.to_dict() for key, record in loaded.items()},
        "found": [entry.name for entry in await store.append_discoveries("found", ())],
        "conversations": list(await store.conversations()),
        "mode": await store.load_permission_mode("rich"),
        "salt": (await store.evidence_salt()).hex(),
        "evidence": sorted(
            [e.tool, list(e.words), e.at, e.strength, e.source, e.conversation] for e in learned
        ),
        "grants": [grant.to_dict() for grant in (await store.load_grants()).entries],
        "source_again": await store.add_grants([], source="grants.json 1"),
    }
