"""Learned searches: evidence that a query led to a tool, its decay, and votes from it.

Evidence is the words of a query as the search cuts them, sorted (no sentence, no order, no
numbers, nothing that was in quotation marks), the tool, the number of successes, the time of
the last one, and salted hashes of the user and the conversation. A user is a source: its
evidence counts in full in its own searches, and within bounds in those of others.

Pure: the time is an argument, in seconds since 1970.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from tool_search.core.services import ToolSearchIndex, Votes
from tool_search.search.index.ranking import WeakVote
from tool_search.search.index.storage import Postings, sum_impacts
from tool_search.search.text.query import query_terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "DAY_S",
    "DEFAULT_VOTING",
    "HALF_LIFE_S",
    "MAX_EVIDENCE",
    "MAX_PER_TOOL",
    "Evidence",
    "LearnedQueries",
    "Voting",
    "evidence_of",
    "evidence_words",
    "forgetting_time",
    "merge_evidence",
    "select_evidence",
    "source_hash",
    "with_votes",
]


DAY_S = 86_400.0
"""Seconds of a day."""
HALF_LIFE_S = 90 * DAY_S
"""Seconds after which evidence counts half: 90 days."""
MAX_PER_TOOL = 64
"""The maximum number of queries that are stored for one tool."""
MAX_EVIDENCE = 10_000
"""The maximum number of entries."""

_MAX_WORDS = 64
_MAX_STRENGTH = 4.0
# One success has less strength after more than a year.
_MIN_STRENGTH = 0.05
_MAX_CODE_CHARS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Searches with some words led to a tool that then succeeded.

    Attributes:
        tool: The tool's canonical name.
        words: The words of the query, as the search cuts them, sorted.
        at: The time of the last success, in seconds since 1970.
        strength: The number of successes, decayed to `at`; at most 4.
        source: The salted hash of the user; empty for all searches without a user.
        conversation: The salted hash of the conversation of the last success; empty if it
            is unknown.
    """

    tool: str
    words: tuple[str, ...]
    at: float
    strength: float = 1.0
    source: str = ""
    conversation: str = ""

    @property
    def key(self) -> tuple[str, tuple[str, ...], str]:
        """The identity of the evidence among others."""
        return self.tool, self.words, self.source

    @property
    def level(self) -> float:
        """The order of evidence by strength, which is the same at any time."""
        return math.log2(self.strength) + self.at / HALF_LIFE_S

    def strength_at(self, now: float) -> float:
        """Return the strength at a time; it halves every 90 days."""
        age = max(now - self.at, 0.0)
        return float(self.strength * 0.5 ** (age / HALF_LIFE_S))

    def renewed(self, newer: Evidence) -> Evidence:
        """Return the evidence with the successes of other evidence added, in any order of time."""
        at = max(self.at, newer.at)
        strength = self.strength_at(at) + newer.strength_at(at)
        last = newer if newer.at >= self.at else self
        return replace(
            self, at=at, strength=min(strength, _MAX_STRENGTH), conversation=last.conversation
        )


def evidence_words(query: str) -> tuple[str, ...]:
    """Return the words of a query that are stored and compared, sorted.

    Without stop words, numbers, words with digits other than short codes (s3, mp4), text in
    quotation marks, and words after the first 64.

    >>> evidence_words('Mail "the secret" to 4711 about the weather in Paris')
    ('mail', 'pari', 'weather')
    """
    terms = query_terms(query)
    # Quoted words and numbers weigh less than one.
    wished = (
        term
        for term, weight in terms.weights.items()
        if weight >= 1.0 and term not in terms.compounds and _is_word(term)
    )
    return tuple(sorted(islice(wished, _MAX_WORDS)))


def evidence_of(
    query: str,
    tool: str,
    *,
    now: float,
    strength: float = 1.0,
    source: str = "",
    conversation: str = "",
) -> Iterator[Evidence]:
    """Yield the evidence of one success; nothing if the query has no word to store."""
    words = evidence_words(query)
    if words:
        yield Evidence(
            tool=tool,
            words=words,
            at=now,
            strength=strength,
            source=source,
            conversation=conversation,
        )


