"""The engine `hybrid` with an embedder that fails, hangs or answers wrongly."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.search.word_embedder import WordEmbedder
from tool_search import SearchSettings, Tool, ToolSearchIndex, build_index
from tool_search.config.search import EmbeddingSettings
from tool_search.errors import SearchError
from tool_search.search.vectors.calls import CallLimits, EmbedderCalls
from tool_search.search.vectors.embedder import EmbeddingError

TOOLS = (
    Tool(name="cancel_meeting", description="Takes an appointment off the calendar."),
    Tool(name="list_trains", description="Timetable of trains between two stations."),
    Tool(name="play_music", description="Plays songs."),
)
QUERY = "trains between stations"
Matrix = NDArray[np.float32]
_NUMBERS = count()


class Moody(WordEmbedder):
    """An embedder whose mood a test sets: a function of its good vectors."""

    def __init__(self) -> None:
        super().__init__(f"moody {next(_NUMBERS)}")
        self.mood: Callable[[Matrix], Any] = lambda rows: rows
        self.calls = 0

    def embed(self, texts: Sequence[str]) -> Any:
        """Vectors, as the mood is."""
        self.calls += 1
        return self.mood(super().embed(texts))


def fails(_: Matrix) -> Matrix:
    raise RuntimeError("no memory left")


def refuses(_: Matrix) -> Matrix:
    raise ConnectionRefusedError("nobody listens")


def limits_rate(_: Matrix) -> Matrix:
    raise EmbeddingError("429: slow down", is_passing=True, retry_after_s=40)


def has_nan(rows: Matrix) -> Matrix:
    return rows * np.float32("nan")


def is_too_short(rows: Matrix) -> Matrix:
    return rows[:, :-1]


@contextmanager
def hanging(embedder: Moody) -> Iterator[None]:
    """Let each call of the embedder wait for the end of the block."""
    over = threading.Event()

    def hang(rows: Matrix) -> Matrix:
        assert over.wait(30)
        return rows

    embedder.mood = hang
    try:
        yield
    finally:
        over.set()


def built(
    embedder: Moody, tools: Sequence[Tool] = TOOLS, *, engine: str = "hybrid", **limits: Any
) -> ToolSearchIndex:
    usual: dict[str, Any] = {"query_s": 0.2, "batch_s": 5.0, "retries": 0, "rest_s": 0.01}
    settings = SearchSettings(
        engine=engine, vector_cache=None, embedding=EmbeddingSettings(**(usual | limits))
    )
    return build_index(tools, settings, embedder=embedder)


def names(index: ToolSearchIndex, query: str = QUERY) -> list[str]:
    return [match.name for match in index.search(query, limit=10).matches]


def warning(index: ToolSearchIndex) -> str:
    return str(getattr(index, "warning", ""))


@pytest.mark.parametrize("mood", [fails, refuses, limits_rate, has_nan, is_too_short])
def test_search_goes_on_by_words(mood: Callable[[Matrix], Any]) -> None:
    embedder = Moody()
    index = built(embedder)
    assert not warning(index)
    embedder.mood = mood
    assert names(index) == names(build_index(TOOLS)) == ["list_trains"]
    assert "by their words" in warning(index)


def test_search_does_not_wait_for_an_embedder_that_hangs() -> None:
    """Searches after the first one do not even call it."""
    embedder = Moody()
    index = built(embedder, query_s=0.3, rest_s=60.0)
    with hanging(embedder):
        calls = embedder.calls
        for number in range(20):
            assert names(index, f"{QUERY} {number}") == ["list_trains"]
        assert embedder.calls == calls + 1


def test_semantic_that_hangs_is_a_search_error() -> None:
    embedder = Moody()
    index = built(embedder, engine="semantic")
    with hanging(embedder), pytest.raises(SearchError, match=r"gave no vectors in 0\.2 s"):
        index.search(QUERY, limit=5)


def test_a_failure_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    embedder = Moody()
    index = built(embedder)
    embedder.mood = fails
    with caplog.at_level(logging.INFO):
        for number in range(5):
            names(index, f"{QUERY} {number}")
        embedder.mood = lambda rows: rows
        names(index, "songs")
    said = [record.levelname for record in caplog.records if "moody" in record.getMessage()]
    assert said == ["WARNING", "INFO"]
    assert not warning(index)


def test_build_without_the_embedder_is_caught_up_with_later() -> None:
    embedder = Moody()
    embedder.mood = fails
    index = built(embedder)
    assert names(index) == ["list_trains"]
    assert warning(index)
    embedder.mood = lambda rows: rows
    wait_until_embedded(index)
    assert names(index, "songs") == ["play_music"]


def test_build_does_not_wait_for_the_end_of_a_rate_limit() -> None:
    """The service asks for 40 s, and two more tries would be allowed."""
    embedder = Moody()
    embedder.mood = limits_rate
    index = built(embedder, retries=2, rest_s=60.0)
    assert names(index) == ["list_trains"]
    assert embedder.calls == 1
    assert "slow down" in warning(index)


def test_tools_that_come_while_the_embedder_is_down_are_embedded_later() -> None:
    embedder = Moody()
    index = built(embedder)
    embedder.mood = refuses
    grown = index.updated(
        added=[Tool(name="bake", description="Bread from flour.")], removed=["play_music"]
    )
    assert names(grown, "bread") == ["bake"]
    embedder.mood = lambda rows: rows
    wait_until_embedded(grown)
    assert any(text == "Bread from flour." for text in embedder.asked)
    assert not any("cancel meeting" in text for text in embedder.asked[-4:])


def wait_until_embedded(index: ToolSearchIndex) -> None:
    for _ in range(500):
        names(index)
        if not warning(index):
            return
        threading.Event().wait(0.01)
    raise AssertionError(warning(index))


def test_a_passing_failure_is_tried_again_within_the_search() -> None:
    embedder = Moody()
    index = built(embedder, retries=2, query_s=20.0)
    failures = [1, 1]

    def recover(rows: Matrix) -> Matrix:
        if failures.pop() if failures else 0:
            raise EmbeddingError("503", is_passing=True)
        return rows

    embedder.mood = recover
    assert names(index, "songs") == ["play_music"]
    assert not failures
    assert not warning(index)


def test_a_failure_that_lasts_is_not_tried_again() -> None:
    embedder = Moody()
    index = built(embedder, retries=5, query_s=20.0)
    embedder.mood, calls = fails, embedder.calls
    names(index)
    assert embedder.calls == calls + 1


class AsyncEmbedder(WordEmbedder):
    """An asynchronous embedder with another form for queries."""

    def __init__(self) -> None:
        super().__init__(f"async {next(_NUMBERS)}")
        self.loops: set[asyncio.AbstractEventLoop] = set()
        self.queries: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Matrix:  # type: ignore[override]
        """Vectors of tools."""
        self.loops.add(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return super().embed(texts)

    async def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """Vectors of queries."""
        self.queries.extend(texts)
        return await self.embed(texts)


async def test_an_asynchronous_embedder_is_driven_on_a_loop_of_its_own() -> None:
    """Also for a caller that blocks its own loop with a search."""
    embedder = AsyncEmbedder()
    settings = SearchSettings(engine="hybrid", vector_cache=None)
    index = build_index(TOOLS, settings, embedder=embedder)
    assert names(index, "play songs")[0] == "play_music"
    assert "play songs" in embedder.queries
    assert "Plays songs." not in embedder.queries
    assert len(embedder.loops) == 1
    assert asyncio.get_running_loop() not in embedder.loops


def test_an_asynchronous_embedder_that_hangs_is_cancelled() -> None:
    cancelled = threading.Event()

    class Hanging(AsyncEmbedder):
        async def embed(self, texts: Sequence[str]) -> Matrix:  # type: ignore[override]
            """Never."""
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.set()
                raise
            return await super().embed(texts)

    index = built(Hanging(), batch_s=0.1)  # type: ignore[arg-type]
    assert names(index) == ["list_trains"]
    assert cancelled.wait(20)


def test_calls_that_hang_do_not_pile_up_threads() -> None:
    embedder = Moody()
    before = threading.active_count()
    with hanging(embedder):
        calls = EmbedderCalls(embedder, CallLimits(query_s=0.01, rest_s=0.001, retries=0))
        for number in range(40):
            with pytest.raises(SearchError):
                calls.embed([f"text {number}"], "query", waiting="search")
        assert threading.active_count() - before <= 20


@pytest.mark.parametrize("ending", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
def test_an_asynchronous_embedder_that_ends_leaves_the_loop_to_others(
    ending: BaseException,
) -> None:
    class Ending(AsyncEmbedder):
        async def embed(self, texts: Sequence[str]) -> Matrix:  # type: ignore[override]
            """Never."""
            raise ending

    assert names(built(Ending())) == ["list_trains"]  # type: ignore[arg-type]
    index = built(AsyncEmbedder())  # type: ignore[arg-type]
    assert names(index, "play songs") == ["play_music"]
    assert not warning(index)


@pytest.mark.parametrize("ending", [SystemExit(3), asyncio.CancelledError()])
def test_an_embedder_that_ends_does_not_end_the_search(ending: BaseException) -> None:
    def end(_: Matrix) -> Matrix:
        raise ending

    embedder = Moody()
    index = built(embedder)
    embedder.mood = end
    assert names(index) == ["list_trains"]
    assert "by their words" in warning(index)
