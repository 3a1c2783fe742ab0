"""`search_tool_bm25` as oh-my-pi's models know it: schema, description, answer, errors.

The texts of errors are oh-my-pi's own, in English whatever the conversation's
language: prompts and tests of its users refer to them.

Source: oh-my-pi, `docs/tools/search_tool_bm25.md`, https://github.com/can1357/oh-my-pi.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, NamedTuple, Protocol, runtime_checkable

from tool_search.catalog import Tool, ToolCatalog
from tool_search.i18n import Language, text
from tool_search.schema import compact_json, encodable
from tool_search.search.index import ToolSearchIndex
from tool_search.search.locale_order import locale_key
from tool_search.search.oh_my_pi import DiscoverableTool, discoverable, oh_my_pi_tokens
from tool_search.search.result import SearchMatch, SearchResult
from tool_search.search.weighted_bm25 import RankedTool
from tool_search.search_tool import ToolSearchTool, clean_description
from tool_search.surfaces.oh_my_pi_settings import DEFAULT_LIMIT, SEARCH_TOOL_NAME

__all__ = [
    "DISABLED",
    "DiscoveryAnswer",
    "DiscoveryDetails",
    "DiscoveryFindings",
    "DiscoveryMatch",
    "SearchToolBm25",
    "denied",
]

DISABLED = (
    "Tool discovery is disabled. Enable tools.discoveryMode or mcp.discoveryMode to use "
    "search_tool_bm25."
)
_UNAVAILABLE = "Tool discovery is unavailable in this session."
_QUERY_MISSING = "Query is required and must not be empty."
_LIMIT_WRONG = "Limit must be a positive integer."
_QUERY_WITHOUT_WORDS = "Query must contain at least one letter or number."

_LABEL = "SearchTools"
_LONGEST_LIST = 600
# What JavaScript trims.
_SPACES = "\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_log = logging.getLogger(__name__)


def denied(names: Iterable[str]) -> str:
    """What is said where a capability profile forbids tools after they were found."""
    return f"Tool activation denied by capability profile: {', '.join(names)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryMatch:
    """A found tool, in oh-my-pi's words.

    Attributes:
        name: Its name.
        label: Its name for people.
        description: Its summary, cleaned.
        schema_keys: The names of its arguments, sorted.
        signature: The same with marks and values; see `DiscoverableTool`.
        score: Of the ranking, to six decimals.
        server_name: Its MCP server.
        mcp_tool_name: Its name there.
    """

    name: str
    label: str
    description: str
    schema_keys: tuple[str, ...]
    signature: tuple[str, ...]
    score: float
    server_name: str | None = None
    mcp_tool_name: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The match as a JSON object; what it does not have is left out."""
        content: dict[str, Any] = {
            "name": self.name,
            "label": self.label,
            "description": self.description,
            "server_name": self.server_name,
            "mcp_tool_name": self.mcp_tool_name,
            "schema_keys": list(self.schema_keys),
            "signature": list(self.signature),
            "score": self.score,
        }
        return {key: value for key, value in content.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryDetails:
    """The record of one search, for programs and people.

    Attributes:
        query: As it was asked, trimmed.
        limit: The most matches.
        total_tools: How many tools were searched.
        activated_tools: What this search made callable.
        active_selected_tools: All that searches have made callable by now.
        tools: The matches, best first.
    """

    query: str
    limit: int
    total_tools: int
    activated_tools: tuple[str, ...]
    active_selected_tools: tuple[str, ...]
    tools: tuple[DiscoveryMatch, ...]

    def to_dict(self) -> dict[str, Any]:
        """The record as a JSON object."""
        return {
            "query": self.query,
            "limit": self.limit,
            "total_tools": self.total_tools,
            "activated_tools": list(self.activated_tools),
            "active_selected_tools": list(self.active_selected_tools),
            "tools": [match.to_dict() for match in self.tools],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryAnswer:
    """What a call of the search tool came to.

    Attributes:
        content: As the model reads it: compact JSON, or the text of an error.
        is_error: Whether nothing was searched.
        details: None in an error.
    """

    content: str
    is_error: bool = False
    details: DiscoveryDetails | None = None

    @classmethod
    def error(cls, message: str) -> DiscoveryAnswer:
        """An answer that says why nothing was searched."""
        return cls(content=message, is_error=True)


class DiscoveryFindings(NamedTuple):
    """What a call finds, before anything is activated.

    Attributes:
        query: As it was asked, trimmed.
        limit: The most matches.
        total_tools: How many tools were searched.
        ranked: The matches, best first, within the limit.
    """

    query: str
    limit: int
    total_tools: int
    ranked: list[RankedTool]


@runtime_checkable
class _RanksRaw(Protocol):
    """An index that gives the scores of its ranking."""

    def ranked(
        self, query: str, *, allowed: Callable[[str], bool] | None = None
    ) -> Sequence[RankedTool]: ...


class SearchToolBm25(ToolSearchTool):
    """oh-my-pi's search tool over one catalog.

    Args:
        index: Searches the catalog's deferred tools; without raw scores of its own, its
            relevance stands for them.
        catalog: What is searched.
        name: The tool's name.
        max_results: How many matches there are by default; there is no upper limit.
        language: Of the description.
        summaries: Instead of the tools' own, by name.
    """

    def __init__(
        self,
        index: ToolSearchIndex,
        catalog: ToolCatalog,
        *,
        name: str = SEARCH_TOOL_NAME,
        max_results: int = DEFAULT_LIMIT,
        language: Language = "en-US",
        summaries: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(index, catalog, name=name, max_results=max_results, language=language)
        self._summaries = summaries or {}

    def definition(self, *, hidden: Iterable[Tool] | None = None) -> Tool:
        """The search tool as a definition.

        Args:
            hidden: The tools it speaks of; None: the catalog's deferred ones.
        """
        say = self._language
        query = {"type": "string", "description": text("oh_my_pi.query", say)}
        limit = {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": text("oh_my_pi.limit", say, default=self._max_results),
        }
        return Tool(
            name=self._name,
            title=_LABEL,
            kind="builtin",
            always_load=True,
            annotations={"read_only": True, "load_mode": "essential"},
            description=self._text(self._catalog.deferred if hidden is None else hidden),
            parameters={
                "type": "object",
                "properties": {"query": query, "limit": limit},
                "required": ["query"],
                "additionalProperties": False,
            },
        )

    def run(
        self,
        arguments: Mapping[str, Any],
        *,
        callable_now: Container[str] = (),
        discovered: int = 0,  # noqa: ARG002 - what can be called is left out by name
        allowed: Callable[[str], bool] | None = None,
    ) -> SearchResult:
        """The answer to one call; see `ToolSearchTool.run`.

        What can be called already is left out before the cut, and of the ranking.
        """
        found = self.find(arguments, selected=callable_now, allowed=allowed)
        if isinstance(found, str):
            return SearchResult(query=_query(arguments), error=found, form="oh-my-pi")
        described = [self._described(tool) for tool, _ in found.ranked]
        return SearchResult(
            query=found.query,
            matches=tuple(
                SearchMatch(
                    name=tool.name,
                    description=tool.summary,
                    server=tool.server_name,
                    signature=tool.signature,
                )
                for tool in described
            ),
            total_found=len(described),
            total_tools=found.total_tools,
            form="oh-my-pi",
        )

    def find(
        self,
        arguments: Mapping[str, Any],
        *,
        selected: Container[str] = (),
        allowed: Callable[[str], bool] | None = None,
    ) -> DiscoveryFindings | str:
        """What a call finds, or the text of an error where nothing could be searched.

        Args:
            arguments: As the model wrote them.
            selected: Names that are not searched any more.
            allowed: Says by name what this caller may call.
        """
        query = _query(arguments)
        limit = arguments.get("limit")
        if not query:
            return _QUERY_MISSING
        limit = self._max_results if limit is None else _whole(limit)
        if limit < 1:
            return _LIMIT_WRONG
        if not oh_my_pi_tokens(query):
            return _QUERY_WITHOUT_WORDS
        tools = self._catalog.deferred
        gone = [tool.name for tool in tools if tool.name in selected]
        total = sum(tool.name not in selected and not tool.roles for tool in tools)
        try:
            index = self._index.updated(added=(), removed=gone) if gone else self._index
            ranked = self._ranked(index, query, limit, allowed)
        except Exception:  # noqa: BLE001  # engines are pluggable; a search must never end a bot's turn
            _log.exception("the search for %r failed", query)
            return _UNAVAILABLE
        return DiscoveryFindings(query, limit, total, ranked)

    def details(
        self, found: DiscoveryFindings, *, activated: Sequence[str], selected: Sequence[str]
    ) -> DiscoveryDetails:
        """The record of a search.

        Args:
            found: By `find`.
            activated: What became callable by it.
            selected: What searches have made callable by now.
        """
        return DiscoveryDetails(
            query=found.query,
            limit=found.limit,
            total_tools=found.total_tools,
            activated_tools=tuple(activated),
            active_selected_tools=tuple(selected),
            tools=tuple(self._match(tool, score) for tool, score in found.ranked),
        )

    @staticmethod
    def content(details: DiscoveryDetails) -> str:
        """What the model reads of a search."""
        return compact_json(
            {
                "query": details.query,
                "activated_tools": list(details.activated_tools),
                "match_count": len(details.tools),
                "total_tools": details.total_tools,
                "tools": [
                    {
                        "name": match.name,
                        "description": match.description,
                        "params": list(match.signature),
                    }
                    for match in details.tools
                ],
            }
        )

    def _ranked(
        self,
        index: ToolSearchIndex,
        query: str,
        limit: int,
        allowed: Callable[[str], bool] | None,
    ) -> list[RankedTool]:
        if isinstance(index, _RanksRaw):
            return list(index.ranked(query, allowed=allowed)[:limit])
        most = min(limit, len(self._catalog))
        matches = index.search(query, limit=most, allowed=allowed).matches
        return [RankedTool(self._catalog[match.name], match.score) for match in matches]

    def _described(self, tool: Tool) -> DiscoverableTool:
        found = discoverable(tool, summary=self._summaries.get(tool.name))
        return replace(found, summary=clean_description(found.summary))

    def _match(self, tool: Tool, score: float) -> DiscoveryMatch:
        found = self._described(tool)
        return DiscoveryMatch(
            name=found.name,
            label=found.label,
            description=found.summary,
            schema_keys=found.schema_keys,
            signature=found.signature,
            score=_six_decimals(score),
            server_name=found.server_name,
            mcp_tool_name=found.mcp_tool_name,
        )

    def _text(self, hidden: Iterable[Tool]) -> str:
        """The description; lines without content are left out."""
        tools = [tool for tool in hidden if not tool.roles]
        say = self._language
        counts = Counter(tool.server for tool in tools if tool.server)
        servers = [
            text(
                "oh_my_pi.server" if count == 1 else "oh_my_pi.server_many",
                say,
                name=clean_description(server),
                count=count,
            )
            for server, count in sorted(counts.items(), key=lambda item: locale_key(item[0]))
        ]
        builtins = sorted(tool.name for tool in tools if tool.kind == "builtin")
        lines = [text("oh_my_pi.description", say)]
        if servers:
            lines.append(text("oh_my_pi.servers", say, servers=self._listed(servers)))
        if builtins:
            lines.append(text("oh_my_pi.builtins", say, names=self._listed(builtins)))
        if tools:
            lines.append(text("oh_my_pi.total", say, total=len(tools)))
        lines.append(text("oh_my_pi.usage", say, default=self._max_results))
        return "\n".join(lines)

    def _listed(self, names: Sequence[str]) -> str:
        """The names with commas; what has no room is counted."""
        length = 0
        for place, name in enumerate(names):
            length += len(name) + 2
            if length > _LONGEST_LIST and place:
                more = text("search_tool.servers_more", self._language, count=len(names) - place)
                return ", ".join((*names[:place], more))
        return ", ".join(names)


def _query(arguments: Mapping[str, Any]) -> str:
    query = arguments.get("query")
    return encodable(query).strip(_SPACES) if isinstance(query, str) else ""


def _whole(limit: object) -> int:
    """The limit, or 0 where it is no whole number."""
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        return 0
    return int(limit) if isinstance(limit, int) or limit.is_integer() else 0


def _six_decimals(score: float) -> float:
    """Rounded as JavaScript's `toFixed(6)`: a half goes up."""
    return float(Decimal(score).quantize(Decimal("0.000001"), rounding=ROUND_HALF_UP))
