"""A store of one's own: the contract passes the right one, and finds each deliberate fault."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from tool_search import ConversationRecord, Discovery, MemoryStore
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import Message
from tool_search.search.learned import Evidence, merge_evidence
from tool_search.stores import Grant
from tool_search.stores.base import KeptEvidence, KeptGrants
from tool_search.testing.store_contract import (
    ConversationContract,
    EvidenceContract,
    GrantContract,
    PermissionModeContract,
    RevisionContract,
    SetAsideContract,
    StoreContract,
    TurnLockContract,
)


class Right(MemoryStore):
    """A store with every protocol, in memory.

    Attributes:
        contract: The tests that find the fault of a subclass.
    """

    contract: type[Any] = ConversationContract

    def __init__(self) -> None:
        super().__init__(keep_conversations=None)
        self.revisions: dict[str, int] = {}
        self.last = 1000
        self.locks: dict[str, tuple[str, float]] = {}

    async def save(self, key: str, record: ConversationRecord) -> None:
        await super().save(key, record)
        self.last += 1
        self.revisions[key] = self.last

    async def revision(self, key: str) -> int | None:
        return self.revisions.get(key)

    async def save_over(
        self, key: str, record: ConversationRecord, *, expected: int | None, new: int
    ) -> bool:
        if self.revisions.get(key) != expected:
            return False
        await self.save(key, record)
        self.revisions[key] = new
        return True

    async def forget(self, key: str) -> None:
        await super().forget(key)
        self.revisions.pop(key, None)

    async def set_aside(self, key: str) -> None:
        self._records.pop(key, None)
        self._discoveries.pop(key, None)
        self.revisions.pop(key, None)

    async def lock_turn(self, key: str, *, holder: str, lease_s: float) -> bool:
        other, ends = self.locks.get(key, (holder, 0.0))
        if other != holder and time.monotonic() < ends:
            return False
        self.locks[key] = (holder, time.monotonic() + lease_s)
        return True

    async def unlock_turn(self, key: str, *, holder: str) -> None:
        if self.locks.get(key, ("",))[0] == holder:
            del self.locks[key]


def only_text(record: ConversationRecord) -> ConversationRecord:
    history = tuple(Message(role=each.role, content=each.text) for each in record.history)
    return replace(record, history=history)


class LosesContents(Right):
    """It writes roles and texts, and not what else messages have."""

    async def save(self, key: str, record: ConversationRecord) -> None:
        await super().save(key, only_text(record))


class LosesTheRest(Right):
    """It keeps the history and the search tool."""

    async def save(self, key: str, record: ConversationRecord) -> None:
        kept = ConversationRecord(
            language=record.language,
            decision=record.decision,
            search_tool=record.search_tool,
            tool_order=record.tool_order,
            history=record.history,
            discoveries=record.discoveries,
        )
        await super().save(key, kept)


class LosesWays(Right):
    """Every discovery is one of a search."""

    async def append_discoveries(
        self, key: str, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        return await super().append_discoveries(key, [Discovery(tool=e.tool) for e in entries])


class LosesFields(Right):
    """A definition is its name, its description and its parameters."""

    async def append_discoveries(
        self, key: str, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        plain = [
            Discovery(
                tool=Tool(
                    name=e.tool.name,
                    description=e.tool.description,
                    parameters=dict(e.tool.parameters),
                ),
                via=e.via,
            )
            for e in entries
        ]
        return await super().append_discoveries(key, plain)


class SortsDiscoveries(Right):
    async def append_discoveries(
        self, key: str, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        known = await super().append_discoveries(key, entries)
        return tuple(sorted(known, key=lambda entry: entry.name))


class ReturnsNewDiscoveriesOnly(Right):
    async def append_discoveries(
        self, key: str, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        await super().append_discoveries(key, entries)
        return tuple(entries)


class AppendsInTwoSteps(Right):
    async def append_discoveries(
        self, key: str, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        state = self._discoveries.get(key)
        before = () if state is None else state.entries
        await asyncio.sleep(0)
        self._discoveries.pop(key, None)
        return await super().append_discoveries(key, (*before, *entries))


class KeepsOldDefinitions(Right):
    async def save(self, key: str, record: ConversationRecord) -> None:
        known = await self.append_discoveries(key, record.discoveries)
        await super().save(key, replace(record, discoveries=known))


class ForgetsByPrefix(Right):
    async def forget(self, key: str) -> None:
        for other in [each for each in self._records if each.startswith(key)]:
            await super().forget(other)


class RaisesForUnknown(Right):
    async def forget(self, key: str) -> None:
        if key not in self._used:
            raise AssertionError(f"no conversation {key!r}")
        await super().forget(key)


class KeepsDiscoveriesOfForgotten(Right):
    async def forget(self, key: str) -> None:
        state = self._discoveries.get(key)
        await super().forget(key)
        if state is not None:
            self._discoveries[key] = state


def with_keys(change: Callable[[str], str]) -> type[Right]:
    class Changed(Right):
        async def load(self, key: str) -> ConversationRecord | None:
            return await super().load(change(key))

        async def save(self, key: str, record: ConversationRecord) -> None:
            await super().save(change(key), record)

    return Changed


class CutsHistory(Right):
    async def save(self, key: str, record: ConversationRecord) -> None:
        await super().save(key, replace(record, history=record.history[-50:]))


class NeverShortens(Right):
    async def save(self, key: str, record: ConversationRecord) -> None:
        before = self._records.get(key)
        if before is not None and len(before.history) > len(record.history):
            record = replace(record, history=before.history)
        await super().save(key, record)


class IgnoresExpected(Right):
    contract = RevisionContract

    async def save_over(
        self, key: str, record: ConversationRecord, *, expected: int | None, new: int
    ) -> bool:
        await self.save(key, record)
        self.revisions[key] = new
        return True


class ChoosesRevisions(Right):
    contract = RevisionContract

    async def save_over(
        self, key: str, record: ConversationRecord, *, expected: int | None, new: int
    ) -> bool:
        return await super().save_over(key, record, expected=expected, new=self.last + 1)


class CountsAppendsAsSaves(Right):
    contract = RevisionContract

    async def append_discoveries(
        self, key: str, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        if key in self.revisions:
            self.last += 1
            self.revisions[key] = self.last
        return await super().append_discoveries(key, entries)


class ChecksBeforeItSaves(Right):
    contract = RevisionContract

    async def save_over(
        self, key: str, record: ConversationRecord, *, expected: int | None, new: int
    ) -> bool:
        if self.revisions.get(key) != expected:
            return False
        await asyncio.sleep(0)
        await self.save(key, record)
        self.revisions[key] = new
        return True


class SetsNothingAside(Right):
    contract = SetAsideContract

    async def set_aside(self, key: str) -> None:
        pass


class KeepsDiscoveriesOfSetAside(Right):
    contract = SetAsideContract

    async def set_aside(self, key: str) -> None:
        self._records.pop(key, None)


class AddsNoStrength(Right):
    contract = EvidenceContract

    async def add_evidence(self, entries: Sequence[Evidence]) -> None:
        self._learned |= {entry.key: entry for entry in entries}
        self._learned_revision += 1


class MergesSources(Right):
    contract = EvidenceContract

    async def add_evidence(self, entries: Sequence[Evidence]) -> None:
        await super().add_evidence([replace(entry, source="") for entry in entries])


class HasNoBound(Right):
    contract = EvidenceContract

    async def add_evidence(self, entries: Sequence[Evidence]) -> None:
        self._learned = merge_evidence(self._learned.values(), entries)
        self._learned_revision += 1


class KeepsOneRevision(Right):
    contract = EvidenceContract

    async def evidence_revision(self) -> int:
        return 7

    async def load_evidence(self) -> KeptEvidence:
        return (await super().load_evidence())._replace(revision=7)


class ChangesItsSalt(Right):
    contract = EvidenceContract

    async def evidence_salt(self) -> bytes:
        return str(time.monotonic_ns()).encode().rjust(32)


class LosesFingerprints(Right):
    contract = GrantContract

    async def add_grants(self, grants: Sequence[Grant], *, source: str | None = None) -> bool:
        return await super().add_grants(
            [replace(grant, fingerprint=None) for grant in grants], source=source
        )


class AddsSourcesTwice(Right):
    contract = GrantContract

    async def add_grants(self, grants: Sequence[Grant], *, source: str | None = None) -> bool:
        return await super().add_grants(grants)


class RevokesOneDefinition(Right):
    contract = GrantContract

    async def revoke_grants(self, grants: Sequence[Grant]) -> int:
        before = len(self._granted)
        left = {text: grant for text, grant in self._granted.items() if grant not in grants}
        self._keep_grants(left)
        return before - len(left)


class KeepsGrantsOfForgotten(Right):
    contract = GrantContract

    async def forget(self, key: str) -> None:
        kept = self._granted
        await super().forget(key)
        self._keep_grants(kept)


class SortsGrants(Right):
    contract = GrantContract

    async def load_grants(self) -> KeptGrants:
        kept = await super().load_grants()
        return kept._replace(entries=tuple(sorted(kept.entries, key=lambda grant: grant.rule)))


class KeepsOneMode(Right):
    contract = PermissionModeContract

    async def load_permission_mode(self, key: str) -> str | None:
        return next(iter(self._modes.values()), None)


class KeepsModesOfForgotten(Right):
    contract = PermissionModeContract

    async def forget(self, key: str) -> None:
        mode = self._modes.get(key)
        await super().forget(key)
        if mode is not None:
            self._modes[key] = mode


class LocksForEver(Right):
    contract = TurnLockContract

    async def lock_turn(self, key: str, *, holder: str, lease_s: float) -> bool:
        return await super().lock_turn(key, holder=holder, lease_s=3600)


class RenewsNothing(Right):
    contract = TurnLockContract

    async def lock_turn(self, key: str, *, holder: str, lease_s: float) -> bool:
        held = self.locks.get(key)
        is_locked = await super().lock_turn(key, holder=holder, lease_s=lease_s)
        if held is not None and held[0] == holder:
            self.locks[key] = held
        return is_locked


class UnlocksForAnybody(Right):
    contract = TurnLockContract

    async def unlock_turn(self, key: str, *, holder: str) -> None:
        self.locks.pop(key, None)


class LocksOnce(Right):
    contract = TurnLockContract

    async def lock_turn(self, key: str, *, holder: str, lease_s: float) -> bool:
        return await super().lock_turn("", holder=holder, lease_s=lease_s)


class LocksInTwoSteps(Right):
    contract = TurnLockContract

    async def lock_turn(self, key: str, *, holder: str, lease_s: float) -> bool:
        other, ends = self.locks.get(key, (holder, 0.0))
        if other != holder and time.monotonic() < ends:
            return False
        await asyncio.sleep(0)
        self.locks[key] = (holder, time.monotonic() + lease_s)
        return True


FAULTS: Mapping[str, type[Right]] = {
    each.__name__: each for each in Right.__subclasses__() if each.__name__ != "Changed"
} | {
    "keys in lower case": with_keys(str.lower),
    "keys without spaces": with_keys(str.strip),
    "keys of 255 characters": with_keys(lambda key: key[:255]),
    "keys as file names": with_keys(lambda key: key.replace("/", "_")),
}


async def failures(store: type[Right], contract: type[Any]) -> list[str]:
    """Return the tests of a contract that a store fails."""

    class Tested(contract):  # type: ignore[misc]
        @asynccontextmanager
        async def open_store(self) -> AsyncIterator[Right]:
            yield store()

    failed = []
    for name, test in inspect.getmembers(Tested(), inspect.iscoroutinefunction):
        try:
            await test()
        except AssertionError:
            failed.append(name)
    return failed


async def test_the_right_store_passes() -> None:
    assert await failures(Right, StoreContract) == []


@pytest.mark.parametrize("fault", FAULTS)
async def test_each_deliberate_fault_is_found(fault: str) -> None:
    store = FAULTS[fault]
    assert await failures(store, store.contract)
