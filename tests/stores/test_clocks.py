"""Workers whose clocks differ by an hour."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.stores.contents import kept_in, record, success
from tool_search.search.learned import HALF_LIFE_S
from tool_search.stores import SQLiteStore

HOUR_S = 3600.0


@pytest.mark.parametrize("skew", [HOUR_S, -HOUR_S])
async def test_no_conversation_in_use_ends_early(tmp_path: Path, skew: float) -> None:
    path, now = tmp_path / "store.db", time.time()
    one = SQLiteStore(path, keep_days=1, clock=lambda: now)
    other = SQLiteStore(path, keep_days=1, clock=lambda: now + skew)
    async with one, other:
        await one.save("a", record("tool_003"))
        await other.save("b", record())
        for _ in range(2):
            for store in (one, other):
                assert await store.load("a") == record("tool_003")
                assert await store.load("b") == record()
                revision = await store.revision("a")
                assert await store.save_over(
                    "a", record("tool_003"), expected=revision, new=(revision or 0) + 1
                )


async def test_a_lock_does_not_depend_on_the_clock(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    one = SQLiteStore(path, clock=lambda: 1e9)
    other = SQLiteStore(path, clock=lambda: 1e9 + HOUR_S)
    async with one, other:
        assert await one.lock_turn("a", holder="one", lease_s=60)
        assert not await other.lock_turn("a", holder="other", lease_s=60)


async def test_evidence_of_both_is_kept_and_the_difference_hardly_counts(tmp_path: Path) -> None:
    now = 2.0e9
    async with SQLiteStore(tmp_path / "store.db") as store:
        ahead = success("t", "w", at=now + HOUR_S)
        await store.add_evidence([ahead])
        await store.add_evidence([success("t", "w", at=now), success("u", "w", at=now)])
        found = {entry.tool: entry for entry in await kept_in(store)}
    assert set(found) == {"t", "u"}
    assert found["t"].at == ahead.at
    assert found["t"].strength == pytest.approx(2, abs=2 * HOUR_S / HALF_LIFE_S)
    assert found["u"] == success("u", "w", at=now)
