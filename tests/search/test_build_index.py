"""Building an index: the cache, the engines' names, the loaded modules."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.search.registry import BY_WORDS
from tests.search.word_embedder import WordEmbedder
from tool_search.config.search import SearchSettings
from tool_search.core.catalog.tool import Tool
from tool_search.errors import DuplicateToolError, SearchError
from tool_search.search import ToolSearchIndex, build_index
from tool_search.search.build import _DEFAULTS

TOOLS = (Tool(name="get_weather", description="天气预报"), Tool(name="send_mail"))


def test_build_index_of_equal_content_is_the_same_index() -> None:
    again = [Tool(name="send_mail"), Tool(name="get_weather", description="天气预报")]
    assert build_index(TOOLS) is build_index(again)


def test_build_index_of_other_content_is_another_index() -> None:
    index = build_index(TOOLS)
    assert index is not build_index((TOOLS[0], Tool(name="send_mail", description="By post.")))
    assert index is not build_index(TOOLS, SearchSettings(min_relevance=0.2))


def test_build_index_keeps_few_indexes() -> None:
    index = build_index(TOOLS)
    for number in range(20):
        build_index([Tool(name=f"other_{number}")])
    assert build_index(TOOLS) is not index


def test_build_index_without_settings_takes_their_defaults() -> None:
    settings = SearchSettings()
    assert (settings.engine, settings.min_relevance, settings.segmenter) == _DEFAULTS
    assert build_index(TOOLS) is build_index(TOOLS, settings)


def test_build_index_two_tools_of_one_name_raises() -> None:
    with pytest.raises(DuplicateToolError, match="'a'"):
        build_index([Tool(name="a"), Tool(name="a", description="Another.")])


def test_build_index_unknown_engine_raises() -> None:
    settings: Any = SearchSettings.model_construct(
        engine="oracle",
        min_relevance=0.1,
        segmenter="builtin",
    )
    with pytest.raises(SearchError, match="bm25, hybrid, lexical, rank_bm25, regex, semantic"):
        build_index(TOOLS, settings)


class _SlowEmbedder(WordEmbedder):
    """An embedder whose first call waits until the test lets it go on."""

    def __init__(self, failure: Exception | None = None) -> None:
        super().__init__(f"slow {id(self)}")
        self.entered, self.go_on = threading.Event(), threading.Event()
        self.failure = failure

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A row for each text."""
        self.entered.set()
        assert self.go_on.wait(20)
        if self.failure is not None:
            raise self.failure
        return super().embed(texts)


def _ask_at_once(embedder: _SlowEmbedder, threads: int) -> list[Future[ToolSearchIndex]]:
    settings = SearchSettings(engine="semantic", vector_cache=None)
    ask = partial(build_index, TOOLS, settings, embedder=embedder)
    with ThreadPoolExecutor(threads) as pool:
        waiting = [pool.submit(ask) for _ in range(threads)]
        assert embedder.entered.wait(20)
        embedder.go_on.set()
    return waiting


def test_build_index_that_many_threads_ask_for_is_built_once() -> None:
    embedder = _SlowEmbedder()
    found = {id(each.result()) for each in _ask_at_once(embedder, 32)}
    assert len(found) == 1
    texts = [text for text in embedder.asked if "send mail" in text]
    assert len(texts) == 1


def test_build_index_that_fails_fails_for_all_who_wait_and_is_tried_again() -> None:
    embedder = _SlowEmbedder(RuntimeError("no memory left"))
    for waiting in _ask_at_once(embedder, 4):
        assert isinstance(waiting.exception(), SearchError)
    embedder.failure = None
    assert not any(each.exception() for each in _ask_at_once(embedder, 2))


@pytest.mark.parametrize("engine", BY_WORDS)
def test_build_index_with_jieba_finds_chinese(engine: Any) -> None:
    index = build_index(TOOLS, SearchSettings(engine=engine, segmenter="jieba"))
    assert [m.name for m in index.search("明天的天气", limit=5).matches] == ["get_weather"]


def test_import_loads_no_heavy_library() -> None:
    code = (
        "import sys; from tool_search.core.catalog.catalog import Tool;"
        "from tool_search.search import build_index;"
        "build_index([Tool(name='a')]).search('a', limit=1);"
        "print([m for m in ('numpy', 'jieba', 'rank_bm25', 're2', 'pydantic') if m in sys.modules])"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
