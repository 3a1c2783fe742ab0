"""What stands between a store's evidence and the conversations of a bot."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tool_search import Tool
from tool_search.core.services import Lesson
from tool_search.runner.learning import Learning
from tool_search.search.index.ranking import WeakVote
from tool_search.search.learned import HALF_LIFE_S, Evidence
from tool_search.stores import ConversationStore, EvidenceStore, MemoryStore, SQLiteStore

NOW = 2.0e9
FORECAST = Tool(name="get_forecast", description="The weather.")
UMBRELLA = Lesson(query="do I need an umbrella", tool="get_forecast")


async def voted(learning: Learning, query: str) -> dict[str, float]:
    """Whom the evidence of now votes for."""
    votes = await learning.votes()
    return {} if votes is None else dict(votes(query, {FORECAST.name: FORECAST}.get))


async def test_nothing_learned_is_no_vote() -> None:
    assert await Learning(MemoryStore()).votes() is None


async def test_a_lesson_votes_at_the_next_turn() -> None:
    learning = Learning(MemoryStore())
    await learning.learn([UMBRELLA])
    assert set(await voted(learning, "umbrella")) == {"get_forecast"}


async def test_what_another_process_learned_votes_too() -> None:
    store = MemoryStore()
    one, other = Learning(store), Learning(store)
    await one.votes()
    await other.learn([UMBRELLA])
    assert set(await voted(one, "umbrella")) == {"get_forecast"}


async def test_what_was_erased_votes_no_more() -> None:
    store = MemoryStore()
    learning = Learning(store)
    await learning.learn([UMBRELLA])
    await learning.votes()
    await store.forget_evidence()
    assert await voted(learning, "umbrella") == {}


async def test_votes_are_those_of_the_time_they_are_asked_for() -> None:
    times = iter((NOW, NOW, NOW + HALF_LIFE_S))
    learning = Learning(MemoryStore(), clock=lambda: next(times))
    await learning.learn([UMBRELLA])
    first, later = await voted(learning, "umbrella"), await voted(learning, "umbrella")
    assert later["get_forecast"] < first["get_forecast"]


async def test_half_a_lesson_counts_half() -> None:
    store = MemoryStore()
    learning = Learning(store, clock=lambda: NOW)
    await learning.learn([Lesson(query="天气", tool="get_forecast", strength=0.5)])
    assert [entry.strength for entry in (await store.load_evidence()).entries] == [0.5]


async def test_a_lesson_without_words_is_none() -> None:
    """Nothing is written for it."""
    store = MemoryStore()
    await Learning(store).learn([Lesson(query="12345", tool="t"), Lesson(query="!", tool="t")])
    assert await store.evidence_revision() == 0


class OnlyConversations:
    """A store of somebody's own, from before there was evidence."""

    load = MemoryStore.load
    append_discoveries = MemoryStore.append_discoveries
    save = MemoryStore.save
    forget = MemoryStore.forget


async def test_a_store_without_evidence_learns_in_memory() -> None:
    store: ConversationStore = OnlyConversations()
    assert not isinstance(store, EvidenceStore)
    learning = Learning(store)
    await learning.learn([UMBRELLA])
    assert set(await voted(learning, "umbrella")) == {"get_forecast"}


class Failing(MemoryStore):
    """A store that works until it does not."""

    broken = False

    async def evidence_revision(self) -> int:
        """Fails where it is broken."""
        if self.broken:
            raise OSError("no such disk")
        return await super().evidence_revision()


async def test_what_is_known_stays_known_where_the_store_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Failing()
    learning = Learning(store)
    await learning.learn([UMBRELLA])
    await learning.votes()
    store.broken = True
    assert set(await voted(learning, "umbrella")) == {"get_forecast"}
    assert "learning_unavailable" in caplog.text


