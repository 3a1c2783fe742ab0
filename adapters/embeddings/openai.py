"""Vectors of a service with OpenAI's `/v1/embeddings`.

OpenAI, Ollama, vLLM, SiliconFlow, DashScope and others.

SDK: openai 2.20 or later. Source: OpenAI, "Create embeddings": at most 2,048 inputs and
300,000 tokens a request, no empty input.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np

from tool_search.adapters.sdk.connection import bounded_client
from tool_search.adapters.wire.incoming import DEFAULT_LIMITS, TooLargeError
from tool_search.errors import ConfigurationError
from tool_search.search.vectors.embedder import EmbeddingError

try:
    import openai
except ImportError as exc:
    raise ImportError(
        "the embedder 'openai' needs the openai SDK: "
        "pip install 'tool-search-middleware[openai]'; in a clone: pip install '.[openai]'"
    ) from exc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tool_search.config.limits import LimitSettings
    from tool_search.config.search import EmbedderSettings

__all__ = ["OpenAIEmbedder", "build"]

_BASE_URL = "https://api.openai.com/v1"
# Sizes of vectors of models that are often used; others are set.
_DIMENSIONS = {
    "text-embedding-3-small": 1_536,
    "text-embedding-3-large": 3_072,
    "text-embedding-ada-002": 1_536,
    "text-embedding-v3": 1_024,
    "text-embedding-v4": 1_024,
    "bge-m3": 1_024,
    "baai/bge-m3": 1_024,
    "nomic-embed-text": 768,
    "mxbai-embed-large": 1_024,
}
# DashScope answers "batch size is invalid, it should not be larger than 10", SiliconFlow
# "input batch size 473 > maximum allowed batch size 64", and documents 32.
_BATCHES = {"dashscope": 10, "siliconflow": 32}
_BATCH = 256
_BATCH_LIMIT = re.compile(
    r"(?:larger than|maximum allowed batch size|at most|maximum of)\D{0,12}(\d{1,4})", re.IGNORECASE
)
_PASSING = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 529))


class OpenAIEmbedder:
    """An `Embedder` that asks a service.

    Args:
        model: The model's name.
        base_url: The service's address, up to and with `/v1`; None for OpenAI.
        api_key: The key; empty for a service that needs none.
        dimensions: The size of the vectors; None if the model is a known one.
        request_dimensions: True to ask the service for vectors of this size, which only
            some models can make.
        query_prefix: Text before each query, for models that want it.
        document_prefix: Text before each text of a tool.
        batch_size: The most texts of a request; None for the service's known limit. A limit
            that the service names in an error is kept.
        timeout_s: Seconds for one request.
        limits: The bounds of an answer; None: the usual ones.

    Raises:
        ConfigurationError: The size of the model's vectors is unknown.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str = "",
        dimensions: int | None = None,
        request_dimensions: bool = False,
        query_prefix: str = "",
        document_prefix: str = "",
        batch_size: int | None = None,
        timeout_s: float = 60.0,
        limits: LimitSettings | None = None,
    ) -> None:
        known = _DIMENSIONS.get(model.lower().removesuffix(":latest"))
        if dimensions is None and known is None:
            raise ConfigurationError(
                f"the size of the vectors of the embedder model {model!r} is unknown; set "
                "search.embedder.dimensions to it"
            )
        url = base_url or _BASE_URL
        self.dimensions = dimensions or known or 0
        self._asked = self.dimensions if request_dimensions else None
        self._model, self._prefixes = model, (query_prefix, document_prefix)
        host = urlsplit(url).hostname or ""
        usual = next((size for name, size in _BATCHES.items() if name in host), _BATCH)
        self._batch_size = batch_size or usual
        # Vectors are cached under this name: all that they depend on is in it.
        self.identity = f"openai {url} {model} {self._asked} {query_prefix!r} {document_prefix!r}"
        # The caller has its own retries; two on top of one another multiply.
        self._client = openai.OpenAI(
            base_url=url,
            api_key=api_key or "none",
            max_retries=0,
            http_client=bounded_client(
                openai.DefaultHttpxClient, limits or DEFAULT_LIMITS, timeout=timeout_s
            ),
        )

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts of tools; see `Embedder.embed`.

        Raises:
            EmbeddingError: The service cannot be reached, refused, or answered wrongly.
        """
        return self._embed([self._prefixes[1] + text for text in texts])

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of queries; see `embed`."""
        return self._embed([self._prefixes[0] + text for text in texts])

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows: list[list[float]] = []
        while len(rows) < len(texts):
            batch = texts[len(rows) : len(rows) + self._batch_size]
            try:
                rows.extend(self._request(batch))
            except openai.APIStatusError as exc:
                limit = _batch_limit(exc, len(batch))
                if limit is None:
                    raise _status_error(exc) from exc
                self._batch_size = limit
            except TooLargeError as exc:
                raise EmbeddingError(f"the answer was given up: {exc}") from exc
            except openai.APIConnectionError as exc:
                cause = exc.__cause__ or exc
                if isinstance(cause, TooLargeError):
                    raise EmbeddingError(f"the answer was given up: {cause}") from exc
                raise EmbeddingError(
                    f"{self._client.base_url} cannot be reached: {type(cause).__name__}: {cause}",
                    is_passing=True,
                ) from exc
            except openai.OpenAIError as exc:
                raise EmbeddingError(f"{type(exc).__name__}: {exc}") from exc
        wrong = next((len(row) for row in rows if len(row) != self.dimensions), None)
        if wrong is not None:
            raise EmbeddingError(
                f"the model {self._model!r} returned vectors of {wrong} numbers, not of "
                f"{self.dimensions}: set search.embedder.dimensions to {wrong}"
            )
        return np.array(rows, np.float32)

    def _request(self, batch: Sequence[str]) -> Iterator[list[float]]:
        answer = self._client.embeddings.create(
            model=self._model,
            input=list(batch),
            # The SDK asks for base64 by default, which not every service has.
            encoding_format="float",
            dimensions=openai.omit if self._asked is None else self._asked,
        )
        data = answer.data or []
        # Not every service keeps the order: each row names its place.
        rows = {row.index: row.embedding for row in data}
        if sorted(rows) != list(range(len(batch))):
            raise EmbeddingError(
                f"the service returned {len(data)} vectors for {len(batch)} texts; "
                "it must return one for each, with its index"
            )
        return (rows[place] for place in range(len(batch)))


