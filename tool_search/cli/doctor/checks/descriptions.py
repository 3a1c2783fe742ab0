"""Checks of descriptions: what a search, and a model, can tell tools apart by."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tool_search.catalog.near_copies import near_copies, words_of
from tool_search.cli.doctor.findings import Finding, KeyPath
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.search.discovery.listing import description_languages, languages_of
from tool_search.search.misses import ToolFindings
from tool_search.search.text.stop_words import STOP_WORDS

__all__ = ["check_descriptions", "described_findings", "worst_descriptions"]

# Fewer words do not say what is done, to what, and for which purpose.
_MIN_WORDS = 3
# Words of a foreign description: fewer may be a product's name.
_MIN_FOREIGN_WORDS = 3
# Below this share of the tools, a language is one that somebody forgot to translate.
_MIN_LANGUAGE_SHARE = 0.2
_MIN_INFLECTED_WORDS = 5
_MAX_STEM = 3
_PLACEHOLDER = re.compile(
    r"\W*(?:todo|fixme|tbd|n/a|lorem ipsum|placeholder|no description|description of)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_GRAVITY: Mapping[str, int] = {
    "description_misses": 5,
    "description_empty": 4,
    "description_foreign": 3,
    "description_repeats": 2,
    "description_short": 1,
}


@dataclass(frozen=True, slots=True)
class _Apart:
    """A tool for the search of copies, as if no other tool were of its server."""

    name: str
    description: str
    source: tuple[str | None, str]


def check_descriptions(catalog: ToolCatalog, origins: Mapping[str, KeyPath]) -> Iterator[Finding]:
    """Yield the descriptions that are empty, short, repeated, or in another language."""
    tools = catalog.active
    usual = _usual_languages(tools)
    if len(usual) > 1:
        yield Finding(code="languages_mixed", values={"languages": ", ".join(usual)})
    copies = _copies(catalog)
    for tool in tools:
        path, name = origins.get(tool.name, ()), tool.source[1]
        words = _own_words(tool)
        if not tool.description.strip():
            yield Finding(code="description_empty", path=path, values={"tool": name})
            continue
        if len(words) < _MIN_WORDS or _PLACEHOLDER.match(tool.description):
            values = {"tool": name, "description": tool.description.strip()}
            yield Finding(code="description_short", path=path, values=values)
        languages = description_languages(tool.description)
        if _is_foreign(languages, usual, tool.description):
            values = {"tool": name, "written": languages[0], "catalog": ", ".join(usual)}
            yield Finding(code="description_foreign", path=path, values=values)
        older = catalog.get(copies.get(tool.name, ""))
        if older is not None and not _is_converse(tool.description, older.description):
            values = {"tool": name, "other": older.source[1]}
            yield Finding(code="description_repeats", path=path, values=values)


def _usual_languages(tools: Sequence[Tool]) -> tuple[str, ...]:
    """Return the languages that many tools are described in, the most used first."""
    found = languages_of(tools).languages
    counts = Counter(code for tool in tools for code in description_languages(tool.description))
    least = _MIN_LANGUAGE_SHARE * sum(counts[code] for code in found)
    return tuple(code for code in found if counts[code] >= least) or found[:1]


def _copies(catalog: ToolCatalog) -> dict[str, str]:
    """Return the older tool for each tool that nearly repeats it, in these words or inflected."""
    # The oldest first; a catalog's own order is by name.
    held = (catalog.by_source.get(source) for source in catalog.book.held)
    oldest = [tool for tool in held if tool is not None and tool.active]
    as_written = [_Apart(t.name, t.description, (t.name, t.name)) for t in oldest]
    # Few words say too little: `Get a user.` and `Get users.` are two tools.
    inflected = [
        _Apart(tool.name, " ".join(sorted(words)), (tool.name, tool.name))
        for tool in oldest
        if len(words := frozenset(map(_singular, _own_words(tool)))) >= _MIN_INFLECTED_WORDS
    ]
    return near_copies(inflected) | near_copies(as_written)


def _singular(word: str) -> str:
    is_plural = word.isascii() and len(word) > _MAX_STEM and word[-1] == "s" and word[-2] != "s"
    return word[:-1] if is_plural else word


def described_findings(
    found: Iterable[ToolFindings], origins: Mapping[str, KeyPath]
) -> Iterator[Finding]:
    """Yield the tools that queries with known answers miss, with what to change."""
    for each in found:
        if each.found < each.queries:
            yield Finding(
                code="description_misses",
                path=origins.get(each.tool, ()),
                values={
                    "tool": each.tool,
                    "missed": each.queries - each.found,
                    "queries": each.queries,
                    "words": ", ".join(each.missing_words),
                    "advice": each.advice or "",
                },
            )


def worst_descriptions(
    catalog: ToolCatalog, findings: Sequence[Finding], most: int = 10
) -> tuple[str, ...]:
    """Return the tools that are worst described, the worst first.

    Missed queries count most, then what `check_descriptions` finds, then how little a
    description's words tell its tool from the others.
    """
    weights: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for finding in findings:
        if finding.code in _GRAVITY:
            weights[finding.values["tool"]] += _GRAVITY[finding.code]
            missed[finding.values["tool"]] += finding.values.get("missed", 0)
    frequency = Counter(word for tool in catalog.active for word in words_of(tool.description))
    total = max(1, len(catalog.active))

    def rank(tool: Tool) -> tuple[float, ...]:
        name = tool.source[1]
        told = math.fsum(math.log(total / frequency[word]) for word in _own_words(tool))
        return -missed[name], -weights[name], told

    named = [tool for tool in catalog.active if weights[tool.source[1]]]
    return tuple(tool.name for tool in sorted(named, key=lambda t: (rank(t), t.name))[:most])


def _own_words(tool: Tool) -> frozenset[str]:
    """Return the words of a description that are not grammar."""
    return words_of(tool.description) - STOP_WORDS


def _is_foreign(languages: Sequence[str], usual: Sequence[str], description: str) -> bool:
    """True if a description is in a language that models are not told to search in."""
    # Words in Latin letters that do not tell their language are nobody's.
    if not usual or not languages or languages[0] in ("other", "latin"):
        return False
    if not set(languages).isdisjoint(usual):
        return False
    return len(words_of(description)) >= _MIN_FOREIGN_WORDS


def _is_converse(one: str, other: str) -> bool:
    """True for the same words in another order: `a to b` and `b to a` are two tools."""
    words = [_WORD.findall(text.casefold()) for text in (one, other)]
    return words[0] != words[1] and sorted(words[0]) == sorted(words[1])
