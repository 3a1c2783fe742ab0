"""The `search` section of a configuration."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from tool_search.config.engines import EMBEDDING_ENGINES, ENGINES, PRESETS, installed_engines
from tool_search.config.settings import Settings

if TYPE_CHECKING:
    from tool_search.config.limits import LimitSettings

__all__ = [
    "AnswerForm",
    "BoostSettings",
    "EmbedderKind",
    "EmbedderSettings",
    "EmbeddingSettings",
    "FusionName",
    "HybridSettings",
    "SearchSettings",
    "SegmenterName",
]

_log = logging.getLogger(__name__)

FusionName = Literal["coverage", "weights", "rrf"]
EmbedderKind = Literal["openai", "sentence-transformers", "fastembed"]
SegmenterName = Literal["builtin", "jieba"]
AnswerForm = Literal["names", "tools"]
_Seconds = Annotated[float, Field(gt=0, le=3_600, allow_inf_nan=False)]
_Weight = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


class HybridSettings(Settings):
    """The `hybrid` section: the engine `hybrid` makes one ranking of words and meaning.

    Attributes:
        fusion: `coverage` adds both rankings with their weights; the fewer of the query's
            words any tool has, the less words weigh. `weights` adds them as they are. `rrf`
            is reciprocal rank fusion, which uses ranks alone, for the preset `tooldiscovery`;
            without that preset it is `coverage`, with a warning in the log.
        lexical_weight: The weight of words, from 0 to 100; not for `rrf`.
        semantic_weight: The weight of meaning, from 0 to 100; not for `rrf`.
        rrf_k: The constant of `rrf`, from 1 to 10,000; a larger one favours the first ranks
            less.
        dictionary: True if `coverage` looks up Chinese words that no tool has in CC-CEDICT,
            which the extra `semantic` installs.
    """

    fusion: FusionName = "coverage"
    lexical_weight: _Weight = 1.0
    semantic_weight: _Weight = 0.4
    rrf_k: Annotated[int, Field(ge=1, le=10_000)] = 60
    dictionary: bool = True

    @model_validator(mode="after")
    def _ranks_by_something(self) -> HybridSettings:
        if not self.lexical_weight and not self.semantic_weight:
            raise ValueError("lexical_weight and semantic_weight must not both be 0")
        return self


class EmbedderSettings(Settings):
    """The `embedder` section: the model that makes the vectors of `semantic` and `hybrid`.

    Attributes:
        kind: `openai` for a service with OpenAI's `/v1/embeddings`, as Ollama, vLLM,
            SiliconFlow and DashScope have it; `sentence-transformers` and `fastembed` for a
            model in this process. Each needs the extra of its name.
        model: The model's name; for a model in this process also its folder.
        base_url: The service's address, up to and with `/v1`; null for OpenAI. For `openai`
            alone.
        api_key_env: The environment variable with the service's key; null: it needs none. For
            `openai` alone.
        dimensions: The size of the vectors; null if the model is a known one.
        request_dimensions: True to ask the service for vectors of this size. For `openai`
            alone.
        query_prefix: Text before each query, for models that want it.
        document_prefix: Text before each text of a tool, for models that want it.
        batch_size: The most texts of one request; null for the known limit of the service.
    """

    kind: EmbedderKind
    model: Annotated[str, Field(min_length=1, max_length=500)]
    base_url: Annotated[str, Field(pattern=r"^https?://\S+$")] | None = None
    api_key_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    dimensions: Annotated[int, Field(ge=1, le=65_536)] | None = None
    request_dimensions: bool = False
    query_prefix: Annotated[str, Field(max_length=1_000)] = ""
    document_prefix: Annotated[str, Field(max_length=1_000)] = ""
    batch_size: Annotated[int, Field(ge=1, le=2_048)] | None = None
    # No key of this section: the section `limits` has them, which is beside `tool_search`.
    _limits: LimitSettings | None = PrivateAttr(default=None)

    @property
    def limits(self) -> LimitSettings | None:
        """The bounds of a service's answer; None: the usual ones."""
        return self._limits

    def bounded(self, limits: LimitSettings) -> EmbedderSettings:
        """Return the same with bounds of a service's answer."""
        made = self.model_copy()
        made._limits = limits  # noqa: SLF001 - a copy of its own
        return made

    @model_validator(mode="after")
    def _fits_kind(self) -> EmbedderSettings:
        if self.kind != "openai" and (self.base_url or self.api_key_env or self.request_dimensions):
            raise ValueError(
                "base_url, api_key_env and request_dimensions are for kind openai; leave them out"
            )
        if self.request_dimensions and self.dimensions is None:
            raise ValueError("request_dimensions needs dimensions")
        return self