def _batch_limit(exc: openai.APIStatusError, size: int) -> int | None:
    """Return a smaller size if a service has refused a batch for its size."""
    text = f"{exc.message} {exc.body}"
    if size < 2 or exc.status_code not in (400, 413, 422):
        return None
    if exc.status_code != 413 and "batch" not in text.lower():
        return None
    named = _BATCH_LIMIT.search(text)
    limit = int(named[1]) if named else size // 2
    return limit if 0 < limit < size else size // 2


def _status_error(exc: openai.APIStatusError) -> EmbeddingError:
    after = exc.response.headers.get("retry-after", "")
    seconds = float(after) if re.fullmatch(r"\d+(\.\d+)?", after) else None
    return EmbeddingError(
        f"HTTP {exc.status_code}: {exc.message}",
        is_passing=exc.status_code in _PASSING,
        retry_after_s=seconds,
    )


def build(settings: EmbedderSettings) -> OpenAIEmbedder:
    """Build the embedder of a configuration.

    Raises:
        ConfigurationError: The environment variable of the key is not set, or the size of
            the model's vectors is unknown.
    """
    key = ""
    if settings.api_key_env is not None:
        key = os.environ.get(settings.api_key_env, "")
        if not key:
            raise ConfigurationError(
                f"search.embedder: the environment variable {settings.api_key_env} is not set; set "
                "it to the API key, or set api_key_env to null for a service that needs none"
            )
    return OpenAIEmbedder(
        settings.model,
        base_url=settings.base_url,
        api_key=key,
        dimensions=settings.dimensions,
        request_dimensions=settings.request_dimensions,
        query_prefix=settings.query_prefix,
        document_prefix=settings.document_prefix,
        batch_size=settings.batch_size,
        limits=settings.limits,
    )
