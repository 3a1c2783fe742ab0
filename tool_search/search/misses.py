"""The tools that searches miss, the tools that they find instead, and what would help."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tool_search.core.catalog.tool import Tool
from tool_search.core.services import ToolSearchIndex
from tool_search.i18n import Sentence
from tool_search.search.evaluation import JudgedQuery
from tool_search.search.text.documents import tool_terms
from tool_search.search.text.query import query_terms

__all__ = ["ToolFindings", "find_misses"]

_FOUND = 5
_MAX_INSTEAD = 3
_MAX_WORDS = 5
# A name among the words of a query is no word for a description.
_MIN_SHARE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFindings:
    """The searches that wanted one tool.

    Attributes:
        tool: The tool's name.
        queries: The number of queries that want it.
        found: The number of those that have it within the first five.
        instead: The tools that the other queries have there and do not want, most frequent
            first, with the number of queries.
        missing_words: The words of the other queries that its definition lacks, most frequent
            first.
        advice: What to change; None if every query finds the tool.
    """

    tool: str
    queries: int
    found: int
    instead: tuple[tuple[str, int], ...] = ()
    missing_words: tuple[str, ...] = ()
    advice: Sentence | None = None


def find_misses(
    index: ToolSearchIndex, queries: Iterable[JudgedQuery], tools: Mapping[str, Tool]
) -> tuple[ToolFindings, ...]:
    """Search for every query; return the findings of each wanted tool.

    Tools that no query finds come first, then those with the most misses, then by name.

    Args:
        index: An index over the tools.
        queries: Queries with known answers.
        tools: The tools of the catalog by name; a wanted tool that is not there is never found.
    """
    wanting: Counter[str] = Counter()
    missed: dict[str, list[JudgedQuery]] = defaultdict(list)
    instead: dict[str, Counter[str]] = defaultdict(Counter)
    for judged in queries:
        relevant = dict.fromkeys(judged.relevant)
        ranked = [match.name for match in index.search(judged.query, limit=_FOUND).matches]
        others = [name for name in ranked if name not in relevant]
        for name in relevant:
            wanting[name] += 1
            if name not in ranked:
                missed[name].append(judged)
                instead[name].update(others)
    findings = [
        _findings(name, count, missed[name], instead[name], tools)
        for name, count in wanting.items()
    ]
    return tuple(sorted(findings, key=lambda f: (f.found > 0, f.found - f.queries, f.tool)))


def _findings(
    name: str,
    queries: int,
    missed: Sequence[JudgedQuery],
    instead: Counter[str],
    tools: Mapping[str, Tool],
) -> ToolFindings:
    tool = tools.get(name)
    others = tuple(sorted(instead.items(), key=lambda pair: (-pair[1], pair[0]))[:_MAX_INSTEAD])
    words = _missing_words(tool, missed) if tool is not None else ()
    return ToolFindings(
        tool=name,
        queries=queries,
        found=queries - len(missed),
        instead=others,
        missing_words=words,
        advice=_advice(tool, words, others) if missed else None,
    )


def _missing_words(tool: Tool, missed: Sequence[JudgedQuery]) -> tuple[str, ...]:
    """Return the words that a share of the missed queries has and the definition lacks."""
    known = tool_terms(tool).impacts
    counts: Counter[str] = Counter()
    for judged in missed:
        words = query_terms(judged.query).unmatched(known.__contains__)
        counts.update({word.casefold() for word in words if _is_word(word)})
    least = max(1.0, _MIN_SHARE * len(missed))
    frequent = [(word, count) for word, count in counts.items() if count >= least]
    ordered = sorted(frequent, key=lambda pair: (-pair[1], pair[0]))
    return tuple(word for word, _ in ordered[:_MAX_WORDS])


def _is_word(word: str) -> bool:
    return not any(char.isdigit() for char in word)


def _advice(
    tool: Tool | None, words: Sequence[str], instead: Sequence[tuple[str, int]]
) -> Sentence:
    """Return what to change, as one sentence for the author of the tool."""
    if tool is None:
        return Sentence("misses.unknown")
    if not tool.description.strip():
        return Sentence("misses.undescribed")
    if words:
        return Sentence("misses.words", words=", ".join(map(repr, words)))
    if instead:
        return Sentence("misses.instead", name=repr(instead[0][0]))
    return Sentence("misses.threshold")
