"""The table of search engines and presets.

An engine is one module and one row of `ENGINES`: settings, command and tests read the
table. A module is imported when its engine is chosen.

Another distribution names the function that builds its engine in the group
`tool_search.engines`::

    [project.entry-points."tool_search.engines"]
    mine = "my_package.search:build"

`build(tools, settings)` takes a sequence of `Tool` and the `SearchSettings`, and returns a
`ToolSearchIndex`. The name can then be chosen as an engine, in a configuration too. No
distribution is imported before its engine is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "EMBEDDING_ENGINES",
    "ENGINES",
    "ENGINE_GROUP",
    "PRESETS",
    "EngineRow",
    "PresetRow",
    "installed_engines",
]

ENGINE_GROUP = "tool_search.engines"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRow:
    """One search engine.

    Attributes:
        build: `module:function`, which takes tools and `EngineOptions` and returns a
            `Scorer`.
        ranks_by: What a query and a tool must share: words, a substring or a meaning.
        needs_vectors: True if it takes an embedder, a vector cache and a vector store.
        has_own_syntax: True if its queries are not in the query language.
        extra: The extra that installs its packages; None if the base has them.
    """

    build: str
    ranks_by: tuple[Literal["words", "substrings", "meaning"], ...] = ("words",)
    needs_vectors: bool = False
    has_own_syntax: bool = False
    extra: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetRow:
    """The ranking of another system.

    Attributes:
        indexes: By engine, `module:function`, which takes tools and `SearchSettings` and
            returns a `ToolSearchIndex`; None if the engine itself has the ranking. The
            first engine is the default, other engines contradict the preset.
        search_tools: By the search tool's name, `module:class` of a search tool of its own.
    """

    indexes: Mapping[str, str | None]
    search_tools: Mapping[str, str] = field(default_factory=dict)


ENGINES: Mapping[str, EngineRow] = {
    "bm25": EngineRow(build="tool_search.search.engines.bm25:build"),
    "rank_bm25": EngineRow(build="tool_search.search.engines.rank_bm25:build", extra="jieba"),
    "lexical": EngineRow(
        build="tool_search.adapters.compat.tooldiscovery:build_lexical", ranks_by=("substrings",)
    ),
    "regex": EngineRow(
        build="tool_search.search.engines.regex:build", has_own_syntax=True, extra="regex"
    ),
    "semantic": EngineRow(
        build="tool_search.search.engines.semantic:build",
        ranks_by=("meaning",),
        needs_vectors=True,
        extra="semantic",
    ),
    "hybrid": EngineRow(
        build="tool_search.search.engines.hybrid:build",
        ranks_by=("words", "meaning"),
        needs_vectors=True,
        extra="semantic",
    ),
}
"""The engines of this package by name, in the order in which messages list them."""
EMBEDDING_ENGINES = frozenset(name for name, row in ENGINES.items() if row.needs_vectors)
"""Engines that need vectors."""
PRESETS: Mapping[str, PresetRow] = {
    "oh-my-pi": PresetRow(
        indexes={"bm25": "tool_search.adapters.compat.oh_my_pi.ranking:build"},
        search_tools={
            "search_tool_bm25": "tool_search.adapters.compat.oh_my_pi.tool:SearchToolBm25"
        },
    ),
    "tooldiscovery": PresetRow(
        indexes={
            "bm25": "tool_search.adapters.compat.tooldiscovery:build",
            "lexical": None,
            "hybrid": None,
        }
    ),
    "astrbot": PresetRow(indexes={"rank_bm25": None}),
}
"""The rankings of other systems, as values of `search.preset`."""


def installed_engines() -> dict[str, EntryPoint]:
    """Return the engines of other distributions by name; of two of one name, the first."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and mostly not asked for

    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=ENGINE_GROUP):
        found.setdefault(entry.name, entry)
    return found
