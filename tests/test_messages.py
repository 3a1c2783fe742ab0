"""Messages, calls and tool lists."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conversations import tool
from tool_search import ImagePart, Message, TextPart, ToolCall
from tool_search.core.messages import DeclaredTool, ReferencePart, ToolList, plain_text

ENTRIES = [DeclaredTool(tool("a")), DeclaredTool(tool("b"), deferred=True)]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("x", "x"),
        ((), ""),
        ((TextPart("a"), ImagePart("u"), TextPart("b")), "a\nb"),
        ((ReferencePart(("x",)),), ""),
    ],
)
def test_the_text_of_a_message_leaves_other_parts_out(content: object, text: str) -> None:
    message = Message(role="user", content=content)  # type: ignore[arg-type]
    assert message.text == plain_text(message.content) == text


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5)))
def test_arguments_that_are_an_object_are_read(arguments: dict[str, object]) -> None:
    call = ToolCall(id="1", name="x", arguments=json.dumps(arguments))
    assert call.parsed_arguments() == arguments
    assert call.is_readable


@pytest.mark.parametrize("arguments", ["{", "[]", "5", "null", '{"a": NaN}', "[" * 99_999])
def test_arguments_that_are_no_object_are_none(arguments: str) -> None:
    call = ToolCall(id="1", name="x", arguments=arguments)
    assert call.parsed_arguments() is None
    assert not call.is_readable


def test_a_tool_list_knows_what_it_declares_and_shows() -> None:
    tools = ToolList(ENTRIES)
    assert (tools.names, len(tools)) == (("a", "b"), 2)
    assert [shown.name for shown in tools.loaded] == ["a"]
    assert tools.declares("b")
    assert not tools.declares("c")
    assert (tools[0], tools[-1:]) == (ENTRIES[0], (ENTRIES[1],))


def test_the_bytes_of_a_list_are_made_once_a_dialect() -> None:
    tools, made = ToolList(ENTRIES), []

    def encode(entry: DeclaredTool) -> str:
        made.append(entry.tool.name)
        return json.dumps(entry.tool.name)

    assert [tools.encoded(dialect, encode) for dialect in ("x", "x", "y")] == [b'["a","b"]'] * 3
    assert made == ["a", "b", "a", "b"]


def test_a_list_with_a_lone_surrogate_has_bytes_all_the_same() -> None:
    """A name that a dialect wrote carelessly must not end the bot."""
    assert ToolList(ENTRIES[:1]).encoded("x", lambda _: '"\ud800"') == b'["?"]'


def test_an_empty_list_is_empty() -> None:
    assert ToolList().encoded("x", lambda _: "") == b"[]"
    assert not ToolList()


@pytest.mark.parametrize(
    "other",
    [ENTRIES[:1], ENTRIES[::-1], [ENTRIES[0], DeclaredTool(tool("b"))],
     [ENTRIES[0], DeclaredTool(tool("b", description="New."), deferred=True)]],
)  # fmt: skip
def test_lists_of_another_content_have_another_fingerprint(other: list[DeclaredTool]) -> None:
    assert ToolList(ENTRIES).fingerprint != ToolList(other).fingerprint
    again = [DeclaredTool(tool("a")), DeclaredTool(tool("b"), deferred=True)]
    assert ToolList(ENTRIES).fingerprint == ToolList(again).fingerprint