def merge_evidence(known: Iterable[Evidence], new: Iterable[Evidence]) -> dict[object, Evidence]:
    """Return evidence by its key, with new successes added to the known ones."""
    entries: dict[object, Evidence] = {entry.key: entry for entry in known}
    for entry in new:
        before = entries.get(entry.key)
        entries[entry.key] = before.renewed(entry) if before else entry
    return entries


def select_evidence(entries: Iterable[Evidence], now: float) -> list[Evidence]:
    """Return the evidence that stays within the bounds, strongest first, ties by key.

    At most 64 entries of a tool and 10,000 in all; entries that are nearly forgotten go. Beyond
    a bound, the sources with the most entries lose their weakest.

    Args:
        entries: The evidence; keys differ.
        now: The time that entries are forgotten by; see `forgetting_time`.
    """
    by_tool: dict[str, list[Evidence]] = defaultdict(list)
    for entry in sorted(entries, key=lambda entry: (-entry.level, entry.key)):
        if entry.strength_at(now) >= _MIN_STRENGTH:
            by_tool[entry.tool].append(entry)
    chosen = [entry for own in by_tool.values() for entry in _share_out(own, MAX_PER_TOOL)]
    chosen.sort(key=lambda entry: (-entry.level, entry.key))
    return _share_out(chosen, MAX_EVIDENCE)


def _share_out(entries: list[Evidence], most: int) -> list[Evidence]:
    """Return as many entries, in order, with the places shared out between the sources."""
    if len(entries) <= most:
        return entries
    counts: Counter[str] = Counter()
    turns = []
    for place, entry in enumerate(entries):
        turns.append((counts[entry.source], place))
        counts[entry.source] += 1
    return [entries[place] for place in sorted(place for _, place in sorted(turns)[:most])]


# A clock that jumps ahead must not make a store forget everything.


def forgetting_time(times: Iterable[float], now: float) -> float:
    """Return the time that evidence is forgotten by, which needs a success of another day.

    Args:
        times: The times of known evidence.
        now: The time of the newest success.
    """
    return max((at for at in times if at <= now - DAY_S), default=0.0)


def source_hash(name: str, *, salt: bytes, kind: Literal["user", "conversation"]) -> str:
    """Return the salted hash of a user or a conversation, as evidence has it: 16 hex digits."""
    content = name.encode("utf-8", "surrogatepass")
    return blake2b(content, key=salt, digest_size=8, person=kind.encode()).hexdigest()


def _is_word(term: str) -> bool:
    if not any(char.isdigit() for char in term):
        return True
    return len(term) <= _MAX_CODE_CHARS and any(char.isalpha() for char in term)


# A query is compared with every answered query by the cosine of their words; rare words
# count more. The nearest ones vote for the tools that answered them, and a sum of few votes
# is shrunk towards 0. A distant neighbour is trusted as far as it is likely that the wanted
# tool has any history: one minus the share of tools that answered a single query, as Good
# and Turing estimate it. A near neighbour is trusted by itself. Votes only add, so a tool
# without history can be overtaken and loses nothing else.
# Source: I. J. Good, "The Population Frequencies of Species and the Estimation of
# Population Parameters", Biometrika 40, 1953.

# Number of answered queries without the word that are added to the count.
_UNSEEN_QUERIES = 100.0
# A few answers are weak evidence of the share of tools with a history: ten answers are added
# to the count, seven of them to tools with a history.
_SUPPOSED_QUERIES = 10.0
_SUPPOSED_AGAIN = 7.0
_MAX_IMPACT = 1.0 - 2.0**-24
# More than vote: some of the nearest may have been answered by tools that are removed.
_MAX_CANDIDATES = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Voting:
    """The constants of a vote; chosen in `benchmarks/learning.md`.

    Attributes:
        neighbours: The number of the nearest queries that vote.
        min_similarity: The lowest cosine of a neighbour.
        power: The exponent of a similarity.
        shrinkage: The number of missing votes, added to the sum that votes are divided by.
        max_vote: The score of a unanimous vote, where 1 is what the query could reach.
        min_sources: The number of sources that a tool needs before votes can lift it above the
            best match by words, in the search of another source.
        min_support: The lowest cosine of a query that makes its source one of them.
        max_words: The number of words that one source can teach others about one tool, apart
            from its newest query, which always counts.
    """

    neighbours: int = 16
    min_similarity: float = 0.03
    power: float = 1.5
    shrinkage: float = 0.5
    max_vote: float = 2.5
    # Measured by benchmarks/poisoning.py.
    min_sources: int = 2
    min_support: float = 0.1
    max_words: int = 32


