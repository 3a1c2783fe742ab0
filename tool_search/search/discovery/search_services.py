"""The search that conversations are given: the engines, texts and lessons of this package."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from tool_search.catalog.near_copies import copies_of
from tool_search.catalog.schema.declared import text_bytes
from tool_search.catalog.validation import SCHEMAS
from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.catalog.catalog import ToolCatalog, catalog_changes
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import Notice
from tool_search.core.services import Lesson, SearchResult, SearchTool, ToolSearchIndex, Votes
from tool_search.i18n import Language
from tool_search.search.build import PRESETS, build_index, update_index
from tool_search.search.discovery.catalog_notices import catalog_notices, copy_notices
from tool_search.search.discovery.listing import list_tools
from tool_search.search.discovery.search_tool import ToolSearchTool
from tool_search.search.explained import explained_matches
from tool_search.search.index.older_first import search_older_first
from tool_search.search.learned import definition_sketch, evidence_words, with_votes
from tool_search.search.text.query import QUOTATION
from tool_search.search.text.query_language import parse_query, selected_names
from tool_search.search.text.scripts import scripts_in
from tool_search.search.text.tokenizer import normalized

__all__ = ["Lesson", "SearchServices", "SearchTrail", "can_teach"]

# The searches of one conversation that led to calls.
#
# A search teaches if a tool that it returned is then called with success in the same user
# turn: once a search and tool, however often the tool is called. A search that found nothing
# teaches half as much, if a later reply's search of the same turn led to the call and asked for
# the same: it has a word of the first one, or follows it in another script, as a translation
# does. A turn may be about two things, and the first may have no tool. Of several queries in one
# call, each is a search of its own. A call in the next turn teaches a quarter, and nothing if the
# search has led to a call already: it is about something else then. Calls that fail, are
# denied or cancelled teach nothing, nor do calls without a search, queries with operators,
# and queries that have a tool's name: words next to a name say nothing about the tool.


_AGAIN_IN_OTHER_WORDS = 0.5
_IN_THE_NEXT_TURN = 0.25
_MAX_SEARCHES = 4


def can_teach(query: str, names: Iterable[str]) -> bool:
    """Return True if the words of a query can say what one of these tools is for.

    False for queries with operators, and for those that have the name of one of the tools:
    as a whole, in quotation marks, or as an identifier of several parts.

    >>> can_teach("delete an invoice", ["delete_invoice"])
    True
    >>> can_teach("weather delete_invoice", ["delete_invoice"])
    False
    """
    if selected_names(query) or parse_query(query) is not None:
        return False
    asked = normalized(query)
    quoted = [normalized(quotation) for quotation in QUOTATION.findall(query)]
    # A name of a server's tool may be prefixed: `mcp__server__tool`.
    for name in dict.fromkeys(part for each in names for part in (each, each.rpartition("__")[2])):
        wanted = normalized(name)
        if asked == wanted or any(_has_name(text, wanted) for text in quoted):
            return False
        # A name of one plain word, such as `weather`, is also a word of people.
        if not wanted.isalpha() and _has_name(asked, wanted):
            return False
    return True


def _has_name(text: str, name: str) -> bool:
    return bool(name) and name in text and bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text))


def _share_words(first: str, second: str) -> bool:
    return not frozenset(evidence_words(first)).isdisjoint(evidence_words(second))


def _differ_in_script(first: str, second: str) -> bool:
    return not scripts_in(first) & scripts_in(second)


@dataclass(frozen=True, slots=True)
class _Search:
    query: str
    turn: int
    step: int
    before: tuple[_Search, ...] = ()


class SearchTrail:
    """The searches of one conversation that may still teach something."""

    def __init__(self) -> None:
        self._turn = 0
        self._step = 0
        self._waiting: dict[str, list[_Search]] = defaultdict(list)
        self._missed: list[_Search] = []
        self._answered: set[_Search] = set()
        self._lessons: list[Lesson] = []

    def begin_turn(self) -> None:
        """Begin a user turn; searches before the last turn teach no more."""
        self._turn += 1
        self._missed.clear()
        for name in list(self._waiting):
            recent = [search for search in self._waiting[name] if search.turn >= self._turn - 1]
            self._waiting[name] = recent
            if not recent:
                del self._waiting[name]
        self._answered &= {search for recent in self._waiting.values() for search in recent}

    def replied(self) -> None:
        """Begin a reply of the model; its calls are made at once."""
        self._step += 1

    def searched(self, result: SearchResult) -> None:
        """Record a search, which may teach later."""
        if result.error is None:
            for part in result.parts or (result,):
                self._search(part)

    def succeeded(self, tool: Tool) -> None:
        """Record a call that a tool answered: the searches that led to it teach now."""
        lessons = self._take_lessons(tool.name)
        if lessons:
            definition = definition_sketch(tool)
            self._lessons += [replace(lesson, definition=definition) for lesson in lessons]

    def called_before(self, name: str) -> None:
        """Record a call of an earlier request: the searches that led to it teach no more."""
        self._waiting.pop(name, None)

    def drain_lessons(self) -> tuple[Lesson, ...]:
        """Return the lessons since the last call of this method."""
        lessons, self._lessons = tuple(self._lessons), []
        return lessons

    def _search(self, result: SearchResult) -> None:
        query = result.query
        if not can_teach(query, result.names):
            return
        if not result.names:
            self._missed.append(_Search(query, self._turn, self._step))
            del self._missed[:-_MAX_SEARCHES]
            return
        earlier = [missed for missed in self._missed if missed.step < self._step]
        before = tuple(
            missed
            for missed in earlier
            if _share_words(missed.query, query)
            or (missed.step == earlier[-1].step and _differ_in_script(missed.query, query))
        )
        search = _Search(query, self._turn, self._step, before)
        for name in result.names:
            self._waiting[name] = [*self._waiting[name], search][-_MAX_SEARCHES:]

    def _take_lessons(self, name: str) -> list[Lesson]:
        searches = self._waiting.pop(name, [])
        now = [search for search in searches if search.turn == self._turn]
        earlier = [search for search in searches if search not in now]
        lessons = [Lesson(query=search.query, tool=name) for search in now]
        lessons += [
            Lesson(query=search.query, tool=name, strength=_IN_THE_NEXT_TURN)
            for search in earlier
            if search not in self._answered
        ]
        self._answered.update(searches)
        before = {missed for search in now for missed in search.before}
        for missed in [missed for missed in self._missed if missed in before]:
            self._missed.remove(missed)
            if can_teach(missed.query, [name]):
                lesson = Lesson(query=missed.query, tool=name, strength=_AGAIN_IN_OTHER_WORDS)
                lessons.append(lesson)
        return lessons


class SearchServices:
    """The search of the conversations that share some settings.

    Args:
        config: The settings.
        index_of: Returns the index over a catalog's deferred tools; raises SearchError if it
            cannot. None: `build_index`.

    Attributes:
        embeds: True if a search embeds its query, and so may wait for an embedder.
        schemas: The readers of tools' schemas.
    """

    def __init__(
        self,
        config: ToolSearchConfig,
        index_of: Callable[[ToolCatalog], ToolSearchIndex] | None = None,
    ) -> None:
        self._config = config
        self._given = index_of
        self.embeds = config.search.embeds
        self.schemas = SCHEMAS

    def index_of(self, catalog: ToolCatalog) -> ToolSearchIndex:
        """Return the index over a catalog's deferred tools."""
        if self._given is not None:
            return self._given(catalog)
        return build_index(catalog.deferred, self._config.search)

    def updated(
        self, index: ToolSearchIndex, before: ToolCatalog, after: ToolCatalog
    ) -> ToolSearchIndex:
        """Return the index over a changed catalog's deferred tools."""
        changes = catalog_changes(before, after)
        if self._given is not None:
            return index.updated(**changes)
        # Other conversations, which begin with this catalog, need not build theirs.
        return update_index(index, after.deferred, self._config.search, **changes)

    def with_votes(self, index: ToolSearchIndex, votes: Votes | None) -> ToolSearchIndex:
        """Return the index with votes added to its scores, if it can take votes."""
        return with_votes(index, votes)

    def search_tool(
        self, index: ToolSearchIndex, catalog: ToolCatalog, *, name: str, language: Language
    ) -> SearchTool:
        """Return the search tool over an index, under the name that the model calls."""
        home = self._preset_tool(name)
        kind: Any = ToolSearchTool
        more: dict[str, Any] = {}
        if home is not None:
            module, _, named = home.partition(":")
            kind, more = (
                getattr(import_module(module), named),
                {"answer": self._config.search.answer},
            )
        made: SearchTool = kind(
            index,
            catalog,
            name=name,
            max_results=self._config.max_results,
            max_results_total=self._config.max_results_total,
            language=language,
            **more,
        )
        return made

    def _preset_tool(self, name: str) -> str | None:
        """Return the `module:class` of a preset's own search tool, if it is the one of a name."""
        row = PRESETS.get(self._config.search.preset or "")
        return row.search_tools.get(name) if row else None

    def rank(
        self,
        index: ToolSearchIndex,
        catalog: ToolCatalog,
        message: str,
        *,
        limit: int,
        allowed: Callable[[str], bool] | None = None,
    ) -> SearchResult:
        """Return the best tools for a message, by its words alone; none if it has operators."""
        if selected_names(message) or parse_query(message) is not None:
            return SearchResult(query=message)
        return search_older_first(
            index,
            message,
            limit=limit,
            allowed=allowed,
            copies=copies_of(catalog),
            tools=catalog,
        )

    def explain(
        self, index: ToolSearchIndex, catalog: ToolCatalog, query: str, names: Sequence[str]
    ) -> dict[str, dict[str, Any]]:
        """Return the reasons for which a query found tools, by name, as JSON values."""
        return explained_matches(index, catalog, query, names)

    def listing(
        self,
        catalog: ToolCatalog,
        *,
        name: str,
        language: Language,
        denied: Callable[[Iterable[Tool]], frozenset[str]],
    ) -> str:
        """Return the listing of tools that wait to be found; empty for none."""
        # The models of another system know its texts as they are.
        if self._preset_tool(name) is not None:
            return ""
        return list_tools(catalog, self._config, language, denied)

    def notices(self, catalog: ToolCatalog, *, is_searched: bool) -> Iterable[Notice]:
        """Return what an operator should know of a catalog, and of copies that are searched."""
        copied = catalog.once(copy_notices) if is_searched else ()
        return (*catalog.once(catalog_notices), *copied)

    def text_bytes(self, catalog: ToolCatalog) -> int:
        """Return the UTF-8 bytes of the active tools' definitions as JSON, keys included."""
        return catalog.once(text_bytes)

    def trail(self) -> SearchTrail:
        """Return the trail of a new conversation."""
        return SearchTrail()
