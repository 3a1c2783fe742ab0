"""The engine `semantic` with embedders, caches and stores of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.search.word_embedder import FailingEmbedder, WordEmbedder
from tool_search import SearchSettings, Tool, ToolCatalog, ToolSearchIndex, ToolSearchTool
from tool_search.errors import SearchError
from tool_search.search import build_index
from tool_search.search.vectors.store import ExactVectorStore
from tool_search.search.vectors.vectors import normalize_rows

TOOLS = (
    Tool(name="getWeather", description="Forecast for a city."),
    Tool(name="send_mail", description="Sends a letter."),
    Tool(name="find_route", description="The shortest way between two places."),
)
SETTINGS = SearchSettings(engine="semantic", vector_cache=None)
_NUMBERS = count()
_E = TypeVar("_E", bound=WordEmbedder)


class KeptInMemory:
    """A `VectorCache` in memory, for a look at its entries."""

    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        return {key: self.entries[key] for key in keys if key in self.entries}

    def put(self, entries: Mapping[str, bytes]) -> None:
        self.entries.update(entries)


class Far(WordEmbedder):
    """An embedder whose vectors are all similar, as those of e5 are."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors that share a large part."""
        rows = normalize_rows(super().embed(texts))
        rows[:, 0] += 2.0
        return rows


class Foreign:
    """A `VectorStore` of another package, which has the protocol alone."""

    def __init__(self, inner: ExactVectorStore | None = None) -> None:
        self._inner = inner or ExactVectorStore()

    def updated(self, *, added: Mapping[str, NDArray[np.float32]], removed: Any) -> Foreign:
        """Another store."""
        return Foreign(self._inner.updated(added=added, removed=removed))

    def search(self, vector: NDArray[np.float32], *, limit: int) -> list[tuple[str, float]]:
        """The most similar vectors."""
        return self._inner.search(vector, limit=limit)


class Wrong(Foreign):
    """A store whose similarities are distances."""

    def search(self, vector: NDArray[np.float32], *, limit: int) -> list[tuple[str, float]]:
        """No similarities."""
        return [("getWeather", 42.0)]

    def updated(self, *, added: Mapping[str, NDArray[np.float32]], removed: Any) -> Wrong:
        """Itself."""
        return self


def own(kind: type[_E]) -> _E:
    """An embedder that shares no index with another test."""
    return kind(f"{kind.__name__} {next(_NUMBERS)}")


def built(embedder: WordEmbedder | None = None, **more: Any) -> ToolSearchIndex:
    """An index over the tools."""
    return build_index(TOOLS, SETTINGS, embedder=embedder or own(WordEmbedder), **more)


def names(index: ToolSearchIndex, query: str) -> list[str]:
    """The names that a search finds."""
    return [match.name for match in index.search(query, limit=10).matches]


def test_search_finds_by_name_description_and_parameters() -> None:
    schema = {"properties": {"galaxy": {"description": "Near Andromeda"}}}
    index = build_index(
        [*TOOLS, Tool(name="look", parameters=schema)], SETTINGS, embedder=WordEmbedder()
    )
    for query, name in (
        ("weather", "getWeather"),
        ("letters", "send_mail"),
        ("galaxy", "look"),
        ("andromeda", "look"),
    ):
        assert names(index, query)[:1] == [name]


def test_search_quoted_text_is_not_what_is_wished() -> None:
    assert names(built(), 'send a mail: "weather forecast for the city"') == ["send_mail"]


def test_search_of_nothing_but_a_quotation_searches_it() -> None:
    """A quotation is the wish if the query has nothing else."""
    assert names(built(), '"weather forecast"') == ["getWeather"]


def test_search_what_is_unrelated_is_no_hit() -> None:
    assert names(built(), "dentist appointment") == []


def test_search_an_embedder_whose_vectors_are_all_similar_still_has_a_floor() -> None:
    """A similarity counts above the noise of its embedder, be that 0 or 0.8."""
    assert names(built(own(Far)), "weather") == ["getWeather"]


def test_search_failing_embedder_raises_a_search_error_with_its_cause() -> None:
    embedder = own(FailingEmbedder)
    index = built(embedder)
    embedder.is_broken = True
    with pytest.raises(SearchError, match="failed: RuntimeError: no memory left") as err:
        index.search("weather", limit=5)
    assert isinstance(err.value.__cause__, RuntimeError)


def test_search_tool_answers_a_failing_embedder_with_an_error() -> None:
    """A bot's turn goes on: its model reads the error."""
    embedder = own(FailingEmbedder)
    catalog = ToolCatalog(TOOLS)
    tool = ToolSearchTool(build_index(TOOLS, SETTINGS, embedder=embedder), catalog)
    embedder.is_broken = True
    assert "no memory left" in str(tool.run({"query": "weather"}).error)


