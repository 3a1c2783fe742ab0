"""Why a tool has its place: what each word, field and side of a ranking gave it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from tool_search.search.text.documents import FieldName

__all__ = ["NO_REASONS", "Explanation", "Reasons", "Side", "SideName", "WordShare", "WordSums"]

SideName = Literal["words", "translation", "meaning"]


class Side(NamedTuple):
    """One side of a ranking.

    Attributes:
        name: Words as they were asked, their translation, or meaning.
        weight: Of this side; all sides together have 1.
        score: What the side alone makes of the tool; 1 answers the query fully.
    """

    name: SideName
    weight: float
    score: float

    @property
    def share(self) -> float:
        """What the side adds to the sum."""
        return self.weight * self.score


@dataclass(frozen=True, slots=True, kw_only=True)
class WordShare:
    """What one word of a query adds to the sum.

    Attributes:
        word: As it was written; of Chinese, a character or a pair.
        share: What it adds.
        fields: What of that each field gave.
        instead: Terms that the tool has in place of the word, where it is an action.
        side: Which side of the ranking it is part of.
    """

    word: str
    share: float
    fields: Mapping[FieldName, float]
    instead: tuple[str, ...] = ()
    side: SideName = "words"


class Reasons(NamedTuple):
    """What an engine says of one tool.

    Attributes:
        sides: Those with a weight.
        words: Whose shares add up to those of the sides that are words; largest first.
    """

    sides: tuple[Side, ...]
    words: tuple[WordShare, ...] = ()

    def beside(self, other: Reasons) -> Reasons:
        """These and what another engine says of the same tool."""
        return Reasons((*self.sides, *other.sides), _sorted((*self.words, *other.words)))

    def weighed(self, name: SideName, weight: float) -> Reasons:
        """The same as one side of several."""
        return Reasons(
            tuple(Side(name, weight, side.score) for side in self.sides),
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
    """Why a tool has its score: `1 - e ** -(sum * boost)`, or 1 where it was named.

    Attributes:
        tool: Its name.
        score: As a search gives it.
        is_named: Whether the query is the tool's name, or lists it.
        sum: What sides, operators and votes give, where 1 is what the query could reach.
        boost: For how much of name and description the query covers; 1 is none.
        reasons: What the engine gave.
        operators: What was added because the query's operators let the tool through.
        learned: What was added because it answered such queries before.
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
    """Adds up what the terms of each word gave a tool.

    Args:
        attainable: What a query could reach at most.
    """

    def __init__(self, attainable: float) -> None:
        self._attainable = attainable
        self._sums: dict[tuple[str, bool], dict[FieldName, float]] = {}
        self._instead: dict[tuple[str, bool], dict[str, None]] = {}

    def add(
        self, word: str, value: float, fields: Mapping[FieldName, float], instead: str | None = None
    ) -> None:
        """Adds what one term gave.

        Args:
            word: The query's word that it is a term of.
            value: What it gave.
            fields: The share of each field in that.
            instead: The term, where it is another word than the query's.
        """
        key = word, instead is not None
        sums = self._sums.setdefault(key, {})
        for field, share in fields.items():
            sums[field] = sums.get(field, 0.0) + value * share / self._attainable
        if instead is not None:
            self._instead.setdefault(key, {})[instead] = None

    def sorted(self) -> tuple[WordShare, ...]:
        """The words, the largest share first, equal ones by word."""
        found = (
            WordShare(
                word=key[0],
                share=math.fsum(fields.values()),
                fields=fields,
                instead=tuple(self._instead.get(key, ())),
            )
            for key, fields in self._sums.items()
        )
        return _sorted(found)


def _sorted(words: Iterable[WordShare]) -> tuple[WordShare, ...]:
    return tuple(sorted(words, key=lambda word: (-word.share, word.word, word.instead)))
