"""tooldiscovery's BM25: repeated parts, and the cutting of words."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tool_search import ConfigurationError, SearchSettings, build_index
from tool_search.adapters.compat.tooldiscovery import (
    Boosts,
    normalized_tag,
    tooldiscovery_recipe,
    tooldiscovery_tokens,
)
from tool_search.adapters.compat.weighted_bm25 import WeightedBm25Index
from tool_search.config.loading import config_from_mapping
from tool_search.core.catalog.tool import Tool

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


def _says_something(char: str) -> bool:
    # Radicals, and places of compatibility ideographs, are no letters for Python.
    return char.isalnum() or "\u2e80" <= char <= "\u2fdf" or "\uf900" <= char <= "\ufaff"


@given(st.text(st.characters(codec=None)))
@example("\u2e80")
@example("\ufada")
def test_any_text_can_be_cut(text: str) -> None:
    assert all(any(map(_says_something, word)) for word in tooldiscovery_tokens(text))


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


@pytest.mark.parametrize("written", ["  TAG ONE ", "tag-one", "Tag\tOne", "TAG-ONE!", "tag one"])
@pytest.mark.parametrize("query", ["tag-one", "tag one"])
def test_a_tag_is_found_however_it_is_written(written: str, query: str) -> None:
    tools = (Tool(name="a", tags=[written]), Tool(name="b", tags=["two"]))
    assert found(query, *tools) == ["a"]
    plain = WeightedBm25Index([Tool(name="a", tags=["tag-one"])], tooldiscovery_recipe())
    here = WeightedBm25Index([Tool(name="a", tags=[written])], tooldiscovery_recipe())
    assert [score for _, score in here.ranked(query)] == [score for _, score in plain.ranked(query)]


@pytest.mark.parametrize(
    ("tag", "kept"),
    [
        ("  TAG ONE ", "tag-one"),
        ("a_b.c-d", "a_b.c-d"),
        ("a/b:c", "abc"),
        ("x" * 80, "x" * 64),
        (" !? ", ""),
        ("查找", "查找"),
    ],
)
def test_tags_are_normalized_as_tooldiscovery_does(tag: str, kept: str) -> None:
    assert normalized_tag(tag) == kept


TAGGED = [
    Tool(name="alpha", tags=["mail"]),
    Tool(name="mail_list", description="x"),
    Tool(name="c"),
]


def raw_score(boosts: Any) -> float:
    """Return the score of the tool with the tag."""
    settings = SearchSettings.model_validate({"preset": "tooldiscovery", "boosts": boosts})
    index = build_index(TAGGED, settings)
    assert isinstance(index, WeightedBm25Index)
    return next(score for tool, score in index.ranked("mail") if tool.name == "alpha")


def test_boosts_of_a_bot_are_those_of_the_program_unless_set() -> None:
    program = raw_score(None)
    assert program == raw_score({}) == raw_score({"name": 3, "namespace": 2, "tags": 2})
    assert program == raw_score({"name": 0, "namespace": 0, "tags": 0})


def test_one_value_chooses_the_boosts_of_the_document() -> None:
    """4, 2 and 1, which its users write with a fraction of zero."""
    document = raw_score("document")
    assert document == raw_score({"name": 4.0, "namespace": 2.0, "tags": 1.0})
    assert document < raw_score(None)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ({"preset": "tooldiscovery", "boosts": {"NameBoost": 4}}, "write name instead"),
        ({"preset": "tooldiscovery", "boosts": {"tag": 1}}, "write tags instead of tag"),
        ({"preset": "tooldiscovery", "boosts": {"server": 1}}, "known here: name, namespace, tags"),
        ({"preset": "tooldiscovery", "boosts": {"name": 2.5}}, r"boosts\.name is 2\.5"),
        ({"preset": "tooldiscovery", "boosts": {"name": -1}}, r"boosts\.name is -1"),
        ({"preset": "tooldiscovery", "boosts": "code"}, "must be document"),
        ({"boosts": {"name": 4}}, "set them both"),
        ({"preset": "tooldiscovery", "engine": "lexical", "boosts": {}}, "set them both"),
        ({"answer": "tools"}, "is a form of preset oh-my-pi"),
    ],
)
def test_wrong_boosts_are_an_error_that_says_what_is_right(
    search: dict[str, Any], message: str
) -> None:
    providers = [{"id": "a", "type": "anthropic", "model": "claude-sonnet-4-6"}]
    with pytest.raises(ConfigurationError, match=message):
        config_from_mapping({"providers": providers, "tool_search": {"search": search}})
