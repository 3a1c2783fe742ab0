"""The seam every search engine stands behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, runtime_checkable

from tool_search.catalog.tool import Tool
from tool_search.values.json import compact_json

__all__ = [
    "ResultForm",
    "SearchMatch",
    "SearchResult",
    "ToolSearchIndex",
]


# What a search returns, and the JSON that a model reads and a history keeps.


ResultForm = Literal["tool_search", "oh-my-pi"]
"""Whose keys a result's JSON has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchMatch:
    """One tool that a search found.

    Attributes:
        name: The tool's canonical name.
        description: What the tool is for.
        server: Its MCP server, where it has one.
        score: From 0 to 1, relative to what the query could reach at most; 0 in a
            result that was read back from a history.
        parameters: The tool's schema, where the result must carry it because the
            tool is not declared in the request itself.
        signature: Its arguments in short, where the result's form shows them.
    """

    name: str
    description: str = ""
    server: str | None = None
    score: float = 0.0
    parameters: Mapping[str, Any] | None = None
    signature: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The answer to one query.

    Attributes:
        query: As it was asked; several queries are joined by " | ".
        matches: Best first, equal scores by name.
        total_found: How many tools passed the relevance floor, before any cut.
        total_tools: How many tools were searched.
        loaded: Names of found tools that can already be called, best first.
        unmatched: Words of the query that no tool has.
        hint: A localized sentence for the model.
        error: A localized sentence for the model: nothing was searched.
        form: Of its JSON.
    """

    query: str
    matches: tuple[SearchMatch, ...] = ()
    total_found: int = 0
    total_tools: int = 0
    loaded: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    hint: str | None = None
    error: str | None = None
    form: ResultForm = "tool_search"

    @property
    def names(self) -> tuple[str, ...]:
        """Every tool the result makes callable: the matches, then the loaded ones."""
        return (*(match.name for match in self.matches), *self.loaded)

    def without(self, names: Collection[str]) -> SearchResult:
        """The result without these tools."""
        return replace(
            self,
            matches=tuple(match for match in self.matches if match.name not in names),
            loaded=tuple(name for name in self.loaded if name not in names),
        )

    def to_json(self) -> str:
        """The result as compact JSON, keys in the documented order, scores left out."""
        if self.error is not None:
            return compact_json({"query": self.query, "error": self.error})
        if self.form == "oh-my-pi":
            return compact_json(_oh_my_pi_object(self))
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
        """The result that a history holds, or None where the text is none.

        Text behind the JSON is passed over: bots append notices to tool results.
        """
        try:
            content, _ = json.JSONDecoder().raw_decode(text.lstrip())
        except (ValueError, RecursionError):
            return None
        if not isinstance(content, dict) or not isinstance(content.get("query"), str):
            return None
        if isinstance(content.get("error"), str):
            return cls(query=content["query"], error=content["error"])
        if isinstance(content.get("activated_tools"), list):
            return _read_oh_my_pi(content)
        matches = content.get("matches")
        if not isinstance(matches, list):
            return None
        return cls(
            query=content["query"],
            matches=tuple(_read_match(m) for m in matches if _is_named(m)),
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


def _oh_my_pi_object(result: SearchResult) -> dict[str, Any]:
    """oh-my-pi's compact answer, and schemas where a result must carry them."""
    tools: list[dict[str, Any]] = []
    for match in result.matches:
        tools.append({"name": match.name, "description": match.description})
        tools[-1]["params"] = list(match.signature)
        if match.parameters is not None:
            tools[-1]["parameters"] = match.parameters
    return {
        "query": result.query,
        "activated_tools": [match.name for match in result.matches],
        "match_count": len(result.matches),
        "total_tools": result.total_tools,
        "tools": tools,
    }


def _read_oh_my_pi(content: Mapping[str, Any]) -> SearchResult:
    """The result in a history; its older answers have names alone."""
    tools = content.get("tools")
    if not isinstance(tools, list):
        tools = [{"name": name} for name in _texts(content["activated_tools"])]
    return SearchResult(
        query=content["query"],
        matches=tuple(
            replace(_read_match(tool), signature=_texts(tool.get("params")))
            for tool in tools
            if _is_named(tool)
        ),
        total_found=_count(content.get("match_count")),
        total_tools=_count(content.get("total_tools")),
        form="oh-my-pi",
    )


def _is_named(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str)


def _read_match(content: Mapping[str, Any]) -> SearchMatch:
    description, server = content.get("description"), content.get("server")
    parameters = content.get("parameters")
    return SearchMatch(
        name=content["name"],
        description=description if isinstance(description, str) else "",
        server=server if isinstance(server, str) else None,
        parameters=parameters if isinstance(parameters, dict) else None,
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _texts(value: object) -> tuple[str, ...]:
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()


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
        """The tools that fit the query, best first, equal scores by name.

        Args:
            query: Words in any language; of several queries the results are merged.
            limit: How many matches at most; 0 or less gives none, but counts.
            allowed: Says by name which tools may be found; a tool that may not
                is in no match and in no count.

        Returns:
            Matches with scores from 0 to 1. A query without a letter or digit, and
            an empty index, give a result without matches. Nothing a model can
            write raises.
        """
        ...

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> ToolSearchIndex:
        """An index with tools added or replaced and others gone; this one stays as it is.

        Ranks exactly as an index built afresh, and shares structure with this one.
        """
        ...
