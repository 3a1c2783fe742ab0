"""The tool that a model calls to find tools."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from tool_search.catalog.near_copies import copies_of
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.services import (
    CALL_TOOL_NAME,
    SearchMatch,
    SearchResult,
    ToolSearchIndex,
    call_tool_definition,
    clean_description,
    clean_match,
    instructed,
)
from tool_search.core.values.clean_text import quoted
from tool_search.core.values.json import encodable, read_json
from tool_search.core.values.redaction import log_failure
from tool_search.i18n import Language, text
from tool_search.search.discovery.listing import catalog_languages, is_foreign, languages_text
from tool_search.search.index.older_first import search_older_first
from tool_search.search.index.scores import count_near_best
from tool_search.search.text.query_language import selected_names

__all__ = [
    "CALL_TOOL_NAME",
    "MAX_QUERIES",
    "ToolSearchTool",
    "call_tool_definition",
    "clean_description",
    "clean_match",
    "has_words",
    "instructed",
    "joined_queries",
    "merged_results",
    "read_queries",
]

# The queries of one call of the search tool, and the fair merge of their results.


MAX_QUERIES = 16
"""The queries of one call that are searched; the model reads that the others are not."""

_MAX_JOINED_CHARS = 1000
_MAX_READ = 1000
_MAX_UNMATCHED = 12


def read_queries(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the queries of a call, each once, at least one, whatever the model wrote.

    `queries` is read, then `query`, the only argument of earlier versions. Each may be a text
    or a list; a list in a text is read too. Queries that differ in case or spaces are equal.

    >>> read_queries({"queries": ["open an issue", "Open an  issue"], "query": "send mail"})
    ('open an issue', 'send mail')
    """
    written = (*_texts(arguments.get("queries")), *_texts(arguments.get("query")))
    unique: dict[str, str] = {}
    for query in written[:_MAX_READ]:
        unique.setdefault(" ".join(query.casefold().split()), query)
    return tuple(query for key, query in unique.items() if key) or ("",)


def has_words(query: str) -> bool:
    """True if a query has a letter or a digit."""
    return any(char.isalnum() for char in query)


def joined_queries(queries: Sequence[str]) -> str:
    """Return the queries as a result repeats them; a history keeps the text for its lifetime."""
    joined = " | ".join(queries)
    if len(joined) <= _MAX_JOINED_CHARS:
        return joined
    return f"{joined[: _MAX_JOINED_CHARS - 1]}…"


def merged_results(
    results: Sequence[SearchResult], *, limit: int, selected: Collection[str] = ()
) -> SearchResult:
    """Return one result with the tools of several queries, in turn, each tool once.

    The best tool of each query comes first, in the order of the queries, then the second of
    each. So no query takes the places of another. The results remain in `parts`, with the
    tools that the merged one has.

    Args:
        results: The result of each query, not empty, with texts that a model may read.
        limit: Maximum number of matches; of `loaded` names too.
        selected: Names of tools that a query lists: they come first, and do not count.
    """
    matches = {match.name: match for result in reversed(results) for match in result.matches}
    found = [[match.name for match in result.matches] for result in results]
    names = _in_turn(found, limit, first=selected)
    loaded = _in_turn([result.loaded for result in results], limit, first=selected)
    dropped = {name for result in results for name in result.names}.difference(names, loaded)
    unmatched = dict.fromkeys(word for result in results for word in result.unmatched)
    return SearchResult(
        query=joined_queries([result.query for result in results]),
        matches=tuple(matches[name] for name in names),
        loaded=tuple(loaded),
        total_found=_count_found(results),
        total_tools=max(result.total_tools for result in results),
        unmatched=tuple(unmatched)[:_MAX_UNMATCHED],
        parts=tuple(result.without(dropped) for result in results),
    )


def _in_turn(
    rankings: Sequence[Sequence[str]], limit: int, *, first: Collection[str] = ()
) -> list[str]:
    """Return the first name of each ranking, then the second ones, each name once.

    Args:
        rankings: Names, best first.
        limit: The number of names, without those in `first`.
        first: Names that come before the others, if a ranking has them.
    """
    before = dict.fromkeys(name for ranking in rankings for name in ranking if name in first)
    taken: dict[str, None] = {}
    waiting: list[Iterator[str]] = [iter(ranking) for ranking in rankings]
    while waiting and len(taken) < limit:
        for ranking in list(waiting):
            # A query whose best tool another query has taken gives its next.
            name = next((each for each in ranking if each not in taken | before), None)
            if name is None:
                waiting.remove(ranking)
            elif len(taken) < limit:
                taken[name] = None
    return [*before, *taken]


def _count_found(results: Sequence[SearchResult]) -> int:
    """Return the number of tools that some query finds, if no tool below the cuts is shared."""
    seen = [name for result in results for name in result.names]
    return sum(result.total_found for result in results) - (len(seen) - len(set(seen)))


