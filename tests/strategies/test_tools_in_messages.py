"""Definitions that follow what found them, in messages, while the list stays as it is."""

from __future__ import annotations

import json
from typing import Any

from tests.conversations import CLAUDE, Chat, toolbox
from tool_search import Tool, profile_for
from tool_search.adapters.openai_chat.wire import encode_tools, to_wire
from tool_search.testing import check_openai_chat

KIMI = profile_for("openai_chat", "kimi-k3", base_url="https://api.moonshot.ai/v1")


def messages(chat: Chat) -> list[dict[str, Any]]:
    """Return the messages of the next request, which breaks no rule."""
    body = to_wire(chat.session.plan(KIMI), KIMI)
    assert check_openai_chat(body) is None
    written: list[dict[str, Any]] = body["messages"]
    return written


def brought(written: list[dict[str, Any]]) -> list[list[str]]:
    """Return the names that each message declares."""
    return [[t["function"]["name"] for t in m["tools"]] for m in written if "tools" in m]


def test_what_a_search_finds_comes_behind_its_result_and_the_list_stays() -> None:
    chat = Chat(toolbox(6, core=1))
    plan = chat.begin(KIMI)
    tools, sent = encode_tools(plan.tools, KIMI), messages(chat)
    for name in ("tool_003", "tool_001"):
        chat.find(name)
        now = messages(chat)
        assert now[: len(sent)] == sent
        sent = now
    chat.answer()
    plan = chat.begin(KIMI, "more")
    assert encode_tools(plan.tools, KIMI) == tools
    assert brought(messages(chat)) == [["tool_003"], ["tool_001"]]
    assert messages(chat)[: len(sent)] == sent


def test_what_is_called_without_a_search_comes_before_the_call() -> None:
    chat = Chat(toolbox(6))
    chat.begin(KIMI)
    chat.call("tool_002", {"count": 1})
    chat.find("tool_002")
    written = messages(chat)
    place = next(place for place, message in enumerate(written) if "tools" in message)
    assert written[place + 1]["tool_calls"][0]["function"]["name"] == "tool_002"


def test_discoveries_of_another_provider_are_brought_where_they_were_found() -> None:
    chat = Chat(toolbox(6))
    chat.begin(CLAUDE)
    chat.search("common", limit=3)
    assert brought(messages(chat)) == [[f"tool_{n:03}" for n in range(3)]]


def test_parallel_searches_bring_their_tools_behind_all_results() -> None:
    chat = Chat(toolbox(6))
    chat.begin(KIMI)
    searches = (("tool_search", {"query": f"tool_00{n}", "limit": 1}) for n in (4, 5))
    chat.calls(*searches)
    assert [m["role"] for m in messages(chat)][2:] == ["assistant", "tool", "tool", "system"]
    assert brought(messages(chat)) == [["tool_004", "tool_005"]]


def test_names_are_those_that_kimi_takes() -> None:
    chat = Chat([Tool(name="2fa code", description="common")])
    chat.begin(KIMI)
    chat.search("common")
    written = messages(chat)
    ((name,),) = brought(written)
    assert name.startswith("t_2fa")
    assert json.loads(written[-2]["content"])["matches"][0]["name"] == name