def test_build_with_a_failing_embedder_raises_a_search_error() -> None:
    embedder = own(FailingEmbedder)
    embedder.is_broken = True
    tools = [Tool(name="another", description="One that no index holds yet.")]
    with pytest.raises(SearchError, match="no memory left"):
        build_index(tools, SETTINGS, embedder=embedder)


def test_updated_with_a_failing_embedder_leaves_the_index_as_it_was() -> None:
    embedder = own(FailingEmbedder)
    index = built(embedder)
    embedder.is_broken = True
    with pytest.raises(SearchError):
        index.updated(added=[Tool(name="new", description="A new one.")], removed=["send_mail"])
    embedder.is_broken = False
    assert names(index, "mail") == ["send_mail"]


def test_updated_embeds_new_tools_alone() -> None:
    embedder = own(WordEmbedder)
    index = built(embedder)
    embedder.asked.clear()
    index.updated(added=[*TOOLS, Tool(name="bake", description="Bread.")], removed=["find_route"])
    assert set(embedder.asked) == {"bake", "Bread.", "bake: Bread."}


def test_search_embeds_a_recent_query_once() -> None:
    embedder = own(WordEmbedder)
    index = built(embedder)
    embedder.asked.clear()
    first = index.search("weather in Rome", limit=5)
    assert index.search("weather  in Rome", limit=5).matches == first.matches
    assert embedder.asked == ["weather in Rome"]


def test_build_embeds_nothing_that_the_cache_keeps() -> None:
    cache = KeptInMemory()
    once = own(WordEmbedder)
    first, again = built(once, vector_cache=cache), WordEmbedder(once.identity)
    tools = [*TOOLS, Tool(name="bake", description="Bread.")]
    second = build_index(tools, SETTINGS, embedder=again, vector_cache=cache)
    assert not {"get weather", "send mail", "find route"} & set(again.asked)
    assert first.search("weather", limit=3).matches == second.search("weather", limit=3).matches


def test_build_takes_no_vectors_of_another_embedder_from_the_cache() -> None:
    """Vectors of two models are never mixed."""
    cache = KeptInMemory()
    built(vector_cache=cache)
    kept = len(cache.entries)
    built(own(Far), vector_cache=cache)
    assert len(cache.entries) == 2 * kept


def test_build_makes_anew_what_the_cache_has_damaged() -> None:
    cache, embedder = KeptInMemory(), own(WordEmbedder)
    built(embedder, vector_cache=cache)
    cache.entries = dict.fromkeys(cache.entries, b"no vector")
    index = build_index(TOOLS[:2], SETTINGS, embedder=embedder, vector_cache=cache)
    assert names(index, "weather") == ["getWeather"]


def test_build_tells_how_far_it_is() -> None:
    told: list[tuple[int, int]] = []
    tools = [Tool(name=f"tool_{n}", description=f"Number {n}.") for n in range(150)]
    build_index(tools, SETTINGS, embedder=WordEmbedder(), progress=lambda *step: told.append(step))
    assert told == [(64, 150), (128, 150), (150, 150)]


def test_search_in_a_store_of_others_finds_the_same() -> None:
    ours, theirs = built(), built(vector_store=Foreign())
    for change in ({"added": (), "removed": ()}, {"added": TOOLS[:1], "removed": ["send_mail"]}):
        ours, theirs = ours.updated(**change), theirs.updated(**change)
        for query in ("weather in a city", "mail", "way"):
            assert ours.search(query, limit=5) == theirs.search(query, limit=5)


def test_search_in_a_store_without_similarities_says_so() -> None:
    """Distances would silently reverse the ranking."""
    with pytest.raises(SearchError, match=r"\('getWeather', 42.0\): a similarity is from -1 to 1"):
        built(vector_store=Wrong()).search("weather", limit=5)


def test_build_other_engines_refuse_an_embedder() -> None:
    """An embedder that would be ignored is a mistake of the caller."""
    with pytest.raises(SearchError, match="set engine to semantic or hybrid"):
        build_index(TOOLS, embedder=WordEmbedder())


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("no.such.module:Embedder", "cannot be loaded: ModuleNotFoundError"),
        ("tests.search.word_embedder:Nothing", "cannot be loaded: AttributeError"),
        ("pathlib:Path", "is not an Embedder"),
        ("tests.search.engines.test_semantic:TOOLS", "is not an Embedder"),
    ],
)
def test_build_with_a_wrong_name_of_an_embedder_says_so(reference: str, message: str) -> None:
    settings = SearchSettings(engine="semantic", embedder=reference, vector_cache=None)
    with pytest.raises(SearchError, match=f"search.embedder '{reference}' {message}"):
        build_index(TOOLS, settings)
