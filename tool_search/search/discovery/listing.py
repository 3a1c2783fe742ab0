"""The listing of tools that wait to be found, within a budget of tokens.

A model that does not know what there is does not search. The listing goes into the system
text, and is frozen with the conversation: no prompt cache ends because of it. It is not part of the
search tool's description, for which Azure OpenAI and older models of OpenAI take 1,024 characters:
`Invalid 'tools[0].function.description': string too long`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool, estimate_tokens
from tool_search.core.settings import ListingForm
from tool_search.core.values.clean_text import clean_line, named
from tool_search.i18n import Language, text
from tool_search.search.text.stop_words import STOP_WORDS

__all__ = ["Listing", "list_tools"]

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
