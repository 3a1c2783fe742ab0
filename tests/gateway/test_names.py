"""Names at a gateway: full, short, and of two tools at once."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search import Tool
from tool_search.core.values.clean_text import clean_name
from tool_search.serving.gateway import GatewayNames, gateway_name, split_name


def listed(server: str, name: str) -> Tool:
    """A tool that a server lists."""
    return Tool(name=name, server=server, kind="mcp")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("github___issue", ("github", "issue")),
        ("a___b___c", ("a", "b___c")),
        ("a____b", ("a", "_b")),
        ("issue", (None, "issue")),
        ("___issue", (None, "___issue")),
        ("github___", (None, "github___")),
        ("", (None, "")),
    ],
)
def test_a_name_is_split_at_the_first_joint(name: str, parts: tuple[str | None, str]) -> None:
    assert split_name(name) == parts


def test_a_long_name_is_shortened_and_can_be_called_in_full() -> None:
    tool = listed("a" * 40, "b" * 40)
    names = GatewayNames.of([tool])
    (short,) = names.shown
    assert len(short) <= 64
    assert names.find(short) == names.find(f"{'a' * 40}___{'b' * 40}") == tool
    assert names.find("b" * 40) is None


def test_the_servers_own_name_counts_and_not_the_one_in_a_catalog() -> None:
    tool = Tool(name="chat__get", listed_name="get", server="chat", kind="mcp")
    assert list(GatewayNames.of([tool]).shown) == ["chat___get"]


def test_two_tools_of_one_full_name_are_reported_and_the_first_keeps_it() -> None:
    first, second = listed("a", "b___c"), listed("a___b", "c")
    names = GatewayNames.of([first, second])
    assert names.find("a___b___c") == first
    assert names.doubtful == ("a___b___c",)


def test_names_that_differ_by_case_are_two() -> None:
    names = GatewayNames.of([listed("s", "Get"), listed("s", "get")])
    assert list(names.shown) == ["s___Get", "s___get"]


_WORD = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=80
).filter(lambda word: clean_name(word) == word)  # a tool's name has no invisible character


@given(st.lists(st.tuples(_WORD, _WORD), unique=True, max_size=8))
def test_every_tool_has_a_valid_name_of_its_own_or_is_reported(
    pairs: list[tuple[str, str]],
) -> None:
    tools = {pair: listed(*pair) for pair in pairs}
    names = GatewayNames.of(tools.values())
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names.shown)
    assert len(names.shown) + len(names.doubtful) == len(tools)
    for tool in names.shown.values():
        assert names.find(gateway_name(*tool.source)) == tool
