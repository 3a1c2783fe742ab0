"""Requests of Chat clients with hidden searches: what a provider and what a client sees."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from tool_search import (
    SearchError,
    SearchResult,
    ToolSearch,
    ToolSearchConfig,
    ToolSearchIndex,
)
from tool_search.adapters.openai_chat.requests import ChatRequest, ChatRequests

COUNT_OF_TOOLS = 40


def tool(name: str, description: str = "", **parameters: Any) -> dict[str, Any]:
    """Return a tool as Chat Completions write it."""
    schema = {"type": "object", "properties": {}, **parameters}
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


TOOLS = [
    tool("count_words", "Counts the words of a text.", required=["text"]),
    tool("convert_length", "Converts miles to kilometres."),
    *(tool(f"other_{number:02}", f"Does thing {number}.") for number in range(COUNT_OF_TOOLS)),
]
WEB = {"type": "web_search"}
ASKED = {"role": "user", "content": "Count the words."}


def call(name: str, arguments: str = "{}", *, id_: str = "call_1") -> dict[str, Any]:
    """Return a call as a model writes it."""
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def says(text: str | None = None, *calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a reply of the model."""
    called = {"tool_calls": list(calls)} if calls else {}
    return {"role": "assistant", "content": text, **more, **called}


def search_call(query: str, *, id_: str = "call_s") -> dict[str, Any]:
    """Return a call of the search tool."""
    return call("tool_search", json.dumps({"query": query}), id_=id_)


async def opened(
    requests: ChatRequests, messages: Any = (ASKED,), tools: Any = TOOLS, **more: Any
) -> ChatRequest:
    """Return an opened request of one client."""
    body = {"messages": list(messages), "tools": list(tools), **more}
    request = await requests.open("owner", body)
    assert request is not None
    return request


def names(request: ChatRequest) -> list[str]:
    """Return the declared names."""
    return [each.get("function", each).get("name", each["type"]) for each in request.tools]


def visible(request: ChatRequest) -> dict[str, Any]:
    """Return the reply as the client sends it back."""
    return says(request.text or None, *request.calls)


async def test_a_search_is_answered_here_and_comes_back_in_its_place() -> None:
    requests = ChatRequests(ToolSearch())
    request = await opened(requests)
    assert names(request) == ["tool_search"]
    assert await request.take(says("I look.", search_call("count words")))
    assert names(request)[:2] == ["tool_search", "count_words"]
    sent = request.messages
    assert not await request.take(says("Now.", call("count_words", '{"text": "a b"}')))
    assert request.text == "I look.\n\nNow."
    answer = {"role": "tool", "tool_call_id": "call_1", "content": "2"}
    later = await opened(requests, [ASKED, visible(request), answer])
    assert names(later) == names(request)
    assert later.messages[: len(sent)] == sent
    assert later.messages[len(sent)]["content"] == "Now."
    assert later.messages[-1] == answer


async def test_another_client_and_an_edited_history_do_not_get_a_search() -> None:
    requests = ChatRequests(ToolSearch())
    request = await opened(requests)
    await request.take(says(None, search_call("count words")))
    await request.take(says("Done."))
    history = [ASKED, visible(request), ASKED]
    assert "count_words" in names(await opened(requests, history))
    stranger = await requests.open("stranger", {"messages": history, "tools": TOOLS})
    assert stranger is not None
    assert names(stranger) == ["tool_search"]
    edited = [{"role": "user", "content": "Another one."}, *history[1:]]
    assert names(await opened(requests, edited)) == ["tool_search"]


async def test_a_search_in_a_reply_with_another_call_is_kept_before_it() -> None:
    requests = ChatRequests(ToolSearch())
    request = await opened(requests)
    known = call("convert_length", id_="call_2")
    assert not await request.take(says("Both.", search_call("count words"), known))
    assert request.calls == [known]
    answer = {"role": "tool", "tool_call_id": "call_2", "content": "3 km"}
    later = await opened(requests, [ASKED, visible(request), answer])
    roles = [message["role"] for message in later.messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert later.messages[2]["content"] is None
    assert later.messages[4]["content"] == "Both."
    assert "count_words" in names(later)


async def test_thinking_stays_with_the_hidden_reply() -> None:
    requests = ChatRequests(ToolSearch())
    request = await opened(requests)
    blocks = [{"type": "thinking", "thinking": "Look.", "signature": "abc"}]
    await request.take(says(None, search_call("count words"), thinking_blocks=blocks, audio=None))
    assert request.steps[0]["thinking_blocks"] == blocks
    assert "audio" not in request.steps[0]


@pytest.mark.parametrize(
    "change",
    [
        {"tools": TOOLS[:5]},
        {"tools": []},
        {"tools": None},
        {"tools": [WEB]},
        {"n": 2},
        {"messages": []},
        {"messages": "odd"},
        {"tools": [*TOOLS, tool("tool_search")]},
    ],
    ids=str,
)
async def test_what_needs_no_search_is_sent_unchanged(change: dict[str, Any]) -> None:
    body = {"messages": [ASKED], "tools": TOOLS, **change}
    assert await ChatRequests(ToolSearch()).open("owner", body) is None


async def test_a_tool_of_the_search_tools_name_is_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    requests = ChatRequests(ToolSearch())
    body = {"messages": [ASKED], "tools": [*TOOLS, tool("tool_search")]}
    with caplog.at_level(logging.WARNING):
        await requests.open("owner", body)
        await requests.open("owner", body)
    assert caplog.text.count("'tool_search'") == 1


async def test_tools_that_tool_choice_names_and_those_of_a_provider_are_declared() -> None:
    requests = ChatRequests(ToolSearch())
    named = {"type": "function", "function": {"name": "count_words"}}
    request = await opened(requests, tools=[*TOOLS, WEB], tool_choice=named)
    assert names(request) == ["web_search", "tool_search", "count_words"]
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [named]}}
    assert "count_words" in names(await opened(requests, tool_choice=allowed))
    assert names(await opened(requests, tool_choice="auto")) == ["tool_search"]


