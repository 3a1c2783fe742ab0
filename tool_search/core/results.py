"""The protocol of a search index, and the results that it returns."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, Self, runtime_checkable

from tool_search.core.catalog.tool import Tool
from tool_search.core.values.json import compact_json

__all__ = [
    "OhMyPiMatch",
    "OhMyPiResult",
    "SearchMatch",
    "SearchResult",
    "ToolSearchIndex",
    "Votes",
]

Votes = Callable[[str, Callable[[str], bool]], Mapping[str, float]]
"""Returns votes for a query by tool name, as shares of the score that it could reach.

The second argument is True for the name of a tool that may be found.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchMatch:
    """A tool that a search found.

    Attributes:
        name: The tool's canonical name.
        description: The tool's description.
        server: Its MCP server, or None.
        score: From 0 to 1, relative to what the query could reach; 0 in a result that
            was read from a history.
        parameters: The tool's schema, if the result must carry it because the request
            does not declare the tool.
    """

    name: str
    description: str = ""
    server: str | None = None
    score: float = 0.0
    parameters: Mapping[str, Any] | None = None

    @classmethod
    def from_object(cls, content: object) -> Self | None:
        """Return the match that a result's JSON holds, or None if it has no name."""
        if not isinstance(content, dict) or not isinstance(content.get("name"), str):
            return None
        description, server = content.get("description"), content.get("server")
        parameters = content.get("parameters")
        return cls(
            name=content["name"],
            description=description if isinstance(description, str) else "",
            server=server if isinstance(server, str) else None,
            parameters=parameters if isinstance(parameters, dict) else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The answer to one query.

    Attributes:
        query: The query as the caller wrote it; several queries are joined by " | ".
        matches: The best tools, highest score first, ties by name; of several queries of
            a call, the best of each in turn.
        total_found: Number of tools that passed the relevance floor, before any cut.
        total_tools: Number of tools that were searched.
        loaded: Names of found tools that can already be called, best first.
        unmatched: Words of the query that no tool has.
        hint: A localized sentence for the model.
        error: A localized sentence for the model; nothing was searched.
        parts: The result of each query, if several were merged; no history has them.
    """

    query: str
    matches: tuple[SearchMatch, ...] = ()
    total_found: int = 0
    total_tools: int = 0
    loaded: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    hint: str | None = None
    error: str | None = None
    parts: tuple[SearchResult, ...] = field(default=(), compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tools that the result makes callable, matches first."""
        return (*(match.name for match in self.matches), *self.loaded)

    def without(self, names: Collection[str]) -> SearchResult:
        """Return the result without these tools."""
        return replace(
            self,
            matches=tuple(match for match in self.matches if match.name not in names),
            loaded=tuple(name for name in self.loaded if name not in names),
            parts=tuple(part.without(names) for part in self.parts),
        )

    def to_json(self) -> str:
        """Return the compact JSON that models and histories have, without scores."""
        if self.error is not None:
            return compact_json({"query": self.query, "error": self.error})
        content: dict[str, Any] = {
            "query": self.query,
            "matches": [_match_object(match) for match in self.matches],
        }
        if self.loaded:
            content["loaded"] = list(self.loaded)
        content["total_found"] = self.total_found
        content["total_tools"] = self.total_tools
        if self.hint:
            content["hint"] = self.hint
        if self.unmatched:
            content["unmatched"] = list(self.unmatched)
        return compact_json(content)

    @classmethod
    def from_json(cls, text: str) -> SearchResult | None:
        """Return the result that a history holds, or None if the text is not a result.

        Text after the JSON is ignored: bots append notices to tool results.
        """
        try:
            content, _ = json.JSONDecoder().raw_decode(text.lstrip())
        except (ValueError, RecursionError):
            return None
        if not isinstance(content, dict) or not isinstance(content.get("query"), str):
            return None
        if isinstance(content.get("error"), str):
            return cls(query=content["query"], error=content["error"])
        # Histories hold results of oh-my-pi's search tool too, which have this key.
        if isinstance(content.get("activated_tools"), list):
            return _read_oh_my_pi(content)
        matches = content.get("matches")
        if not isinstance(matches, list):
            return None
        return cls(
            query=content["query"],
            matches=tuple(filter(None, map(SearchMatch.from_object, matches))),
            total_found=_count(content.get("total_found")),
            total_tools=_count(content.get("total_tools")),
            loaded=_texts(content.get("loaded")),
            unmatched=_texts(content.get("unmatched")),
            hint=content["hint"] if isinstance(content.get("hint"), str) else None,
        )


def _match_object(match: SearchMatch) -> dict[str, Any]:
    content: dict[str, Any] = {"name": match.name, "description": match.description}
    if match.server:
        content["server"] = match.server
    if match.parameters is not None:
        content["parameters"] = match.parameters
    return content


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _texts(value: object) -> tuple[str, ...]:
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OhMyPiMatch(SearchMatch):
    """A match whose arguments are shown in short.

    Attributes:
        signature: The arguments, in short: `name`, `name?`.
    """

    signature: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OhMyPiResult(SearchResult):
    """A result whose JSON has oh-my-pi's keys.

    Attributes:
        form: `names` for the four keys of oh-my-pi's document, `tools` for its later form.
    """

    form: Literal["names", "tools"] = "names"

    def to_json(self) -> str:
        """Return oh-my-pi's compact answer, with schemas that the result must carry."""
        if self.error is not None:
            # Not `super()`: with slots, the dataclass is not the class of this body.
            return SearchResult.to_json(self)
        content: dict[str, Any] = {
            "query": self.query,
            "activated_tools": [match.name for match in self.matches],
            "match_count": len(self.matches),
            "total_tools": self.total_tools,
        }
        # Four keys have no place for a schema that the request does not declare.
        if self.form == "tools" or any(match.parameters is not None for match in self.matches):
            content["tools"] = [_oh_my_pi_object(match) for match in self.matches]
        return compact_json(content)


def _oh_my_pi_object(match: SearchMatch) -> dict[str, Any]:
    signature = match.signature if isinstance(match, OhMyPiMatch) else ()
    content: dict[str, Any] = {"name": match.name, "description": match.description}
    if signature or match.parameters is None:
        content["params"] = list(signature)
    if match.parameters is not None:
        content["parameters"] = match.parameters
    return content


def _read_oh_my_pi(content: Mapping[str, Any]) -> OhMyPiResult:
    """Return the result that a history holds.

    An answer of the form `names` has names alone.
    """
    tools = content.get("tools")
    form: Literal["names", "tools"] = "tools" if isinstance(tools, list) else "names"
    if not isinstance(tools, list):
        tools = [{"name": name} for name in content["activated_tools"]]
    found, searched = content.get("match_count"), content.get("total_tools")
    return OhMyPiResult(
        query=content["query"],
        matches=tuple(filter(None, map(_read_oh_my_pi_match, tools))),
        total_found=found if isinstance(found, int) else 0,
        total_tools=searched if isinstance(searched, int) else 0,
        form=form,
    )


def _read_oh_my_pi_match(content: object) -> OhMyPiMatch | None:
    match = OhMyPiMatch.from_object(content)
    if match is None or not isinstance(content, dict):
        return None
    params = content.get("params")
    listed = params if isinstance(params, list) else ()
    return replace(match, signature=tuple(key for key in listed if isinstance(key, str)))


@runtime_checkable
class ToolSearchIndex(Protocol):
    """A searchable, immutable set of tools."""

    def search(
        self,
        query: str | Sequence[str],
        *,
        limit: int,
        allowed: Callable[[str], bool] | None = None,
    ) -> SearchResult:
        """Return the tools that fit the query, highest score first, ties by name.

        Args:
            query: Words in any language; the results of several queries are merged.
            limit: Maximum number of matches; 0 or less gives none, but counts.
            allowed: Returns True for the name of a tool that may be found; other tools
                are in no match and in no count.

        Returns:
            Matches with scores from 0 to 1. A query without a letter or digit, and
            an empty index, give a result without matches. No text of a model raises.
        """
        ...

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> ToolSearchIndex:
        """Return an index with some tools added or replaced and others removed.

        It ranks exactly as an index that is built from scratch, and shares structure with
        this one, which does not change.
        """
        ...
