"""The learned map of meaning: what moves, for whom, and when it ends."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.search.word_embedder import WordEmbedder
from tool_search import MemoryStore, SearchSettings, Tool, ToolSearchIndex, build_index
from tool_search.core.services import Lesson, Votes
from tool_search.runner.learning import Learning
from tool_search.search.learned import DAY_S, with_votes
from tool_search.stores.base import KeptEvidence

NOW = 2.0e9
PATIENCE_S = 60.0
SUBJECTS = (
    *("weather", "mail", "money", "road", "music", "photo", "film", "book", "garden", "kitchen"),
    *("train", "bicycle", "doctor", "lawyer", "school", "market", "bank", "hotel", "river", "park"),
)
# A word of users for each subject, and one that means the same; no tool has either.
WISHES = tuple(zip((f"wish{s}" for s in SUBJECTS), (f"hope{s}" for s in SUBJECTS), strict=True))
TOOLS = tuple(Tool(name=f"get_{s}", description=f"Service of {s}.") for s in SUBJECTS)


class SynonymEmbedder(WordEmbedder):
    """An embedder for which two words of users mean the same."""

    def __init__(self, dimensions: int = 256) -> None:
        super().__init__("synonyms")
        self.dimensions = dimensions

    def embed(self, texts: list[str]) -> NDArray[np.float32]:  # type: ignore[override]
        """A row for each text."""
        return super().embed([text.replace("hope", "wish") for text in texts])


def catalog(engine: str = "hybrid", embedder: WordEmbedder | None = None) -> ToolSearchIndex:
    """An index over the tools."""
    settings = SearchSettings(engine=engine, vector_cache=None)
    return build_index(TOOLS, settings, embedder=embedder or SynonymEmbedder())


class Bot:
    """A bot whose users' searches lead to calls."""

    def __init__(self, index: ToolSearchIndex, *, keeps_vectors: bool = True) -> None:
        self.now = NOW
        self.store = MemoryStore()
        self.index = index
        self.learning = Learning(self.store, clock=lambda: self.now, keeps_vectors=keeps_vectors)

    async def votes(self, user: str | None = None) -> Votes | None:
        """What was learned, for one user."""
        return await self.learning.votes(user)

    async def teach(self, searches: int, *, days: float = 30.0, users: int = 5) -> None:
        """Let users search in their own words, and call what they wanted."""
        for number in range(searches):
            wish, subject = WISHES[number % len(WISHES)][0], SUBJECTS[number % len(SUBJECTS)]
            query = f"service {wish} {'abcdefgh'[number // len(WISHES)] * 3}"
            user = f"user{number % users}"
            self.now = NOW - days * DAY_S * (1 - number / searches)
            self.names(query, await self.votes(user))
            lesson = Lesson(query=query, tool=f"get_{subject}")
            await self.learning.learn([lesson], user=user, conversation=f"c{number}")
        self.now = NOW

    def names(self, query: str, votes: Votes | None) -> list[str]:
        """The names that a search finds."""
        return [m.name for m in with_votes(self.index, votes).search(query, limit=5).matches]

    async def first(self, number: int, user: str = "user0") -> str:
        """The first tool for a wish in words that were never taught."""
        found = self.names(f"service {WISHES[number][1]}", await self.votes(user))
        return found[0] if found else ""

    async def firsts(self) -> int:
        """The number of such wishes whose tool is first."""
        return sum([await self.first(n) == f"get_{s}" for n, s in enumerate(SUBJECTS)])

    async def wait(self, is_true: Callable[[int], bool]) -> bool:
        """Wait until so many wishes find their tool first."""
        end = time.monotonic() + PATIENCE_S
        while not is_true(await self.firsts()):
            if time.monotonic() > end:
                return False
            await asyncio.sleep(0.02)
        return True


@pytest.mark.parametrize("engine", ["hybrid", "semantic"])
@pytest.mark.parametrize("dimensions", [256, 1_024])
async def test_what_means_the_same_as_taught_words_finds_the_tool(
    engine: str, dimensions: int
) -> None:
    """A vote knows the words alone."""
    embedder = SynonymEmbedder(dimensions)
    bot = Bot(catalog(engine, embedder))
    plain = Bot(catalog(engine, embedder), keeps_vectors=False)
    await bot.teach(80)
    await plain.teach(80)
    assert await plain.firsts() < 5
    assert await bot.wait(lambda found: found >= 15)


