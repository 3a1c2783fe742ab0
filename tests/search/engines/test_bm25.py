"""The default engine alone."""

from __future__ import annotations

import random
from array import array
from dataclasses import replace

import pytest

from tool_search.core.catalog.tool import Tool
from tool_search.search import build_index
from tool_search.search.engines.bm25 import Bm25Engine
from tool_search.search.index.ranking import RankedIndex
from tool_search.search.index.storage import Postings, sum_impacts

WORDS = [f"{first}{second}" for first in ("mail", "file", "user", "road") for second in "abcdefgh"]


def toolbox(size: int, seed: int = 5) -> list[Tool]:
    """Tools of random words."""
    rng = random.Random(seed)
    return [
        Tool(name=f"{rng.choice(WORDS)}_{number}", description=" ".join(rng.choices(WORDS, k=8)))
        for number in range(size)
    ]


@pytest.fixture(scope="module")
def large() -> list[Tool]:
    """Enough tools for numpy."""
    return toolbox(4_500)


def test_scores_by_python_and_by_numpy_are_equal() -> None:
    rng = random.Random(3)
    documents = [
        (doc_id, {f"t{term}": rng.random() for term in range(doc_id % 7)})
        for doc_id in range(5_000)
    ]
    postings = Postings(documents)
    weighted = [(postings.get(f"t{term}") or array("d"), 0.1 + term) for term in range(6)]
    few = [(posting[:5], weight) for posting, weight in weighted]
    sums = list(sum_impacts(few, 5_000))
    assert sums[:1_999] == list(sum_impacts(few, 1_999))
    whole = [0.0] * 5_000
    for posting, weight in weighted:
        for entry in posting:
            whole[int(entry)] += (entry - int(entry)) * weight
    assert list(sum_impacts(weighted, 5_000)) == whole


def test_postings_changed_many_times_unasked_are_those_of_a_fresh_index() -> None:
    """Documents come, go and are replaced under their ids; any number of changes may wait."""
    rng = random.Random(6)
    documents = {doc_id: {f"t{rng.randrange(9)}": 0.5} for doc_id in range(200)}
    postings = Postings(documents.items())
    for turn in range(100):
        gone = rng.sample(sorted(documents), 5)
        removed = [(doc_id, list(documents.pop(doc_id))) for doc_id in gone]
        added = {
            doc_id: {f"t{rng.randrange(9)}": rng.randrange(4) / 4}
            for doc_id in (*gone[turn % 2 :], 200 + turn)
        }
        documents |= added
        postings = postings.changed(removed=removed, added=added.items())
        fresh = Postings(sorted(documents.items()))
        if turn % 40 == 39:
            assert {term: postings.get(term) for term in postings.terms()} == {
                term: fresh.get(term) for term in fresh.terms()
            }
    assert sorted(postings.terms()) == sorted(fresh.terms())


def test_earlier_postings_are_what_they_were() -> None:
    before = Postings([(0, {"mail": 0.25}), (1, {"mail": 0.5})])
    after = before.changed(removed=[(0, ["mail"])], added=[(2, {"mail": 0.75})])
    assert (before.get("mail"), after.get("mail")) == (
        array("d", [0.25, 1.5]),
        array("d", [1.5, 2.75]),
    )
    assert before.get("mail") == array("d", [0.25, 1.5])


def test_boosted_top_equals_exhaustive_scoring(large: list[Tool]) -> None:
    index, rng = RankedIndex(Bm25Engine(large), min_relevance=0.0), random.Random(1)
    for _ in range(30):
        query = " ".join(rng.choices(WORDS, k=rng.randint(1, 9)))
        top = index.search(query, limit=5).matches
        assert top == index.search(query, limit=10_000).matches[:5]


