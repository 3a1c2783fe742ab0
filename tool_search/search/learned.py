"""Learned searches: evidence that a query led to a tool, its decay, and votes from it.

Evidence is the words of a query as the search cuts them, sorted (no sentence, no order, no
numbers, nothing that was in quotation marks), the tool, the number of successes, the time of
the last one, and salted hashes of the user and the conversation. A user is a source: its
evidence counts in full in its own searches, and within bounds in those of others.

Pure: the time is an argument, in seconds since 1970.
"""

# Longer than 600 lines: evidence and its votes, whose bounds and constants belong together.

from __future__ import annotations

import math
import struct
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
from tool_search.search.text.tokenizer import pieces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tool_search.core.catalog.tool import Tool

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
_MAX_SKETCHED_CHARS = 4_000
# The least of 32 hashes of the words: the share that two definitions have in common estimates
# the share of their words.
_HASHES = struct.Struct(">32H")
_MIN_LIKENESS = 0.25
_KEPT = 0.5


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
        first: The time of the first success; 0 if an older version did not keep it.
        definition: The tool's definition at the last success, as `definition_sketch` returns
            it; empty if an older version did not keep it.
        vector: The vector of the query, as `linear_map.to_text` writes it; empty if none is kept.
    """

    tool: str
    words: tuple[str, ...]
    at: float
    strength: float = 1.0
    source: str = ""
    conversation: str = ""
    first: float = 0.0
    definition: str = ""
    vector: str = ""

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
        early, last = (self, newer) if newer.at >= self.at else (newer, self)
        kept = early.strength_at(last.at) * validity(early.definition, last.definition)
        return replace(
            last,
            strength=min(kept + last.strength, _MAX_STRENGTH),
            first=min(self.first, newer.first),
            definition=last.definition or early.definition,
            vector=last.vector or early.vector,
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
    definition: str = "",
    vector: str = "",
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
            first=now,
            definition=definition,
            vector=vector,
        )


def definition_sketch(tool: Tool) -> str:
    """Return what evidence keeps of a tool's definition: a digest, and a sketch of its words.

    Source: A. Broder, "On the resemblance and containment of documents", 1997.
    """
    names = tool.parameters.get("properties", ())
    text = " ".join([tool.name, tool.description, *map(str, names)])
    found = pieces(text, max_chars=_MAX_SKETCHED_CHARS)
    words = {word for piece in found if not piece.is_stop_word for word in piece.words}
    hashes = (
        _HASHES.unpack(blake2b(word.encode("utf-8", "replace")).digest())
        for word in words or {tool.name}
    )
    least = bytes(min(column) & 0xFF for column in zip(*hashes, strict=True))
    return tool.shown_fingerprint + least.hex()


def validity(then: str, now: str) -> float:
    """Return the share of evidence that stays after a change of its tool's definition.

    Half of it, and none if the words of the definitions are too little alike: the name means
    another function then.

    Args:
        then: The sketch of the definition that the evidence is about; empty if unknown.
        now: The sketch of the definition that the tool has.
    """
    if not then or not now or then == now:
        return 1.0
    # Two digits a word, after the digest; another version's text may be of any length.
    hashes = (zip(sketch[16::2], sketch[17::2], strict=False) for sketch in (then, now))
    alike = [first == second for first, second in zip(*hashes, strict=False)]
    return _KEPT if sum(alike) >= _MIN_LIKENESS * len(alike) else 0.0


def merge_evidence(known: Iterable[Evidence], new: Iterable[Evidence]) -> dict[object, Evidence]:
    """Return evidence by its key, with new successes added to the known ones."""
    entries: dict[object, Evidence] = {entry.key: entry for entry in known}
    for entry in new:
        before = entries.get(entry.key)
        entries[entry.key] = before.renewed(entry) if before else entry
    # Evidence of an older version is taken to be about the definition that it is first seen with.
    definitions = {entry.tool: entry.definition for entry in entries.values() if entry.definition}
    return {
        key: entry
        if entry.definition
        else replace(entry, definition=definitions.get(entry.tool, ""))
        for key, entry in entries.items()
    }


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
        max_shared: The same for the evidence of other sources.
        min_share: The share of independent sources that a tool needs, as a lower bound, before
            votes can lift it above the best match by words in the search of another source.
        deviations: The standard deviations from the share to its lower bound.
        grown_days: The days between the first and the last success of a source that make it
            count half as an independent one.
        max_count: The most that one source counts.
        max_pull: The share of all evidence with which one source pulls on the map at most.
        min_sources: The number of sources that have grown and used several tools, before votes
            lift a tool so in the search of another: fewer are no company to be compared with.
        min_alike: The lowest cosine of what others taught as long as there are fewer.
        max_words: The number of words that one source can teach others about one tool, apart
            from its newest query, which always counts.
    """

    neighbours: int = 16
    min_similarity: float = 0.1
    power: float = 1.5
    shrinkage: float = 0.5
    max_vote: float = 2.5
    # Measured by benchmarks/poisoning.py.
    max_shared: float = 1.0
    min_share: float = 0.02
    deviations: float = 0.5
    max_count: float = 0.25
    max_pull: float = 0.06
    min_sources: float = 3.0
    min_alike: float = 0.2
    grown_days: float = 7.0
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

    Attributes:
        keys: The keys of the evidence.
    """

    __slots__ = (
        "_ages",
        "_answers",
        "_coverages",
        "_is_young",
        "_own_only",
        "_pairs",
        "_postings",
        "_used",
        "_validities",
        "_voting",
        "keys",
    )

    def __init__(self, entries: Iterable[Evidence], *, voting: Voting = DEFAULT_VOTING) -> None:
        self._voting = voting
        by_words: dict[tuple[str, ...], list[Evidence]] = defaultdict(list)
        for entry in entries:
            by_words[entry.words].append(entry)
        ordered = sorted(by_words)
        self._answers = [sorted(by_words[words], key=lambda e: e.key) for words in ordered]
        everything = [entry for answers in self._answers for entry in answers]
        self.keys: frozenset[object] = frozenset(entry.key for entry in everything)
        self._pairs = Counter((entry.tool, entry.source) for entry in everything)
        self._own_only = _beyond_bounds(everything, voting.max_words)
        self._used = Counter(source for _, source in self._pairs)
        self._ages = _ages(everything)
        grown = math.fsum(self._grown(name) for name, n in self._used.items() if n > 1)
        self._is_young = grown < voting.min_sources
        # Filled on demand.
        self._coverages: dict[str, float] = {}
        self._validities: dict[tuple[str, str], float] = {}
        having = Counter(word for words in ordered for word in words)
        rarity = {word: _rarity(count, len(ordered)) for word, count in having.items()}
        self._postings = Postings(
            (number, _impacts(words, rarity)) for number, words in enumerate(ordered)
        )

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def entries(self) -> Iterator[Evidence]:
        """The evidence, in order."""
        return (entry for answers in self._answers for entry in answers)

    @property
    def sole_source(self) -> str | None:
        """The source of all evidence; None if there is none, or another one."""
        return next(iter(self._used)) if len(self._used) == 1 else None

    def has_source(self, source: str) -> bool:
        """Return True if there is evidence of a source."""
        return source in self._used

    def of_source(self, source: str) -> LearnedQueries:
        """Return the evidence of one source alone."""
        return LearnedQueries((e for e in self.entries if e.source == source), voting=self._voting)

    def pulls(
        self, embedder: str, *, now: float, find: Callable[[str], Tool | None]
    ) -> tuple[list[Evidence], list[float]]:
        """Return the evidence with a vector, and the weight of each on a learned map, up to 1.

        A source weighs as an independent one of the vote does, and has at most `max_pull` of
        the whole, unless all is its own.

        Args:
            embedder: The key of what made the vectors.
            now: The time in seconds since 1970.
            find: Returns the tool of a name, or None.
        """
        # Two lists and no pairs: thousands of new objects make the interpreter look at all.
        pulling: list[Evidence] = []
        weights: list[float] = []
        sums: dict[str, float] = defaultdict(float)
        is_shared, number = len(self._used) > 1, 0
        for entry in self.entries:
            if not entry.vector.startswith(embedder):
                continue
            number += 1
            tool = find(entry.tool)
            strength = entry.strength_at(now) * self._validity(entry, tool) if tool else 0.0
            weight = min(strength, 1.0) * (self._weigh(entry) if is_shared else 1.0)
            if weight:
                pulling.append(entry)
                weights.append(weight)
                sums[entry.source] += weight
        most = number * (self._voting.max_pull if is_shared else 1.0)
        shares = {source: min(1.0, most / whole) for source, whole in sums.items()}
        return pulling, [
            weight * shares[entry.source] for entry, weight in zip(pulling, weights, strict=True)
        ]

    def votes(
        self, query: str, *, now: float, find: Callable[[str], Tool | None], source: str = ""
    ) -> dict[str, float]:
        """Return the vote for each tool by name, from 0 to `max_vote`.

        Args:
            query: The query as the caller wrote it.
            now: The time in seconds since 1970; older evidence counts less.
            find: Returns the tool of a name, or None if it may not be found: its evidence is
                ignored then.
            source: The salted hash of the user who searches; empty without a user.

        Returns:
            The votes; a `WeakVote` for a tool that too few sources support.
        """
        voting = self._voting
        coverage = self._coverage_for(source)
        sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        near: dict[str, float] = {}
        backing: dict[str, dict[str, float]] = defaultdict(dict)
        total = 0.0
        answers = self._counted_answers(query, find, now=now, source=source)
        for similarity, given in islice(answers, voting.neighbours):
            weight = similarity**voting.power
            trust = max(coverage, similarity) ** 2
            strengths: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
            for entry, strength in given:
                is_own = entry.source == source
                strengths[entry.tool][not is_own] += strength
                count = min(self._weigh(entry) * weight, voting.max_count)
                near[entry.source] = max(near.get(entry.source, 0.0), count)
                # The first query of a source is its nearest.
                backing[entry.tool].setdefault(entry.source, count)
            total += weight * min(max(map(sum, strengths.values())), _MAX_STRENGTH)
            for tool, both in strengths.items():
                share = weight * trust * min(1.0, _MAX_STRENGTH / sum(both))
                for place, strength in enumerate(both):
                    sums[tool][place] += share * strength
        everyone = math.fsum(near.values())
        votes: dict[str, float] = {}
        scale = voting.max_vote / (total + voting.shrinkage)
        for tool, (own, others) in sums.items():
            vote = scale * own + min(scale * others, voting.max_shared)
            counts = backing[tool].values()
            # One source alone never leads the searches of others: the largest does not count.
            agreeing = math.fsum(counts) - max(counts)
            share = lower_bound(agreeing, everyone, voting.deviations)
            is_sure = not self._is_young and share >= voting.min_share
            votes[tool] = vote if is_sure or source in backing[tool] else WeakVote(vote)
        return votes

    def at(self, now: float, source: str = "") -> Votes:
        """Return the votes at one time for the searches of one source, as an index takes them."""
        return lambda query, find: self.votes(query, now=now, find=find, source=source)

    def _counted_answers(
        self, query: str, find: Callable[[str], Tool | None], *, now: float, source: str
    ) -> Iterator[tuple[float, list[tuple[Evidence, float]]]]:
        """Yield the nearest answered queries with the evidence that counts, and its strength.

        The source's own evidence counts in full. Another source counts once for a tool, by
        its nearest query.
        """
        seen: set[tuple[str, str]] = set()
        for similarity, answers in self._nearest_answers(query):
            counted = []
            for entry in answers:
                tool = find(entry.tool)
                strength = entry.strength_at(now) * self._validity(entry, tool) if tool else 0.0
                if not strength:
                    continue
                if entry.source == source:
                    counted.append((entry, strength))
                elif self._is_young and similarity < self._voting.min_alike:
                    continue
                elif (entry.source, entry.tool) not in seen and entry.key not in self._own_only:
                    seen.add((entry.source, entry.tool))
                    counted.append((entry, min(strength, 1.0)))
            if counted:
                yield similarity, counted

    def _validity(self, entry: Evidence, tool: Tool) -> float:
        """Return the share of evidence that stays with the definition that its tool has."""
        if not entry.definition or entry.definition.startswith(tool.shown_fingerprint):
            return 1.0
        key = entry.definition, tool.shown_fingerprint
        known = self._validities.get(key)
        if known is None:
            known = self._validities[key] = validity(entry.definition, definition_sketch(tool))
        return known

    def _nearest_answers(self, query: str) -> Iterator[tuple[float, list[Evidence]]]:
        """Yield the nearest answered queries with their answers."""
        rarity = {word: self._rarity_of(word) for word in evidence_words(query)}
        length = math.sqrt(math.fsum(value * value for value in rarity.values()))
        known = ((self._postings.get(word), value) for word, value in rarity.items())
        weighted = [(posting, value / length) for posting, value in known if posting]
        if not weighted:
            return
        cosines = sum_impacts(weighted, len(self._answers))
        for similarity, number in _nearest(cosines, self._voting.min_similarity):
            yield similarity, self._answers[number]

    def _weigh(self, entry: Evidence) -> float:
        """Return the weight of evidence as that of an independent source, from 0 to 1.

        It grows with the age of the source and the number of other tools that it used, and
        falls with the number of queries that it gave this tool: accounts that were used once,
        or for one tool, have none.
        """
        others = self._used[entry.source] - 1
        share = others / (others + self._pairs[entry.tool, entry.source])
        return float(self._grown(entry.source) * share**2)

    def _grown(self, source: str) -> float:
        """Return the share to which a source has grown, by its age."""
        age = self._ages[source]
        return age / (age + self._voting.grown_days * DAY_S)

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


def _ages(entries: Iterable[Evidence]) -> dict[str, float]:
    """Return the seconds from the first to the last success of each source."""
    times: dict[str, tuple[float, float]] = {}
    for entry in entries:
        first, last = times.get(entry.source, (entry.first, entry.at))
        times[entry.source] = min(first, entry.first), max(last, entry.at)
    return {source: max(last - first, 0.0) for source, (first, last) in times.items()}


def lower_bound(part: float, whole: float, deviations: float) -> float:
    """Return the lower bound of a share: two of two are less than two hundred of two hundred.

    Source: E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical
    Inference", Journal of the American Statistical Association 22, 1927.
    """
    if whole <= 0.0:
        return 0.0
    share, square = part / whole, deviations * deviations
    middle = share + square / (2 * whole)
    spread = math.sqrt(share * (1 - share) * square / whole + square * square / (4 * whole**2))
    return (middle - spread) / (1 + square / whole)


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
