"""A task that looks again after changes."""

from __future__ import annotations

import asyncio

from tool_search.sources.following import Follower


class Looks:
    """Counts looks; each goes on when it is let."""

    def __init__(self, again: float | None = None) -> None:
        self.count = 0
        self.third = asyncio.Event()
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self._again = again

    async def look(self) -> float | None:
        """Look, and return when to look again."""
        self.count += 1
        self.begun.set()
        if self.count == 3:
            self.third.set()
        await self.go.wait()
        return self._again


async def test_changes_during_a_look_are_in_one_more() -> None:
    looks = Looks()
    follower = Follower(looks.look, name="test")
    follower.hear()
    follower.start()
    await looks.begun.wait()
    for _ in range(5):
        await asyncio.to_thread(follower.hear)
    looks.begun.clear()
    looks.go.set()
    await looks.begun.wait()
    await asyncio.sleep(0)
    await follower.aclose()

    assert looks.count == 2
    assert not follower.is_open


async def test_without_a_change_nothing_is_looked_at_and_with_one_in_time_it_is() -> None:
    looks = Looks(again=0.001)
    looks.go.set()
    follower = Follower(looks.look, name="test")
    follower.start()
    await asyncio.sleep(0.02)
    assert looks.count == 0
    follower.hear()
    await looks.third.wait()
    await follower.aclose()


def test_a_follower_goes_on_in_another_loop() -> None:
    looked: list[asyncio.Event] = []

    async def look() -> None:
        looked[-1].set()

    follower = Follower(look, name="test")

    async def follow_once() -> None:
        looked.append(asyncio.Event())
        follower.start()
        follower.hear()
        await looked[-1].wait()
        await follower.aclose()

    asyncio.run(follow_once())
    asyncio.run(follow_once())
    assert len(looked) == 2
