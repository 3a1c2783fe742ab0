"""The `search` section of a configuration."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from tool_search.config.plugins import installed_engines

__all__ = [
    "EngineName",
    "FusionName",
    "HybridSettings",
    "PresetName",
    "SearchSettings",
    "SegmenterName",
    "Settings",
]

EngineName = Literal["bm25", "rank_bm25", "lexical", "regex", "semantic", "hybrid"]
"""The engines of this package; those of others are known by their entry points."""
FusionName = Literal["coverage", "weights", "rrf"]
SegmenterName = Literal["builtin", "jieba"]
PresetName = Literal["oh-my-pi", "tooldiscovery", "astrbot"]
# The first is what a preset takes where no engine is named.
_PRESET_ENGINES: dict[PresetName, tuple[str, ...]] = {
    "oh-my-pi": ("bm25",),
    "tooldiscovery": ("bm25", "lexical"),
    "astrbot": ("rank_bm25",),
}
_Weight = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


class Settings(BaseModel):
    """Frozen; an unknown key is an error, and so is a value of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @field_validator("*", mode="before")
    @classmethod
    def _from_list(cls, value: object) -> object:
        """A list where a tuple is kept: YAML has no tuples."""
        return tuple(value) if isinstance(value, list) else value


class HybridSettings(Settings):
    """How the engine `hybrid` makes one ranking of words and meaning.

    Attributes:
        fusion: `coverage` adds both with their weights, words the less the fewer of
            the query's words any tool has; `weights` adds them as they are; `rrf` is
            reciprocal rank fusion, which looks at places alone.
        lexical_weight: Of words; not for `rrf`.
        semantic_weight: Of meaning; not for `rrf`.
        rrf_k: How little the first places stand out; for `rrf` alone.
        dictionary: Whether `coverage` looks up Chinese words that no tool has in
            CC-CEDICT, where the extra `semantic` has installed it.
    """

    fusion: FusionName = "coverage"
    lexical_weight: _Weight = 1.0
    semantic_weight: _Weight = 0.3
    rrf_k: Annotated[int, Field(ge=1, le=10_000)] = 60
    dictionary: bool = True

    @model_validator(mode="after")
    def _ranks_by_something(self) -> HybridSettings:
        if not self.lexical_weight and not self.semantic_weight:
            raise ValueError("lexical_weight and semantic_weight must not both be 0")
        return self


class SearchSettings(Settings):
    """The `search` section: how a catalog is searched.

    Attributes:
        engine: Which ranking: one of this package, or one that another installed
            package brings; see `tool_search.config.plugins`.
        min_relevance: From 0 to 1: hits below this share of what the query could
            reach at most are no hits.
        segmenter: How Chinese is cut into words.
        preset: Ranks as another system does; with `tooldiscovery`, `engine` chooses
            which of its two searches.
        hybrid: How `hybrid` weighs its two sides.
        embedder: What makes vectors for `semantic` and `hybrid`, as `module:name`;
            null: the shipped one, which the extra `semantic` installs.
        vector_cache: The file that keeps the vectors of tools; `auto`: one in the
            user's cache folder; null: none, and each start makes them anew.

    >>> SearchSettings(preset="astrbot").engine
    'rank_bm25'
    """

    engine: str = "bm25"
    min_relevance: Annotated[float, Field(ge=0, le=1)] = 0.1
    segmenter: SegmenterName = "builtin"
    preset: PresetName | None = None
    hybrid: HybridSettings = HybridSettings()
    embedder: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")] | None = None
    vector_cache: Annotated[str, Field(min_length=1)] | None = "auto"

    @model_validator(mode="before")
    @classmethod
    def _as_preset(cls, value: Any) -> Any:
        """What the preset fixes, where nothing else is said."""
        preset = value.get("preset") if isinstance(value, dict) else None
        if not isinstance(preset, str) or preset not in _PRESET_ENGINES:
            return value
        # None of the systems has a floor.
        fixed = {"engine": _PRESET_ENGINES[preset][0], "min_relevance": 0.0}
        return {**fixed, **value}

    @field_validator("engine")
    @classmethod
    def _is_engine(cls, value: str) -> str:
        shipped = get_args(EngineName)
        if value not in shipped:
            others = sorted(installed_engines().keys() - set(shipped))
            if value not in others:
                raise ValueError(f"there are {', '.join((*shipped, *others))}")
        return value

    @field_validator("preset")
    @classmethod
    def _fits_engine(cls, value: PresetName | None, info: ValidationInfo) -> PresetName | None:
        engine = info.data.get("engine")
        if value is not None and engine not in (None, *_PRESET_ENGINES[value]):
            raise ValueError(
                f"preset {value!r} and engine {engine!r} contradict each other; leave engine out, "
                f"or set it to {' or '.join(_PRESET_ENGINES[value])}"
            )
        return value
