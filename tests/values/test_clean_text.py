"""Texts of definitions: nothing that only a model sees, and not too much of the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conversations import CLAUDE, OPENAI, Chat
from tool_search import Tool, ToolCatalog
from tool_search.adapters.anthropic.wire import encode_tools as encode_claude
from tool_search.adapters.openai_chat.wire import encode_tools as encode_chat
from tool_search.adapters.openai_responses.tools import encode_tools as encode_responses
from tool_search.core.values.clean_text import clean_line, clean_text, cut_schema
from tool_search.providers.profile_choice import profile_for

RESPONSES = profile_for("openai_responses", "gpt-5.5")
# A tag, a bidirectional control, a zero-width space, a variation selector, an escape, a filler.
UNSEEN = "\U000e0041\u202e\u200b\U000e0101\x1b\u3164"
LOUD: dict[str, Any] = {
    "type": "object",
    "title": f"T{UNSEEN}",
    "properties": {
        "description": {
            "type": "string",
            "description": f"Where{UNSEEN} to.",
            "enum": [f"home{UNSEEN}", "می\u200cخواهم"],
            "enumDescriptions": [f"My{UNSEEN} home."],
            "default": f"home{UNSEEN}",
            "examples": [f"away{UNSEEN}", {"deep": [f"x{UNSEEN}"]}],
            "x-hint": f"Hint{UNSEEN}.",
        },
        "default": {"description": f"D{UNSEEN}", "pattern": "^[\u200b]$"},
    },
    "required": ["description"],
    "$defs": {"part": {"anyOf": [{"title": f"P{UNSEEN}"}]}},
}


def test_no_dialect_sends_invisible_characters() -> None:
    """In names, descriptions and schemas; joiners of a value that is compared stay."""
    tool = Tool(name=f"go{UNSEEN[:3]}", description=f"Go{UNSEEN} there.", parameters=LOUD)
    chat = Chat([tool], {"tool_schema_mode": "full"})
    chat.begin()
    encoders = {encode_claude: CLAUDE, encode_chat: OPENAI, encode_responses: RESPONSES}
    for encode, profile in encoders.items():
        sent = encode(chat.session.plan(profile).tools, profile).decode()
        assert not set(sent) & set(UNSEEN[1:2] + UNSEEN[3:])
        assert "\\u001b" not in sent
        assert "\u200b" not in sent.replace("^[\u200b]$", "")
        for text in ("Go there.", "Where to.", '"home"', "My home.", "Hint.", "می\u200cخواهم"):
            assert text in sent


def test_names_that_others_refer_to_stay() -> None:
    schema = Tool(name="go", parameters=LOUD).parameters
    assert schema["properties"]["default"]["pattern"] == "^[\u200b]$"
    assert list(schema["properties"]) == ["description", "default"]
    assert schema["properties"]["default"]["description"] == "D"
    assert LOUD["title"] == f"T{UNSEEN}"


def test_an_equal_relisting_of_loud_definitions_is_equal() -> None:
    tool = Tool(name="go", description=f"Go{UNSEEN}.", parameters=LOUD)
    again = Tool(name="go", description=f"Go{UNSEEN}.", parameters=json.loads(json.dumps(LOUD)))
    assert tool == again == Tool.from_dict(tool.to_dict())
    assert ToolCatalog([tool]).fingerprint == ToolCatalog([again]).fingerprint


def test_lines_of_a_description_stay() -> None:
    assert Tool(name="a", description="One:\r\n- two\n\n\tthree\u2028four").description == (
        "One:\n- two\n\n\tthree\nfour"
    )


@settings(max_examples=200)
@given(st.text(st.characters(codec=None), max_size=60))
def test_a_cleaned_text_is_clean(text: str) -> None:
    cleaned = clean_text(text)
    assert clean_text(cleaned) == cleaned
    assert all(char.isprintable() or char.isspace() for char in cleaned)
    visible = [char for char in text if char.isalnum() and char not in "\u115f\u1160\u3164\uffa0"]
    assert [char for char in cleaned if char.isalnum()] == visible


def of_length(description: int, text: int) -> Tool:
    """A tool whose texts are this long."""
    parameters = {
        "type": "object",
        "properties": {
            "a": {
                "type": "string",
                "description": "d" * text,
                "title": "t" * text,
                "examples": ["e" * text, {"x": ["f" * text]}],
                "enum": ["v" * text],
            }
        },
    }
    return Tool(
        name="long", description="w" * description, parameters=parameters, kind="mcp", server="s"
    )


def test_long_texts_are_cut_at_their_limits_with_a_notice() -> None:
    chat = Chat([of_length(9_000, 2_500)], {"tool_schema_mode": "full"})
    chat.begin()
    tool = chat.session.plan(OPENAI).tools[0].tool
    part = tool.parameters["properties"]["a"]
    texts = part["description"], part["title"], part["examples"][0], part["examples"][1]["x"][0]
    assert [len(text) for text in (tool.description, *texts)] == [8_000, *([2_000] * 4)]
    assert tool.description.endswith("w…")
    assert len(part["enum"][0]) == 2_500
    (notice,) = chat.session.take_notices()
    assert notice.code == "definition_cut"
    assert "server 's'" in notice.message
    assert "'long'" in notice.message


def test_texts_within_the_limits_are_sent_whole() -> None:
    whole = of_length(8_000, 2_000)
    chat = Chat([whole], {"tool_schema_mode": "full"})
    chat.begin()
    assert chat.session.plan(OPENAI).tools[0].tool is whole
    assert chat.codes == []


def test_the_operators_own_tools_are_not_cut() -> None:
    """The operator who wrote them pays for them."""
    own = Tool(name="own", description="w" * 9_000)
    chat = Chat([own], {"tool_schema_mode": "full"})
    chat.begin()
    assert chat.session.plan(OPENAI).tools[0].tool is own


def test_the_limits_are_settings() -> None:
    """For servers that need more, and operators who want to pay for less."""
    limits = {"max_description_chars": 100, "max_schema_text_chars": 3_000}
    chat = Chat([of_length(9_000, 2_500)], {"tool_schema_mode": "full", **limits})
    chat.begin()
    tool = chat.session.plan(OPENAI).tools[0].tool
    assert len(tool.description) == 100
    assert len(tool.parameters["properties"]["a"]["title"]) == 2_500


def test_a_call_is_held_against_the_whole_definition() -> None:
    chat = Chat([of_length(9_000, 2_500)])
    chat.begin()
    decision = chat.decide("long", json.dumps({"a": "v" * 2_500}))
    assert len(decision.tool.description) == 9_000


def test_nothing_is_cut_of_a_schema_whose_texts_are_short() -> None:
    schema = {"properties": {f"p{n}": {"description": "d" * 90} for n in range(100)}}
    assert not cut_schema(schema, 2_000)


@pytest.mark.parametrize(("text", "line"), [("a\n\u200b b", "a b"), ("x" * 20, "x" * 9 + "…")])
def test_a_line_is_one_line_of_the_limit(text: str, line: str) -> None:
    assert clean_line(text, 10) == line
