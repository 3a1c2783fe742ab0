"""tooldiscovery's BM25: repeated parts, and the cutting of words."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search.catalog.tool import Tool
from tool_search.compat.tooldiscovery import Boosts, tooldiscovery_recipe, tooldiscovery_tokens
from tool_search.compat.weighted_bm25 import WeightedBm25Index

TOOL = Tool(
    name="status", namespace="vcs", tags=["git", "Fast"], description="Says what has changed."
)


def weights(boosts: Boosts | None = None, tool: Tool = TOOL) -> dict[str, int]:
    """The weight of each word of a tool."""
    return dict(tooldiscovery_recipe(boosts).weights(tool))


def found(query: str, *tools: Tool) -> list[str]:
    """The names of the tools that are found, best first."""
    return [tool.name for tool, _ in WeightedBm25Index(tools, tooldiscovery_recipe()).ranked(query)]


def test_name_namespace_and_tags_are_repeated_before_the_text() -> None:
    assert weights() == {"status": 4, "vcs": 3, "git": 3, "fast": 3, "says": 1, "changed": 1}


def test_boosts_can_be_chosen_and_zero_means_the_default() -> None:
    chosen = weights(Boosts(name=4, namespace=0, tags=1))
    assert (chosen["status"], chosen["vcs"], chosen["git"]) == (5, 3, 2)


def test_a_server_counts_as_a_namespace_where_there_is_none() -> None:
    assert weights(tool=Tool(name="t", server="github"))["github"] == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("create_issue createIssue file-read", ["create_issue", "createissue", "file", "read"]),
        ("The issue of the day", ["issue", "day"]),
        ("don't, e.g. 3.14 and 1,000", ["don't", "e.g", "3.14", "1,000"]),
        ("查找 images", ["查", "找", "images"]),
        ("Погода в Ёлках", ["погода", "ёлках"]),
        ("___ !? +", []),
    ],
)
def test_words_are_cut_at_word_boundaries(text: str, words: list[str]) -> None:
    assert tooldiscovery_tokens(text) == words


@given(st.text(st.characters(codec=None)))
def test_any_text_can_be_cut(text: str) -> None:
    assert all(any(map(str.isalnum, word)) for word in tooldiscovery_tokens(text))


def test_a_word_of_the_name_is_worth_more_than_one_of_the_text() -> None:
    tools = (
        Tool(name="one", description="a mail"),
        Tool(name="two", tags=["mail"]),
        Tool(name="mail"),
    )
    assert found("mail", *tools) == ["mail", "two", "one"]


def test_signs_of_a_query_say_nothing() -> None:
    tools = (Tool(name="mail"), Tool(name="post"))
    assert found("+mail -post name:x (", *tools) == ["mail", "post"]


def test_equal_scores_go_by_name() -> None:
    tools = [Tool(name=name, description="mail") for name in ("c", "b", "B")]
    assert found("mail", *tools) == ["B", "b", "c"]


def test_score_is_the_one_worked_out_by_hand() -> None:
    """One tool of weights 4 and 1 asked for the first: ln(4/3) 4 * 2.2 / (4 + 1.2)."""
    ((_, score),) = WeightedBm25Index(
        [Tool(name="mail", description="sends")], tooldiscovery_recipe()
    ).ranked("mail")
    assert score == pytest.approx(math.log(4 / 3) * 8.8 / 5.2)
