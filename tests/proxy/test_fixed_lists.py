"""Lists that no discovery changes: definitions come in messages, or through `call_tool`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import httpx2
import pytest

from tests.proxy.clients import (
    ANTHROPIC,
    CHAT,
    RESPONSES,
    ChatClient,
    Client,
    ResponsesClient,
    ask_all,
)
from tests.proxy.conftest import serve
from tests.proxy.test_hard_cases import Server, count, play, proxy, search
from tool_search.testing import Endpoint, ModelReply, StandInServer
from tool_search.testing.prefix import prefix_change

pytestmark = pytest.mark.clients
# Kimi thinks unless it is told not to, and wants its thoughts back with each reply.
_NO_THINKING = {"extra_body": {"thinking": {"type": "disabled"}}}
STREAMS = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
KINDS = pytest.mark.parametrize("kind", [ChatClient, ResponsesClient], ids=lambda kind: kind.kind)


class _Server(Server):
    def __init__(self) -> None:
        StandInServer.__init__(
            self, model=self, endpoint=Endpoint(extra_parameters=frozenset(("thinking",)))
        )


@pytest.fixture
def server() -> Iterator[Server]:
    """A stand-in provider that takes definitions in messages."""
    with _Server() as running:
        yield running
        assert running.violations == ()


def _client(kind: type[Client], address: str, *, stream: bool) -> Client:
    is_chat = kind is ChatClient
    client = kind(address, stream=stream, model="kimi-k3" if is_chat else "gpt-5.4")
    client.more = dict(_NO_THINKING) if is_chat else {}
    return client


def _as_nobody_else_writes(kind: type[Client]) -> list[Any]:
    """The client's tools with a field that definitions of ours do not have."""
    if kind is ResponsesClient:
        return RESPONSES
    tools: list[Any] = CHAT
    return [{**each, "function": {**each["function"], "strict": False}} for each in tools]


def _strategy(kind: type[Client]) -> str:
    return "tools_in_messages" if kind is ChatClient else "openai_responses"


@KINDS
@STREAMS
def test_found_tools_are_defined_in_messages_and_the_list_stays(
    server: Server, kind: type[Client], stream: bool
) -> None:
    play(
        server,
        ModelReply(text="I look.", calls=search("convert kilometers to miles", "count words")),
        ModelReply(text="Now.", calls=(count(), *search("roman numerals"))),
        ModelReply(text="done"),
        ModelReply(text="again"),
    )
    with serve(proxy(server, _strategy(kind))) as address:
        client = _client(kind, address, stream=stream)
        client.tools = written = _as_nobody_else_writes(kind)

        answers = ask_all(client, ("x", "y"))

    assert [answer.strip() for answer in answers] == ["done", "again"]
    assert client.called == ["count_words"]
    assert [prefix_change(a.raw_body, b.raw_body) for a, b in pairwise(server.requests)] == (
        [None] * 3
    )
    # As the client wrote it.
    (defined,) = (each for each in _defined(server) if _name(each) == "count_words")
    (own,) = (each for each in written if _name(each) == "count_words")
    assert {k: v for k, v in defined.items() if k != "defer_loading"} == own


def test_kimi_is_defined_no_tool_a_second_time(server: Server) -> None:
    play(
        server,
        ModelReply(calls=search("count words")),
        ModelReply(calls=search("count words", "words")),
        ModelReply(text="a"),
        ModelReply(calls=(count(), *search("count words"))),
        ModelReply(text="b"),
    )
    with serve(proxy(server, "tools_in_messages")) as address:
        client = _client(ChatClient, address, stream=False)
        assert ask_all(client, ("x", "y")) == ["a", "b"]

    for request in server.requests:
        defined = [t for m in json.loads(request.raw_body)["messages"] for t in m.get("tools", ())]
        names = list(map(_name, defined))
        assert len(names) == len(set(names))
    assert "count_words" in names


@KINDS
@STREAMS
def test_a_tool_that_is_called_without_a_search_is_defined_before_its_call(
    server: Server, kind: type[Client], stream: bool
) -> None:
    play(
        server, ModelReply(calls=(count(hidden=True),)), ModelReply(text="a"), ModelReply(text="b")
    )
    with serve(proxy(server, _strategy(kind))) as address:
        client = _client(kind, address, stream=stream)

        ask_all(client, ("x", "y"))

    assert client.called == ["count_words"]
    assert [_name(each) for each in _defined(server)] == ["count_words"]
    assert [prefix_change(a.raw_body, b.raw_body) for a, b in pairwise(server.requests)] == (
        [None] * 2
    )


@pytest.mark.parametrize(
    ("path", "strategy", "tools"),
    [
        ("/v1/messages", "generic", ANTHROPIC),
        ("/v1/messages", "bridge", ANTHROPIC),
        ("/v1/messages", "claude", ANTHROPIC),
        ("/v1/chat/completions", "bridge", CHAT),
        ("/v1/chat/completions", "tools_in_messages", CHAT),
        ("/v1/responses", "bridge", RESPONSES),
        ("/v1/responses", "openai_responses", RESPONSES),
    ],
)
def test_a_tool_that_tool_choice_names_is_declared(
    server: Server, path: str, strategy: str, tools: list[Any]
) -> None:
    play(server, ModelReply(calls=(count(),)))
    choice: dict[str, Any] = {"type": "function", "name": "count_words"}
    model, more = "gpt-5.4", dict[str, Any]()
    if tools is ANTHROPIC:
        choice["type"], model, more = "tool", "claude-sonnet-4-6", {"max_tokens": 900}
    elif tools is CHAT:
        choice = {"type": "function", "function": {"name": "count_words"}}
        model = "kimi-k3" if strategy == "tools_in_messages" else model
        more = _NO_THINKING["extra_body"]
    history = {"input" if tools is RESPONSES else "messages": [{"role": "user", "content": "x"}]}
    body = {"model": model, "tools": tools, "tool_choice": choice, **history, **more}
    with serve(proxy(server, strategy)) as address:
        reply = httpx2.post(
            f"{address}{path}",
            json=body,
            headers={"x-api-key": "x", "authorization": "Bearer x", "anthropic-version": "1"},
        )

    assert reply.status_code == 200, reply.text
    assert "count_words" in reply.text


def _defined(server: Server) -> list[dict[str, Any]]:
    """Return the definitions in the messages of the last request."""
    body = json.loads(server.requests[-1].raw_body)
    items = body.get("messages") or body["input"]
    return [tool for item in items for tool in item.get("tools") or ()]


def _name(definition: dict[str, Any]) -> str:
    return str((definition.get("function") or definition)["name"])
