"""Evidence in every store."""

from __future__ import annotations

import asyncio

import pytest

from tests.stores.conftest import Store
from tool_search.search.learned import HALF_LIFE_S, MAX_PER_TOOL, Evidence

NOW = 2.0e9


def success(tool: str, *words: str, at: float = NOW, strength: float = 1.0) -> Evidence:
    """Return evidence that these words led to a tool."""
    return Evidence(tool=tool, words=tuple(sorted(words)), at=at, strength=strength)


async def kept_in(store: Store) -> set[Evidence]:
    return set((await store.load_evidence()).entries)


async def test_a_new_store_has_learned_nothing(store: Store) -> None:
    assert await kept_in(store) == set()
    assert await store.forget_evidence() == 0


async def test_evidence_that_was_added_is_there(store: Store) -> None:
    """Word for word."""
    added = {success("get_forecast", "天气", "北京"), success("send_mail", "write", "mail")}
    await store.add_evidence(sorted(added, key=lambda entry: entry.tool))
    assert await kept_in(store) == added


async def test_the_same_success_again_grows_stronger(store: Store) -> None:
    await store.add_evidence([success("send_mail", "mail", at=NOW - HALF_LIFE_S)])
    await store.add_evidence([success("send_mail", "mail")])
    assert await kept_in(store) == {success("send_mail", "mail", strength=1.5)}


async def test_successes_of_one_moment_are_added_up(store: Store) -> None:
    await store.add_evidence([success("send_mail", "mail"), success("send_mail", "mail")])
    assert await kept_in(store) == {success("send_mail", "mail", strength=2.0)}


async def test_strength_has_a_bound(store: Store) -> None:
    await store.add_evidence([success("send_mail", "mail") for _ in range(100)])
    assert [entry.strength for entry in await kept_in(store)] == [4.0]


async def test_a_tool_is_remembered_by_its_strongest_queries(store: Store) -> None:
    await store.add_evidence([success("get_forecast", "weather", at=NOW - 60)])
    old = [success("send_mail", f"word{n}", at=NOW - n) for n in range(MAX_PER_TOOL)]
    await store.add_evidence(old)
    await store.add_evidence([success("send_mail", "newest", at=NOW + 1)])
    left = await kept_in(store)
    assert success("get_forecast", "weather", at=NOW - 60) in left
    assert left - {success("get_forecast", "weather", at=NOW - 60)} == {
        *old[:-1],
        success("send_mail", "newest", at=NOW + 1),
    }


async def test_what_is_almost_forgotten_goes(store: Store) -> None:
    await store.add_evidence([success("send_mail", "old", at=NOW - 6 * HALF_LIFE_S)])
    await store.add_evidence([success("send_mail", "new")])
    assert await kept_in(store) == {success("send_mail", "new")}


async def test_forgetting_one_tool_leaves_the_others(store: Store) -> None:
    await store.add_evidence([success("a", "x"), success("a", "y"), success("b", "x")])
    assert await store.forget_evidence("a") == 2
    assert await kept_in(store) == {success("b", "x")}


async def test_forgetting_all_leaves_nothing(store: Store) -> None:
    await store.add_evidence([success("a", "x"), success("b", "x")])
    assert await store.forget_evidence() == 2
    assert await kept_in(store) == set()


@pytest.mark.parametrize("change", ["add", "forget"])
async def test_every_change_has_a_revision_of_its_own(store: Store, change: str) -> None:
    await store.add_evidence([success("a", "x")])
    before = await store.evidence_revision()
    assert (await store.load_evidence()).revision == before == await store.evidence_revision()
    if change == "add":
        await store.add_evidence([success("a", "y")])
    else:
        await store.forget_evidence("a")
    assert await store.evidence_revision() > before


async def test_successes_of_several_tasks_are_all_kept(store: Store) -> None:
    await asyncio.gather(*(store.add_evidence([success("a", "x")]) for _ in range(3)))
    assert await kept_in(store) == {success("a", "x", strength=3.0)}
