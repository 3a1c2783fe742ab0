"""`search_tool_bm25` as oh-my-pi's models know it: schema, description, search.

Source: oh-my-pi, `docs/tools/search_tool_bm25.md`, https://github.com/can1357/oh-my-pi.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from tool_search.adapters.compat.oh_my_pi.answer import (
    LIMIT_WRONG,
    QUERY_MISSING,
    QUERY_WITHOUT_WORDS,
    UNAVAILABLE,
    DiscoveryDetails,
    DiscoveryMatch,
)
from tool_search.adapters.compat.oh_my_pi.ranking import (
    DiscoverableTool,
    discoverable,
    locale_key,
    oh_my_pi_tokens,
)
from tool_search.adapters.compat.oh_my_pi.settings import DEFAULT_LIMIT, SEARCH_TOOL_NAME
from tool_search.adapters.compat.weighted_bm25 import RankedTool
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.services import (
    OhMyPiMatch,
    OhMyPiResult,
    SearchResult,
    ToolSearchIndex,
)
from tool_search.core.values.clean_text import named
from tool_search.core.values.json import encodable
from tool_search.core.values.redaction import log_failure
from tool_search.i18n import Language, text
from tool_search.search.discovery.search_tool import ToolSearchTool, clean_description

if TYPE_CHECKING:
    from tool_search.config.search import AnswerForm

__all__ = ["DiscoveryFindings", "SearchToolBm25"]

_LABEL = "SearchTools"
_MAX_LIST_LENGTH = 600
# The characters that JavaScript trims.
_SPACES = "\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_log = logging.getLogger(__name__)


class DiscoveryFindings(NamedTuple):
    """The result of a call, before anything is activated.

    Attributes:
        query: The query, trimmed.
        limit: Maximum number of matches.
        total_tools: Number of tools that were searched.
        ranked: The matches, best first, within the limit.
    """

    query: str
    limit: int
    total_tools: int
    ranked: list[RankedTool]


@runtime_checkable
class _RanksRaw(Protocol):
    """An index that gives the raw scores of its ranking."""

    def ranked(
        self,
        query: str,
        *,
        limit: int | None = None,
        allowed: Callable[[str], bool] | None = None,
    ) -> Sequence[RankedTool]: ...


class SearchToolBm25(ToolSearchTool):
    """oh-my-pi's search tool over one catalog.

    Args:
        index: Searches the catalog's deferred tools; if it has no raw scores, its relevance
            takes their place.
        catalog: The tools to search.
        name: The tool's name.
        max_results: The default number of matches; there is no upper limit.
        max_results_total: Not used: a call has one query.
        language: The language of the description.
        summaries: Summaries by tool name, which replace the tools' own.
        answer: The form of the answer; see `DiscoverySettings`.
    """

    def __init__(
        self,
        index: ToolSearchIndex,
        catalog: ToolCatalog,
        *,
        name: str = SEARCH_TOOL_NAME,
        max_results: int = DEFAULT_LIMIT,
        max_results_total: int = DEFAULT_LIMIT,
        language: Language = "en-US",
        summaries: Mapping[str, str] | None = None,
        answer: AnswerForm = "names",
    ) -> None:
        super().__init__(
            index,
            catalog,
            name=name,
            max_results=max_results,
            max_results_total=max_results_total,
            language=language,
        )
        self._summaries = summaries or {}
        self._form: AnswerForm = answer

    def definition(self, *, hidden: Iterable[Tool] | None = None) -> Tool:
        """Return the definition of the search tool.

        Args:
            hidden: The tools that its description covers; None for the deferred tools that
                everybody may call.
        """
        say = self._language
        if hidden is None:
            hidden = (tool for tool in self._catalog.deferred if not tool.roles)
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
            description=self._text(list(hidden)),
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
        """Answer one call; see `ToolSearchTool.run`.

        Tools that can already be called are removed before the ranking and the cut.
        """
        found = self.find(arguments, selected=callable_now, allowed=allowed)
        if isinstance(found, str):
            return OhMyPiResult(query=_query(arguments), error=found)
        described = [self._describe(tool) for tool, _ in found.ranked]
        return OhMyPiResult(
            query=found.query,
            matches=tuple(
                OhMyPiMatch(
                    name=tool.name,
                    description=tool.summary,
                    server=tool.server_name,
                    signature=tool.signature,
                )
                for tool in described
            ),
            total_found=len(described),
            total_tools=found.total_tools,
            form=self._form,
        )

    def find(
        self,
        arguments: Mapping[str, Any],
        *,
        selected: Container[str] = (),
        allowed: Callable[[str], bool] | None = None,
    ) -> DiscoveryFindings | str:
        """Return the findings of a call, or the text of an error.

        Args:
            arguments: The arguments as the model wrote them.
            selected: Names of tools that are not searched any more.
            allowed: Returns True for the name of a tool that this caller may call.
        """
        query = _query(arguments)
        limit = arguments.get("limit")
        if not query:
            return QUERY_MISSING
        limit = self._max_results if limit is None else _whole(limit)
        if limit < 1:
            return LIMIT_WRONG
        if not oh_my_pi_tokens(query):
            return QUERY_WITHOUT_WORDS
        tools = self._catalog.deferred
        gone = [tool.name for tool in tools if tool.name in selected]
        total = sum(tool.name not in selected and not tool.roles for tool in tools)
        try:
            index = self._index.updated(added=(), removed=gone) if gone else self._index
            ranked = self._rank(index, query, limit, allowed)
        except Exception:  # noqa: BLE001  # engines are pluggable; a search must never end a bot's turn
            log_failure(_log, "the search for %r failed", query)
            return UNAVAILABLE
        return DiscoveryFindings(query, limit, total, ranked)

    def details(
        self, found: DiscoveryFindings, *, activated: Sequence[str], selected: Sequence[str]
    ) -> DiscoveryDetails:
        """Return the record of a search.

        Args:
            found: The findings, from `find`.
            activated: The tools that became callable by it.
            selected: The tools that searches have made callable so far.
        """
        return DiscoveryDetails(
            query=found.query,
            limit=found.limit,
            total_tools=found.total_tools,
            activated_tools=tuple(activated),
            active_selected_tools=tuple(selected),
            tools=tuple(
                DiscoveryMatch.of(self._describe(tool), score) for tool, score in found.ranked
            ),
        )

    def _rank(
        self,
        index: ToolSearchIndex,
        query: str,
        limit: int,
        allowed: Callable[[str], bool] | None,
    ) -> list[RankedTool]:
        if isinstance(index, _RanksRaw):
            return list(index.ranked(query, limit=limit, allowed=allowed))
        most = min(limit, len(self._catalog))
        matches = index.search(query, limit=most, allowed=allowed).matches
        return [RankedTool(self._catalog[match.name], match.score) for match in matches]

    def _describe(self, tool: Tool) -> DiscoverableTool:
        found = discoverable(tool, summary=self._summaries.get(tool.name))
        return replace(found, summary=clean_description(found.summary))

    def _text(self, tools: Sequence[Tool]) -> str:
        """Return the description, without lines that have no content."""
        say = self._language
        counts = Counter(tool.server for tool in tools if tool.server)
        servers = [
            text(
                "oh_my_pi.server" if count == 1 else "oh_my_pi.server_many",
                say,
                name=named(server),
                count=count,
            )
            for server, count in sorted(counts.items(), key=lambda item: locale_key(item[0]))
        ]
        builtins = sorted(tool.name for tool in tools if tool.kind == "builtin")
        lines = [text("oh_my_pi.description", say)]
        if servers:
            lines.append(text("oh_my_pi.servers", say, servers=self._list(servers)))
        if builtins:
            lines.append(text("oh_my_pi.builtins", say, names=self._list(builtins)))
        if tools:
            lines.append(text("oh_my_pi.total", say, total=len(tools)))
        lines.append(text("oh_my_pi.usage", say, default=self._max_results))
        return "\n".join(lines)

    def _list(self, names: Sequence[str]) -> str:
        """Join the names with commas; names that do not fit are counted."""
        length = 0
        for place, name in enumerate(names):
            length += len(name) + 2
            if length > _MAX_LIST_LENGTH and place:
                more = text("search_tool.servers_more", self._language, count=len(names) - place)
                return ", ".join((*names[:place], more))
        return ", ".join(names)


def _query(arguments: Mapping[str, Any]) -> str:
    query = arguments.get("query")
    return encodable(query).strip(_SPACES) if isinstance(query, str) else ""


def _whole(limit: object) -> int:
    """Return the limit, or 0 if it is not a whole number."""
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        return 0
    return int(limit) if isinstance(limit, int) or limit.is_integer() else 0
