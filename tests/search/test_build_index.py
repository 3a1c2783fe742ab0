"""Building an index: the cache, the engines' names, the loaded modules."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.search.registry import BY_WORDS
from tool_search.catalog.tool import Tool
from tool_search.config.search import SearchSettings
from tool_search.errors import DuplicateToolError, SearchError
from tool_search.search import build_index
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


@pytest.mark.parametrize("engine", BY_WORDS)
def test_build_index_with_jieba_finds_chinese(engine: Any) -> None:
    index = build_index(TOOLS, SearchSettings(engine=engine, segmenter="jieba"))
    assert [m.name for m in index.search("明天的天气", limit=5).matches] == ["get_weather"]


def test_import_loads_no_heavy_library() -> None:
    code = (
        "import sys; from tool_search.catalog.catalog import Tool;"
        "from tool_search.search import build_index;"
        "build_index([Tool(name='a')]).search('a', limit=1);"
        "print([m for m in ('numpy', 'jieba', 'rank_bm25', 're2', 'pydantic') if m in sys.modules])"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