async def test_much_evidence_votes_as_little_does() -> None:
    store = MemoryStore()
    many = [Evidence(tool=f"t{n}", words=(f"word{n}",), at=NOW) for n in range(600)]
    await store.add_evidence(many)
    learning = Learning(store, clock=lambda: NOW)
    assert set(await voted(learning, "word5")) == set()
    await learning.learn([UMBRELLA])
    other = Learning(store, clock=lambda: NOW)
    assert set(await voted(other, "umbrella")) == {"get_forecast"}


async def test_users_and_conversations_are_kept_as_salted_hashes() -> None:
    kept = []
    for _ in range(2):
        store = MemoryStore()
        learning = Learning(store)
        await learning.learn([UMBRELLA], user="ann", conversation="c")
        await learning.learn([UMBRELLA], user="ann", conversation="d")
        await learning.learn([UMBRELLA], user="c", conversation="d")
        kept.append((await store.load_evidence()).entries)
        assert len(kept[-1]) == 2
        assert len({entry.source for entry in kept[-1]}) == 2
        assert "" not in {entry.source for entry in kept[-1]}
    assert {entry.source for entry in kept[0]}.isdisjoint({entry.source for entry in kept[1]})


async def test_own_evidence_counts_more_than_that_of_another_user() -> None:
    learning = Learning(MemoryStore())
    for _ in range(3):
        await learning.learn([UMBRELLA], user="ann")
    strengths = []
    for user in ("ann", "bob", None):
        votes = await learning.votes(user)
        assert votes is not None
        strengths.append(votes("umbrella", {FORECAST.name: FORECAST}.get)["get_forecast"])
    assert strengths[0] > strengths[1] == strengths[2]


async def test_a_store_without_a_salt_keeps_evidence_without_sources() -> None:
    class Unsalted(MemoryStore):
        evidence_salt = None  # type: ignore[assignment]

    store: EvidenceStore = Unsalted()
    learning = Learning(store)
    await learning.learn([UMBRELLA], user="ann", conversation="c")
    assert [(e.source, e.conversation) for e in (await store.load_evidence()).entries] == [("", "")]


async def test_evidence_that_waited_has_its_source() -> None:
    class Locked(MemoryStore):
        is_locked = True

        async def evidence_salt(self) -> bytes:
            if self.is_locked:
                raise OSError("locked")
            return await super().evidence_salt()

    store = Locked()
    learning = Learning(store)
    await learning.learn([UMBRELLA], user="ann")
    assert (await store.load_evidence()).entries == ()
    store.is_locked = False
    await learning.learn([UMBRELLA], user="bob")
    assert len({entry.source for entry in (await store.load_evidence()).entries}) == 2


async def test_without_a_salt_that_can_be_read_nobody_has_evidence_of_their_own() -> None:
    class Locked(MemoryStore):
        async def evidence_salt(self) -> bytes:
            raise OSError("locked")

    store = Locked()
    await store.add_evidence([Evidence(tool="get_forecast", words=("umbrella",), at=NOW)])
    learning = Learning(store, clock=lambda: NOW)
    votes = await learning.votes("ann")
    assert votes is not None
    assert isinstance(votes("umbrella", {FORECAST.name: FORECAST}.get)["get_forecast"], WeakVote)


@pytest.mark.parametrize(
    "damage",
    ["DROP TABLE evidence", "ALTER TABLE evidence DROP COLUMN strength", "DROP TABLE salt"],
)
async def test_a_damaged_evidence_table_is_reported_and_ends_nothing(
    tmp_path: Path, damage: str
) -> None:
    path = tmp_path / "store.db"
    async with SQLiteStore(path) as store:
        learning = Learning(store)
        await learning.learn([UMBRELLA], user="ann")
        other = sqlite3.connect(path)
        with other:
            other.execute(damage)
        other.close()
        for reader in (learning, Learning(store)):
            await reader.votes("ann")
            await reader.learn([UMBRELLA], user="ann")
        assert {notice.code for notice in reader.take_notices()} == {"learning_unavailable"}
        assert await store.conversations() == ()
