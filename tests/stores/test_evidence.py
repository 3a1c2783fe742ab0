"""Evidence in every store."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.stores.conftest import Store
from tool_search.search import learned
from tool_search.search.learned import DAY_S, HALF_LIFE_S, MAX_PER_TOOL, Evidence
from tool_search.stores import EvidenceSaltStore
from tool_search.stores.sqlite import evidence as sqlite_evidence

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
    """With the first success a day after others: a clock may be wrong."""
    old = success("send_mail", "old", at=NOW - 6 * HALF_LIFE_S)
    await store.add_evidence([old])
    await store.add_evidence([success("send_mail", "new")])
    assert await kept_in(store) == {old, success("send_mail", "new")}
    await store.add_evidence([success("get_forecast", "newest", at=NOW + DAY_S)])
    await store.add_evidence([success("send_mail", "newest", at=NOW + DAY_S)])
    assert await kept_in(store) == {
        success("send_mail", "new"),
        success("send_mail", "newest", at=NOW + DAY_S),
        success("get_forecast", "newest", at=NOW + DAY_S),
    }


@pytest.mark.parametrize("jump", [-2.0e9, 20 * 365 * DAY_S])
async def test_a_clock_that_jumps_makes_a_store_forget_nothing(store: Store, jump: float) -> None:
    """The success of a wrong time may go."""
    before = {success("send_mail", f"word{n}", at=NOW - n * DAY_S) for n in range(5)}
    await store.add_evidence(sorted(before, key=lambda entry: entry.at))
    wrong = success("send_mail", "wrong", at=NOW + jump)
    await store.add_evidence([wrong])
    assert await kept_in(store) == {*before, wrong}
    await store.add_evidence([success("send_mail", "right", at=NOW + 60)])
    right = success("send_mail", "right", at=NOW + 60)
    assert await kept_in(store) - {wrong} == {*before, right}


async def test_each_source_has_its_own_evidence(store: Store) -> None:
    one, two = (replace(success("a", "x"), source=name) for name in ("one", "two"))
    await store.add_evidence([one, two, success("a", "x")])
    await store.add_evidence([replace(two, conversation="c2")])
    assert await kept_in(store) == {
        one,
        success("a", "x"),
        replace(two, conversation="c2", strength=2.0),
    }


async def test_a_source_cannot_crowd_out_the_evidence_of_others(store: Store) -> None:
    honest = replace(success("send_mail", "letter", at=NOW - HALF_LIFE_S), source="ann")
    await store.add_evidence([honest])
    for n in range(3 * MAX_PER_TOOL):
        flood = success("send_mail", f"word{n}", at=NOW + n)
        await store.add_evidence([replace(flood, source="bob")])
    left = await kept_in(store)
    assert len(left) == MAX_PER_TOOL
    assert honest in left


async def test_the_whole_store_is_shared_between_sources(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (learned, sqlite_evidence):
        monkeypatch.setattr(module, "MAX_EVIDENCE", 4)
    honest = replace(success("t", "letter", at=NOW - HALF_LIFE_S), source="ann")
    await store.add_evidence([honest])
    for n in range(8):
        await store.add_evidence([replace(success(f"t{n}", "w", at=NOW + n), source="bob")])
    left = await kept_in(store)
    assert honest in left
    assert {entry.tool for entry in left - {honest}} == {"t5", "t6", "t7"}


async def test_the_salt_of_a_store_stays(store: Store) -> None:
    assert isinstance(store, EvidenceSaltStore)
    salt = await store.evidence_salt()
    assert len(salt) >= 16
    await store.add_evidence([success("a", "x")])
    await store.forget_evidence()
    assert await store.evidence_salt() == salt


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