async def test_the_instructions_are_in_the_first_message_once() -> None:
    requests = ChatRequests(ToolSearch())
    parts = {"role": "system", "content": [{"type": "text", "text": "Be brief."}]}
    for first in ({"role": "developer", "content": "Be brief."}, parts):
        request = await opened(requests, [first, ASKED])
        await request.take(says(None, search_call("count words")))
        text = json.dumps(request.messages[0])
        assert "Be brief." in text
        assert text.count(json.dumps(request.view.instructions)[1:50]) == 1
        assert request.messages[0]["role"] == first["role"]
    assert parts["content"] == [{"type": "text", "text": "Be brief."}]


async def test_broken_calls_and_histories_do_not_raise() -> None:
    requests = ChatRequests(ToolSearch())
    odd: list[Any] = [
        ASKED,
        says(None, {"id": None, "function": 5}, {"type": "custom", "id": "c"}),
        {"role": "tool", "content": None},
        {"role": "tool", "tool_call_id": "call_9", "content": [{"type": "text", "text": "x"}]},
        {"role": "assistant", "tool_calls": "odd", "content": 7},
    ]
    request = await opened(requests, odd)
    assert await request.take(says(None, call("tool_search", '{"query": "count')))
    assert not await request.take(says(None, {"type": "custom", "id": "c", "custom": {}}))
    assert [each["id"] for each in request.calls] == ["c"]
    assert not await (await opened(requests)).take({"tool_calls": [call("unknown_tool")]})


async def test_a_hidden_tool_with_wrong_arguments_is_answered_and_declared() -> None:
    request = await opened(ChatRequests(ToolSearch()))
    assert await request.take(says(None, call("count_words", '{"txt": 1}')))
    assert "text" in request.steps[-1]["content"]
    assert names(request) == ["tool_search", "count_words"]


async def test_names_that_look_alike_are_called_by_those_of_the_client() -> None:
    tools = [*TOOLS, tool("Unicorn", "Feeds."), tool("unicorn", "Paints unicorns.")]
    request = await opened(ChatRequests(ToolSearch()), tools=tools)
    await request.take(says(None, search_call("paint unicorns")))
    other = next(name for name in names(request) if name.startswith("unicorn"))
    assert other != "unicorn"
    await request.take(says(None, call(other)))
    assert request.calls[0]["function"]["name"] == "unicorn"


class _Failing(ToolSearchIndex):
    """An index whose service is down."""

    def search(self, query: Any, **_more: Any) -> SearchResult:
        raise SearchError(f"the engine is down for {query!r}")

    def updated(self, **_more: Any) -> ToolSearchIndex:
        return self


async def test_an_engine_that_raises_declares_every_tool(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        "tool_search.adapters.hosts.indexes.build_index", lambda *_arguments: _Failing()
    )
    request = await opened(ChatRequests(ToolSearch()))
    with caplog.at_level(logging.WARNING):
        assert await request.take(says(None, search_call("count words")))
    assert len(names(request)) == len(TOOLS) + 1
    assert "the engine is down" in caplog.text


async def test_a_model_that_only_searches_ends_with_its_text() -> None:
    request = await opened(ChatRequests(ToolSearch()))
    steps = 0
    while await request.take(says("Hm.", search_call(f"thing {steps}", id_=f"s{steps}"))):
        steps += 1
        assert steps < 20
    assert request.calls == []
    assert request.text.startswith("Hm.")


async def test_results_of_the_client_teach_and_old_ones_do_not() -> None:
    search = ToolSearch((), ToolSearchConfig())
    requests = ChatRequests(search)
    request = await opened(requests)
    await request.take(says(None, search_call("lengthy distances in words")))
    wanted = names(request)[-1]
    await request.take(says(None, call(wanted)))
    answer = {"role": "tool", "tool_call_id": "call_1", "content": "done"}
    history = [ASKED, visible(request), answer]
    await opened(requests, history)
    later = search.view(tools=TOOLS)
    assert later.search({"query": "distances in lengthy words"}).names[0] == wanted