def _texts(value: object) -> list[str]:
    """Return the texts in an argument; other JSON values as far as they are a text's work."""
    if isinstance(value, str):
        return _list(value) or [encodable(value).strip()]
    if isinstance(value, Mapping):
        return _texts(value.get("query")) if isinstance(value.get("query"), str) else []
    if isinstance(value, list | tuple):
        return [
            text
            for item in value[:_MAX_READ]
            if not isinstance(item, list | tuple)
            for text in _texts(item)
        ]
    return [] if value is None else [str(value)]


def _list(text: str) -> list[str]:
    """Return the texts of a list that a model wrote as a text; empty for any other text."""
    if not text.lstrip().startswith("["):
        return []
    try:
        value = read_json(text)
    except (ValueError, RecursionError):
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return []
    return [encodable(item).strip() for item in value]


_MAX_RESULTS = 5
_MAX_TOOL_DESCRIPTION_CHARS = 1200
_MAX_SELECTED = 50
_MAX_NEAR_WORDS = 3
_MAX_QUERY_HINT_CHARS = 100
_EXACT = 1.0
_log = logging.getLogger(__name__)


class _Found(NamedTuple):
    """The result of one query, with what is said of it.

    Attributes:
        result: The result.
        selected: Names of tools that the query lists.
        near: Words of tools that unknown words of the query may be typing errors of.
        is_foreign: True if its words are in a script that no tool is described in.
    """

    result: SearchResult
    selected: frozenset[str]
    near: tuple[str, ...]
    is_foreign: bool


