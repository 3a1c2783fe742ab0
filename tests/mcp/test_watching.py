"""Watched resources of a server whose connection ends at the wrong moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from tests.mcp.helpers import call, free_port, over_http, until, with_sdk
from tool_search.adapters.mcp import MCPSource
from tool_search.adapters.mcp.protocol import NotSentError
from tool_search.adapters.mcp.watching import WatchedResources
from tool_search.sources.base import ListChange


class SlowSession:
    """A session of 2026-07-28 that confirms its first stream alone."""

    capabilities = {"resources": {"subscribe": True}}  # noqa: RUF012
    listens = True

    def __init__(self) -> None:
        self.opened = 0
        self.waits = asyncio.Event()

    @asynccontextmanager
    async def listen_to(self, _: Sequence[str]) -> AsyncGenerator[Any]:
        self.opened += 1
        if self.opened > 1:
            self.waits.set()
            await asyncio.Event().wait()
        yield self._events()

    async def _events(self) -> AsyncGenerator[str]:
        await asyncio.Event().wait()
        yield ""


async def test_a_connection_that_ends_while_a_stream_begins_leaves_no_task() -> None:
    before = asyncio.all_tasks()
    watched, session = WatchedResources("notes", timeout_s=60), SlowSession()
    await watched.add(session, "note://1", print)  # type: ignore[arg-type]
    second = asyncio.create_task(
        watched.add(session, "note://2", print)  # type: ignore[arg-type]
    )
    await session.waits.wait()

    watched.stop()

    with pytest.raises(NotSentError, match="closed"):
        await asyncio.wait_for(second, 5)
    left = asyncio.all_tasks() - before
    if left:
        await asyncio.wait(left, timeout=5)
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_changes_of_prompts_and_resources_are_reported(way: str) -> None:
    async with AsyncExitStack() as stack:
        http = over_http("streamable-http", free_port())
        entry = with_sdk() if way == "stdio" else await stack.enter_async_context(http)
        source = await stack.enter_async_context(MCPSource({"memos": entry}, start_s=60))
        heard: list[ListChange] = []
        leave = source.subscribe_lists(heard.append)

        result = await call(source, "write_memo", name="first", times=300)
        assert result.content == "written"
        await until(lambda: {each.kind for each in heard} == {"prompts", "resources"})
        assert {each.server for each in heard} == {"memos"}
        listed = await source.request("memos", "resources/list")
        assert [each["uri"] for each in listed["resources"]] == ["memo://first"]

        leave()
        await asyncio.sleep(0.5)
        heard.clear()
        await call(source, "write_memo", name="second")
        await asyncio.sleep(1.2)
        assert heard == []


async def test_a_server_that_goes_and_comes_has_other_prompts_and_resources() -> None:
    async with MCPSource({"memos": with_sdk()}, start_s=60) as source:
        heard: list[ListChange] = []
        source.subscribe_lists(heard.append)
        source._connections["memos"]._process._process.kill()  # type: ignore[union-attr]
        await until(lambda: {each.kind for each in heard} == {"prompts", "resources"})


class SilentSession:
    """A session of the handshake whose server has stopped answering."""

    capabilities = {"resources": {"subscribe": True}}  # noqa: RUF012
    listens = False

    def __init__(self, *, answers: int) -> None:
        self.answers = answers

    async def request(self, method: str, params: Any) -> dict[str, Any]:
        if self.answers <= 0:
            await asyncio.Event().wait()
        self.answers -= 1
        return {}


async def test_a_server_that_does_not_answer_holds_its_watched_resources_for_its_timeout(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[str] = []
    watched = WatchedResources("notes", timeout_s=0.05)
    silent = SilentSession(answers=2)
    await watched.add(silent, "note://1", heard.append)  # type: ignore[arg-type]
    end = await watched.add(silent, "note://2", heard.append)  # type: ignore[arg-type]
    end()  # nobody answers this either

    await asyncio.wait_for(watched.resume(silent), 5)  # type: ignore[arg-type]

    assert "server 'notes' does not report changes" in caplog.text
    assert "within 0.05 seconds" in caplog.text
    assert heard == ["note://1"]  # it may have changed meanwhile
    await watched.add(SilentSession(answers=1), "note://3", heard.append)  # type: ignore[arg-type]
    watched.stop()