DEFAULT_VOTING = Voting()


@runtime_checkable
class _TakesVotes(Protocol):
    """An index that can add votes to its scores."""

    def with_votes(self, votes: Votes) -> ToolSearchIndex: ...


def with_votes(index: ToolSearchIndex, votes: Votes | None) -> ToolSearchIndex:
    """Return the index with votes added to its scores, if it can take votes."""
    if votes is None or not isinstance(index, _TakesVotes):
        return index
    return index.with_votes(votes)


class LearnedQueries:
    """An immutable snapshot of the evidence, indexed by word.

    The order of the entries does not matter.

    Args:
        entries: The evidence; keys differ.
        voting: The constants of its votes.
    """

    __slots__ = (
        "_answers",
        "_coverages",
        "_own_only",
        "_pairs",
        "_postings",
        "_size",
        "_voting",
    )

    def __init__(self, entries: Iterable[Evidence], *, voting: Voting = DEFAULT_VOTING) -> None:
        self._voting = voting
        by_words: dict[tuple[str, ...], list[Evidence]] = defaultdict(list)
        for entry in entries:
            by_words[entry.words].append(entry)
        ordered = sorted(by_words)
        self._answers = [sorted(by_words[words], key=lambda e: e.key) for words in ordered]
        everything = [entry for answers in self._answers for entry in answers]
        self._size = len(everything)
        self._pairs = Counter((entry.tool, entry.source) for entry in everything)
        self._own_only = _beyond_bounds(everything, voting.max_words)
        # Filled on demand.
        self._coverages: dict[str, float] = {}
        having = Counter(word for words in ordered for word in words)
        rarity = {word: _rarity(count, len(ordered)) for word, count in having.items()}
        self._postings = Postings(
            (number, _impacts(words, rarity)) for number, words in enumerate(ordered)
        )

    def __len__(self) -> int:
        return self._size

    def of_source(self, source: str) -> LearnedQueries:
        """Return the evidence of one source alone."""
        entries = (entry for answers in self._answers for entry in answers)
        return LearnedQueries((e for e in entries if e.source == source), voting=self._voting)

    def votes(
        self, query: str, *, now: float, may: Callable[[str], bool], source: str = ""
    ) -> dict[str, float]:
        """Return the vote for each tool by name, from 0 to `max_vote`.

        Args:
            query: The query as the caller wrote it.
            now: The time in seconds since 1970; older evidence counts less.
            may: Returns True for the name of a tool that may be found; the evidence of other
                tools is ignored.
            source: The salted hash of the user who searches; empty without a user.

        Returns:
            The votes; a `WeakVote` for a tool that too few sources support.
        """
        voting = self._voting
        coverage = self._coverage_for(source)
        sums: dict[str, float] = defaultdict(float)
        backers: dict[str, set[str]] = defaultdict(set)
        total = 0.0
        answers = self._counted_answers(query, may, now=now, source=source)
        for similarity, given in islice(answers, voting.neighbours):
            strengths: dict[str, float] = defaultdict(float)
            for entry, strength in given:
                strengths[entry.tool] += strength
                if entry.source == source or similarity >= voting.min_support:
                    backers[entry.tool].add(entry.source)
            weight = similarity**voting.power
            trust = max(coverage, similarity) ** 2
            total += weight * min(max(strengths.values()), _MAX_STRENGTH)
            for tool, strength in strengths.items():
                sums[tool] += weight * min(strength, _MAX_STRENGTH) * trust
        votes: dict[str, float] = {}
        for tool, value in sums.items():
            vote = voting.max_vote * value / (total + voting.shrinkage)
            is_backed = source in backers[tool] or len(backers[tool]) >= voting.min_sources
            votes[tool] = vote if is_backed else WeakVote(vote)
        return votes

    def at(self, now: float, source: str = "") -> Votes:
        """Return the votes at one time for the searches of one source, as an index takes them."""
        return lambda query, may: self.votes(query, now=now, may=may, source=source)

    def _counted_answers(
        self, query: str, may: Callable[[str], bool], *, now: float, source: str
    ) -> Iterator[tuple[float, list[tuple[Evidence, float]]]]:
        """Yield the nearest answered queries with the evidence that counts, and its strength.

        The source's own evidence counts in full. Another source counts once for a tool, by
        its nearest query.
        """
        seen: set[tuple[str, str]] = set()
        for similarity, answers in self._nearest_answers(query, may):
            counted = []
            for entry in answers:
                if entry.source == source:
                    counted.append((entry, entry.strength_at(now)))
                elif (entry.source, entry.tool) not in seen and entry.key not in self._own_only:
                    seen.add((entry.source, entry.tool))
                    counted.append((entry, min(entry.strength_at(now), 1.0)))
            if counted:
                yield similarity, counted

    def _nearest_answers(
        self, query: str, may: Callable[[str], bool]
    ) -> Iterator[tuple[float, list[Evidence]]]:
        """Yield the nearest answered queries with those answers that may be found."""
        rarity = {word: self._rarity_of(word) for word in evidence_words(query)}
        length = math.sqrt(math.fsum(value * value for value in rarity.values()))
        known = ((self._postings.get(word), value) for word, value in rarity.items())
        weighted = [(posting, value / length) for posting, value in known if posting]
        if not weighted:
            return
        cosines = sum_impacts(weighted, len(self._answers))
        for similarity, number in _nearest(cosines, self._voting.min_similarity):
            answers = [entry for entry in self._answers[number] if may(entry.tool)]
            if answers:
                yield similarity, answers

    def _coverage_for(self, source: str) -> float:
        """Return the probability that the next tool that a source wants has answered before.

        Source: Good's estimate of the share of unseen species.
        """
        known = self._coverages.get(source)
        if known is None:
            # Another source counts once for a tool, or else it could buy trust.
            counts = Counter(tool for tool, other in self._pairs if other != source)
            own = {tool: count for (tool, other), count in self._pairs.items() if other == source}
            counts.update(own)
            again = counts.total() - sum(count == 1 for count in counts.values())
            known = (again + _SUPPOSED_AGAIN) / (counts.total() + _SUPPOSED_QUERIES)
            self._coverages[source] = known
        return known

    def _rarity_of(self, word: str) -> float:
        return _rarity(len(self._postings.get(word) or ()), len(self._answers))


