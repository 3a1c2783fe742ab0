"""Embedders of services and of local models."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.search.vectors.embedding_service import (
    DIMENSIONS,
    EmbeddingService,
    ServedEmbedder,
    running_service,
)
from tests.search.word_embedder import WordEmbedder
from tool_search import SearchSettings, Tool, ToolSearchIndex, build_index
from tool_search.config.bot import BotConfig
from tool_search.config.loading import settings_from_mapping
from tool_search.config.search import EmbedderSettings, EmbeddingSettings
from tool_search.errors import ConfigurationError, SearchError
from tool_search.search.vectors.embedder import EmbeddingError, load_embedder
from tool_search.serving.proxy.settings import ProxyConfig

TOOLS = (
    Tool(name="cancel_meeting", description="Takes an appointment off the calendar."),
    Tool(name="list_trains", description="Timetable of trains between two stations."),
    Tool(name="play_music", description="Plays songs."),
)


@pytest.fixture
def service() -> Iterator[EmbeddingService]:
    """A service that runs."""
    with running_service() as running:
        yield running


def built(service: EmbeddingService, engine: str = "hybrid", **more: Any) -> ToolSearchIndex:
    embedder = EmbedderSettings(
        kind="openai", model="words", base_url=service.url, dimensions=DIMENSIONS, **more
    )
    limits = EmbeddingSettings(query_s=10.0, retries=2)
    settings = SearchSettings(engine=engine, embedder=embedder, embedding=limits, vector_cache=None)
    return build_index(TOOLS, settings)


def names(index: ToolSearchIndex, query: str) -> list[str]:
    return [match.name for match in index.search(query, limit=10).matches]


def warning(index: ToolSearchIndex) -> str:
    return str(getattr(index, "warning", ""))


def test_openai_vectors_are_those_of_the_service(service: EmbeddingService) -> None:
    index = built(service, engine="semantic")
    local = SearchSettings(engine="semantic", vector_cache=None)
    assert (
        index.search("songs", limit=5).matches
        == build_index(TOOLS, local, embedder=ServedEmbedder()).search("songs", limit=5).matches
    )


@pytest.mark.parametrize("kind", [BotConfig, ProxyConfig])
def test_a_services_answer_is_held_to_the_section_limits(
    kind: type[BotConfig | ProxyConfig], service: EmbeddingService
) -> None:
    section = {"kind": "openai", "model": "words", "base_url": service.url}
    given = {
        "tool_search": {"search": {"embedder": section | {"dimensions": DIMENSIONS}}},
        "upstreams": [{"base_url": service.url}],
    }
    if kind is BotConfig:
        del given["upstreams"]
    usual = settings_from_mapping(given, kind).tool_search.search.embedder
    assert len(np.asarray(load_embedder(usual).embed(["songs"] * 300))) == 300
    narrow = settings_from_mapping(given | {"limits": {"max_bytes": 10_000}}, kind)
    with pytest.raises(EmbeddingError, match="more than 10,000 bytes"):
        load_embedder(narrow.tool_search.search.embedder).embed(["songs"] * 300)


def test_openai_sends_the_key_of_the_environment(
    service: EmbeddingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "secret-1")
    built(service, api_key_env="MY_KEY")
    assert service.keys == {"Bearer secret-1"}


def test_openai_without_its_key_names_the_variable(service: EmbeddingService) -> None:
    with pytest.raises(ConfigurationError, match="NO_SUCH_KEY is not set"):
        built(service, api_key_env="NO_SUCH_KEY")


def test_openai_keeps_to_a_limit_that_the_service_names(service: EmbeddingService) -> None:
    service.batch_limit = 10
    index = built(service)
    assert not warning(index)
    refused = [each for each in service.requests if len(each["input"]) > 10]
    assert len(refused) == 1


def test_openai_puts_its_prefixes_before_queries_and_documents(service: EmbeddingService) -> None:
    index = built(service, query_prefix="query: ", document_prefix="passage: ")
    service.requests.clear()
    names(index, "songs")
    assert [each["input"] for each in service.requests] == [["query: songs"]]


@pytest.mark.parametrize(
    "failure", [(429, {"retry-after": "0.01"}), (503, {}), (500, {})], ids=["429", "503", "500"]
)
def test_openai_is_asked_again_after_a_passing_failure(
    service: EmbeddingService, failure: tuple[int, dict[str, str]]
) -> None:
    index = built(service)
    service.requests.clear()
    service.failures = [failure, failure]
    assert names(index, "songs") == ["play_music"]
    assert len(service.requests) == 3
    assert not warning(index)


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        ((429, {"retry-after": "3600"}), "HTTP 429"),
        ((401, {}), "HTTP 401"),
        ("nan", "NaN"),
        ("short", f"vectors of {DIMENSIONS - 1} numbers"),
    ],
)
def test_hybrid_goes_on_by_words_after_a_failure_of_the_service(
    service: EmbeddingService, failure: Any, message: str
) -> None:
    index = built(service)
    service.requests.clear()
    service.failures = [failure]
    assert names(index, "trains between stations") == ["list_trains"]
    assert len(service.requests) == 1
    assert message in warning(index)


def test_hybrid_does_not_wait_for_a_service_that_hangs(service: EmbeddingService) -> None:
    embedder = EmbedderSettings(
        kind="openai", model="words", base_url=service.url, dimensions=DIMENSIONS
    )
    limits = EmbeddingSettings(query_s=0.3, retries=2)
    settings = SearchSettings(
        engine="hybrid", embedder=embedder, embedding=limits, vector_cache=None
    )
    index = build_index(TOOLS, settings)
    service.requests.clear()
    service.failures = ["hang"]
    for number in range(10):
        assert names(index, f"trains between stations {number}") == ["list_trains"]
    assert len(service.requests) == 1
    assert "gave no vectors" in warning(index)


def test_hybrid_starts_without_the_service() -> None:
    with running_service() as gone:
        pass
    index = built(gone)
    assert names(index, "trains between stations") == ["list_trains"]
    assert "cannot be reached" in warning(index)


def test_openai_of_an_unknown_model_asks_for_the_size() -> None:
    with pytest.raises(ConfigurationError, match=r"set search\.embedder\.dimensions"):
        load_embedder(EmbedderSettings(kind="openai", model="my-own"))


def test_a_setting_of_a_service_is_refused_for_a_local_model() -> None:
    with pytest.raises(ConfigurationError, match="for kind openai; leave them out"):
        EmbedderSettings(kind="fastembed", model="m", base_url="http://localhost/v1")


class _SentenceTransformer:
    """The part of sentence_transformers.SentenceTransformer 6.2 that is used."""

    def __init__(self, model_name_or_path: str) -> None:
        if model_name_or_path == "missing":
            raise OSError("no such model")
        self.asked: list[tuple[str, list[str]]] = []

    def encode_query(self, inputs: list[str], **options: Any) -> Any:
        assert options == _OPTIONS
        return self._rows("query", inputs)

    def encode_document(self, inputs: list[str], **options: Any) -> Any:
        assert options == _OPTIONS
        return self._rows("document", inputs)

    def _rows(self, role: str, inputs: list[str]) -> Any:
        self.asked.append((role, inputs))
        return WordEmbedder().embed(inputs)


_OPTIONS = {"batch_size": 64, "show_progress_bar": False, "convert_to_numpy": True}


class _TextEmbedding:
    """The part of fastembed.TextEmbedding 0.9 that is used."""

    def __init__(self, model_name: str, *, threads: int | None = None) -> None:
        assert threads == 1
        if model_name == "missing":
            raise ValueError("no such model")

    def query_embed(self, query: str | Iterable[str]) -> Iterable[Any]:
        yield from WordEmbedder().embed(list(query))

    def passage_embed(self, texts: Iterable[str], **options: Any) -> Iterable[Any]:
        assert options == {"batch_size": 64}
        yield from WordEmbedder().embed(list(texts))


@pytest.fixture(params=["sentence-transformers", "fastembed"])
def local_kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A kind whose package is replaced: no weights of a model can be loaded in a test."""
    for name, attribute, value in (
        ("sentence_transformers", "SentenceTransformer", _SentenceTransformer),
        ("fastembed", "TextEmbedding", _TextEmbedding),
    ):
        module = ModuleType(name)
        setattr(module, attribute, value)
        monkeypatch.setitem(sys.modules, name, module)
    return request.param


def test_a_local_model_ranks_by_meaning(local_kind: Any) -> None:
    embedder = load_embedder(EmbedderSettings(kind=local_kind, model="words"))
    assert embedder.dimensions == WordEmbedder.dimensions
    assert embedder.identity.startswith(f"{local_kind} ")
    settings = SearchSettings(engine="semantic", vector_cache=None)
    index = build_index(TOOLS, settings, embedder=embedder)
    assert names(index, "songs") == ["play_music"]
    assert np.asarray(embedder.embed(["a b"])).dtype == np.float32


def test_a_local_model_that_is_missing_is_a_search_error(local_kind: Any) -> None:
    with pytest.raises(SearchError, match=f"'missing' cannot be loaded by {local_kind}"):
        load_embedder(EmbedderSettings(kind=local_kind, model="missing"))


def test_a_local_model_without_its_package_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(SearchError, match=r"tool-search-middleware\[fastembed\]"):
        load_embedder(EmbedderSettings(kind="fastembed", model="other"))
