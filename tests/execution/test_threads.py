"""The threads of functions that are not async."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest

from tool_search.core.values.aside import Threads


async def test_no_more_functions_run_at_once_than_there_is_room_for() -> None:
    threads = Threads(3)
    lock, running, most = threading.Lock(), 0, 0

    def work(number: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.005)
        with lock:
            running -= 1
        return number

    results = await asyncio.gather(*(threads.run(partial(work, n)) for n in range(40)))
    assert results == list(range(40))
    assert most == 3
    assert threads.count <= 3


async def test_functions_that_hang_do_not_stop_the_others() -> None:
    """Given up, their threads no longer count; at last there is a bound on those too."""
    threads, over = Threads(2), threading.Event()
    for _ in range(6):
        hung = asyncio.ensure_future(threads.run(over.wait))
        await asyncio.sleep(0.01)
        hung.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hung
    assert await asyncio.wait_for(threads.run(lambda: "goes on"), 10) == "goes on"
    assert threads.count <= 8
    over.set()


async def test_what_is_cancelled_before_it_begins_does_not_run() -> None:
    threads, over, ran = Threads(1), threading.Event(), []
    first = asyncio.ensure_future(threads.run(over.wait))
    second = asyncio.ensure_future(threads.run(lambda: ran.append("second")))
    await asyncio.sleep(0.01)
    second.cancel()
    over.set()
    await first
    await threads.run(lambda: ran.append("third"))
    assert ran == ["third"]
    assert second.cancelled()


async def test_an_exit_in_a_function_fails_it_alone() -> None:
    threads = Threads(1)

    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="SystemExit: 3"):
        await threads.run(leave)
    assert await threads.run(lambda: 1) == 1
