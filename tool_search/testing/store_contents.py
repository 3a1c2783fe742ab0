"""Contents of stores, for the tests that every store must pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.record import (
    BegunCall,
    KeyedTurn,
    ShadowTurn,
    ThinkingRecord,
    message_digest,
)
from tool_search.core.discoveries import Discovery
from tool_search.core.messages import ImagePart, Message, NativeReply, TextPart, ToolCall
from tool_search.providers.profile_choice import profile_for
from tool_search.runner.session.session import ToolSearchSession
from tool_search.search.learned import Evidence
from tool_search.stores.base import Grant
from tool_search.stores.record import ConversationRecord

__all__ = [
    "CHAT",
    "KEYS",
    "MAIL",
    "NOW",
    "RICH_TOOL",
    "common_tool",
    "discoveries_of",
    "record_of",
    "rich_record",
    "success_of",
]

NOW = 2.0e9
MAIL = Grant(rule="send_mail", user="ann", fingerprint="f1")
CHAT = Grant(rule="run(git *)", user=None, conversation="group:1")
_PROFILE = profile_for("openai_chat", "gpt-5.4", strategy="generic")
KEYS = (
    "", "群聊:42", "a'b\"c", "x\ny", "🙂", "{a}{b}", "*?[a]", "..", "/etc/passwd", "a b",
    "\x00", "%s", "k" * 10_000,
    # Those that a store may take for others: by case, spaces, length, or as names of files.
    "A b", "a b ", " a b", "k" * 10_001, "..".replace(".", "\uff0e"), "_etc_passwd", "é", "e\u0301",
)  # fmt: skip


def common_tool(name: str, description: str = "") -> Tool:
    """Return a tool with one argument."""
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}}
    return Tool(name=name, description=description or f"Common {name}.", parameters=schema)


def discoveries_of(*names: str) -> list[Discovery]:
    """Return discoveries of the tools with these names."""
    return [Discovery(tool=common_tool(name)) for name in names]


def record_of(*found: str, said: Sequence[str] = ("Hello!",)) -> ConversationRecord:
    """Return a conversation with some user messages that found these tools."""
    session = ToolSearchSession(
        ToolCatalog([common_tool(f"tool_{number:03}") for number in range(9)]),
        config=ToolSearchConfig(tool_schema_mode="tool_search"),
    )
    for message in said:
        session.begin_turn(message, profile=_PROFILE)
        session.close_open_calls()
    session.adopt_discoveries(discoveries_of(*found))
    return session.record()


def rich_record() -> ConversationRecord:
    """Return a conversation with something in every place that a record has."""
    call = ToolCall(id="call_1", name="tool_003", arguments='{"count": 1}')
    picture = (TextPart("Look: 🙂\x00"), ImagePart("data:image/png;base64,iVBORw0KGgo="))
    native = NativeReply("anthropic", ({"type": "thinking", "signature": "c2ln"},), told="call_0")
    return replace(
        record_of("tool_005", "tool_003"),
        history=(
            Message(role="user", content=picture, turn="d3"),
            Message(role="assistant", content="One moment.", tool_calls=(call,), native=native),
            Message(
                role="tool", content="no", tool_call_id="call_1", name="tool_003", is_error=True
            ),
        ),
        thinking=ThinkingRecord(holds_from=1, messages=2, digest="d1"),
        left_out={"list": "d2"},
        configured="shadow",
        listing="tool_001, tool_002",
        former_search_names=("find_tools",),
        shadow=(ShadowTurn(message_digest("Look"), ("tool_005", "tool_003")),),
        turns=(
            KeyedTurn(
                key="d3",
                message="d4",
                at=NOW,
                calls={"call_1": BegunCall("tool_003", "k1", has_ended=True)},
                done=None,
            ),
        ),
    )


RICH_TOOL = Tool(
    name="mcp__mail__send",
    description="Sends mail.",
    parameters={"type": "object", "properties": {"$to": {"type": "string"}}, "required": ["$to"]},
    kind="mcp",
    server="mail",
    listed_name="send",
    title="Send",
    tags=("letters",),
    aliases=("post",),
    annotations={"readOnlyHint": False},
    examples=({"$to": "ann"},),
    roles=("member",),
    always_load=True,
)


def success_of(tool: str, *words: str, at: float = NOW, strength: float = 1.0) -> Evidence:
    """Return evidence that these words led to a tool."""
    return Evidence(tool=tool, words=tuple(sorted(words)), at=at, strength=strength)
