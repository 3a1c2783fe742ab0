"""The listing of tools that wait to be found, within a budget of tokens.

A model that does not know what there is does not search. The listing goes into the system
text, and is frozen with the conversation: no prompt cache ends because of it. It is not part of the
search tool's description, for which Azure OpenAI and older models of OpenAI take 1,024 characters:
`Invalid 'tools[0].function.description': string too long`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool, estimate_tokens
from tool_search.core.settings import ListingForm
from tool_search.core.values.clean_text import clean_line, named
from tool_search.i18n import Language, text
from tool_search.search.text.stop_words import STOP_WORDS

__all__ = [
    "DescribedIn",
    "Listing",
    "catalog_languages",
    "description_languages",
    "is_foreign",
    "languages_of",
    "languages_text",
    "list_tools",
]

# The languages in which a catalog's tools are described.
#
# A search compares words, so a model must write its queries in the language of the
# descriptions, whatever language the user writes. Blind queries of a model for 40 Chinese
# requests found .28 of the English tools under a text that allowed any language, and .71
# under one that named English.


# A share of 5 % is known to 1 % by so many, within a few milliseconds of the event loop.
_MAX_TOOLS = 500
_MAX_CHARS = 200
_MAX_NAMED = 3
# Below this share, foreign descriptions are strays: a translation that one server forgot.
_MIN_SHARE = 0.05
_MOST = 0.75

# Scripts with one language of tools' descriptions each. Kana come before Han, which Japanese
# has too, and the letters of Ukrainian before those that Russian shares with it.
_SCRIPTS: Mapping[str, re.Pattern[str]] = {
    "ja": re.compile(r"[\u3040-\u30ff]"),
    "ko": re.compile(r"[\uac00-\ud7af]"),
    "zh": re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]"),
    "uk": re.compile(r"[ґєії]"),
    "ru": re.compile(r"[\u0400-\u04ff]+"),
    "ar": re.compile(r"[\u0600-\u06ff]+"),
    "he": re.compile(r"[\u0590-\u05ff]+"),
    "hi": re.compile(r"[\u0900-\u097f]+"),
    "th": re.compile(r"[\u0e00-\u0e7f]+"),
    "el": re.compile(r"[\u0370-\u03ff]+"),
}
_LATIN = re.compile(r"[a-z\u00df-\u024f\u1e00-\u1eff]+")
_LETTER = re.compile(r"[^\W\d_]")
# Words of grammar that the other lists have not, or seldom mean there.
_LATIN_WORDS: Mapping[str, frozenset[str]] = {
    code: frozenset(words.split())
    for code, words in {
        "en": "the of and for with from by is are to this that an or on as into",
        "de": "der die das und für mit von ein eine einer eines den dem des zu aus",
        "fr": "le la les des du une un et pour avec dans sur aux ou est",
        "es": "el la los las del una un y para con por en se como",
        "pt": "o os as do da dos das um uma e para com por em no na não",
        "it": "il lo la gli del della dei delle un una e per con di che",
    }.items()
}
_SHARED = {"ja": "zh", "uk": "ru"}
_HAN_PER_WORD = 2
_MIN_FOREIGN_WORDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedIn:
    """The languages of a catalog's descriptions.

    Attributes:
        languages: Codes of languages that together reach the tools, largest share first; each
            reaches at least 5 % that those before it do not. Three at most, or two if there
            are more.
        is_mostly_first: True if the first reaches at least three quarters of the tools.
        has_more: True if more languages, or ones without a name here, have such a share.
        has_names_only: True if no tool has a description.
    """

    languages: tuple[str, ...] = ()
    is_mostly_first: bool = True
    has_more: bool = False
    has_names_only: bool = False


def catalog_languages(catalog: ToolCatalog) -> DescribedIn:
    """Return the languages of the deferred tools that everybody may call."""
    return languages_of([tool for tool in _sample(catalog.deferred) if catalog.is_open(tool)])


def languages_of(tools: Sequence[Tool]) -> DescribedIn:
    """Return the languages in which tools are described; of many tools, those of a sample.

    >>> languages_of([Tool(name="a", description="Sends a message to the list.")]).languages
    ('en',)
    """
    found = [description_languages(tool.description) for tool in _sample(tools)]
    counts = Counter(codes for codes in found if codes)
    if not counts:
        return DescribedIn(has_names_only=bool(tools))
    unsure = counts.pop(("latin",), 0)
    if unsure:
        sums = {code: sum(n for of, n in counts.items() if code in of) for code in _LATIN_WORDS}
        most = max(sums, key=lambda code: (sums[code], code == "en"))
        counts[(most,)] += unsure
    return _describe(counts)


def _sample(tools: Sequence[Tool]) -> Sequence[Tool]:
    return tools[:: -(-len(tools) // _MAX_TOOLS) or 1]


def languages_text(described: DescribedIn, language: Language) -> str:
    """Return what a model reads about the languages of a catalog; empty if nothing is known.

    Args:
        described: The languages.
        language: The language of the text.
    """
    if described.has_names_only:
        return text("search_tool.names_only", language)
    if not described.languages:
        return ""
    names = [text(f"language.{code}", language) for code in described.languages]
    first, others = names[0], _list(names[1:], described.has_more, language)
    if not others:
        return text("search_tool.one_language", language, name=first)
    if described.is_mostly_first:
        return text("search_tool.mostly_one_language", language, name=first, others=others)
    listed = _list(names, described.has_more, language)
    return text("search_tool.several_languages", language, languages=listed)


def is_foreign(query: str, described: DescribedIn) -> bool:
    """Return True if a query is in a script that no language of a catalog is written in."""
    own, theirs = map(_scripts, (description_languages(query), described.languages))
    return bool(own and theirs) and not described.has_more and own.isdisjoint(theirs)


def _scripts(codes: Iterable[str]) -> frozenset[str]:
    return frozenset(
        _SHARED.get(code, code if code in _SCRIPTS else "latin")
        for code in codes
        if code != "other"
    )


def _describe(counts: Counter[tuple[str, ...]]) -> DescribedIn:
    """Return the languages that reach most tools, each the most of what is left.

    Args:
        counts: The number of tools whose descriptions are in these languages, each in all.
    """
    total = sum(counts.values())
    waiting, shares = dict(counts), dict[str, int]()
    while waiting:
        reached = Counter[str]()
        for codes, count in waiting.items():
            for code in codes:
                reached[code] += count
        best = min(reached, key=lambda code: (-reached[code], code))
        if reached[best] < _MIN_SHARE * total:
            break
        shares[best] = reached[best]
        waiting = {codes: count for codes, count in waiting.items() if best not in codes}
    named = [code for code in shares if code != "other"]
    has_more = len(named) > _MAX_NAMED or "other" in shares
    return DescribedIn(
        languages=tuple(named[: _MAX_NAMED - has_more]),
        is_mostly_first=bool(named) and shares[named[0]] >= _MOST * total,
        has_more=has_more,
    )


def description_languages(description: str) -> tuple[str, ...]:
    """Return the languages of a description, by its beginning; none without letters.

    They are codes, `latin` for a text in Latin letters whose words do not tell more, or `other`.
    """
    sample = description[:_MAX_CHARS].casefold()
    words = _LATIN.findall(sample)
    latin = _latin_language(words)
    if not sample.isascii():
        best, count = _other_script(sample)
        # Descriptions in other scripts name products and fields in Latin letters, not the
        # other way round: a third of the words decides for the other script.
        if count and 2 * count >= len(words):
            return (best,) if latin == "latin" else (best, latin)
    if not words:
        return ("other",) if _LETTER.search(sample) else ()
    return (latin,)


def _other_script(sample: str) -> tuple[str, int]:
    """Return the language with most words in letters other than Latin, and their number."""
    units = {code: len(letters.findall(sample)) for code, letters in _SCRIPTS.items()}
    if units["ja"]:
        # A few kana among Han are Japanese; Chinese text has none.
        units["ja"] += units.pop("zh")
    if units["uk"]:
        units["uk"] += units.pop("ru")
    for code in ("ja", "zh"):
        units[code] = -(-units.get(code, 0) // _HAN_PER_WORD)
    return max(units.items(), key=lambda each: each[1])


def _latin_language(words: Sequence[str]) -> str:
    """Return the language of a text in Latin letters, or `latin` if its words do not tell."""
    counts = {code: sum(word in of for word in words) for code, of in _LATIN_WORDS.items()}
    if counts["en"] and counts["en"] == max(counts.values()):
        return "en"
    best, second = sorted(counts, key=lambda code: -counts[code])[:2]
    is_sure = counts[best] >= max(_MIN_FOREIGN_WORDS, 2 * counts["en"])
    return best if is_sure and counts[best] > counts[second] else "latin"


def _list(names: Sequence[str], has_more: bool, language: Language) -> str:
    items = [*names, *([text("search_tool.other_languages", language)] if has_more else [])]
    if len(items) == _MAX_NAMED:
        first, second, third = items
        return text(
            "search_tool.three_languages", language, first=first, second=second, third=third
        )
    if len(items) < 2:
        return "".join(items)
    return text("search_tool.two_languages", language, first=items[0], second=items[1])


_MAX_SUMMARY_CHARS = 100
# No tokenizer writes a clean line in fewer tokens, so a longer text is over its budget unread.
_MAX_CHARS_A_TOKEN = 16
_MAX_WORDS = (192, 144, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)
_MAX_WORD_CHARS = 20
_WORDS_OF_A_NAME = 2
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")
_SENTENCE_END = re.compile(r"[.!?](?:\s|$)|[。！？\n]")

_Groups = Mapping[str, Sequence[Tool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Lists a catalog's deferred tools as fully as the budget allows.

    Tools are grouped by server, or else by namespace, category or first tag. The largest group
    comes first, equal ones by name; tools are in name order. Tools that not everybody may
    call are left out.

    Attributes:
        form: The fullest form: `summaries` or `auto`, `names`, `servers`, or `none`. If it is
            over the budget, the next one is tried.
        budget: Tokens of the listing.
        language: The language of the line before it.
        hidden: More names to leave out.

    >>> tools = [Tool(name="send", description="Send a mail.", server="mail", kind="mcp")]
    >>> listing = Listing(form="auto", budget=400, language="en-US")
    >>> print(listing(ToolCatalog(tools)).splitlines()[1])
    mail: send (Send a mail)
    """

    form: ListingForm
    budget: int
    language: Language
    hidden: frozenset[str] = frozenset()

    def __call__(self, catalog: ToolCatalog) -> str:
        """Return the listing; empty if nothing fits the budget or nothing waits to be found."""
        if self.form == "none" or not self.budget:
            return ""
        open_tools = [
            tool
            for tool in catalog.deferred
            if catalog.is_open(tool) and tool.name not in self.hidden
        ]
        groups = _group(open_tools)
        for whole in self._from_full_to_short(groups) if groups else ():
            if self._fits(whole):
                return whole
        return ""

    def _from_full_to_short(self, groups: _Groups) -> Iterator[str]:
        if self.form in ("auto", "summaries"):
            yield self._whole("listing.tools", self._summaries(groups))
        if self.form in ("auto", "summaries", "names"):
            yield self._whole("listing.tools", self._names(groups))
        without_words = self._whole("listing.groups", self._groups(groups, {}, 0))
        if self._fits(without_words):
            words = {group: _words(tools, group) for group, tools in groups.items()}
            for limit in _MAX_WORDS:
                yield self._whole("listing.groups", self._groups(groups, words, limit))
        yield self._largest(groups)

    def _whole(self, head: str, lines: Iterator[str]) -> str:
        """Return the lines after their head; as soon as they are too long, what there is."""
        whole = text(head, self.language)
        for line in lines:
            whole += line
            if len(whole) > self.budget * _MAX_CHARS_A_TOKEN:
                break
        return whole

    def _fits(self, whole: str) -> bool:
        too_long = len(whole) > self.budget * _MAX_CHARS_A_TOKEN
        return not too_long and estimate_tokens(whole) <= self.budget

    def _summaries(self, groups: _Groups) -> Iterator[str]:
        for group, tools in groups.items():
            yield f"\n{self._title(group)}: "
            for place, tool in enumerate(tools):
                summary = _summary(tool)
                shown = f"{named(tool.name)} ({summary})" if summary else named(tool.name)
                yield f"; {shown}" if place else shown

    def _names(self, groups: _Groups) -> Iterator[str]:
        for group, tools in groups.items():
            yield f"\n{self._title(group)}: "
            for place, tool in enumerate(tools):
                yield f", {named(tool.name)}" if place else named(tool.name)

    def _groups(
        self, groups: _Groups, words: Mapping[str, Sequence[str]], limit: int
    ) -> Iterator[str]:
        for group, tools in groups.items():
            line = f"\n{self._title(group)} ({len(tools)})"
            shown = words.get(group, ())[:limit]
            yield f"{line}: {', '.join(shown)}" if shown else line

    def _largest(self, groups: _Groups) -> str:
        """Return the largest groups, as many as there is room for, and the number of the others."""
        kept = ""
        whole = text("listing.groups", self.language)
        for place, (group, tools) in enumerate(groups.items(), start=1):
            whole += f"\n{self._title(group)} ({len(tools)})"
            rest = len(groups) - place
            more = text("listing.more", self.language, count=rest)
            ended = f"{whole}\n{more}" if rest else whole
            if not self._fits(ended):
                break
            kept = ended
        return kept if any(groups) else ""

    def _title(self, group: str) -> str:
        return named(group) if group else text("listing.other", self.language)


