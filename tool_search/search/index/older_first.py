"""Search results in which no tool comes before the older one that it repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from tool_search.catalog.near_copies import words_of
from tool_search.core.catalog.tool import Tool
from tool_search.core.services import SearchMatch, SearchResult, ToolSearchIndex

__all__ = ["search_older_first"]

_EXACT = 1.0
# Extra matches, among which the older tools are looked for before a second search.
_MORE = 20


def search_older_first(
    index: ToolSearchIndex,
    query: str | Sequence[str],
    *,
    limit: int,
    allowed: Callable[[str], bool] | None,
    copies: Mapping[str, str],
    tools: Mapping[str, Tool],
) -> SearchResult:
    """Search, and put each copy right after the older tool that it repeats.

    A copy is a tool of one server that repeats an older tool of another. The older tool comes
    at the place of the first of its copies. If one server lists several copies, the first
    follows the older tool, and the others come last. A copy keeps its place if the query has
    its name, or a word of its server's name that the older tool's server has not, or if the
    query does not find the older tool.

    Args:
        index: Ranks the tools.
        query: As for `ToolSearchIndex.search`.
        limit: Maximum number of matches.
        allowed: Returns True for the name of a tool that may be found.
        copies: The older tool's name for each copy, as `copies_of` gives it.
        tools: The definitions, by name.
    """
    if not copies or limit <= 0:
        return index.search(query, limit=limit, allowed=allowed)
    wanted = limit + min(len(copies), limit + _MORE)
    found = index.search(query, limit=wanted, allowed=allowed)
    moved = _Moved(copies, tools, words_of(query if isinstance(query, str) else " ".join(query)))
    held = {m.name: m for m in found.matches if moved.is_held(m)}
    if not held:
        return replace(found, matches=found.matches[:limit])
    missing = {copies[name] for name in held}.difference(m.name for m in found.matches)
    if missing and found.total_found > len(found.matches):
        found = _with(found, index, query, missing, allowed)
    matches = _older_first(found.matches, held, copies, tools)
    return replace(found, matches=tuple(matches)[:limit])


class _Moved:
    """Finds the copies that wait for the older tool.

    Args:
        copies: The older tool's name for each copy.
        tools: The definitions, by name.
        words: The words of the query.
    """

    def __init__(
        self, copies: Mapping[str, str], tools: Mapping[str, Tool], words: frozenset[str]
    ) -> None:
        self._copies = copies
        self._tools = tools
        self._words = words

    def is_held(self, match: SearchMatch) -> bool:
        """Return True if a match is a copy that the query does not name."""
        older = self._copies.get(match.name)
        if older is None or match.score >= _EXACT:
            return False
        own = words_of(self._server(match.name)) - words_of(self._server(older))
        return self._words.isdisjoint(own)

    def _server(self, name: str) -> str:
        tool = self._tools.get(name)
        return (tool.server if tool else None) or ""


def _with(
    found: SearchResult,
    index: ToolSearchIndex,
    query: str | Sequence[str],
    missing: set[str],
    allowed: Callable[[str], bool] | None,
) -> SearchResult:
    """Return the result with older tools added that come after its last match."""
    among = index.search(
        query,
        limit=len(missing),
        allowed=lambda name: name in missing and (allowed is None or allowed(name)),
    )
    return replace(found, matches=(*found.matches, *among.matches))


def _older_first(
    matches: Sequence[SearchMatch],
    held: Mapping[str, SearchMatch],
    copies: Mapping[str, str],
    tools: Mapping[str, Tool],
) -> Iterator[SearchMatch]:
    found = {match.name: match for match in matches}
    given: set[str] = set()
    repeated: set[tuple[str, str | None]] = set()
    last: list[SearchMatch] = []
    for match in matches:
        if match.name in given:
            continue
        if match.name in held:
            older = copies[match.name]
            if older in found and older not in given:
                given.add(older)
                yield found[older]
            group = older, tools[match.name].server if match.name in tools else None
            if group in repeated:
                last.append(match)
                continue
            repeated.add(group)
        given.add(match.name)
        yield match
    yield from last
