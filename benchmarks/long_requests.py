"""Measure requests of several wishes, with and without the best sentence of each tool.

Run: python benchmarks/long_requests.py [--data ../shared/data] [--engine bm25] [--queries 200]

No public set has such requests with known answers, so they are put together: queries of one
set, drawn by seed, with sentences between them that ask for nothing. A request wants the
tools of all its queries. The last rows are the sets' own queries that have several sentences.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

from search import MACRO, read_queries, read_tools

from tool_search.config.search import SearchSettings
from tool_search.search import JudgedQuery, build_index, evaluate
from tool_search.search.text.query import query_sentences

PASSING = (
    "My sister visited us last weekend and we had a great time.",
    "I have been busy with the new project at work since Monday.",
    "It rained all day, so we stayed at home.",
    "I am planning a surprise for my best friend.",
    "We are a small family business with ten employees.",
    "I just moved to a new apartment near the river.",
    "Our team is preparing a presentation for the client.",
    "I am a big fan of old movies and good food.",
    "My boss asked me to look into this before Friday.",
    "I am writing an article for our school newspaper.",
    "Lately I have been curious about many things.",
    "The kids are asleep, so I finally have some time.",
    "I started learning about this only a month ago.",
    "We are organizing a charity event next month.",
    "I am thinking about a trip with my friends.",
    "As a student I do not have much money.",
)
# The number of wishes and of sentences in passing.
FORMS = ((1, 3), (2, 0), (2, 2), (3, 0))


def joined(
    queries: Sequence[JudgedQuery], wishes: int, passing: int, count: int
) -> Iterator[JudgedQuery]:
    """Yield requests that are put together from queries."""
    chance = random.Random(f"{wishes} {passing}")
    for _ in range(count):
        asked = chance.sample(queries, wishes)
        texts = [each.query.strip() for each in asked]
        parts = [text if text[-1:] in ".?!" else f"{text}." for text in texts]
        for place, sentence in enumerate(chance.sample(PASSING, passing)):
            parts.insert(2 * place, sentence)
        relevant = dict.fromkeys(name for each in asked for name in each.relevant)
        yield JudgedQuery(query=" ".join(parts), relevant=tuple(relevant))


def requests(queries: Sequence[JudgedQuery], count: int) -> Iterator[tuple[str, list[JudgedQuery]]]:
    """Yield the rows of one set: a title and its requests."""
    # The sentences in passing are English.
    if queries[0].query.isascii():
        for wishes, passing in FORMS:
            title = f"{wishes} of the set, {passing} in passing"
            yield title, list(joined(queries, wishes, passing, count))
    own = [judged for judged in queries if query_sentences(judged.query)]
    if own:
        yield "the set's own", own[:count]


def measured(data: Path, engine: str, count: int) -> Mapping[str, Mapping[str, list[float]]]:
    """Return recall@5 by title and set: of whole requests, and with best sentences."""
    found: dict[str, dict[str, list[float]]] = {}
    for name in MACRO:
        queries = read_queries(data / name)
        index = build_index(read_tools(data / name), SearchSettings(engine=engine))
        for title, asked in requests(queries, count):
            own = found.setdefault(title, {}).setdefault(name, [])
            for read in (lambda *_: (), query_sentences):
                engines = "tool_search.search.engines"
                with (
                    patch(f"{engines}.bm25.query_sentences", read),
                    patch(f"{engines}.semantic.query_sentences", read),
                ):
                    own.append(evaluate(index, asked).recall_at_5)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--engine", default="bm25")
    parser.add_argument("--queries", type=int, default=200)
    options = parser.parse_args()
    found = measured(options.data, options.engine, options.queries)
    print(f"| `{options.engine}` | " + " | ".join(MACRO) + " | macro |")
    for title, rows in found.items():
        cells = [f"{rows[n][0]:.3f} {rows[n][1]:.3f}" if n in rows else "-" for n in MACRO]
        without, own = (statistics.fmean(row[k] for row in rows.values()) for k in (0, 1))
        print(f"| {title} | " + " | ".join(cells) + f" | {without:.3f} {own:.3f} |", flush=True)


if __name__ == "__main__":
    main()