class EmbeddingSettings(Settings):
    """The `embedding` section: the time that calls of the embedder may take.

    An embedder that fails or is too slow is not called for a while, for as long as its
    failure took, times twenty; `hybrid` then searches by words.

    Attributes:
        query_s: Seconds that one search waits for the embedder, retries included.
        batch_s: Seconds that the vectors of one batch of tools may take, for each try.
        retries: Number of further tries after a failure that may pass, from 0 to 10.
        rest_s: The longest time in seconds that a failed embedder is not called, unless its
            service asks for more.
    """

    query_s: _Seconds = 2.0
    batch_s: _Seconds = 60.0
    retries: Annotated[int, Field(ge=0, le=10)] = 2
    rest_s: _Seconds = 30.0


# Settings of tooldiscovery's users, and their names here.
_OTHER_BOOSTS = {
    "NameBoost": "name",
    "NamespaceBoost": "namespace",
    "TagsBoost": "tags",
    "TagBoost": "tags",
    "tag": "tags",
}


class BoostSettings(Settings):
    """The `boosts` section: tooldiscovery's weights, as numbers of repetitions.

    Attributes:
        name: The weight of a tool's name, from 0 to 100; 0 means the default.
        namespace: The weight of its namespace, from 0 to 100; 0 means the default.
        tags: The weight of each of its tags, from 0 to 100; 0 means the default.
    """

    name: Annotated[int, Field(ge=0, le=100)] = 3
    namespace: Annotated[int, Field(ge=0, le=100)] = 2
    tags: Annotated[int, Field(ge=0, le=100)] = 2

    @model_validator(mode="before")
    @classmethod
    def _of_today(cls, value: Any) -> Any:
        """Accept `document`, and whole numbers that are written as fractions."""
        if value == "document":
            return {"name": 4, "namespace": 2, "tags": 1}
        if isinstance(value, str):
            raise ValueError("must be document, or name, namespace and tags")  # noqa: TRY004  # pydantic's
        if not isinstance(value, dict):
            return value
        for old in value.keys() & _OTHER_BOOSTS.keys():
            raise ValueError(f"write {_OTHER_BOOSTS[old]} instead of {old}")
        return {
            key: int(one) if isinstance(one, float) and one.is_integer() else one
            for key, one in value.items()
        }


