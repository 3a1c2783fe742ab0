"""The queries of one call of the search tool, and the fair merge of their results."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tool_search.core.services import SearchResult
from tool_search.core.values.json import encodable, read_json

__all__ = ["MAX_QUERIES", "has_words", "joined_queries", "merged_results", "read_queries"]

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
    for text in written[:_MAX_READ]:
        unique.setdefault(" ".join(text.casefold().split()), text)
    return tuple(text for key, text in unique.items() if key) or ("",)


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