def list_tools(
    catalog: ToolCatalog,
    config: ToolSearchConfig,
    language: Language,
    denied: Callable[[Iterable[Tool]], frozenset[str]],
) -> str:
    """Return the listing of a conversation that begins.

    Args:
        catalog: The tools.
        config: The form and the budget.
        language: The language of the conversation.
        denied: Returns the names of those tools that its first user may not call.
    """
    described = filter(catalog.is_open, catalog.deferred)
    listing = Listing(
        form=config.listing,
        budget=config.listing_tokens,
        language=language,
        hidden=denied(described),
    )
    # The listing that everybody may see is made once for all conversations.
    return listing(catalog) if listing.hidden else catalog.once(listing)


def _group(tools: Sequence[Tool]) -> dict[str, list[Tool]]:
    """Return the tools by group, the largest group first; empty: of no group."""
    groups: dict[str, list[Tool]] = defaultdict(list)
    for tool in tools:
        tag = tool.tags[0] if tool.tags else ""
        groups[tool.server or tool.namespace or tool.category or tag].append(tool)
    return dict(sorted(groups.items(), key=lambda item: (not item[0], -len(item[1]), item[0])))


def _summary(tool: Tool) -> str:
    """Return a tool's summary, or the first sentence of its description, clean and short."""
    whole = tool.summary or tool.description
    end = _SENTENCE_END.search(whole, 1, _MAX_SUMMARY_CHARS * 4)
    return clean_line(whole[: end.start()] if end else whole, _MAX_SUMMARY_CHARS)


def _words(tools: Sequence[Tool], group: str) -> list[str]:
    """Return words of the tools' names that cover them all, the most frequent first."""
    left_out = STOP_WORDS.union(word.lower() for word in _WORDS.findall(group))
    covered: dict[str, list[int]] = defaultdict(list)
    for place, tool in enumerate(tools):
        for word in dict.fromkeys(each.lower() for each in _WORDS.findall(tool.name)):
            is_short = word.isascii() and len(word) < 3
            if not is_short and len(word) <= _MAX_WORD_CHARS and word not in left_out:
                covered[word].append(place)
    # Two words of each name: one is often a verb that half of the tools have.
    wanted, chosen = [_WORDS_OF_A_NAME] * len(tools), []
    for word, places in sorted(covered.items(), key=lambda item: (-len(item[1]), item[0])):
        if any(wanted[place] for place in places):
            chosen.append(word)
            for place in places:
                wanted[place] = max(0, wanted[place] - 1)
    return chosen