class SearchSettings(Settings):
    """The `search` section: how a catalog is searched.

    Attributes:
        engine: The ranking: an engine of this package, or one that another installed
            package brings; see `tool_search.config.engines`.
        min_relevance: From 0 to 1; hits below this share of what the query could reach are
            dropped.
        segmenter: Cuts Chinese: `builtin` into characters and pairs, `jieba` into words,
            which needs the extra `jieba`.
        preset: The ranking of another system; with `tooldiscovery`, `engine` chooses which
            of its searches: `bm25`, `lexical` or `hybrid`.
        boosts: The weights of the preset `tooldiscovery`: `{name, namespace, tags}`, or
            `document` for the 4, 2 and 1 of its document; its program has 3, 2 and 2.
        answer: The answer of the preset `oh-my-pi` with its tool's name: `names` for the four
            keys of its document, `tools` for the later form with descriptions and arguments.
        hybrid: The weights of the engine `hybrid`.
        embedder: The embedder of `semantic` and `hybrid`: a section, or your own as
            `module:name`; null for the shipped one, which the extra `semantic` installs.
        embedding: The time that calls of the embedder may take.
        vector_cache: The file with the vectors of tools; `auto` for one in the user's cache
            folder, null for none: each start then embeds them again.
        index_cache: The folder with indexes of `bm25` and `hybrid`, so that a restart with a
            large catalog need not read it again; `auto` for one in the user's cache folder,
            null for none. Its files have the words of definitions.

    >>> SearchSettings(preset="astrbot").engine
    'rank_bm25'
    """

    engine: str = "bm25"
    min_relevance: Annotated[float, Field(ge=0, le=1)] = 0.1
    segmenter: SegmenterName = "builtin"
    preset: str | None = None
    boosts: BoostSettings | None = None
    answer: AnswerForm = "names"
    hybrid: HybridSettings = HybridSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    embedder: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")] | EmbedderSettings | None = None
    vector_cache: Annotated[str, Field(min_length=1)] | None = "auto"
    index_cache: Annotated[str, Field(min_length=1)] | None = None

    @property
    def embeds(self) -> bool:
        """True if a search embeds its query, and so may wait for an embedder."""
        return self.engine in EMBEDDING_ENGINES

    @model_validator(mode="before")
    @classmethod
    def _as_preset(cls, value: Any) -> Any:
        """Set what the preset fixes, unless the value says otherwise."""
        preset = value.get("preset") if isinstance(value, dict) else None
        engines = _engines_of_preset(preset) if isinstance(preset, str) else ()
        if not engines:
            return value
        # The other systems drop no hits.
        fixed = {"engine": engines[0], "min_relevance": 0.0}
        return {**fixed, **value}

    @field_validator("engine")
    @classmethod
    def _is_engine(cls, value: str) -> str:
        shipped = tuple(ENGINES)
        if value not in shipped:
            others = sorted(installed_engines().keys() - set(shipped))
            if value not in others:
                raise ValueError(f"there are {', '.join((*shipped, *others))}")
        return value

    @field_validator("hybrid")
    @classmethod
    def _fusion_of_today(cls, value: HybridSettings, info: ValidationInfo) -> HybridSettings:
        """Replace a fusion that finds less than either ranking alone."""
        # Measured in `benchmarks/hybrid.md`.
        if value.fusion != "rrf" or info.data.get("preset") == "tooldiscovery":
            return value
        _log.warning(
            "search.hybrid.fusion 'rrf' is now for the preset tooldiscovery alone; tools are "
            "ranked by 'coverage', which finds more: set that, or the preset"
        )
        return value.model_copy(update={"fusion": "coverage"})

    @field_validator("preset")
    @classmethod
    def _fits_engine(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None:
            return value
        engines = _engines_of_preset(value)
        if not engines:
            raise ValueError(f"there are {', '.join(PRESETS)}")
        engine = info.data.get("engine")
        if engine not in (None, *engines):
            raise ValueError(
                f"preset {value!r} and engine {engine!r} contradict each other; leave engine out, "
                f"or set it to {' or '.join(engines)}"
            )
        return value

    @model_validator(mode="after")
    def _has_effect(self) -> SearchSettings:
        """Refuse a setting of a preset without that preset."""
        if self.boosts is not None and (self.preset, self.engine) != ("tooldiscovery", "bm25"):
            raise ValueError(
                "boosts are weights of preset tooldiscovery with engine bm25; set them both, or "
                "leave boosts out"
            )
        if self.answer != "names" and self.preset != "oh-my-pi":
            raise ValueError(
                f"answer {self.answer!r} is a form of preset oh-my-pi; set it, or leave answer out"
            )
        return self


def _engines_of_preset(preset: str) -> tuple[str, ...]:
    """Return the engines that a preset can have, its default first; empty if unknown."""
    row = PRESETS.get(preset)
    return tuple(row.indexes) if row else ()
