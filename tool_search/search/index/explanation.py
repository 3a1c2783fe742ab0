"""The reasons for a score: words, fields and parts of a ranking."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

from tool_search.core.catalog.tool import Tool
from tool_search.search.index.scores import ScoredTools, relevance
from tool_search.search.text.documents import FieldName, Vocabulary, tool_fields
from tool_search.search.text.tokenizer import Segmenter

if TYPE_CHECKING:
    from tool_search.search.index.ranking import Scorer

__all__ = [
    "NO_REASONS",
    "Explanation",
    "Reasons",
    "ScorePart",
    "SideName",
    "TermScore",
    "WordSums",
    "explain_hits",
    "field_contributions",
]


SideName = Literal["words", "translation", "meaning"]


class ScorePart(NamedTuple):
    """One part of a ranking.

    Attributes:
        name: Words of the query, their translation, or meaning.
        weight: The weight of this part; all parts together have at most 1.
        score: The score by this part alone; 1 answers the query fully.
    """

    name: SideName
    weight: float
    score: float

    @property
    def share(self) -> float:
        """The amount that the part adds to the sum."""
        return self.weight * self.score


@dataclass(frozen=True, slots=True, kw_only=True)
class TermScore:
    """The amount that one word of a query adds to the sum.

    Attributes:
        word: The word as written; of Chinese, a character or a pair.
        share: The amount.
        fields: The amount by field of the definition.
        instead: Terms of the tool that matched in place of the word, if it is an action.
        side: The part of the ranking that the word belongs to.
    """

    word: str
    share: float
    fields: Mapping[FieldName, float]
    instead: tuple[str, ...] = ()
    side: SideName = "words"


class Reasons(NamedTuple):
    """The reasons that an engine gives for one tool.

    Attributes:
        sides: The parts of the ranking that have a weight.
        words: The words, largest share first; their shares add up to the parts that are
            words.
    """

    sides: tuple[ScorePart, ...]
    words: tuple[TermScore, ...] = ()

    def joined(self, other: Reasons) -> Reasons:
        """Return these reasons and those of another engine for the same tool."""
        return Reasons((*self.sides, *other.sides), _sort((*self.words, *other.words)))

    def as_part(self, name: SideName, weight: float) -> Reasons:
        """Return the same reasons as one part of several."""
        return Reasons(
            tuple(ScorePart(name, weight, side.score) for side in self.sides),
            tuple(
                replace(
                    word,
                    side=name,
                    share=word.share * weight,
                    fields={field: part * weight for field, part in word.fields.items()},
                )
                for word in self.words
            ),
        )


NO_REASONS = Reasons(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The reasons for a tool's score: `1 - e ** -(sum * boost)`, or 1 if it was named.

    Attributes:
        tool: Its name.
        score: Its score in a search.
        is_named: True if the query is the tool's name, or lists it.
        sum: The sum of parts, operators and votes; 1 is what the query could reach.
        boost: The factor for the words of name and description that the query covers.
        reasons: The engine's reasons.
        operators: The amount that was added because operators let the tool through.
        learned: The amount that was added because the tool answered such queries before.
    """

    tool: str
    score: float
    is_named: bool = False
    sum: float = 0.0
    boost: float = 1.0
    reasons: Reasons = NO_REASONS
    operators: float = 0.0
    learned: float = 0.0


class WordSums:
    """Adds up the scores of the terms of each word.

    Args:
        attainable: The score that the query could reach.
    """

    def __init__(self, attainable: float) -> None:
        self._attainable = attainable
        self._sums: dict[tuple[str, bool], dict[FieldName, float]] = {}
        self._instead: dict[tuple[str, bool], dict[str, None]] = {}

    def add(
        self, word: str, value: float, fields: Mapping[FieldName, float], instead: str | None = None
    ) -> None:
        """Add the score of one term.

        Args:
            word: The word of the query that the term belongs to.
            value: The term's score.
            fields: The share of each field in it.
            instead: The term, if it is another word than the query's.
        """
        key = word, instead is not None
        sums = self._sums.setdefault(key, {})
        for field, share in fields.items():
            sums[field] = sums.get(field, 0.0) + value * share / self._attainable
        if instead is not None:
            self._instead.setdefault(key, {})[instead] = None

    def sorted(self) -> tuple[TermScore, ...]:
        """Return the words, largest share first, ties by word."""
        found = (
            TermScore(
                word=key[0],
                share=math.fsum(fields.values()),
                fields=fields,
                instead=tuple(self._instead.get(key, ())),
            )
            for key, fields in self._sums.items()
        )
        return _sort(found)


def _sort(words: Iterable[TermScore]) -> tuple[TermScore, ...]:
    return tuple(sorted(words, key=lambda word: (-word.share, word.word, word.instead)))


def field_contributions(
    tool: Tool, segmenter: Segmenter | None = None
) -> dict[str, dict[FieldName, float]]:
    """Return, for each term of a tool, the share of each field in its score.

    The frequencies of a term add up over the fields. The shares of a term add up to 1.
    """
    shares: dict[str, dict[FieldName, float]] = {}
    for field, one, terms in tool_fields(tool, segmenter, Vocabulary()):
        for term in terms:
            own = shares.setdefault(term, {})
            own[field] = own.get(field, 0.0) + one
    for own in shares.values():
        whole = sum(own.values())
        own.update((field, value / whole) for field, value in own.items())
    return shares


# Impacts are stored in steps of 2**-24; an operator lifts a score by 1e-6 at least.
_ROUNDING = 5e-7


@runtime_checkable
class Explains(Protocol):
    """An engine that can explain its scores."""

    def reasons(self, query: str, doc_ids: Sequence[int]) -> Sequence[Reasons]:
        """Return the reasons for the scores of these tools, in their order."""
        ...


def explain_hits(
    engine: Scorer, scored: ScoredTools, doc_ids: Sequence[int], *, named: Collection[int]
) -> Iterator[Explanation]:
    """Yield the explanations of these tools, in their order.

    Args:
        engine: The engine that ranked them; its reasons are empty if it has none.
        scored: The scores that it gave for the query.
        doc_ids: The tools to explain.
        named: The tools that the query names.
    """
    reasons: Sequence[Reasons] = [NO_REASONS] * len(doc_ids)
    explains = isinstance(engine, Explains)
    if isinstance(engine, Explains):
        reasons = engine.reasons(scored.text, doc_ids)
    boosts = engine.boosts(scored.text, doc_ids)
    learned = dict(scored.voted)
    if scored.moves is not None:
        learned = {d: learned.get(d, 0.0) + float(scored.moves[d]) for d in doc_ids}
    for doc_id, why, boost in zip(doc_ids, reasons, boosts, strict=True):
        tool = engine.doc_ids.tools[doc_id]
        if tool is None:
            continue
        value, attainable = float(scored.values[doc_id]), scored.attainable or 1.0
        whole = value / attainable
        lifted = whole - sum(side.share for side in why.sides) - learned.get(doc_id, 0.0)
        is_lifted = doc_id in scored.always_hits and lifted > _ROUNDING and explains
        yield Explanation(
            tool=tool.name,
            score=1.0 if doc_id in named else relevance(value * boost / attainable),
            is_named=doc_id in named,
            sum=whole,
            boost=boost,
            reasons=why,
            operators=lifted if is_lifted else 0.0,
            learned=learned.get(doc_id, 0.0),
        )
