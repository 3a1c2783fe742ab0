"""Random failures of a store with two processes: each message is there once, or erased."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tests.runner.bench import assert_paired
from tests.stores.writers import Talk
from tool_search import ConversationRecord, Discovery, MemoryStore, StoreError
from tool_search.stores.keeping import Backlog

_KEY = "c"
_IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
_EXAMPLES = 2_000 if _IS_LONG else 40


class FlakyStore(MemoryStore):
    """A store that fails at chosen methods, before or after the work."""

    def __init__(self) -> None:
        super().__init__()
        self.failing: dict[str, bool] = {}
        self._revisions: dict[str, int] = {}

    def _check(self, method: str, *, is_done: bool) -> None:
        if self.failing.get(method) is is_done:
            raise StoreError(f"no such disk: {method}")

    async def load(self, key: str) -> ConversationRecord | None:
        self._check("load", is_done=False)
        return await super().load(key)

    async def append_discoveries(
        self, key: str, entries: Sequence[Discovery]
    ) -> tuple[Discovery, ...]:
        self._check("append", is_done=False)
        found = await super().append_discoveries(key, entries)
        self._check("append", is_done=True)
        return found

    async def forget(self, key: str) -> None:
        self._check("forget", is_done=False)
        self._revisions.pop(key, None)
        await super().forget(key)
        self._check("forget", is_done=True)


class SharedFlakyStore(FlakyStore):
    """A failing store with revisions, so that two processes may share a conversation."""

    async def revision(self, key: str) -> int | None:
        self._check("revision", is_done=False)
        return self._revisions.get(key)

    async def save_over(
        self, key: str, record: ConversationRecord, *, expected: int | None, new: int
    ) -> bool:
        self._check("save", is_done=False)
        if self._revisions.get(key) != expected:
            return False
        await super().save(key, record)
        self._revisions[key] = new
        self._check("save", is_done=True)
        return True


_FAILURES = st.dictionaries(
    st.sampled_from(["load", "append", "revision", "save", "forget"]), st.booleans(), max_size=3
)


class Processes(RuleBasedStateMachine):
    """Two processes that serve one conversation, over a store that fails at times."""

    loop: asyncio.Runner
    kind: type[FlakyStore]
    # Only with revisions may a conversation have two processes.
    sides = 2

    def __init__(self) -> None:
        super().__init__()
        self.store = self.kind()
        self.talks = [self._started() for _ in range(self.sides)]
        self.count = 0
        # What is to be there in the end: all that was said since it was last forgotten.
        self.said: set[str] = set()
        self.erased: set[str] = set()

    def _started(self) -> Talk:
        return Talk(self.store, _KEY, Backlog())

    def _run(self, coroutine: Any) -> Any:
        return self.loop.run(coroutine)

    @rule(side=st.integers(0, 1), failing=_FAILURES, times=st.integers(1, 3))
    def talk(self, side: int, failing: dict[str, bool], times: int) -> None:
        """Turns during which the store fails at some of its methods."""
        self.store.failing = failing
        for _ in range(times):
            self.count += 1
            text = f"turn {self.count}"
            is_kept = self._run(self.talks[side % self.sides].turn(text))
            self.said.add(text)
            assert is_kept or failing
        self.store.failing = {}

    @rule(side=st.integers(0, 1))
    def restart(self, side: int) -> None:
        """A process ends as it should, and begins again."""
        self._run(self.talks[side % self.sides].close())
        self.talks[side % self.sides] = self._started()

    @rule(failing=st.booleans())
    def forget(self, failing: bool) -> None:
        """All processes have written what they had, and but for one they end; that forgets.

        One that could not see that it was forgotten would drop what it says next.
        """
        for talk in self.talks:
            self._run(talk.close())
        self.talks[1:] = [self._started() for _ in self.talks[1:]]
        if failing:
            self.store.failing = {"forget": False}
        with suppress(StoreError):
            self._run(self.talks[0].forget())
        self.store.failing = {}
        self._run(self.talks[0].close())
        self.erased |= self.said
        self.said.clear()

    def teardown(self) -> None:
        """All messages are there once, and none that was erased."""
        for talk in self.talks:
            self._run(talk.close())
        record = self._run(self.store.load(_KEY))
        heard = [] if record is None else [m.text for m in record.history if m.role == "user"]
        assert sorted(heard) == sorted(self.said)
        if record is not None:
            assert_paired(record.history)
            found = {entry.name for entry in record.discoveries}
            assert {f"found {text.split()[0]}" for text in self.said} <= found


@pytest.mark.parametrize("kind", [FlakyStore, SharedFlakyStore])
def test_random_failures_lose_nothing_and_double_nothing(kind: type[FlakyStore]) -> None:
    with asyncio.Runner() as loop:
        sides = 1 if kind is FlakyStore else 2
        machine = type("M", (Processes,), {"loop": loop, "kind": kind, "sides": sides})
        run_state_machine_as_test(
            machine, settings=settings(max_examples=_EXAMPLES, stateful_step_count=8)
        )