async def test_fewer_than_thirty_searches_make_no_map() -> None:
    bot = Bot(catalog())
    before = await bot.firsts()
    await bot.teach(29)
    assert await bot.firsts() == before
    await asyncio.sleep(0.2)
    assert await bot.firsts() == before


async def test_a_map_ends_with_the_evidence_of_a_user() -> None:
    bot = Bot(catalog())
    before = await bot.firsts()
    await bot.teach(80)
    assert await bot.wait(lambda found: found >= 15)
    await bot.store.forget_evidence("get_weather")
    # Nothing waits for another one.
    assert await bot.firsts() == before


async def test_a_map_stays_when_tools_go_and_come() -> None:
    bot = Bot(catalog())
    await bot.teach(80)
    assert await bot.wait(lambda found: found >= 15)
    one, other, *_ = [n for n, s in enumerate(SUBJECTS) if await bot.first(n) == f"get_{s}"]
    bot.index = bot.index.updated(added=[], removed=[TOOLS[one].name])
    assert await bot.first(other) == TOOLS[other].name
    bot.index = bot.index.updated(added=[TOOLS[one]], removed=[])
    assert await bot.first(one) == TOOLS[one].name


async def test_one_users_map_is_that_users_own() -> None:
    bot = Bot(catalog())
    await bot.teach(80, users=1)
    assert await bot.wait(lambda found: found >= 15)
    assert await bot.first(3, user="another") != "get_road"


async def test_new_accounts_make_no_map_for_others() -> None:
    bot = Bot(catalog())
    before = await bot.firsts()
    await bot.teach(80, days=0.0, users=2)
    for _ in range(20):
        assert await bot.first(3, user="another") == await bot.first(3)
        await asyncio.sleep(0.02)
    assert await bot.firsts() == before


@pytest.mark.parametrize("vector", ["", "x", "\ud800", "nan", "A" * 100_000])
async def test_vectors_of_strangers_are_passed_over(vector: str) -> None:
    """As such, and after the key of the right embedder."""
    bot = Bot(catalog())
    await bot.teach(80)
    entries = (await bot.store.load_evidence()).entries
    key = entries[0].vector[:16]
    odd = [replace(e, vector=p + vector) for e, p in zip(entries, ("", key) * 40, strict=True)]

    async def load() -> KeptEvidence:
        return KeptEvidence(1_000, tuple(odd))

    bot.store.load_evidence = load  # type: ignore[method-assign]
    assert await bot.first(0)


async def test_vectors_are_kept_only_if_they_are_asked_for() -> None:
    bot, plain = Bot(catalog()), Bot(catalog(), keeps_vectors=False)
    for each in (bot, plain):
        await each.teach(1)
    (kept,) = (await bot.store.load_evidence()).entries
    # A number takes a byte, and four characters keep three of them.
    assert 256 * 4 // 3 <= len(kept.vector) <= 256 * 4 // 3 + 20
    (kept,) = (await plain.store.load_evidence()).entries
    assert kept.vector == ""


def test_a_bot_that_searches_by_words_loads_no_numbers() -> None:
    code = """
        import asyncio, sys
        from tool_search import MemoryStore, SearchSettings, Tool, build_index
        from tool_search.core.services import Lesson
        from tool_search.runner.learning import Learning
        from tool_search.search.learned import with_votes

        async def main():
            learning = Learning(MemoryStore(), keeps_vectors=True)
            index = build_index([Tool(name="get_weather", description="The weather.")],
                                SearchSettings(engine="bm25"))
            with_votes(index, await learning.votes()).search("umbrella", limit=5)
            await learning.learn([Lesson(query="umbrella", tool="get_weather")])
            found = with_votes(index, await learning.votes()).search("umbrella", limit=5)
            assert [match.name for match in found.matches] == ["get_weather"]

        asyncio.run(main())
        assert "numpy" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)  # noqa: S603
