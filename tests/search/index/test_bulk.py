from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tool_search import Tool
from tool_search.search.index.bulk import bulk_postings
from tool_search.search.index.storage import DocumentIds, Postings
from tool_search.search.text.documents import Vocabulary, tool_impacts

_WORDS = [
    "Get",
    "get.",
    "GET",
    "'issue'",
    "createGitHubIssue_v2",
    "e-mail",
    "s3",
    "v1.2",
    "the",
    "What",
    "to",
    "do",
    "IDs",
    "don't",
    "naïve",
    "查询天气",
    "Погода",
    "2024",
    "list_all",
    "a",
    "...",
    "-x_",
    "résumé",
    "Straße",
]
_TEXTS = st.lists(st.sampled_from(_WORDS), max_size=12).map(" ".join)


def one_by_one(tools: list[Tool]) -> dict[str, list[float]]:
    vocabulary = Vocabulary()
    postings = Postings(
        (doc_id, tool_impacts(tool, None, vocabulary))
        for doc_id, tool in DocumentIds(tools).taken()
    )
    return {term: list(posting) for term, posting in postings.by_term().items()}


def at_once(tools: list[Tool]) -> dict[str, list[float]]:
    found = bulk_postings(DocumentIds(tools).taken(), None)
    return {term: list(posting) for term, posting in Postings.of_flat(found).by_term().items()}


@given(texts=st.lists(st.tuples(_TEXTS, _TEXTS, _TEXTS), max_size=8))
def test_postings_at_once_are_those_of_one_tool_after_another(
    texts: list[tuple[str, str, str]],
) -> None:
    tools = [
        Tool(
            name=f"{name} {number}".strip(),
            description=description,
            tags=("tag",) if number % 2 else (),
            parameters={"type": "object", "properties": {"q": {"description": parameter}}},
        )
        for number, (name, description, parameter) in enumerate(texts)
    ]
    assert at_once(tools) == one_by_one(tools)


def test_a_definition_beyond_the_bounds_and_a_name_of_stop_words_are_read_alike() -> None:
    tools = [
        Tool(name="long", description=" ".join(f"word{number}" for number in range(3_000))),
        Tool(name="What to do", description="the of"),
        Tool(name="empty"),
        Tool(name="signs", description="a \x01 b \x02 c"),
    ]
    found = at_once(tools)
    assert found == one_by_one(tools)
    assert all(found.values())
    assert "word2999" not in found


def test_blocks_are_joined_in_the_order_of_the_tools() -> None:
    tools = [Tool(name=f"tool_{number:05}", description="weather") for number in range(5_000)]
    assert [int(entry) for entry in at_once(tools)["weather"]] == list(range(5_000))
    assert at_once(tools) == one_by_one(tools)