class ToolSearchTool:
    """The search tool of one conversation, over one catalog.

    Args:
        index: Searches the catalog's deferred tools.
        catalog: The tools.
        name: The tool's name, `search_tool_name` in the configuration.
        max_results: The largest number of matches of one query, and the default.
        max_results_total: The largest number of matches of all queries of a call, if it is
            more than `max_results` and than the number of queries.
        language: The language of the description and the hints.
    """

    def __init__(
        self,
        index: ToolSearchIndex,
        catalog: ToolCatalog,
        *,
        name: str = "tool_search",
        max_results: int = _MAX_RESULTS,
        max_results_total: int = 8,
        language: Language = "en-US",
    ) -> None:
        self._index = index
        self._catalog = catalog
        self._max_results = max_results
        self._max_results_total = max(max_results, max_results_total)
        # A smaller number is an owner's wish for few tools, however a model asks.
        self._max_alone = self._max_results_total if max_results >= _MAX_RESULTS else max_results
        self._language = language
        self._total = sum(map(catalog.is_open, catalog.deferred))
        self._name = name

    def definition(self) -> Tool:
        """Return the search tool as a definition; its text depends on the catalog."""
        queries = {
            "type": "array",
            "items": {"type": "string"},
            "description": text("search_tool.queries", self._language),
        }
        limit = {
            "type": "integer",
            "minimum": 1,
            "maximum": self._max_alone,
            "description": text("search_tool.limit", self._language),
        }
        return Tool(
            name=self._name,
            kind="builtin",
            description=self._description(),
            parameters={
                "type": "object",
                "properties": {"queries": queries, "limit": limit},
                "required": ["queries"],
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
        queries = read_queries(arguments)
        shown = joined_queries(queries)
        asked = [query for query in queries if has_words(query)]
        if not asked:
            return SearchResult(query=shown, error=text("search.query_empty", self._language))
        if not self._total and not self._catalog.deferred:
            return SearchResult(query=shown, hint=text("search.nothing", self._language))
        # A list of one need may use the places that other needs would have had: of a model's
        # own queries, right tools found rise from .75 to .80 (benchmarks/model_queries.md).
        is_list = arguments.get("queries") is not None
        most = self._max_alone if is_list and len(asked) == 1 else self._max_results
        limit = self._limit(arguments.get("limit"), most)
        try:
            found = [
                self._find(query, limit, callable_now, discovered, allowed)
                for query in asked[:MAX_QUERIES]
            ]
        except Exception as exc:  # noqa: BLE001  # engines are pluggable; a search must never end a bot's turn
            log_failure(_log, "the search for %r failed", shown)
            cause = f"{type(exc).__name__}: {exc}"
            return SearchResult(
                query=shown, error=text("search.unavailable", self._language, cause=cause)
            )
        return self._answer(shown, found, limit, left_out=len(asked) - len(found))

    def _find(
        self,
        query: str,
        limit: int,
        callable_now: Container[str],
        discovered: int,
        allowed: Callable[[str], bool] | None,
    ) -> _Found:
        """Return the result of one query, as a model reads it."""
        listed = selected_names(query)
        found = search_older_first(
            self._index,
            query,
            limit=max(limit + discovered, min(len(listed), _MAX_SELECTED)),
            allowed=allowed,
            copies=copies_of(self._catalog),
            tools=self._catalog,
        )
        exact = (match.name for match in found.matches if listed and match.score >= _EXACT)
        selected = frozenset(exact)
        limit = max(limit, len(selected))
        matches: list[SearchMatch] = []
        loaded: list[str] = []
        for match in self._near_best(found.matches, limit, callable_now):
            if len(matches) == limit:
                break
            if match.name in callable_now:
                loaded.append(match.name)
            else:
                matches.append(clean_match(match))
        result = SearchResult(
            query=joined_queries([query]),
            matches=tuple(matches),
            loaded=tuple(loaded[:limit]),
            total_found=found.total_found,
            total_tools=self._total,
            unmatched=found.unmatched,
        )
        near = self._near_words(query, found.unmatched, allowed)
        return _Found(result, selected, near, self._needs_meaning(query, found.unmatched))

    def _needs_meaning(self, query: str, unknown: Sequence[str]) -> bool:
        """Return True if an engine of words cannot know a query, for its script."""
        if not unknown or getattr(self._index, "compares_meanings", True):
            return False
        return is_foreign(query, self._catalog.once(catalog_languages))

    def _near_words(
        self, query: str, unknown: Sequence[str], allowed: Callable[[str], bool] | None
    ) -> tuple[str, ...]:
        """Return a few words of tools that unknown words are typing errors of.

        A word that the query has too is no correction.
        """
        near_words = getattr(self._index, "near_words", None)
        found = near_words(unknown, allowed=allowed) if unknown and near_words else ()
        written = query.casefold()
        return tuple(word for word in found if word not in written)[:_MAX_NEAR_WORDS]

    def _near_best(
        self, matches: Sequence[SearchMatch], limit: int, callable_now: Container[str]
    ) -> Sequence[SearchMatch]:
        """Return the matches that are worth a place in the model's list.

        If the best one is callable already, later ones do not fill up the answer.
        """
        if not getattr(self._index, "has_comparable_scores", False):
            return matches
        kept = matches[: count_near_best([match.score for match in matches])]
        return kept[:limit] if kept and kept[0].name in callable_now else kept

    def _answer(
        self, shown: str, found: Sequence[_Found], limit: int, *, left_out: int
    ) -> SearchResult:
        """Return the answer to a call, within its budget.

        Args:
            shown: The queries as the answer repeats them.
            found: The result of each query that was searched.
            limit: The largest number of matches of one query.
            left_out: The number of queries that were not searched.
        """
        results = [each.result for each in found]
        if len(results) == 1:
            return replace(results[0], query=shown, hint=self._hint(found, left_out))
        budget = min(limit * len(results), max(self._max_results_total, len(results)))
        selected = frozenset[str]().union(*(each.selected for each in found))
        merged = merged_results(results, limit=budget, selected=selected)
        return replace(merged, query=shown, hint=self._hint(found, left_out))

    def _hint(self, found: Sequence[_Found], left_out: int) -> str | None:
        """Return what a model should know of what it asked; None for nothing."""
        say, results = self._language, [each.result for each in found]
        hints = []
        if not any(result.matches for result in results):
            is_loaded = any(result.loaded for result in results)
            hints.append(text("search.available" if is_loaded else "search.no_match", say))
        elif len(results) > 1:
            available = [name for each in results if not each.matches for name in each.loaded]
            if available:
                names = ", ".join(dict.fromkeys(available))
                hints.append(text("search.available_names", say, names=names))
            missed = [each.query for each in results if not each.names]
            if missed:
                queries = " | ".join(query[:_MAX_QUERY_HINT_CHARS] for query in missed)
                hints.append(text("search.no_match_for", say, queries=queries))
        near = dict.fromkeys(word for each in found for word in each.near)
        if near:
            words = ", ".join(islice(near, _MAX_NEAR_WORDS))
            hints.append(text("search.near_words", say, words=words))
        if any(each.is_foreign for each in found):
            codes = self._catalog.once(catalog_languages).languages
            names = ", ".join(text(f"language.{code}", say) for code in codes)
            hints.append(text("search.other_language", say, languages=names))
        if left_out:
            hints.append(text("search.too_many", say, count=MAX_QUERIES))
        return "; ".join(hints) or None

    @staticmethod
    def _limit(value: object, most: int) -> int:
        if isinstance(value, str) and value.strip().isdecimal():
            value = int(value.strip()[:9])
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 1:
            return int(min(value, most))
        return most

    def _description(self) -> str:
        described = self._catalog.once(catalog_languages)
        parts = (
            text("search_tool.description", self._language, total=self._total),
            languages_text(described, self._language),
        )
        head = " ".join(filter(None, parts))
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