def _beyond_bounds(entries: Iterable[Evidence], max_words: int) -> frozenset[object]:
    """Return the keys of evidence that counts in its source's own searches alone.

    A source teaches others its newest queries for a tool, up to a number of words.
    """
    words: dict[tuple[str, str], set[str]] = defaultdict(set)
    beyond = []
    for entry in sorted(entries, key=lambda entry: (-entry.level, entry.key)):
        taught = words[entry.source, entry.tool]
        if taught and len(taught.union(entry.words)) > max_words:
            beyond.append(entry.key)
        else:
            taught.update(entry.words)
    return frozenset(beyond)


def _rarity(having: int, queries: int) -> float:
    return math.log(1.0 + (queries + _UNSEEN_QUERIES - having + 0.5) / (having + 0.5))


def _impacts(words: Sequence[str], rarity: Mapping[str, float]) -> dict[str, float]:
    values = [rarity[word] for word in words]
    share = _MAX_IMPACT / math.sqrt(math.fsum(value * value for value in values))
    return {word: value * share for word, value in zip(words, values, strict=True)}


def _nearest(cosines: list[float] | NDArray[np.float64], least: float) -> list[tuple[float, int]]:
    """Return the largest cosines with their places, ties by place."""
    if isinstance(cosines, list):
        near = ((-cosine, place) for place, cosine in enumerate(cosines) if cosine >= least)
        return [(-cosine, place) for cosine, place in nsmallest(_MAX_CANDIDATES, near)]
    places = (cosines >= least).nonzero()[0]
    values = cosines[places]
    if len(values) > _MAX_CANDIDATES:
        edge = len(values) - _MAX_CANDIDATES
        ordered = values.copy()
        ordered.partition(edge)
        chosen = values >= ordered[edge]
        places, values = places[chosen], values[chosen]
    order = (-values).argsort(kind="stable")
    return list(zip(values[order].tolist(), places[order].tolist(), strict=True))
