"""The contract of a store, as tests that every store must pass.

Write a class of tests with the contracts that the store supports, and give it an empty store
for each test; pytest-asyncio runs it with `asyncio_mode = "auto"`:

    pytest.register_assert_rewrite("tool_search.testing.store_contract")

    class TestMyStore(ConversationContract, EvidenceContract):
        @asynccontextmanager
        async def open_store(self):
            async with MyStore(self.address) as store:
                yield store

`unittest.IsolatedAsyncioTestCase` beside the contracts runs it without pytest. A test fails by an
`AssertionError`. `StoreContract` is all contracts together.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

from tool_search.core.discoveries import Discovery
from tool_search.search.learned import (
    DAY_S,
    HALF_LIFE_S,
    MAX_EVIDENCE,
    MAX_PER_TOOL,
    Evidence,
)
from tool_search.stores.base import (
    ConversationStore,
    EvidenceSaltStore,
    EvidenceStore,
    Grant,
    GrantStore,
    PermissionModeStore,
    RevisionStore,
    SetAsideStore,
    TurnLockStore,
)
from tool_search.testing.store_contents import (
    CHAT,
    KEYS,
    MAIL,
    NOW,
    RICH_TOOL,
    common_tool,
    discoveries_of,
    record_of,
    rich_record,
    success_of,
)

__all__ = [
    "ConversationContract",
    "EvidenceContract",
    "GrantContract",
    "PermissionModeContract",
    "RevisionContract",
    "SetAsideContract",
    "StoreContract",
    "TurnLockContract",
]


def _supports(store: object, protocol: Any) -> bool:
    return isinstance(store, protocol)


async def _found_in(store: ConversationStore, key: str) -> list[str]:
    content = await store.load(key)
    assert content is not None
    return [entry.name for entry in content.discoveries]


async def _evidence_in(store: EvidenceStore) -> set[Evidence]:
    return set((await store.load_evidence()).entries)


async def _grants_in(store: GrantStore) -> list[Grant]:
    return list((await store.load_grants()).entries)


class _Contract(ABC):
    """Tests of a store that `open_store` opens."""

    @abstractmethod
    def open_store(self) -> AbstractAsyncContextManager[Any]:
        """Open the store; it is empty when a test begins.

        Within one test, the store that is opened again has what was written before, unless
        it keeps nothing beyond its process.
        """


class ConversationContract(_Contract):
    """Tests of `ConversationStore`."""

    async def test_a_new_conversation_is_not_there(self) -> None:
        async with self.open_store() as store:
            assert await store.load("a") is None
            await store.forget("a")

    async def test_what_was_saved_is_loaded(self) -> None:
        async with self.open_store() as store:
            one, other = record_of("tool_003"), record_of()
            await store.save("a", one)
            await store.save("b", other)
            assert (await store.load("a"), await store.load("b")) == (one, other)

    async def test_every_part_of_a_conversation_is_kept(self) -> None:
        """Calls, pictures and thinking too, and what the bot needs to go on as before."""
        async with self.open_store() as store:
            rich = rich_record()
            await store.save("a", rich)
            assert await store.load("a") == rich

    async def test_discoveries_keep_their_order_their_way_and_their_definition(self) -> None:
        async with self.open_store() as store:
            entries = (
                Discovery(tool=common_tool("tool_005"), via="preload"),
                Discovery(tool=RICH_TOOL, via="call"),
                Discovery(tool=common_tool("tool_001")),
            )
            assert await store.append_discoveries("a", entries[:2]) == entries[:2]
            assert await store.append_discoveries("a", entries[2:]) == entries
            await store.save("a", replace(record_of(), discoveries=entries))
            content = await store.load("a")
            assert content is not None
            assert content.discoveries == entries

    async def test_discoveries_are_added_behind_those_there_are(self) -> None:
        async with self.open_store() as store:
            await store.save("a", record_of("tool_003"))
            entries = await store.append_discoveries("a", discoveries_of("tool_005", "tool_003"))
            assert [entry.name for entry in entries] == ["tool_003", "tool_005"]
            assert await _found_in(store, "a") == ["tool_003", "tool_005"]

    async def test_saving_keeps_what_was_appended_meanwhile(self) -> None:
        async with self.open_store() as store:
            before = record_of("tool_003")
            await store.save("a", before)
            await store.append_discoveries("a", discoveries_of("tool_005"))
            await store.save("a", before)
            assert await _found_in(store, "a") == ["tool_003", "tool_005"]

    async def test_discoveries_before_the_first_save_are_kept(self) -> None:
        """They are committed with their search result, the record at the end of the turn."""
        async with self.open_store() as store:
            await store.append_discoveries("a", discoveries_of("tool_005"))
            await store.save("a", record_of("tool_003"))
            assert await _found_in(store, "a") == ["tool_005", "tool_003"]

    async def test_saving_keeps_the_newest_definitions(self) -> None:
        """They replace tools of a server that disconnects."""
        async with self.open_store() as store:
            await store.append_discoveries("a", [Discovery(tool=common_tool("tool_003", "Old."))])
            await store.save("a", record_of("tool_003"))
            content = await store.load("a")
            assert content is not None
            assert content.discoveries[0].tool.description == "Common tool_003."

    async def test_a_forgotten_conversation_is_gone_with_all_it_found(self) -> None:
        async with self.open_store() as store:
            await store.save("a", record_of("tool_003"))
            await store.forget("a")
            assert await store.load("a") is None
            assert await store.append_discoveries("a", discoveries_of("tool_005")) == tuple(
                discoveries_of("tool_005")
            )

    async def test_a_forgotten_conversation_takes_no_other_with_it(self) -> None:
        async with self.open_store() as store:
            others = ("b", "ab", "A", "a:b", "a*", "")
            for key in ("a", *others):
                await store.save(key, record_of("tool_005"))
            await store.forget("a")
            for key in others:
                assert await _found_in(store, key) == ["tool_005"]

    async def test_discoveries_of_several_tasks_are_all_kept(self) -> None:
        async with self.open_store() as store:
            names = [f"tool_{number:03}" for number in range(20)]
            orders = await asyncio.gather(
                *(store.append_discoveries("a", discoveries_of(name)) for name in names)
            )
            whole = max(orders, key=len)
            assert {entry.name for entry in whole} == set(names)
            assert all(order == whole[: len(order)] for order in orders)

    async def test_any_text_is_a_key(self) -> None:
        async with self.open_store() as store:
            for number, key in enumerate(KEYS):
                await store.save(key, record_of("tool_003", said=[f"in {number}"]))
                await store.append_discoveries(key, discoveries_of(f"tool_{number:03}"))
            for number, key in enumerate(KEYS):
                content = await store.load(key)
                assert content is not None
                assert [message.text for message in content.history] == [f"in {number}"]
                assert {e.name for e in content.discoveries} == {"tool_003", f"tool_{number:03}"}

    async def test_of_two_saves_at_once_one_is_there_whole(self) -> None:
        long, short = record_of(said=[f"long {n}" for n in range(20)]), record_of(said=["short"])
        async with self.open_store() as store:
            for _ in range(5):
                await asyncio.gather(store.save("a", long), store.save("a", short))
                assert await store.load("a") in (long, short)

    async def test_a_shorter_history_replaces_a_longer_one(self) -> None:
        """A bot may take messages back, or compact its history."""
        async with self.open_store() as store:
            await store.save("a", record_of(said=["one", "two", "three"]))
            await store.save("a", record_of(said=["one"]))
            assert await store.load("a") == record_of(said=["one"])

    async def test_a_large_conversation_is_kept_whole(self) -> None:
        large = record_of(said=[f"{n} {'x' * 20_000}" for n in range(100)])
        async with self.open_store() as store:
            await store.save("a", large)
            assert await store.load("a") == large


class RevisionContract(_Contract):
    """Tests of `RevisionStore`."""

    async def test_a_new_conversation_has_no_revision(self) -> None:
        async with self.open_store() as store:
            assert _supports(store, RevisionStore)
            assert await store.revision("a") is None
            await store.append_discoveries("a", discoveries_of("tool_001"))
            assert await store.revision("a") is None

    async def test_a_save_over_the_expected_revision_is_kept(self) -> None:
        async with self.open_store() as store:
            assert await store.save_over("a", record_of(), expected=None, new=2**61 + 1)
            assert await store.revision("a") == 2**61 + 1
            newer = record_of(said=["newer"])
            assert await store.save_over("a", newer, expected=2**61 + 1, new=7)
            assert await store.revision("a") == 7
            assert await store.load("a") == newer

    async def test_a_save_over_another_revision_changes_nothing(self) -> None:
        async with self.open_store() as store:
            kept = record_of(said=["kept"])
            assert await store.save_over("a", kept, expected=None, new=5)
            for expected in (None, 4):
                assert not await store.save_over(
                    "a", record_of("tool_001"), expected=expected, new=6
                )
            assert await store.revision("a") == 5
            assert await store.load("a") == kept

    async def test_an_erased_conversation_is_not_saved_over(self) -> None:
        async with self.open_store() as store:
            assert await store.save_over("a", record_of(), expected=None, new=5)
            await store.forget("a")
            assert not await store.save_over("a", record_of(), expected=5, new=6)
            assert await store.load("a") is None

    async def test_every_save_changes_the_revision(self) -> None:
        async with self.open_store() as store:
            seen = set()
            for _ in range(3):
                await store.save("a", record_of())
                seen.add(await store.revision("a"))
            assert len(seen) == 3

    async def test_discoveries_leave_the_revision(self) -> None:
        """A turn finds tools before it saves over the revision that it began with."""
        async with self.open_store() as store:
            assert await store.save_over("a", record_of(), expected=None, new=5)
            await store.append_discoveries("a", discoveries_of("tool_001"))
            assert await store.revision("a") == 5

    async def test_of_saves_over_one_revision_one_succeeds(self) -> None:
        async with self.open_store() as store:
            assert await store.save_over("a", record_of(), expected=None, new=1)
            saved = await asyncio.gather(
                *(store.save_over("a", record_of(), expected=1, new=new) for new in range(2, 10))
            )
            assert saved.count(True) == 1
            assert await store.revision("a") == saved.index(True) + 2


class SetAsideContract(_Contract):
    """Tests of `SetAsideStore`."""

    async def test_a_conversation_that_is_set_aside_is_new(self) -> None:
        async with self.open_store() as store:
            assert _supports(store, SetAsideStore)
            for text in ("one", "two"):
                await store.save("a", record_of("tool_001", said=[text]))
                await store.set_aside("a")
                assert await store.load("a") is None
                assert await store.append_discoveries("a", ()) == ()
            await store.save("a", record_of(said=["three"]))
            assert await store.load("a") == record_of(said=["three"])
            await store.forget("a")
            assert await store.load("a") is None


class EvidenceContract(_Contract):
    """Tests of `EvidenceStore`, with a salt."""

    async def test_a_new_store_has_learned_nothing(self) -> None:
        async with self.open_store() as store:
            assert await _evidence_in(store) == set()
            assert await store.forget_evidence() == 0

    async def test_evidence_that_was_added_is_there(self) -> None:
        """Word for word."""
        async with self.open_store() as store:
            added = {
                success_of("get_forecast", "天气", "北京"),
                replace(success_of("send_mail", "write", "mail"), vector="5f:AH+B"),
            }
            await store.add_evidence(sorted(added, key=lambda entry: entry.tool))
            assert await _evidence_in(store) == added

    async def test_the_same_success_again_grows_stronger(self) -> None:
        async with self.open_store() as store:
            await store.add_evidence([success_of("send_mail", "mail", at=NOW - HALF_LIFE_S)])
            await store.add_evidence([success_of("send_mail", "mail")])
            assert await _evidence_in(store) == {success_of("send_mail", "mail", strength=1.5)}

    async def test_successes_of_one_moment_are_added_up(self) -> None:
        async with self.open_store() as store:
            await store.add_evidence(
                [success_of("send_mail", "mail"), success_of("send_mail", "mail")]
            )
            assert await _evidence_in(store) == {success_of("send_mail", "mail", strength=2.0)}

    async def test_strength_has_a_bound(self) -> None:
        async with self.open_store() as store:
            await store.add_evidence([success_of("send_mail", "mail") for _ in range(100)])
            assert [entry.strength for entry in await _evidence_in(store)] == [4.0]

    async def test_a_tool_is_remembered_by_its_strongest_queries(self) -> None:
        async with self.open_store() as store:
            await store.add_evidence([success_of("get_forecast", "weather", at=NOW - 60)])
            old = [success_of("send_mail", f"word{n}", at=NOW - n) for n in range(MAX_PER_TOOL)]
            await store.add_evidence(old)
            await store.add_evidence([success_of("send_mail", "newest", at=NOW + 1)])
            left = await _evidence_in(store)
            assert success_of("get_forecast", "weather", at=NOW - 60) in left
            assert left - {success_of("get_forecast", "weather", at=NOW - 60)} == {
                *old[:-1],
                success_of("send_mail", "newest", at=NOW + 1),
            }

    async def test_what_is_almost_forgotten_goes(self) -> None:
        """With the first success a day after others: a clock may be wrong."""
        async with self.open_store() as store:
            old = success_of("send_mail", "old", at=NOW - 6 * HALF_LIFE_S)
            await store.add_evidence([old])
            await store.add_evidence([success_of("send_mail", "new")])
            assert await _evidence_in(store) == {old, success_of("send_mail", "new")}
            await store.add_evidence([success_of("get_forecast", "newest", at=NOW + DAY_S)])
            await store.add_evidence([success_of("send_mail", "newest", at=NOW + DAY_S)])
            assert await _evidence_in(store) == {
                success_of("send_mail", "new"),
                success_of("send_mail", "newest", at=NOW + DAY_S),
                success_of("get_forecast", "newest", at=NOW + DAY_S),
            }

    async def test_a_clock_that_jumps_makes_a_store_forget_nothing(self) -> None:
        """The success of a wrong time may go."""
        async with self.open_store() as store:
            for jump in [-2.0e9, 20 * 365 * DAY_S]:
                await store.forget_evidence()
                before = {success_of("send_mail", f"word{n}", at=NOW - n * DAY_S) for n in range(5)}
                await store.add_evidence(sorted(before, key=lambda entry: entry.at))
                wrong = success_of("send_mail", "wrong", at=NOW + jump)
                await store.add_evidence([wrong])
                assert await _evidence_in(store) == {*before, wrong}
                await store.add_evidence([success_of("send_mail", "right", at=NOW + 60)])
                right = success_of("send_mail", "right", at=NOW + 60)
                assert await _evidence_in(store) - {wrong} == {*before, right}

    async def test_each_source_has_its_own_evidence(self) -> None:
        async with self.open_store() as store:
            one, two = (replace(success_of("a", "x"), source=name) for name in ("one", "two"))
            await store.add_evidence([one, two, success_of("a", "x")])
            await store.add_evidence([replace(two, conversation="c2")])
            assert await _evidence_in(store) == {
                one,
                success_of("a", "x"),
                replace(two, conversation="c2", strength=2.0),
            }

    async def test_a_source_cannot_crowd_out_the_evidence_of_others(self) -> None:
        async with self.open_store() as store:
            honest = replace(success_of("send_mail", "letter", at=NOW - HALF_LIFE_S), source="ann")
            await store.add_evidence([honest])
            for n in range(3 * MAX_PER_TOOL):
                flood = success_of("send_mail", f"word{n}", at=NOW + n)
                await store.add_evidence([replace(flood, source="bob")])
            left = await _evidence_in(store)
            assert len(left) == MAX_PER_TOOL
            assert honest in left

    async def test_the_salt_of_a_store_stays(self) -> None:
        async with self.open_store() as store:
            assert _supports(store, EvidenceSaltStore)
            salt = await store.evidence_salt()
            assert len(salt) >= 16
            await store.add_evidence([success_of("a", "x")])
            await store.forget_evidence()
            assert await store.evidence_salt() == salt

    async def test_forgetting_one_tool_leaves_the_others(self) -> None:
        async with self.open_store() as store:
            await store.add_evidence(
                [success_of("a", "x"), success_of("a", "y"), success_of("b", "x")]
            )
            assert await store.forget_evidence("a") == 2
            assert await _evidence_in(store) == {success_of("b", "x")}

    async def test_forgetting_all_leaves_nothing(self) -> None:
        async with self.open_store() as store:
            await store.add_evidence([success_of("a", "x"), success_of("b", "x")])
            assert await store.forget_evidence() == 2
            assert await _evidence_in(store) == set()

    async def test_every_change_has_a_revision_of_its_own(self) -> None:
        async with self.open_store() as store:
            for change in ["add", "forget"]:
                await store.forget_evidence()
                await store.add_evidence([success_of("a", "x")])
                before = await store.evidence_revision()
                assert (
                    (await store.load_evidence()).revision
                    == before
                    == await store.evidence_revision()
                )
                if change == "add":
                    await store.add_evidence([success_of("a", "y")])
                else:
                    await store.forget_evidence("a")
                assert await store.evidence_revision() > before

    async def test_successes_of_several_tasks_are_all_kept(self) -> None:
        async with self.open_store() as store:
            await asyncio.gather(*(store.add_evidence([success_of("a", "x")]) for _ in range(3)))
            assert await _evidence_in(store) == {success_of("a", "x", strength=3.0)}

    async def test_the_whole_store_has_a_bound(self) -> None:
        honest = replace(success_of("t", "letter", at=NOW - HALF_LIFE_S), source="ann")
        flood = [
            replace(success_of(f"t{n}", "w", at=NOW + n), source="bob") for n in range(MAX_EVIDENCE)
        ]
        async with self.open_store() as store:
            await store.add_evidence([honest])
            await store.add_evidence(flood)
            await store.add_evidence([success_of("last", "w", at=NOW + MAX_EVIDENCE)])
            left = await _evidence_in(store)
            assert len(left) <= MAX_EVIDENCE + 1
            assert honest in left


class GrantContract(_Contract):
    """Tests of `GrantStore`."""

    async def test_grants_are_kept_as_they_were_given(self) -> None:
        async with self.open_store() as store:
            odd = Grant(rule='x("\ud800\n")', user="", conversation="")
            assert await store.add_grants([CHAT, MAIL])
            assert await store.add_grants([MAIL, odd])
            assert await _grants_in(store) == [CHAT, MAIL, odd]

    async def test_revoking_takes_back_every_definition(self) -> None:
        async with self.open_store() as store:
            others = [Grant(rule="send_mail", user="bo"), Grant(rule="send_mail", user="ann2")]
            newer = Grant(rule="send_mail", user="ann", fingerprint="f2")
            await store.add_grants([MAIL, newer, CHAT, *others])
            assert await store.revoke_grants([Grant(rule="send_mail", user="ann")]) == 2
            assert await _grants_in(store) == [CHAT, *others]

    async def test_grants_of_one_source_are_taken_once(self) -> None:
        """A revoked grant must not come back at the next start."""
        async with self.open_store() as store:
            assert await store.add_grants([MAIL], source="grants.json 1")
            await store.revoke_grants([MAIL])
            assert not await store.add_grants([MAIL], source="grants.json 1")
            assert await _grants_in(store) == []
            assert await store.add_grants([CHAT], source="grants.json 2")

    async def test_every_change_of_grants_has_a_revision_of_its_own(self) -> None:
        """Neither reading nor a repeated grant changes the revision."""
        async with self.open_store() as store:
            seen = [await store.grant_revision()]
            await store.add_grants([MAIL, CHAT])
            seen.append(await store.grant_revision())
            assert (await store.load_grants()).revision == seen[-1]
            await store.revoke_grants([MAIL])
            seen.append(await store.grant_revision())
            await store.forget("group:1")
            seen.append(await store.grant_revision())
            assert len(set(seen)) == 4

    async def test_a_forgotten_conversation_takes_its_grants_with_it(self) -> None:
        """Those of other conversations, and those for always, stay."""
        async with self.open_store() as store:
            other = Grant(rule="run", conversation="group:2")
            await store.save("group:1", record_of())
            await store.add_grants([MAIL, CHAT, other])
            await store.forget("group:1")
            assert await _grants_in(store) == [MAIL, other]


class PermissionModeContract(_Contract):
    """Tests of `PermissionModeStore`."""

    async def test_the_last_mode_is_kept_until_the_conversation_is_forgotten(self) -> None:
        async with self.open_store() as store:
            assert _supports(store, PermissionModeStore)
            assert await store.load_permission_mode("a") is None
            for mode in ("plan", "default"):
                await store.save_permission_mode("a", mode)
                assert await store.load_permission_mode("a") == mode
            await store.save("a", record_of())
            assert await store.load_permission_mode("a") == "default"
            assert await store.load_permission_mode("b") is None
            await store.forget("a")
            assert await store.load_permission_mode("a") is None


class TurnLockContract(_Contract):
    """Tests of `TurnLockStore`."""

    async def test_one_holder_has_the_lock_of_a_conversation(self) -> None:
        async with self.open_store() as store:
            assert _supports(store, TurnLockStore)
            assert await store.lock_turn("a", holder="one", lease_s=60)
            assert not await store.lock_turn("a", holder="two", lease_s=60)
            assert await store.lock_turn("b", holder="two", lease_s=60)
            assert await store.lock_turn("a", holder="one", lease_s=60)
            await store.unlock_turn("a", holder="two")
            assert not await store.lock_turn("a", holder="two", lease_s=60)
            await store.unlock_turn("a", holder="one")
            assert await store.lock_turn("a", holder="two", lease_s=60)

    async def test_the_lock_of_a_dead_holder_ends(self) -> None:
        async with self.open_store() as store:
            assert await store.lock_turn("a", holder="dead", lease_s=0.05)
            for _ in range(150):
                if await store.lock_turn("a", holder="next", lease_s=60):
                    break
                await asyncio.sleep(0.01)
            assert not await store.lock_turn("a", holder="dead", lease_s=60)

    async def test_a_renewed_lock_holds_for_the_new_lease(self) -> None:
        async with self.open_store() as store:
            assert await store.lock_turn("a", holder="one", lease_s=0.2)
            assert await store.lock_turn("a", holder="one", lease_s=60)
            await asyncio.sleep(0.3)
            assert not await store.lock_turn("a", holder="two", lease_s=60)

    async def test_of_holders_at_once_one_gets_the_lock(self) -> None:
        async with self.open_store() as store:
            got = await asyncio.gather(
                *(store.lock_turn("a", holder=f"h{n}", lease_s=60) for n in range(8))
            )
            assert got.count(True) == 1


class StoreContract(
    ConversationContract,
    RevisionContract,
    SetAsideContract,
    EvidenceContract,
    GrantContract,
    PermissionModeContract,
    TurnLockContract,
):
    """All tests, for a store with every protocol."""
