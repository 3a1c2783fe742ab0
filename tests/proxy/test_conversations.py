"""Conversations of official SDKs through the proxy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.proxy.clients import CLIENTS, QUESTIONS, RESPONSES, Client, ResponsesClient, ask_all
from tests.proxy.conftest import Start
from tool_search.testing import StandInServer
from tool_search.testing.prefix import prefix_change

pytestmark = pytest.mark.clients
CALLED = ["count_words", "convert_length", "count_words"]


def changes(server: StandInServer) -> list[str]:
    """Return the changes of the prefix between requests, without a list that grew."""
    found = []
    for before, after in pairwise(server.requests):
        change = prefix_change(before.raw_body, after.raw_body)
        if change is not None:
            found.append(str(change))
    return found


@pytest.mark.parametrize("strategy", ["generic", "bridge", "native"])
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("kind", CLIENTS, ids=lambda kind: kind.kind)
def test_a_client_sees_its_own_calls_and_no_search(
    server: StandInServer, start: Start, kind: type[Client], stream: bool, strategy: str
) -> None:
    if strategy == "native":
        strategy = {"anthropic": "claude", "openai_responses": "openai_responses"}.get(
            kind.kind, "auto"
        )
    client = kind(start(strategy), stream=stream)

    answers = ask_all(client)

    assert client.called == CALLED
    assert "6" in answers[0]
    assert "tool_search" not in str(client.history)
    # What was found for the first question serves the third.
    assert len(server.requests) == (9 if strategy == "bridge" else 8)
    if strategy not in ("auto", "generic"):
        assert changes(server) == []
    else:
        assert all("tool_added" in change for change in changes(server))


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_history_that_the_provider_keeps_goes_on_after_a_search(
    server: StandInServer, start: Start, stream: bool
) -> None:
    client = ResponsesClient(start(), stream=stream, stored=True)

    ask_all(client)

    assert client.called == CALLED


@pytest.mark.parametrize("strategy", ["generic", "bridge", "openai_responses"])
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_conversation_of_the_provider_has_each_item_once(
    server: StandInServer, start: Start, stream: bool, strategy: str
) -> None:
    client = ResponsesClient(start(strategy), stream=stream, in_conversation=True)

    ask_all(client)

    assert client.called == CALLED
    # The service adds a request's items to the conversation: none may be sent again.
    sent: list[Any] = [item for request in server.requests for item in request.body["input"]]
    assert [item["role"] for item in sent if "role" in item] == ["user"] * len(QUESTIONS)
    assert {item["type"] for item in sent if "role" not in item} <= {
        "function_call_output", "tool_search_output",
    }  # fmt: skip


def test_a_few_tools_pass_as_they_came(server: StandInServer, start: Start) -> None:
    client = ResponsesClient(start(), stream=False)
    client.tools = RESPONSES[:20]
    client.ask("Hello")

    body: Any = server.requests[0].body

    assert len(body["tools"]) == 20
