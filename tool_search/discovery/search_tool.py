"""The tool that a model calls to find tools."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from tool_search.catalog.catalog import ToolCatalog
from tool_search.catalog.tool import Tool
from tool_search.i18n import Language, text
from tool_search.search.index.older_first import search_older_first
from tool_search.search.index.protocol import SearchMatch, SearchResult, ToolSearchIndex
from tool_search.values.clean_text import clean_line, quoted
from tool_search.values.json import encodable
from tool_search.values.redaction import log_failure

__all__ = [
    "CALL_TOOL_NAME",
    "ToolSearchTool",
    "call_tool_definition",
    "clean_description",
    "clean_match",
    "instructed",
]

CALL_TOOL_NAME = "call_tool"

_MAX_DESCRIPTION_CHARS = 300
_MAX_TOOL_DESCRIPTION_CHARS = 1200
_MAX_QUERY_SHOWN_CHARS = 1000
_MAX_SERVER_CHARS = 100
_log = logging.getLogger(__name__)


def clean_description(description: str) -> str:
    """Return a third party's text in a form that may enter a prompt.

    One line without control and invisible characters, of at most 300 characters.
    """
    return clean_line(description, _MAX_DESCRIPTION_CHARS)


def clean_match(match: SearchMatch) -> SearchMatch:
    """Return a match as a model reads it: its description and its server clean and short."""
    server = clean_line(match.server, _MAX_SERVER_CHARS) if match.server else None
    return replace(match, description=clean_description(match.description), server=server)


def instructed(prompt: str, search_tool: str, language: Language) -> str:
    """Return a system prompt that has the instructions how to search, once.

    Args:
        prompt: The system prompt of the bot's owner.
        search_tool: The search tool's name.
        language: The language of the instructions.
    """
    instructions = text("system.instructions", language, search_tool=search_tool)
    if instructions in prompt:
        return prompt
    return f"{prompt.rstrip()}\n\n{instructions}" if prompt.strip() else instructions


class ToolSearchTool:
    """The search tool of one conversation, over one catalog.

    Args:
        index: Searches the catalog's deferred tools.
        catalog: The tools.
        name: The tool's name, `search_tool_name` in the configuration.
        max_results: The largest number of matches, and the default.
        language: The language of the description and the hints.
    """

    def __init__(
        self,
        index: ToolSearchIndex,
        catalog: ToolCatalog,
        *,
        name: str = "tool_search",
        max_results: int = 5,
        language: Language = "en-US",
    ) -> None:
        self._index = index
        self._catalog = catalog
        self._max_results = max_results
        self._language = language
        self._total = sum(map(catalog.is_open, catalog.deferred))
        self._name = name

    def definition(self) -> Tool:
        """Return the search tool as a definition; its text depends on the catalog's servers."""
        query = {"type": "string", "description": text("search_tool.query", self._language)}
        limit = {
            "type": "integer",
            "minimum": 1,
            "maximum": self._max_results,
            "description": text("search_tool.limit", self._language),
        }
        return Tool(
            name=self._name,
            kind="builtin",
            description=self._description(),
            parameters={
                "type": "object",
                "properties": {"query": query, "limit": limit},
                "required": ["query"],
            },
        )

    def run(
        self,
        arguments: Mapping[str, Any],
        *,
        callable_now: Container[str] = (),
        discovered: int = 0,
        allowed: Callable[[str], bool] | None = None,
    ) -> SearchResult:
        """Answer one call; no arguments of a model raise.

        Args:
            arguments: The arguments as the model wrote them.
            callable_now: Names of tools that need no search; found ones are in `loaded`.
            discovered: The number of deferred tools among them.
            allowed: Returns True for the name of a tool that this caller may call.
        """
        queries = _queries(arguments.get("query"))
        shown = _preview(queries)
        if not any(char.isalnum() for each in queries for char in each):
            return SearchResult(query=shown, error=text("search.query_empty", self._language))
        if not self._total and not self._catalog.deferred:
            return SearchResult(query=shown, hint=text("search.nothing", self._language))
        limit = self._limit(arguments.get("limit"))
        query: str | Sequence[str] = queries[0] if len(queries) == 1 else queries
        try:
            found = search_older_first(
                self._index,
                query,
                limit=limit + discovered,
                allowed=allowed,
                copies=self._catalog.copies,
                tools=self._catalog,
            )
        except Exception as exc:  # noqa: BLE001  # engines are pluggable; a search must never end a bot's turn
            log_failure(_log, "the search for %r failed", shown)
            cause = f"{type(exc).__name__}: {exc}"
            return SearchResult(
                query=shown, error=text("search.unavailable", self._language, cause=cause)
            )
        return self._answer(shown, found, limit, callable_now)

    def _answer(
        self, query: str, found: SearchResult, limit: int, callable_now: Container[str]
    ) -> SearchResult:
        matches: list[SearchMatch] = []
        loaded: list[str] = []
        for match in found.matches:
            if len(matches) == limit:
                break
            if match.name in callable_now:
                loaded.append(match.name)
            else:
                matches.append(clean_match(match))
        hint = None
        if not matches:
            hint = text("search.available" if loaded else "search.no_match", self._language)
        return SearchResult(
            query=query,
            matches=tuple(matches),
            loaded=tuple(loaded[:limit]),
            total_found=found.total_found,
            total_tools=self._total,
            hint=hint,
            unmatched=found.unmatched,
        )

    def _limit(self, value: object) -> int:
        if isinstance(value, str) and value.strip().isdecimal():
            value = int(value.strip()[:9])
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 1:
            return int(min(value, self._max_results))
        return self._max_results

    def _description(self) -> str:
        head = text("search_tool.description", self._language, total=self._total)
        servers = self._catalog.servers
        # No more than these can fit: a name in quotes, a count and a comma take eight characters.
        counts = [
            f"{quoted(server)} ({count})"
            for server, count in islice(servers.items(), _MAX_TOOL_DESCRIPTION_CHARS // 8)
        ]
        for kept in range(len(counts), 0, -1):
            listed = counts[:kept]
            if kept < len(servers):
                rest = len(servers) - kept
                listed.append(text("search_tool.servers_more", self._language, count=rest))
            line = text("search_tool.servers", self._language, servers=", ".join(listed))
            if len(head) + 1 + len(line) <= _MAX_TOOL_DESCRIPTION_CHARS:
                return f"{head} {line}"
        return head


def _queries(value: object) -> list[str]:
    """Return the queries of a call, at least one, whatever the model wrote."""
    if isinstance(value, list | tuple):
        words = [
            word for item in value if not isinstance(item, list | dict) for word in _queries(item)
        ]
        return [word for word in words if word] or [""]
    return ["" if value is None else encodable(str(value)).strip()]


def _preview(queries: Sequence[str]) -> str:
    """Return the queries as a result repeats them; a history keeps the text for its lifetime."""
    joined = " | ".join(queries)
    if len(joined) <= _MAX_QUERY_SHOWN_CHARS:
        return joined
    return f"{joined[: _MAX_QUERY_SHOWN_CHARS - 1]}…"


def call_tool_definition(language: Language, *, name: str = CALL_TOOL_NAME) -> Tool:
    """Return the tool that calls tools for which a provider's list has no room."""
    return Tool(
        name=name,
        kind="builtin",
        description=text("call_tool.description", language),
        parameters={
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": text("call_tool.name", language)},
                "arguments": {
                    "type": "object",
                    "description": text("call_tool.arguments", language),
                },
            },
            "required": ["name", "arguments"],
        },
    )
