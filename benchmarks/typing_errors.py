"""Measure the words that a search offers for typing errors, on public sets with known answers.

Run: python benchmarks/typing_errors.py --data ../shared/data [--set bfcl] [--queries 200]

A letter of the rarest plain word of a query that a tool has is dropped, so that no tool has
the word. The offer is right if it is the word. Then the query is asked with the error, and
with the offer in its place. The same queries without an error should be offered nothing.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import NamedTuple

from search import read_queries, read_tools

from tool_search.config.search import SearchSettings
from tool_search.search import JudgedQuery, ToolSearchIndex, build_index

SETS = ("metatool", "ultratool_en", "mcptoolbenchpp", "bfcl", "callnavi")
_MIN_LETTERS = 6


class Error(NamedTuple):
    """A query with a typing error.

    Attributes:
        judged: The query without it.
        word: The word.
        typed: The word without a letter.
    """

    judged: JudgedQuery
    word: str
    typed: str

    def with_word(self, word: str) -> str:
        """Return the query with another word in this place."""
        return self.judged.query.replace(self.word, word, 1)


def with_error(index: ToolSearchIndex, judged: JudgedQuery, chance: random.Random) -> Error | None:
    """Return a query with a letter dropped from its rarest word that a tool has."""
    words = [each.strip(".,?!:;'\"()") for each in judged.query.split()]
    found = []
    for word in dict.fromkeys(words):
        if len(word) >= _MIN_LETTERS and word.isascii() and word.isalpha() and word.islower():
            result = index.search(word, limit=0)
            if not result.unmatched and result.total_found:
                found.append((result.total_found, word))
    if not found:
        return None
    word = min(found)[1]
    place = chance.randrange(1, len(word))
    typed = word[:place] + word[place + 1 :]
    return Error(judged, word, typed) if index.search(typed, limit=0).unmatched else None


def recall(index: ToolSearchIndex, judged: JudgedQuery, query: str) -> float:
    """Return the share of a query's relevant tools within the first five."""
    names = {match.name for match in index.search(query, limit=5).matches}
    return len(names & set(judged.relevant)) / len(judged.relevant)


def print_set(folder: Path, most: int) -> None:
    """Print one line."""
    index = build_index(read_tools(folder), SearchSettings(engine="bm25"))
    near = index.near_words  # type: ignore[attr-defined]  # of this package's indexes
    queries, chance = read_queries(folder), random.Random(5)
    chance.shuffle(queries)
    errors: list[Error] = []
    for judged in queries:
        error = with_error(index, judged, chance)
        if error is not None and len(errors) < most:
            errors.append(error)
    offers = [near((error.typed,)) for error in errors]
    right = sum(offer == (error.word,) for error, offer in zip(errors, offers, strict=True))
    none = sum(not offer for offer in offers)
    clean = [near(index.search(judged.query, limit=0).unmatched) for judged in queries[: 3 * most]]
    recalls = [0.0, 0.0, 0.0]
    for error, offer in zip(errors, offers, strict=True):
        for place, word in enumerate((error.word, error.typed, *(offer or (error.typed,)))):
            recalls[place] += recall(index, error.judged, error.with_word(word)) / len(errors)
    count = len(errors)
    print(
        f"{folder.name:16}{count:5}{right / count:8.3f}{none / count:8.3f}"
        f"{1 - (right + none) / count:8.3f}{sum(map(bool, clean)) / len(clean):9.3f}"
        + "".join(f"{each:8.3f}" for each in recalls)
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", action="append")
    parser.add_argument("--queries", type=int, default=200)
    options = parser.parse_args()
    print(
        f"{'set':16}{'n':>5}{'right':>8}{'none':>8}{'wrong':>8}{'clean':>9}"
        "   recall@5: without, with, offer"
    )
    for name in options.set or SETS:
        print_set(options.data / name, options.queries)


if __name__ == "__main__":
    main()
