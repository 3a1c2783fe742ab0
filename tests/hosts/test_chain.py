"""Hidden exchanges, found again by the history around them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search import SessionError
from tool_search.adapters.hosts.chain import (
    ChainItem,
    ExchangeChain,
    MemoryExchanges,
    chain_digests,
    owner_digest,
)

ALICE, BOB = (owner_digest(key, b"installation") for key in ("key of alice", "key of bob"))
ITEMS = st.builds(
    ChainItem,
    st.sampled_from(["user", "assistant", "tool"]),
    st.text(max_size=5),
    st.lists(st.sampled_from(["c1", "c2"]), max_size=2).map(tuple),
)
HISTORIES = st.lists(ITEMS, min_size=1, max_size=5)


def a_turn(number: int) -> list[ChainItem]:
    """Return what a client sees of one turn."""
    return [ChainItem("user", f"question {number}"), ChainItem("assistant", f"answer {number}")]


def hidden(number: int) -> list[dict[str, Any]]:
    """Return the search of a turn, which its client does not see."""
    return [{"role": "assistant", "calls": [f"s{number}"]}, {"role": "tool", "id": f"s{number}"}]


async def test_exchanges_come_back_to_their_places() -> None:
    chain = ExchangeChain()
    history: list[ChainItem] = []
    for number in range(3):
        history += a_turn(number)
        await chain.keep(ALICE, history, hidden(number))
    history.append(ChainItem("user", "more"))
    found = await chain.restore(ALICE, history)
    assert found == {1: hidden(0), 3: hidden(1), 5: hidden(2)}


async def test_two_clients_with_equal_histories_never_see_each_others_searches() -> None:
    chain = ExchangeChain()
    await chain.keep(ALICE, a_turn(0), hidden(0))
    assert await chain.restore(BOB, a_turn(0)) == {}
    assert await chain.restore(ALICE, a_turn(0)) == {1: hidden(0)}


async def test_an_edited_history_leaves_the_chain_at_that_item() -> None:
    chain = ExchangeChain()
    history = [*a_turn(0), *a_turn(1)]
    await chain.keep(ALICE, history[:2], hidden(0))
    await chain.keep(ALICE, history, hidden(1))
    history[2] = replace(history[2], text="another question")
    assert await chain.restore(ALICE, history) == {1: hidden(0)}


async def test_an_exchange_without_a_reply_is_refused() -> None:
    with pytest.raises(SessionError, match="visible reply"):
        await ExchangeChain().keep(ALICE, [], hidden(0))
    with pytest.raises(SessionError, match="must be JSON"):
        await ExchangeChain().keep(ALICE, a_turn(0), [object()])


@pytest.mark.parametrize("damaged", ["", "{", "5", "null", '{"a": 1}'])
async def test_a_damaged_exchange_is_lost_and_nothing_more(damaged: str) -> None:
    exchanges = MemoryExchanges()
    await exchanges.keep(chain_digests(ALICE, a_turn(0))[-1], damaged)
    assert not any((await ExchangeChain(exchanges).restore(ALICE, a_turn(0))).values())


def test_an_owner_does_not_show_the_key() -> None:
    assert "alice" not in ALICE
    assert owner_digest("key of alice", b"another installation") != ALICE


@given(HISTORIES, HISTORIES)
def test_only_equal_histories_have_equal_digests(
    one: list[ChainItem], two: list[ChainItem]
) -> None:
    stripped = [[replace(item, text=item.text.strip()) for item in each] for each in (one, two)]
    assert (chain_digests(ALICE, one)[-1] == chain_digests(ALICE, two)[-1]) == (
        stripped[0] == stripped[1]
    )
    assert not set(chain_digests(ALICE, one)) & set(chain_digests(BOB, two))


@given(HISTORIES, st.data())
def test_an_edit_changes_all_digests_from_its_place_on(
    history: list[ChainItem], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(history) - 1))
    edited = list(history)
    edited[place] = replace(edited[place], text=f"{edited[place].text.strip()}!")
    before, after = chain_digests(ALICE, history), chain_digests(ALICE, edited)
    assert before[:place] == after[:place]
    assert not set(before[place:]) & set(after[place:])


@pytest.mark.parametrize(
    ("bounds", "kept"),
    [({"max_exchanges": 2}, 2), ({"max_chars": 20}, 1), ({"max_age_s": 5.0}, 3)],
    ids=["number", "characters", "age"],
)
async def test_memory_is_bounded(bounds: dict[str, Any], kept: int) -> None:
    now = [0.0]
    exchanges = MemoryExchanges(clock=lambda: now[0], **bounds)
    for number in range(8):
        now[0] += 2.0
        await exchanges.keep(f"d{number}", "x" * 12)
    assert len(exchanges) == kept
    assert list(await exchanges.load([f"d{n}" for n in range(8)])) == [
        f"d{n}" for n in range(8 - kept, 8)
    ]


async def test_what_is_used_stays() -> None:
    exchanges = MemoryExchanges(max_exchanges=2)
    for digest in ("a", "b"):
        await exchanges.keep(digest, "[]")
    await exchanges.load(["a"])
    await exchanges.keep("c", "[]")
    assert set(await exchanges.load(["a", "b", "c"])) == {"a", "c"}


def test_event_loops_share_a_chain() -> None:
    chain = ExchangeChain()
    asyncio.run(chain.keep(ALICE, a_turn(0), hidden(0)))
    assert asyncio.run(chain.restore(ALICE, a_turn(0))) == {1: hidden(0)}
