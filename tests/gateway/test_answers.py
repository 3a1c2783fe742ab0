"""The gateway's own tools, and its answers to searches."""

from __future__ import annotations

import json

import pytest

from tool_search import Tool
from tool_search.i18n import LANGUAGES
from tool_search.serving.gateway import Hit, call_tool, schemas_text, search_text, search_tool

ISSUE = Tool(
    name="issue", server="github", kind="mcp", description="Open an\n  issue.",
    parameters={"type": "object", "properties": {"title": {"type": "string"}}},
)  # fmt: skip
SEND = Tool(name="send", server="mail", kind="mcp", description="Send a mail.")


def test_the_search_tool_says_how_many_tools_are_hidden() -> None:
    tool = search_tool(17, "en-US")
    assert tool.name == "search_available_tools"
    assert tool.description.startswith("Search through 17 additional available tools.")
    assert tool.parameters["required"] == ["query"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_tools_and_answers_are_in_each_language(language: str) -> None:
    assert "17" in search_tool(17, language).description
    assert call_tool(language).parameters["required"] == ["name"]
    assert "qwzx" in search_text("qwzx", [], language)


def test_hits_are_numbered_lines() -> None:
    hits = [Hit("github___issue", ISSUE), Hit("mail___send", SEND)]
    assert search_text("do", hits, "en-US") == (
        "Found 2 matching tools:\n1. github___issue - Open an issue.\n2. mail___send - Send a mail."
    )


def test_no_hit_names_the_query() -> None:
    text = "No tools found matching 'Q'. Try a different search term."
    assert search_text("Q", [], "en-US") == text
    assert search_text("", [], "en-US").startswith("No tools found matching ''.")


def test_a_client_whose_list_cannot_change_gets_the_schemas() -> None:
    line, how = schemas_text([Hit("github___issue", ISSUE)], "en-US").split("\n")
    name, _, schema = line.partition(": ")
    assert name == "github___issue"
    assert json.loads(schema)["properties"] == {"title": {"type": "string"}}
    assert "call_tool" in how


def test_what_a_server_or_a_client_wrote_is_cut_and_on_one_line() -> None:
    long = Tool(name="x", server="s", kind="mcp", description="a\u200b\x1b b\n" * 100_000)
    text = search_text("q", [Hit("s___x", long)], "en-US")
    assert len(text) < 400
    assert text.count("\n") == 1
    assert len(search_text("q\n" * 100_000, [], "en-US")) < 300


def test_a_description_of_middleware_is_the_one_that_is_shown() -> None:
    text = search_text("q", [Hit("mail___send", SEND, "Other. (via mcproxy)")], "en-US")
    assert text.endswith("1. mail___send - Other. (via mcproxy)")