def test_updated_here_and_there_ranks_as_a_fresh_build(large: list[Tool]) -> None:
    gone = [tool.name for tool in large[::150]]
    new = [replace(tool, name=f"new_{tool.name}") for tool in toolbox(40, seed=9)]
    index = RankedIndex(Bm25Engine(large), min_relevance=0.1).updated(added=new, removed=gone)
    fresh = RankedIndex(
        Bm25Engine([*(tool for tool in large if tool.name not in gone), *new]), min_relevance=0.1
    )
    for query in ("maila filed", "usera", "new roadc", gone[0]):
        assert index.search(query, limit=50) == fresh.search(query, limit=50)


def test_updated_many_times_ranks_as_a_fresh_build() -> None:
    tools = toolbox(300)
    engine = Bm25Engine(tools)
    for turn in range(25):
        changed = [replace(t, description=f"{t.description} turn {turn}") for t in tools[turn::29]]
        engine = engine.updated(added=changed, removed=[])
        tools = [*({tool.name: tool for tool in (*tools, *changed)}).values()]
    index, fresh = (RankedIndex(e, min_relevance=0.1) for e in (engine, Bm25Engine(tools)))
    for query in ("turn 24", "maila turn", "filed"):
        assert index.search(query, limit=300) == fresh.search(query, limit=300)


def test_search_name_counts_more_than_description() -> None:
    tools = [Tool(name="alpha", description="pigeon"), Tool(name="pigeon", description="alpha")]
    found = RankedIndex(Bm25Engine(tools), min_relevance=0.0).search("one pigeon", limit=2)
    assert [match.name for match in found.matches] == ["pigeon", "alpha"]


def test_search_covered_name_comes_first() -> None:
    tools = [Tool(name="delete_user"), Tool(name="delete_user_session_token")]
    found = RankedIndex(Bm25Engine(tools), min_relevance=0.0).search("delete the user", limit=2)
    assert [match.name for match in found.matches] == ["delete_user", "delete_user_session_token"]


def test_search_quoted_values_count_less_than_the_request() -> None:
    tools = [Tool(name="write_file"), Tool(name="plan_meeting")]
    found = RankedIndex(Bm25Engine(tools), min_relevance=0.0).search(
        'Write "plan meeting" to a file.', limit=2
    )
    assert found.matches[0].name == "write_file"


@pytest.mark.parametrize("size", [5_000, pytest.param(50_000, marks=pytest.mark.long)])
def test_build_many_tools_of_one_pattern_is_bounded(size: int) -> None:
    tools = [Tool(name=f"vendor_object_{number}_get") for number in range(size)]
    index = RankedIndex(Bm25Engine(tools), min_relevance=0.1)
    found = index.search("vendor object 3141", limit=5)
    assert found.matches[0].name == "vendor_object_3141_get"


def test_function_word_of_a_name_counts_with_the_rest_of_the_name() -> None:
    tools = (
        Tool(name="github_get_me", description="Details of the authenticated GitHub user."),
        Tool(name="get_commit", description="Get details for a commit of a repository."),
        Tool(name="get_label", description="Get a label."),
        Tool(name="find_hotel", description="Finds a hotel."),
        Tool(name="phone_find_me", description="Locates the phone."),
    )
    index = build_index(tools)
    assert index.search("get me", limit=1).matches[0].name == "github_get_me"
    assert index.search("find me a hotel", limit=1).matches[0].name == "find_hotel"
    assert index.search("tell me, please", limit=1).matches == ()


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("who is example.com", "who_is"),
        ("to do list for tomorrow", "to_do"),
        ("how to tie knots", "how_to"),
        ("how to cancel an order", "cancel_order"),
    ],
)
def test_name_of_stop_words_alone_is_found_by_them(query: str, name: str) -> None:
    tools = [
        Tool(name="who_is", description="Registration data of a domain."),
        Tool(name="to_do", description="Tasks of the user."),
        Tool(name="how_to", description="Instructions."),
        Tool(name="cancel_order", description="Cancels a purchase."),
    ]
    found = build_index(tools).search(query, limit=1).matches
    assert [match.name for match in found] == [name]
