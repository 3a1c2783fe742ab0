"""Hits by one Chinese character of several: they are chance, not relevance.

A character is a syllable with many words: 权力 shares 权 with 权利 and means something
else. A tool that has of a query nothing but one of its characters is no hit, where the
query has more of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from tool_search.search.index.storage import Posting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["without_lone_characters"]


def without_lone_characters(
    values: list[float] | NDArray[np.float64],
    characters: Sequence[Posting],
    words: Sequence[Posting],
) -> list[float] | NDArray[np.float64]:
    """The scores by slot, with 0 where one character alone made them.

    Args:
        values: The scores; they may be changed.
        characters: Postings of the query's single characters.
        words: Postings of all else that gave a score.
    """
    if isinstance(values, list):
        counts = Counter(map(int, chain.from_iterable(characters)))
        covered = set(map(int, chain.from_iterable(words)))
        for slot, count in counts.items():
            if count == 1 and slot not in covered:
                values[slot] = 0.0
        return values
    import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

    met = np.zeros(len(values), np.intp)
    for posting in characters:
        met[np.frombuffer(posting).astype(np.intp)] += 1
    for posting in words:
        met[np.frombuffer(posting).astype(np.intp)] += 2
    values[met == 1] = 0.0
    return values
